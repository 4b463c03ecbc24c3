"""Families whose branches need the right inputs in the right order."""

from __future__ import annotations

from llm4cov_assets.ingest.rtl import Module


def lock(m: Module) -> None:
    """Combination lock: codes in order open it, wrong ones send it back and may raise an alarm."""
    rng = m.rng
    depth, width = rng.randint(2, 4), rng.choice((4, 5, 6, 8, 10, 12))
    code = m.input("code", width)
    valid = m.input("valid") if rng.random() < 0.7 else None
    panic = rng.random() < 0.5
    strikes = rng.randint(2, 4) if not panic or rng.random() < 0.4 else 0
    names = ["IDLE", *(f"STEP{i}" for i in range(1, depth)), "OPEN"] + (["ALARM"] if panic or strikes else [])
    state, labels = m.states(names, visible=rng.random() < 0.3)
    opened, alarm = m.output("unlock"), m.output("alarm") if "ALARM" in names else None
    keys = m.constants([f"KEY{i}" for i in range(depth + 3)], width)
    bits = strikes.bit_length()
    tries = m.register("tries", bits) if strikes else None
    arms: list[str] = []
    for i in range(depth):
        arms += [f"{labels[i]}: begin", f"if ({code} == {keys[i]}) {state} <= {labels[i + 1]};"]
        if panic and i == depth - 1:
            arms.append(f"else if ({code} == {keys[depth]}) {state} <= {labels[-1]};")
        arms.append("else begin")
        arms.append(f"{state} <= {labels[0]};")
        if tries and i == 0:
            arms.append(f"if ({tries} == {bits}'d{strikes}) {state} <= {labels[-1]};")
            arms.append(f"else {tries} <= {tries} + {bits}'d1;")
        arms += ["end", "end"]
    last = [f"if ({code} == {keys[depth + 1]}) {state} <= {labels[0]};"]
    if tries and rng.random() < 0.5:
        last.append(f"{tries} <= {bits}'d0;")
    if alarm:
        arms += [f"{labels[depth]}: begin", *last, "end", "default: begin"]
        arms.append(f"if ({code} == {keys[depth + 2]}) begin")
        arms += [f"{state} <= {labels[0]};", *([f"{tries} <= {bits}'d0;"] if tries else []), "end", "end"]
        m.assign(alarm, f"{state} == {labels[-1]}")
    else:
        arms += ["default: begin", *last, "end"]
    m.assign(opened, f"{state} == {labels[depth]}")
    body = [f"case ({state})", *arms, "endcase"]
    m.clocked(*([f"if ({valid}) begin", *body, "end"] if valid else body))


def detector(m: Module) -> None:
    """Detects a pattern of symbols and long runs of one symbol, and counts what it saw."""
    rng = m.rng
    width, length = rng.choice((3, 4, 4, 5, 6, 8)), rng.randint(3, 5)
    symbol = m.input("symbol", width)
    valid = m.input("valid") if rng.random() < 0.5 else None
    pattern = m.numbers(width, length + 1)
    names = ["START", *(f"GOT{i}" for i in range(1, length)), "FOUND"]
    state, labels = m.states(names)
    found = m.output("flag")
    marks = [m.constant(f"P{i}", width, v) for i, v in enumerate(pattern)]
    need, matches = rng.randint(4, 9), rng.randint(2, 3)
    bits, match_bits = need.bit_length(), (matches - 1).bit_length()
    run, long_run = m.register("count", bits), m.output_register("done")
    seen, enough = m.register("tries", match_bits), m.output_register("alarm")
    arms: list[str] = []
    for i in range(length):
        arms += [f"{labels[i]}: begin", f"if ({symbol} == {marks[i]}) {state} <= {labels[i + 1]};"]
        if 0 < i < length - 1 or (i and rng.random() < 0.5):
            arms.append(f"else if ({symbol} == {marks[0]}) {state} <= {labels[1]};")
        if i:
            arms.append(f"else {state} <= {labels[0]};")
        arms.append("end")
    arms += [
        "default: begin",
        f"{state} <= {labels[0]};",
        f"if ({seen} == {match_bits}'d{matches - 1}) {enough} <= 1'b1;",
        f"else {seen} <= {seen} + {match_bits}'d1;",
        "end",
    ]
    runs = [
        f"if ({symbol} == {marks[length]}) begin",
        f"if ({run} == {bits}'d{need}) {long_run} <= 1'b1;",
        f"else {run} <= {run} + {bits}'d1;",
        "end else begin",
        f"{run} <= {bits}'d0;",
        "end",
    ]
    m.assign(found, f"{state} == {labels[-1]}")
    body = m.shuffled([[f"case ({state})", *arms, "endcase"], runs])
    m.clocked(*([f"if ({valid}) begin", *body, "end"] if valid else body))


