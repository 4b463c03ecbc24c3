"""Families whose branches need something to be held or repeated."""

from __future__ import annotations

from llm4cov_assets.ingest.rtl import Module


def counter(m: Module) -> None:
    """Counter with modes: up, down, load, clear; it saturates or wraps, and marks some counts."""
    rng = m.rng
    width = rng.choice((4, 5, 6))
    top = (1 << width) - 1
    mode_width = rng.choice((2, 3))
    enable, mode, data = m.input("valid"), m.input("mode", mode_width), m.input("data", width)
    count, full = m.output_register("count", width), m.output_register("full")
    flag, error = m.output_register("flag"), m.output_register("error")
    codes = m.numbers(mode_width, 3, high=(1 << mode_width) - 1)
    limit = rng.randint(top // 2, top - 1)
    maximum = m.constant("MAX", width, limit)
    start = rng.randint(1, 3)
    up = [f"if ({count} == {maximum}) begin", f"{full} <= 1'b1;"]
    if rng.random() < 0.5:
        up.append(f"{count} <= {m.value(width, 0)};")
    up += ["end else begin", f"{count} <= {count} + {m.value(width, 1)};", "end"]
    down = [f"if ({count} == {m.value(width, 0)}) {error} <= 1'b1;", f"else {count} <= {count} - {m.value(width, 1)};"]
    load = [f"if ({data} > {maximum}) {error} <= 1'b1;", f"else {count} <= {data};"]
    marks = m.numbers(width, 2, low=start + 1, high=limit)
    guard = m.constant("GUARD", width, marks[1])
    arms: list[str] = []
    for code, body in zip(codes, (up, down, load), strict=True):
        arms += [f"{m.value(mode_width, code)}: begin", *body, "end"]
    arms += ["default: begin", f"if ({data} == {guard} && {full}) {full} <= 1'b0;", "end"]
    m.clocked(f"if ({enable}) begin", f"case ({mode})", *arms, "endcase", "end")
    mark, word = m.constant("MARK", width, marks[0]), m.value(width, rng.randint(1, top - 1))
    m.clocked(
        f"if ({count} == {mark} && {data} == {word}) {flag} <= 1'b1;",
        f"else if ({error} && {data} == {m.value(width, top)} && !{enable}) {flag} <= 1'b0;",
    )


def level(m: Module) -> None:
    """Fill level with flags like a FIFO's: full, empty, high mark, sticky overflow and underflow, flush by key."""
    rng = m.rng
    width = rng.choice((3, 4, 5))
    depth = rng.randint((1 << width) // 2 + 1, (1 << width) - 1)
    push, pop = m.input("up"), m.input("down")
    key_width = rng.choice((6, 8, 10, 12))
    key = m.input("code", key_width)
    fill = m.output_register("count", width) if rng.random() < 0.5 else m.register("count", width)
    full, empty, near = m.output("full"), m.output("empty"), m.output("near")
    over, under = m.output_register("error"), m.output_register("alarm")
    limit = m.constant("DEPTH", width, depth)
    keys = m.constants([f"KEY{i}" for i in range(3)], key_width)
    zero, one = m.value(width, 0), m.value(width, 1)
    m.assign(full, f"{fill} == {limit}")
    m.assign(empty, f"{fill} == {zero}")
    m.assign(near, f"{fill} >= {m.value(width, depth - rng.randint(1, 2))}")
    body = [
        f"if ({key} == {keys[0]}) begin",
        f"{fill} <= {zero};",
        "end",
        f"else if ({push} && !{pop}) begin",
        f"if ({fill} == {limit}) {over} <= 1'b1;",
        f"else {fill} <= {fill} + {one};",
        "end",
        f"else if ({pop} && !{push}) begin",
        f"if ({fill} == {zero}) {under} <= 1'b1;",
        f"else {fill} <= {fill} - {one};",
        "end",
    ]
    m.clocked(*body)
    m.clocked(f"if ({over} && {key} == {keys[1]}) {over} <= 1'b0;")
    if rng.random() < 0.7:
        m.clocked(f"if ({under} && {fill} == {limit} && {key} == {keys[2]}) {under} <= 1'b0;")


def hold(m: Module) -> None:
    """Reacts to how long an input keeps a value: short, long, too long."""
    rng = m.rng
    width = rng.choice((2, 3, 4, 6, 8))
    select_width = rng.choice((4, 6, 8))
    button, select = m.input("button", width), m.input("code", select_width)
    active = m.constant("ACTIVE", width, rng.randint(1, (1 << width) - 1))
    short, long = rng.randint(2, 5), rng.randint(8, 14)
    timer = m.register("timer", 4)
    state, s = m.states(["RELEASED", "SHORT", "LONG", "STUCK"], visible=rng.random() < 0.4)
    flag, alarm = m.output_register("flag"), m.output("alarm")
    k = m.constants([f"C{i}" for i in range(3)], select_width)
    m.assign(alarm, f"{state} == {s[3]}")
    m.clocked(
        f"if ({button} == {active}) begin",
        f"if ({timer} == 4'd{long}) begin",
        f"{state} <= {s[2]};",
        f"if ({select} == {k[0]}) {state} <= {s[3]};",
        "end else begin",
        f"{timer} <= {timer} + 4'd1;",
        f"if ({timer} == 4'd{short}) {state} <= {s[1]};",
        "end",
        "end else begin",
        f"{timer} <= 4'd0;",
        f"if ({state} == {s[1]} && {select} == {k[1]}) {flag} <= 1'b1;",
        f"else if ({state} == {s[2]} && {select} == {k[2]}) {flag} <= 1'b0;",
        f"if ({state} != {s[3]} || {select} == {k[1]}) {state} <= {s[0]};",
        "end",
    )


def gearbox(m: Module) -> None:
    """Position that moves one step at a time between two ends, with interlocks by a code."""
    rng = m.rng
    top = rng.randint(3, 11)
    width = top.bit_length()
    up, down = m.input("up"), m.input("down")
    code_width = rng.choice((5, 6, 8, 10))
    code = m.input("code", code_width)
    place = m.output_register("position", width)
    locked, error, done = m.output_register("busy"), m.output_register("error"), m.output_register("done")
    keys = m.constants([f"K{i}" for i in range(4)], code_width)
    gate = rng.randint(1, top - 1)
    last, zero, one = m.constant("TOP", width, top), m.value(width, 0), m.value(width, 1)
    m.clocked(
        f"if ({locked}) begin",
        f"if ({code} == {keys[0]}) {locked} <= 1'b0;",
        "end",
        f"else if ({up} && {down}) begin",
        f"if ({code} == {keys[1]}) {locked} <= 1'b1;",
        "end",
        f"else if ({up}) begin",
        f"if ({place} == {last}) {error} <= 1'b1;",
        f"else if ({place} == {m.value(width, gate)}) begin",
        f"if ({code} == {keys[2]}) {place} <= {place} + {one};",
        "end",
        f"else {place} <= {place} + {one};",
        "end",
        f"else if ({down}) begin",
        f"if ({place} == {zero}) {done} <= 1'b0;",
        f"else {place} <= {place} - {one};",
        "end",
    )
    m.clocked(f"if ({place} == {last} && {code} == {keys[3]}) {done} <= 1'b1;")
    m.clocked(f"if ({error} && {place} == {zero} && {code} == {keys[0]}) {error} <= 1'b0;")


def quota(m: Module) -> None:
    """Counts events of two kinds against limits of their own; both spent lock it until it is refilled."""
    rng = m.rng
    limits = rng.sample(range(2, 10), 2)
    widths = [limit.bit_length() for limit in limits]
    event_width = rng.choice((4, 5, 6, 8))
    event, valid = m.input("symbol", event_width), m.input("valid")
    kinds = m.constants([f"EV{i}" for i in range(4)], event_width)
    counts = [m.register("count", widths[0]), m.register("credit", widths[1])]
    spent = [m.output_register("full"), m.output_register("near")]
    locked, refills = m.output("busy"), m.output_register("flag")
    zeros = [m.value(width, 0) for width in widths]
    lines: list[str] = []
    for i in range(2):
        lines += [
            f"{'else ' if i else ''}if ({event} == {kinds[i]}) begin",
            f"if ({counts[i]} == {m.value(widths[i], limits[i])}) {spent[i]} <= 1'b1;",
            f"else {counts[i]} <= {counts[i]} + {m.value(widths[i], 1)};",
            "end",
        ]
    lines += [
        f"else if ({event} == {kinds[2]} && {spent[0]}) begin",
        f"{counts[0]} <= {zeros[0]};",
        f"{spent[0]} <= 1'b0;",
        f"{refills} <= 1'b1;",
        "end",
        f"else if ({event} == {kinds[3]} && {spent[1]}) begin",
        f"{counts[1]} <= {zeros[1]};",
        f"{spent[1]} <= 1'b0;",
        "end",
    ]
    m.assign(locked, f"{spent[0]} && {spent[1]}")
    m.clocked(f"if ({valid}) begin", *lines, "end")


def timeout(m: Module) -> None:
    """Waits for a reply: in time it is done, late ones are counted, too many of them need a key."""
    rng = m.rng
    width = rng.choice((4, 6, 8))
    start, reply = m.input("start"), m.input("reply", width)
    state, s = m.states(["IDLE", "WAITING", "LATE", "DEAD"], visible=rng.random() < 0.4)
    limit, allowed, early = rng.randint(6, 14), rng.randint(1, 2), rng.randint(1, 3)
    bits, try_bits = limit.bit_length(), allowed.bit_length()
    timer, tries = m.register("timer", bits), m.register("tries", try_bits)
    done, alarm = m.output_register("done"), m.output("alarm")
    k = m.constants(("ACK", "NAK", "RETRY", "REVIVE"), width)
    fast = m.output_register("flag")
    m.assign(alarm, f"{state} == {s[3]}")
    waiting = [
        f"if ({reply} == {k[0]}) begin",
        f"{state} <= {s[0]};",
        f"{done} <= 1'b1;",
        f"if ({timer} < {bits}'d{early}) {fast} <= 1'b1;",
        "end",
        f"else if ({reply} == {k[1]}) {state} <= {s[2]};",
        f"else if ({timer} == {bits}'d{limit}) {state} <= {s[2]};",
        f"else {timer} <= {timer} + {bits}'d1;",
    ]
    late = [
        f"{timer} <= {bits}'d0;",
        f"if ({tries} == {try_bits}'d{allowed}) {state} <= {s[3]};",
        f"else if ({reply} == {k[2]}) begin",
        f"{tries} <= {tries} + {try_bits}'d1;",
        f"{state} <= {s[1]};",
        "end",
    ]
    dead = [f"if ({reply} == {k[3]} && !{start}) begin", f"{tries} <= {try_bits}'d0;", f"{state} <= {s[0]};", "end"]
    m.clocked(
        f"case ({state})",
        f"{s[0]}: begin",
        f"{timer} <= {bits}'d0;",
        f"if ({start}) begin",
        f"{state} <= {s[1]};",
        f"{done} <= 1'b0;",
        "end",
        "end",
        f"{s[1]}: begin",
        *waiting,
        "end",
        f"{s[2]}: begin",
        *late,
        "end",
        "default: begin",
        *dead,
        "end",
        "endcase",
    )


def register_map(m: Module) -> None:
    """Registers behind an address: a key unlocks them, values are checked, a counter uses them."""
    rng = m.rng
    address_width, width = rng.choice((3, 4, 5)), rng.choice((6, 8, 10))
    write, address, data = m.input("write"), m.input("address", address_width), m.input("data", width)
    places = m.constants(("LOCK", "CTRL", "LIMIT", "STATUS"), address_width)
    key, relock, start = m.constants(("UNLOCK", "RELOCK", "RUN"), width)
    opened, running = m.output_register("unlock"), m.output_register("busy")
    error, expired = m.output_register("error"), m.output_register("alarm")
    limit = rng.randint(5, 14)
    bits = limit.bit_length()
    timer = m.register("timer", bits)
    wide = m.register("flag")
    m.clocked(
        f"if ({running}) begin",
        f"if ({timer} == {bits}'d{limit}) begin",
        f"{expired} <= 1'b1;",
        f"{running} <= 1'b0;",
        "end else begin",
        f"{timer} <= {timer} + {bits}'d1;",
        "end",
        "end",
        f"if ({write}) begin",
        f"case ({address})",
        f"{places[0]}: begin",
        f"if ({data} == {key}) {opened} <= 1'b1;",
        f"else if ({data} == {relock}) {opened} <= 1'b0;",
        f"else {error} <= 1'b1;",
        "end",
        f"{places[1]}: begin",
        f"if (!{opened}) {error} <= 1'b1;",
        f"else if ({data} == {start}) begin",
        f"{running} <= 1'b1;",
        f"{timer} <= {bits}'d0;",
        "end",
        "end",
        f"{places[2]}: begin",
        f"if ({opened} && {data} >= {m.value(width, (1 << width) - rng.randint(2, 5))}) {wide} <= 1'b1;",
        "end",
        f"{places[3]}: begin",
        f"if ({expired} && {wide}) {expired} <= 1'b0;",
        f"if ({data} == {m.value(width, rng.randint(1, 3))}) {error} <= 1'b0;",
        "end",
        "default: begin",
        f"{wide} <= 1'b0;",
        "end",
        "endcase",
        "end",
    )
