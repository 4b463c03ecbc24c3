"""Which inputs of the top are clocks and resets, from what they do in the design rather than from what they are called.

A clock is what the edges of processes come from; through gates, multiplexers and inverters, not through registers, so
a divided clock counts as its source. An asynchronous reset is an edge that its process tests. A synchronous one clears
registers; where the structure leaves a choice, names decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sim.design import Design, DesignError
from sim.domains import Domain, exactly, full
from sim.evaluation import Evaluator
from sim.expressions import Expression, Signal
from sim.netlist import ClockedProcess, Netlist

RESET_NAME = re.compile(
    r"(^|_)(a|s|n|i|h|p|sys|sync|async)*(rst|reset|resetn|rstn|nrst|nreset)(n|b|p|h)?(_|$|\d)", re.IGNORECASE
)
"""Names by which people call a reset: it decides between candidates, never against the structure."""
CLOCK_NAME = re.compile(r"(cl(oc)?k|^ck|_ck)", re.IGNORECASE)
"""Names by which people call a clock: it decides between the inputs of a gate on a clock."""
RESET_STAGES = 5
"""Cycles in which a reset gets through its synchroniser and clears what is behind."""


@dataclass(frozen=True)
class Reset:
    """A reset input. Synchronous ones act at the clock edge."""

    port: str
    active_low: bool
    synchronous: bool


def control(netlist: Netlist, design: Design, inputs: set[str]) -> tuple[tuple[str, ...], tuple[Reset, ...]]:
    """Clocks, the one with most registers first, and resets among the inputs of the top; hints of the design win.

    Notes in the netlist's registers and points which clock they have. Raises DesignError for hints that name no input.
    """
    names = {s: port.name for port, s in netlist.ports if isinstance(s, Signal)}
    clocks, asynchronous, tested = _edges(netlist, names, inputs)
    synchronous = _synchronous(netlist, names, inputs - set(clocks) - tested, bool(asynchronous))
    resets = [Reset(name, low, False) for name, low in asynchronous.items()]
    resets += [Reset(name, low, True) for name, low in synchronous.items()]
    if design.reset:
        name, low = design.reset.lstrip("!~"), design.reset[0] in "!~"
        if name not in inputs:
            raise DesignError(f"{design.name}: design.toml names the reset {name!r}, which is not an input of the top")
        resets = [
            Reset(name, low, name not in asynchronous),
            *(r for r in resets if r.port != name and not r.synchronous),
        ]
    if design.clock:
        if design.clock not in inputs:
            raise DesignError(f"{design.name}: design.toml names the clock {design.clock!r}, not an input of the top")
        resets = [r for r in resets if r.port != design.clock]
        clocks[design.clock] = 1 + max(clocks.values(), default=0)
    order = sorted(clocks, key=lambda c: (-clocks[c], [p.name for p, _ in netlist.ports].index(c)))
    return tuple(order), tuple(r for r in resets if r.port not in clocks)


def _edges(
    netlist: Netlist, names: Mapping[Signal, str], inputs: set[str]
) -> tuple[dict[str, int], dict[str, bool], set[str]]:
    """From the sensitivity lists: clocks with their registers, asynchronous resets (whether active low), and every
    input that a process is sensitive to and tests, resets or not."""
    clocks: dict[str, int] = {}
    asynchronous: dict[str, bool] = {}
    tested: set[str] = set()
    pending: list[tuple[ClockedProcess, list[str]]] = []
    for process in netlist.processes:
        first = {s for s, _ in sources(process.tests)}
        ends = [{s for s, _ in sources(event)} for _, event in process.events]
        later = _tested_later(process) if sum(not end & first for end in ends) > 1 else set()
        for rising, event in process.events:
            found = [(s, direct) for s, direct in sources(event) if names.get(s) in inputs and s.width == 1]
            if len(process.events) > 1 and any(s in first | later for s, _ in found):
                mine = [(names[s], rising != direct) for s, direct in found]
                tested |= {name for name, _ in mine}
                named = [entry for entry in mine if RESET_NAME.search(entry[0])]
                if named or any(s in first for s, _ in found):
                    asynchronous.update(named or mine)
            elif found:
                pending.append((process, list(dict.fromkeys(names[s] for s, _ in found))))
    sure = {found[0] for _, found in pending if len(found) == 1}
    for process, candidates in pending:
        for name in _clocks_of(candidates, sure):
            if name not in asynchronous:
                clocks[name] = clocks.get(name, 0) + len(process.registers)
        chosen = next(iter(_clocks_of(candidates, sure)))
        for register in process.registers:
            register.clock = register.clock or chosen
        for point in process.points:
            point.clock = chosen
    return clocks, asynchronous, tested


def _tested_later(process: ClockedProcess) -> set[Signal]:
    """Inputs that conditions of a process depend on."""
    conditions = {c.expression.number: c.expression for p in process.points for path in p.paths for c in path}
    return {s for expression in conditions.values() for s, _ in sources(expression)}


def _clocks_of(found: list[str], sure: set[str]) -> list[str]:
    """The clocks among the inputs that an edge comes from: the others are enables and selections."""
    known = [name for name in found if name in sure or CLOCK_NAME.search(name)]
    return known or found[:1]


def _synchronous(
    netlist: Netlist, names: Mapping[Signal, str], inputs: set[str], has_asynchronous: bool
) -> dict[str, bool]:
    """Synchronous resets: {port: active low}. An input of another name counts only if it clears every process."""
    found: dict[tuple[str, bool], int] = {}
    first: dict[tuple[str, bool], int] = {}
    for branch in netlist.constant_branches:
        for signal, direct in sources(branch.expression):
            name = names.get(signal)
            if name in inputs and signal.width == 1:
                key = (name, direct != branch.wanted)
                found[key] = found.get(key, 0) + branch.registers
                first[key] = first.get(key, 0) + branch.first
    named = {key: n for key, n in found.items() if RESET_NAME.search(key[0])}
    for signal, name in names.items():
        called = name in inputs and signal.width == 1 and RESET_NAME.search(name)
        if called and not any(port == name for port, _ in named):
            low, cleared = _clears(netlist, signal)
            if cleared:
                named[name, low] = cleared
    if not named and not has_asynchronous:
        named = {key: n for key, n in found.items() if first[key] == len(netlist.processes)}
        if len(named) > 1:
            best = max(named, key=lambda key: named[key])
            named = {best: named[best]}
    return dict(sorted(named, key=lambda key: named[key]))


def _clears(netlist: Netlist, signal: Signal) -> tuple[bool, int]:
    """Whether an input that is held low fixes more registers than one that is held high, and how many more: also
    where it comes through a synchroniser, or clears by a conjunction."""
    registers = [s for s in netlist.signals if s.kind == "register" and s.driver is not None]
    fixed: list[int] = []
    for level in (0, 1):
        known: dict[Signal, Domain] = {s: full(s.width) for s in netlist.signals if s.kind in ("register", "input")}
        known[signal] = exactly(1, level)
        for _ in range(RESET_STAGES):
            evaluator = Evaluator(known, lambda s: s.driver)
            known |= {s: evaluator.of(s.driver) for s in registers if s.driver is not None}
        fixed.append(sum(known[s].single is not None for s in registers))
    return fixed[0] > fixed[1], abs(fixed[0] - fixed[1])


def sources(expression: Expression | None, direct: bool = True, depth: int = 0) -> Iterator[tuple[Signal, bool]]:
    """The inputs that an expression passes on, with whether it does so unchanged: through wires, negations, gates and
    multiplexers."""
    if expression is None or depth > 20:
        return
    if expression.signal is not None:
        signal = expression.signal
        if signal.kind == "input":
            yield signal, direct
        elif signal.kind == "wire":
            yield from sources(signal.driver, direct, depth + 1)
    elif expression.op == "not":
        yield from sources(expression.args[0], not direct, depth + 1)
    elif expression.op in ("and", "or") and expression.width == 1:
        for argument in expression.args:
            yield from sources(argument, direct, depth + 1)
    elif expression.op == "ite" and expression.width == 1:
        for argument in expression.args[1:]:
            yield from sources(argument, direct, depth + 1)
    elif (
        expression.op == "eq"
        and expression.args[1].is_const
        and expression.width == 1
        and expression.args[0].width == 1
    ):
        yield from sources(expression.args[0], direct == bool(expression.args[1].value), depth + 1)
