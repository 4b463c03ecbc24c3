"""Stimulus programs: what a testbench does, apart from how it is written down.

A `Program` is rendered to one complete, readable cocotb file and read back from it without loss, so that a repair
can append segments to a testbench and the result is again one complete file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from llm4cov_assets.policy import traffic as transfers
from llm4cov_assets.policy.aim import satisfy
from llm4cov_assets.policy.traffic import Traffic, Transfers
from sim.conditions import Constraint

if TYPE_CHECKING:
    from sim.design import Design
    from sim.elaborate import Interface
    from sim.goals import Goal

RENDER_VERSION = 3
"""Part of every scripted policy's identity: changes when the same program renders to other text."""


@dataclass(frozen=True)
class Drive:
    """Set the named inputs (unsigned values; the others hold), then wait `cycles` edges of the main clock."""

    values: tuple[tuple[str, int], ...]
    cycles: int = 1


@dataclass(frozen=True)
class Burst:
    """Drive seeded, biased random values on all data inputs for `cycles` clock cycles."""

    seed: int
    cycles: int


@dataclass(frozen=True)
class Reset:
    """Assert every reset for `cycles` clock cycles while the data inputs hold, then release them."""

    cycles: int = 2


Action = Drive | Burst | Reset | Transfers


@dataclass(frozen=True)
class Segment:
    """Actions that follow a reset with all data inputs 0. `goal` says in one line what they aim at."""

    goal: str
    actions: tuple[Action, ...]


@dataclass(frozen=True)
class Program:
    """All that a testbench does, in order."""

    segments: tuple[Segment, ...]

    @property
    def traffic(self) -> Traffic | None:
        """What its transfers know of the design; None without any. Raises ValueError when they do not agree."""
        return transfers.common(a.traffic for s in self.segments for a in s.actions if isinstance(a, Transfers))


@dataclass(frozen=True)
class _Layout:
    """What the fixed part of a file depends on. `clocks` hold periods in ns, the main clock first; `resets` hold the
    active levels; `inputs` hold widths in bits; `arrays` are the inputs with unpacked dimensions."""

    name: str
    top: str
    clocks: tuple[tuple[str, int], ...]
    resets: tuple[tuple[str, int], ...]
    inputs: tuple[tuple[str, int], ...]
    arrays: tuple[str, ...]


def render(program: Program, design: Design, interface: Interface) -> str:
    """Return `program` as a complete cocotb 2.1 file for `design`, whose ports `interface` describes. Raises ValueError
    for transfers of several interfaces."""
    return _render(program, _layout(design, interface))


def parse(text: str) -> Program | None:
    """Return the program of a file that `render` made; None for any other file, even one edited a little."""
    constants = _read_constants(text)
    layout = _read_layout(constants)
    if layout is None:
        return None
    _, _, body = text.partition(_BODY)
    program = _read_program(body.removesuffix(_FOOT), transfers.read_tables(constants))
    return program if program is not None and _render(program, layout) == text else None


def combine(texts: Sequence[str]) -> str | None:
    """Return one file with the segments of all `texts` that `render` made for the same ports as the first such file.

    Repeated segments are left out, as are other files, also those with transfers that do not fit the first such file;
    None when `render` made none of them.
    """
    found = [
        (layout, program)
        for text in texts
        if (layout := _read_layout(_read_constants(text))) and (program := parse(text))
    ]
    if not found:
        return None
    layout = found[0][0]
    known = next((p.traffic for other, p in found if other == layout and p.traffic), None)
    segments = dict.fromkeys(
        s for other, p in found if other == layout and p.traffic in (None, known) for s in p.segments
    )
    return _render(Program(tuple(segments)), layout)