def fsm(m: Module) -> None:
    """State machine with random transitions guarded by comparisons of two inputs."""
    rng = m.rng
    count = rng.randint(4, 7)
    wide, narrow = rng.choice((6, 7, 8, 10)), rng.choice((3, 4, 5))
    a, b, go = m.input("data", wide), m.input("mode", narrow), m.input("valid")
    all_names = ["IDLE", "LOAD", "CHECK", "RUN", "PAUSE", "DRAIN", "FINISH"]
    state, labels = m.states(all_names[: count - 1] + all_names[-1:], visible=rng.random() < 0.4)
    ok, bad = m.output_register("done"), m.output_register("error")
    wide_values = m.constants([f"A{i}" for i in range(count * 2)], wide)
    narrow_values = m.constants([f"B{i}" for i in range(min(count, 6))], narrow)

    def guard(i: int) -> str:
        v, w = wide_values[i], narrow_values[i % len(narrow_values)]
        limit = m.value(wide, rng.randint((1 << wide) * 15 // 16, (1 << wide) - 3))
        low = m.value(wide, rng.randint(2, max(3, (1 << wide) // 32)))
        equal = f"{a} == {v}"
        return rng.choice(
            (equal, f"{equal} && {b} == {w}", f"{go} && {b} == {w}", f"{a} > {limit}", f"{a} < {low} && {go}")
        )

    arms: list[str] = []
    for i, label in enumerate(labels):
        last = i == len(labels) - 1
        arms.append("default: begin" if last else f"{label}: begin")
        if last:
            arms += [f"if ({a} == {wide_values[-1]} && {go}) begin", f"{state} <= {labels[0]};"]
            arms += [f"{ok} <= 1'b0;", "end"]
        else:
            arms += [f"if ({guard(i)}) begin", f"{state} <= {labels[i + 1]};"]
            if i == len(labels) - 2:
                arms.append(f"{ok} <= 1'b1;")
            arms.append("end")
            if i == 1 or (i and rng.random() < 0.6):
                back = labels[rng.randrange(i)]
                arms += [f"else if ({a} == {wide_values[count + i - 1]}) begin", f"{state} <= {back};"]
                arms += [f"{bad} <= 1'b1;", "end"]
        arms.append("end")
    m.clocked(f"case ({state})", *arms, "endcase")
    clear = m.value(narrow, (1 << narrow) - 1)
    m.clocked(f"if ({bad} && {b} == {clear} && !{go}) {bad} <= 1'b0;")


def packet(m: Module) -> None:
    """Packet parser: start mark, type, a number of payload words by type, end mark."""
    rng = m.rng
    width = rng.choice((6, 7, 8, 8, 10))
    data, valid = m.input("data", width), m.input("valid")
    state, s = m.states(["HUNT", "KIND", "BODY", "TAIL", "BAD"])
    kinds = rng.randint(2, 3)
    types = [f"T{i}" for i in range(kinds)]
    start, tail, resync, special, *marks = m.constants(("SOF", "EOF", "SYNC", "MAGIC", *types), width)
    good, bad, extra = m.output_register("done"), m.output_register("error"), m.output_register("flag")
    lengths = rng.sample(range(1, 8), kinds)
    bits = max(lengths).bit_length()
    left = m.register("count", bits)
    arms = [f"{s[0]}: begin", f"if ({data} == {start}) {state} <= {s[1]};", "end", f"{s[1]}: begin"]
    for i in range(kinds):
        arms.append(f"{'else ' if i else ''}if ({data} == {marks[i]}) begin")
        arms += [f"{left} <= {bits}'d{lengths[i]};", f"{state} <= {s[2]};", "end"]
    arms += [f"else {state} <= {s[4]};", "end", f"{s[2]}: begin"]
    arms += [f"if ({data} == {special}) {extra} <= 1'b1;"]
    arms += [f"if ({left} == {bits}'d0) {state} <= {s[3]};", f"else {left} <= {left} - {bits}'d1;", "end"]
    arms += [f"{s[3]}: begin", f"if ({data} == {tail}) begin", f"{good} <= 1'b1;", f"{state} <= {s[0]};", "end"]
    arms += [f"else {state} <= {s[4]};", "end", "default: begin", f"{bad} <= 1'b1;"]
    arms += [f"if ({data} == {resync}) begin", f"{state} <= {s[0]};", f"{bad} <= 1'b0;", "end", "end"]
    m.clocked(f"if ({valid}) begin", f"case ({state})", *arms, "endcase", "end")
