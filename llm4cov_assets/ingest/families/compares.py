"""Families whose branches need the right values."""

from __future__ import annotations

from llm4cov_assets.ingest.rtl import Module


def magic(m: Module) -> None:
    """Compares inputs with magic numbers, alone and together, and remembers what it saw."""
    rng = m.rng
    widths = [rng.choice((6, 8, 10, 12, 16)), rng.choice((4, 6, 8, 10)), rng.choice((3, 4, 5, 8))]
    a, b, c = (m.input(role, w) for role, w in zip(("data", "code", "mode"), widths, strict=True))
    enable = m.input("valid")
    pa, pb, pc = (
        [m.constant(f"{n}{i}", w, v) for i, v in enumerate(m.numbers(w, 4))] for n, w in zip("ABC", widths, strict=True)
    )
    flags = [m.output_register("flag") for _ in range(3)]
    done = m.output_register("done")
    half = widths[0] // 2
    part = m.value(widths[0] - half, rng.randint(1, (1 << (widths[0] - half)) - 2))
    blocks = [
        [f"if ({a} == {pa[0]}) {flags[0]} <= 1'b1;", f"else if ({a} == {pa[1]} && {b} == {pb[0]}) {flags[0]} <= 1'b0;"],
        [f"if ({b} == {pb[1]}) begin", f"{flags[1]} <= 1'b1;", f"if ({c} == {pc[0]}) {flags[2]} <= 1'b1;", "end"],
    ]
    if rng.random() < 0.6:
        blocks.append([f"if ({a}[{widths[0] - 1}:{half}] == {part} && {c} != {pc[1]}) {flags[2]} <= !{b}[0];"])
    if rng.random() < 0.7:
        last = f"{flags[0]} && {flags[1]} && {c} == {pc[2]}" if rng.random() < 0.6 else f"{flags[1]} && {a} == {pa[2]}"
        blocks.append([f"if ({last}) {done} <= 1'b1;"])
    else:
        blocks.append([f"if ({a} == {pa[2]} && {b} == {pb[2]} && {c} == {pc[2]}) {done} <= 1'b1;"])
    m.clocked(f"if ({enable}) begin", *m.shuffled(blocks), "end")
    if rng.random() < 0.5:
        m.clocked(f"if ({done} && !{enable} && {b} == {pb[3]}) {done} <= 1'b0;")


