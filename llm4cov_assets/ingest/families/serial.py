"""Families whose inputs arrive one bit at a time: long stimulus, most of it without a choice."""

from __future__ import annotations

from llm4cov_assets.ingest.rtl import Module


def receiver(m: Module) -> None:
    """Serial receiver: a start bit, data bits that last some cycles each, perhaps parity; some words have a meaning."""
    rng = m.rng
    n_bits, lasts = rng.randint(3, 5), rng.randint(1, 4)
    line, clear = m.input("serial"), m.input("clear")
    parity = rng.random() < 0.5
    state, s = m.states(["WAITING", "TAKING", *(["PARITY"] if parity else []), "DECIDE"])
    word = m.output_register("result", n_bits)
    bit_width, age_width = n_bits.bit_length(), max(1, (lasts - 1).bit_length())
    taken, age = m.register("count", bit_width), m.register("timer", age_width) if lasts > 1 else None
    good, bad, stuck = m.output_register("done"), m.output_register("error"), m.output_register("alarm")
    command, other = m.constants(("COMMAND", "OTHER"), n_bits)

    def after(*lines: str) -> list[str]:
        """The lines, once the bit has lasted."""
        if age is None:
            return list(lines)
        last, zero, one = (m.value(age_width, v) for v in (lasts - 1, 0, 1))
        return [
            f"if ({age} == {last}) begin", f"{age} <= {zero};", *lines, "end else begin", f"{age} <= {age} + {one};",
            "end",
        ]  # fmt: skip

    none, step, full = (m.value(bit_width, v) for v in (0, 1, n_bits - 1))
    shifted = f"{{{line}, {word}[{n_bits - 1}:1]}}" if rng.random() < 0.5 else f"{{{word}[{n_bits - 2}:0], {line}}}"
    following = s[2] if parity else s[-1]
    arms = [f"{s[0]}: begin", f"if (!{line}) {state} <= {s[1]};", "end", f"{s[1]}: begin"]
    arms += after(
        f"{word} <= {shifted};",
        f"if ({taken} == {full}) begin", f"{taken} <= {none};", f"{state} <= {following};",
        f"end else {taken} <= {taken} + {step};",
    )  # fmt: skip
    arms.append("end")
    if parity:
        arms.append(f"{s[2]}: begin")
        arms += after(f"{state} <= {s[-1]};", f"if ({line} != ^{word}) {bad} <= 1'b1;")
        arms.append("end")
    arms += ["default: begin", f"{state} <= {s[0]};", f"if ({word} == {command}) {good} <= 1'b1;"]
    arms += [f"else if ({word} == {other} && {good}) {stuck} <= 1'b1;", "end"]
    m.clocked(f"case ({state})", *arms, "endcase")
    m.clocked(f"if ({clear} && {bad}) {bad} <= 1'b0;")


def pulse(m: Module) -> None:
    """Pulse meter: how long an input stays high decides whether it was a glitch, a short, a long or a stuck one."""
    rng = m.rng
    pad, enable = m.input("button"), m.input("valid")
    short, long = rng.randint(2, 5), rng.randint(7, 14)
    stuck = long + rng.randint(4, 12)
    width = stuck.bit_length()
    age = m.register("timer", width)
    tries_width = 2
    tries = m.register("tries", tries_width)
    glitch, small, great, dead = (m.output_register(r) for r in ("flag", "done", "unlock", "alarm"))
    names = [m.constant(n, width, v) for n, v in (("SHORT", short), ("LONG", long), ("STUCK", stuck))]
    need = m.value(tries_width, rng.randint(1, 3))
    zero, one = m.value(width, 0), m.value(width, 1)
    high = [f"if ({age} == {names[2]}) {dead} <= 1'b1;", f"else {age} <= {age} + {one};"]
    fallen = [
        f"{age} <= {zero};",
        f"if ({age} >= {names[1]}) {great} <= 1'b1;",
        f"else if ({age} >= {names[0]}) begin",
        f"if ({tries} == {need}) {small} <= 1'b1;",
        f"else {tries} <= {tries} + {m.value(tries_width, 1)};",
        f"end else {glitch} <= 1'b1;",
    ]
    counting = [f"if ({enable}) begin", *high, "end"]
    m.clocked(f"if ({pad}) begin", *counting, f"end else if ({age} != {zero}) begin", *fallen, "end")