def from_goal(goal: Goal, interface: Interface, rng: Random | None = None) -> Segment:
    """Return the segment that performs the goal's steps with concrete values.

    `==` gives the value, a range its boundary, `!=` another value; bits without a constraint hold. With `rng` the
    choice is random where the constraint leaves one. A reset that a step asserts is released by the next step that
    says nothing about it. Constraints on ports that are not driven (clocks, outputs, inout) are left out.
    """
    widths = {port.name: port.width for port in interface.data_inputs}
    idle = {reset.port: 1 if reset.active_low else 0 for reset in interface.resets}
    widths |= dict.fromkeys(idle, 1)
    current = dict.fromkeys(widths, 0) | idle
    actions: list[Action] = []
    for step in goal.steps:
        wanted: dict[str, list[Constraint]] = {}
        for constraint in step.constraints:
            if constraint.port in widths:
                wanted.setdefault(constraint.port, []).append(constraint)
        values = {port: satisfy(found, widths[port], current[port], rng) for port, found in wanted.items()}
        values |= {port: level for port, level in idle.items() if port not in values and current[port] != level}
        current |= values
        actions.append(Drive(tuple(values.items()), max(1, step.cycles)))
    return Segment(goal.label, tuple(actions))


# Text. The fixed part is a function of the layout alone, and its constants give the layout back.

_HEAD = '''"""Stimulus for the design {title}, cocotb 2.1.

{timing}
Every segment starts from reset with all inputs 0; `# goal:` says what it aims at.
"""

import random

import cocotb
{imports}
DESIGN = {name}
TOP = {top}
{constants}

def draw(rng, width, ones):
    """A biased random value: half of the time uniform, else 0, all ones, one bit or a small number."""
    if width == 1:
        return int(rng.random() < ones)
    kind = rng.random()
    if kind < 0.5:
        return rng.getrandbits(width)
    if kind < 0.6:
        return 0
    if kind < 0.7:
        return (1 << width) - 1
    if kind < 0.85:
        return 1 << rng.randrange(width)
    return rng.getrandbits(min(width, 3))

{functions}
class Bench:
    """The ports of the design, and the few things a stimulus does with them."""

    def __init__(self, dut):
        self.ports = {{name: dut[{path}] for name in (*INPUTS, *RESETS)}}
        self.held = {{}}
{start}
    def put(self, name, value):
        """Set an input, unless it has the value already."""
        if self.held.get(name) != value:
            self.held[name] = value
            {put}

    async def wait(self, cycles):
{wait}
    async def reset(self, cycles=2):
        """Assert every reset for some cycles; the other inputs hold."""
        for name, active in RESETS.items():
            self.put(name, active)
        await self.wait(cycles)
        for name, active in RESETS.items():
            self.put(name, 1 - active)

    async def restart(self):
        """All inputs 0, then reset."""
        for name in INPUTS:
            self.put(name, 0)
        await self.reset()

    async def drive(self, values, cycles=1):
        """Set some inputs (the others hold), then wait."""
        for name, value in values.items():
            self.put(name, value)
        await self.wait(cycles)

    async def settle(self):
        """Let the last values take effect."""
        await Timer(1, "ns")

    async def burst(self, seed, cycles):
        """Random values on all inputs. Each input has its own pace and its own share of ones."""
        rng = random.Random(seed)
        plan = [(name, width, rng.choice((1, 1, 2, 4, 12)), rng.choice((0.5, 0.5, 0.15, 0.85)))
                for name, width in INPUTS.items()]
        for _ in range(cycles):
            for name, width, pace, ones in plan:
                if rng.random() * pace < 1:
                    self.put(name, draw(rng, width, ones))
            await {tick}
{traffic}

'''

_BODY = "@cocotb.test()\nasync def stimulus(dut):\n    bench = Bench(dut)\n"

# The last reset lets what was set fall again; without the settling the last edge would be lost.
_FOOT = "\n    # the end\n    await bench.restart()\n    await bench.settle()\n"

_WRITE = '''
def write(handle, value, width):
    """Set an input; an unpacked array takes one element after the other, the last one from the lowest bits."""
    if not isinstance(handle, ArrayObject):
        handle.value = value
        return
    part = width // len(handle)
    for index, element in enumerate(reversed(list(handle))):
        write(element, value >> index * part & (1 << part) - 1, part)

'''