def window(m: Module) -> None:
    """Sorts samples into bands by thresholds and trips after enough samples in a narrow window."""
    rng = m.rng
    width = rng.choice((7, 8, 9, 10, 12))
    top = (1 << width) - 1
    sample = m.input("sample", width)
    valid = m.input("valid") if rng.random() < 0.6 else None
    zone, trip, peak = m.output_register("zone", 2), m.output_register("alarm"), m.output_register("flag")
    cuts = sorted(rng.sample(range(4, top - 8), 3))
    low = rng.randint(top // 4, top // 2)
    span, need, ack = rng.randint(1, 6), rng.randint(2, 7), rng.randint(top // 2 + 8, top - 8)
    bits = need.bit_length()
    run = m.register("count", bits)
    lower, upper = m.constant("LOW", width, low), m.constant("HIGH", width, low + span)
    words = [m.constant(f"T{i}", width, v) for i, v in enumerate(cuts)]
    bands = [f"if ({sample} < {words[0]}) {zone} <= 2'd0;", f"else if ({sample} < {words[1]}) {zone} <= 2'd1;"]
    if rng.random() < 0.5:
        bands += [f"else if ({sample} == {words[2]}) {zone} <= 2'd3;", f"else {zone} <= 2'd2;"]
    else:
        bands += [f"else if ({sample} > {m.value(width, top - rng.randint(1, 4))}) {zone} <= 2'd3;"]
        bands += [f"else {zone} <= 2'd2;"]
    runs = [
        f"if ({sample} >= {lower} && {sample} <= {upper}) begin",
        f"if ({run} == {bits}'d{need}) {trip} <= 1'b1;",
        f"else {run} <= {run} + {bits}'d1;",
        "end else begin",
        f"{run} <= {bits}'d0;",
        f"if ({trip} && {sample} == {m.constant('ACK', width, ack)}) {trip} <= 1'b0;",
        "end",
    ]
    peaks = [
        f"if ({sample} == {m.value(width, top)}) {peak} <= 1'b1;",
        f"else if ({sample} == {m.value(width, rng.randint(1, 3))}) {peak} <= 1'b0;",
    ]
    body = m.shuffled([bands, runs, peaks])
    m.clocked(*([f"if ({valid}) begin", *body, "end"] if valid else body))


def opcode(m: Module) -> None:
    """Decodes operations; some need particular operands, unknown ones set an error until a key clears it."""
    rng = m.rng
    op_width, width = rng.choice((4, 5, 6)), rng.choice((4, 6, 8))
    op, a, b = m.input("op", op_width), m.input("data", width), m.input("code", width)
    go = m.input("valid")
    result, error = m.output_register("result", width), m.output_register("error")
    flag = m.output_register("flag")
    codes = m.numbers(op_width, 6)
    halted = m.output_register("busy") if rng.random() < 0.5 else None
    zero, ones = m.value(width, 0), m.value(width, (1 << width) - 1)
    high, low = m.value(width, (1 << width) - 1 - rng.randint(1, 3)), m.value(width, rng.randint(1, 3))
    v = [m.constant(f"K{i}", width, n) for i, n in enumerate(m.numbers(width, 6))]
    kinds = [
        [f"{result} <= {a};"],
        [f"if ({a} == {v[0]}) {flag} <= 1'b1;", f"else {result} <= {b};"],
        [f"if ({a} == {v[1]} && {b} == {v[2]}) {result} <= {ones};", f"else {error} <= 1'b1;"],
        [f"if ({b} > {high}) {result} <= {zero};", f"else if ({b} == {v[3]}) {flag} <= 1'b0;"],
        [f"if ({a} == {v[4]}) begin", f"{result} <= {v[5]};", f"if ({b} != {v[0]}) {flag} <= 1'b1;", "end"],
        [f"if ({a} < {low}) {error} <= 1'b1;", f"else {result} <= {v[1]};"],
    ]
    rng.shuffle(kinds)
    chosen = kinds[: rng.randint(3, 5)]
    arms: list[str] = []
    for code, body in zip(codes, chosen, strict=False):
        arms += [f"{m.constant(f'OP{code}', op_width, code)}: begin", *body, "end"]
    if halted:
        arms += [f"{m.constant('HALT', op_width, codes[5])}: begin", f"if ({b} == {v[2]}) {halted} <= 1'b1;", "end"]
    arms += ["default: begin", f"{error} <= 1'b1;", "end"]
    decode = [f"case ({op})", *arms, "endcase"]
    clear = f"if ({error} && {op} == {m.value(op_width, 0)} && {a} == {v[3]}) {error} <= 1'b0;"
    if halted:
        m.clocked(f"if ({halted}) begin", f"if ({a} == {v[5]} && {b} == {v[4]}) {halted} <= 1'b0;", "end")
        m.clocked(f"else if ({go}) begin", *decode, "end else begin", clear, "end")
    else:
        m.clocked(f"if ({go}) begin", *decode, "end else begin", clear, "end")


def priority(m: Module) -> None:
    """Serves requests in order of priority under a mask that only a key changes; several at once are an error."""
    rng = m.rng
    lines = rng.randint(4, 8)
    key_width = rng.choice((5, 6, 8, 10))
    request, key, data = m.input("request", lines), m.input("code", key_width), m.input("mode", 2)
    grant, error = m.output_register("grant", 3), m.output_register("error")
    frozen, storm = m.output_register("busy"), m.output_register("alarm")
    keys = m.constants([f"KEY{i}" for i in range(4)], key_width)
    order = list(range(lines))
    if rng.random() < 0.5:
        order.reverse()
    chain: list[str] = []
    for i, line in enumerate(order[:-1][:4]):
        chain.append(f"{'else ' if i else ''}if ({request}[{line}] && !{request}[{order[-1]}]) {grant} <= 3'd{i + 1};")
    chain.append(f"else if ({request} == {m.value(lines, 1 << order[-1])}) {grant} <= 3'd7;")
    combo, every = m.value(lines, m.numbers(lines, 1, low=3)[0]), m.value(lines, (1 << lines) - 1)
    blocks = [
        [
            f"if ({request} == {every}) {storm} <= 1'b1;",
            f"else if ({storm} && {key} == {keys[2]}) {storm} <= 1'b0;",
        ],
        [
            f"if ({request} == {combo} && {data} == 2'd{rng.randint(1, 3)}) {error} <= 1'b1;",
            f"else if ({error} && {key} == {keys[3]}) {error} <= 1'b0;",
        ],
    ]
    m.clocked(f"if ({frozen}) begin", f"if ({key} == {keys[1]}) {frozen} <= 1'b0;", "end else begin")
    m.clocked(*chain, f"if ({key} == {keys[0]}) {frozen} <= 1'b1;", "end", *m.shuffled(blocks))