def _layout(design: Design, interface: Interface) -> _Layout:
    # The main clock is the slowest: a value held for one of its cycles is seen by every clock. Half periods are
    # whole nanoseconds, so any time precision down to 1 ns can express them.
    clocks = tuple((clock, max(4, 10 - 2 * i)) for i, clock in enumerate(interface.clocks))
    return _Layout(
        design.name,
        design.top,
        clocks,
        tuple((reset.port, 0 if reset.active_low else 1) for reset in interface.resets),
        tuple((port.name, port.width) for port in interface.data_inputs),
        tuple(port.name for port in interface.data_inputs if "$[" in port.type),
    )


def _render(program: Program, layout: _Layout) -> str:
    widths = dict(layout.inputs)
    lines = []
    for segment in program.segments:
        lines += ["", f"    # goal: {' '.join(segment.goal.split())}", "    await bench.restart()"]
        lines += [f"    await bench.{_call(action, widths)}" for action in segment.actions]
    return _head(layout, program.traffic) + _BODY + "\n".join([*lines, ""]) + _FOOT


def _call(action: Action, widths: dict[str, int]) -> str:
    match action:
        case Drive(values, cycles):
            inside = ", ".join(f"{_quote(port)}: {_number(value, widths.get(port, 1))}" for port, value in values)
            return f"drive({{{inside}}}{f', cycles={cycles}' if cycles != 1 else ''})"
        case Burst(seed, cycles):
            return f"burst(seed={seed}, cycles={cycles})"
        case Reset(cycles):
            return f"reset(cycles={cycles})"
        case Transfers(seed, cycles):
            return f"transfers(seed={seed}, cycles={cycles})"


def _number(value: int, width: int) -> str:
    return str(value) if width == 1 else f"0x{value:0{(width + 3) // 4}x}"


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _table(name: str, entries: Sequence[tuple[str, int]], comment: str) -> str:
    if not entries:
        return f"{name} = {{}}  # {comment}\n"
    return "".join(
        [f"{name} = {{  # {comment}\n", *(f"    {_quote(key)}: {value},\n" for key, value in entries), "}\n"]
    )


def _head(layout: _Layout, traffic: Traffic | None) -> str:
    names = [name for name, _ in (*layout.inputs, *layout.resets, *layout.clocks)]
    names += [offer.ready for offer in traffic.offers] if traffic else []
    escaped = not all(name.replace("$", "_").isidentifier() for name in names)
    path = "path(name)" if escaped else "name"
    constants = _table("INPUTS", layout.inputs, "port: width in bits")
    constants += _table("RESETS", layout.resets, "port: active level")
    if layout.arrays:
        constants += f"ARRAYS = [{', '.join(_quote(name) for name in layout.arrays)}]  # unpacked arrays\n"
    if layout.clocks:
        constants += _table("CLOCKS", layout.clocks, "port: period in ns, the main clock first")
    constants += transfers.tables(traffic) if traffic else ""
    arrays = "from cocotb.handle import ArrayObject\n" if layout.arrays else ""
    timing = _CLOCKED if layout.clocks else _SETTLED
    offers = bool(traffic and traffic.offers)
    imports = timing.imports.replace(
        "import RisingEdge", "import FallingEdge, RisingEdge" if offers else "import RisingEdge"
    )
    method = transfers.METHOD.replace("{accept}", transfers.ACCEPT if offers else "").replace("{tick}", timing.tick)
    return _HEAD.format(
        title=_quote(f"{layout.name} (top module {layout.top})")[1:-1],
        name=_quote(layout.name),
        top=_quote(layout.top),
        timing=timing.sentence.format(main=layout.clocks[0][0] if layout.clocks else ""),
        imports=imports.format(arrays=arrays),
        constants=constants,
        functions=(_PATH if escaped else "") + (_WRITE if layout.arrays else "") + (transfers.PICK if traffic else ""),
        path=path,
        start=(timing.start + (transfers.ANSWERS if offers else "")).format(path=path),
        put="write(self.ports[name], value, INPUTS.get(name, 1))"
        if layout.arrays
        else "self.ports[name].value = value",
        wait=timing.wait,
        tick=timing.tick,
        traffic=method if traffic else "",
    )


@dataclass(frozen=True)
class _Timing:
    """The parts of a file that depend on whether there is a clock."""

    sentence: str
    imports: str
    start: str
    wait: str
    tick: str


_PATH = '''
def path(name):
    """The name by which the simulator knows a port; escaped identifiers keep backslash and space."""
    return name if name.replace("$", "_").isidentifier() else f"\\\\{name} "

'''

_CLOCKED = _Timing(
    sentence="Inputs change just after a rising edge of {main}, so the design samples them at the next one.",
    imports="from cocotb.clock import Clock\n{arrays}from cocotb.triggers import RisingEdge, Timer\n",
    start="""        for name in INPUTS:
            self.put(name, 0)
        for name, active in RESETS.items():
            self.put(name, active)
        self.clocks = [Clock(dut[{path}], period, "ns") for name, period in CLOCKS.items()]
        for clock in self.clocks:
            clock.start(start_high=False)
        self.edge = RisingEdge(self.clocks[0].signal)
""",
    wait='''        """Wait for rising edges of the main clock."""
        await self.clocks[0].cycles(cycles)
''',
    tick="self.edge",
)

_SETTLED = _Timing(
    sentence="There is no clock: a cycle is 1 ns for the logic to settle.",
    imports="{arrays}from cocotb.triggers import Timer\n",
    start="",
    wait='''        """Let the logic settle."""
        await Timer(cycles, "ns")
''',
    tick="self.wait(1)",
)


def _read_constants(text: str) -> dict[str, object]:
    """The constants of a file that `render` may have made; none of any other."""
    head, found, _ = text.partition(_BODY)
    if not found or not head.startswith('"""Stimulus for the design '):
        return {}
    constants: dict[str, object] = {}
    try:
        for node in ast.parse(head).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                constants[node.targets[0].id] = ast.literal_eval(node.value)
    except (SyntaxError, ValueError):
        return {}
    return constants


def _read_layout(constants: Mapping[str, object]) -> _Layout | None:
    """The layout named by the constants of a file, None when they are not as `render` writes them."""
    match constants:
        case {"DESIGN": str(name), "TOP": str(top), "INPUTS": dict(inputs), "RESETS": dict(resets)}:
            clocks, arrays = constants.get("CLOCKS", {}), constants.get("ARRAYS", [])
            if not isinstance(clocks, dict) or not isinstance(arrays, list):
                return None
            return _Layout(
                name, top, tuple(clocks.items()), tuple(resets.items()), tuple(inputs.items()), tuple(arrays)
            )
    return None


_RESET_CALL = re.compile(r"reset\(cycles=(\d+)\)")
_BURST_CALL = re.compile(r"burst\(seed=(\d+), cycles=(\d+)\)")
_TRANSFERS_CALL = re.compile(r"transfers\(seed=(\d+), cycles=(\d+)\)")
_DRIVE_CALL = re.compile(r"drive\((\{.*\})(?:, cycles=(\d+))?\)")


def _read_program(body: str, traffic: Traffic | None) -> Program | None:
    segments: list[Segment] = []
    goal, actions = "", None
    for line in body.splitlines():
        if not line:
            continue
        if line.startswith("    # goal: "):
            if actions is not None:
                segments.append(Segment(goal, tuple(actions)))
            goal, actions = line.removeprefix("    # goal: "), None
        elif line == "    await bench.restart()":
            actions = []
        elif line.startswith("    await bench.") and actions is not None:
            action = _read_call(line.removeprefix("    await bench."), traffic)
            if action is None:
                return None
            actions.append(action)
        else:
            return None
    if actions is not None:
        segments.append(Segment(goal, tuple(actions)))
    return Program(tuple(segments))


def _read_call(call: str, traffic: Traffic | None) -> Action | None:
    if m := _DRIVE_CALL.fullmatch(call):
        try:
            values = ast.literal_eval(m[1])
        except (SyntaxError, ValueError):
            return None
        return Drive(tuple(values.items()), int(m[2] or 1))
    if m := _BURST_CALL.fullmatch(call):
        return Burst(int(m[1]), int(m[2]))
    if m := _RESET_CALL.fullmatch(call):
        return Reset(int(m[1]))
    if traffic and (m := _TRANSFERS_CALL.fullmatch(call)):
        return Transfers(int(m[1]), int(m[2]), traffic)
    return None
