"""What a design looks like from outside and inside, from its elaborated source: ports, clocks, resets, branches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from pyslang import ast

from sim.conditions import BranchCondition, Step
from sim.design import Design, DesignError
from sim.domains import exactly
from sim.expressions import Expression, Signal
from sim.frames import Memory
from sim.justify import Literal
from sim.netlist import Netlist, flatten, path_texts
from sim.paths import Planner
from sim.slang import elaborate, first_problem


@dataclass(frozen=True)
class Port:
    """A port of the top module. `width` in bits after parameters; `type` as the source declares it."""

    name: str
    direction: str
    width: int
    type: str


@dataclass(frozen=True)
class Reset:
    """A reset input. Synchronous ones act at the clock edge."""

    port: str
    active_low: bool
    synchronous: bool


@dataclass(frozen=True)
class Interface:
    """The top module from outside. `clocks`: the one with most registers first; `direction` is in, out or inout."""

    ports: tuple[Port, ...]
    clocks: tuple[str, ...]
    resets: tuple[Reset, ...]

    @property
    def inputs(self) -> tuple[Port, ...]:
        return tuple(p for p in self.ports if p.direction == "in")

    @property
    def outputs(self) -> tuple[Port, ...]:
        return tuple(p for p in self.ports if p.direction == "out")

    @property
    def data_inputs(self) -> tuple[Port, ...]:
        """Inputs that are neither clock nor reset."""
        control = {*self.clocks, *(r.port for r in self.resets)}
        return tuple(p for p in self.inputs if p.name not in control)

    @property
    def combinational(self) -> bool:
        """Whether the design has no clock."""
        return not self.clocks


@dataclass(frozen=True)
class Analysis:
    """What elaboration tells of a design. `hierarchy`: (instance path as the simulator names it, module), top first.

    Branches are worked out on first use and kept.
    """

    interface: Interface
    hierarchy: tuple[tuple[str, str], ...]
    n_lines: int
    netlist: Netlist = field(repr=False)

    @cached_property
    def planner(self) -> Planner:
        """The search for ways from reset; it keeps what it has found out about the design."""
        resets = {r.port: 0 if r.active_low else 1 for r in self.interface.resets}
        return Planner(self.netlist, resets, self.n_lines)

    @cached_property
    def guarded(self) -> tuple[BranchCondition, ...]:
        """Every branch that the simulator counts with its guards alone: no way to it is looked for, which is cheap."""
        return tuple(
            BranchCondition(
                p.file, p.line, p.what, p.instance, path_texts(p.paths[0] if p.paths else p.never), None, p.reason
            )
            for p in self.netlist.points
        )

    @cached_property
    def branches(self) -> tuple[BranchCondition, ...]:
        """Every branch that the simulator counts, with the steps that lead there where they are known."""
        found: list[BranchCondition] = []
        for point, ((steps, reason), chosen) in zip(self.netlist.points, self.planner.plan_points(), strict=True):
            guards = path_texts(point.paths[chosen] if point.paths else point.never)
            place = (point.file, point.line, point.what, point.instance)
            found.append(BranchCondition(*place, guards, steps, "" if steps is not None else reason))
        return tuple(found)

    def reach(self, values: Mapping[str, int]) -> tuple[Step, ...] | None:
        """Steps from reset to a cycle in which every named signal has its value; None when unknown.

        Names are those of the top's ports and variables, or hierarchical (`top.u_core.state`). Raises KeyError for a
        name that the design does not have.
        """
        _ = self.branches  # the states that they reach shorten the search, whoever asks first
        literals: list[Literal] = []
        for name, value in values.items():
            found = self.netlist.names.get(name) or self.netlist.names[f"{self.netlist.top}.{name}"]
            whole = self._whole(found)
            literals.append((whole, exactly(whole.width, value)))
        return self.planner.plan(literals)[0]

    def _whole(self, found: Signal | Memory) -> Expression:
        x = self.netlist.x
        return x.concat([x.signal(s) for s in (found.elements if isinstance(found, Memory) else [found])])


def analyse(design: Design) -> Analysis:
    """Elaborate the design. Raises DesignError when it has errors that leave nothing to analyse, and when expressions
    or blocks are nested hundreds deep."""
    try:
        return _analyse(_Key(design))
    except RecursionError:
        raise DesignError(f"{design.name}: nested too deeply to be analysed; break up long chains") from None


class _Key:
    """A design in the cache: the same sources, options and hints are the same key."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self.key = (design.rtl_id, design.clock, design.reset)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.key == other.key


@lru_cache(maxsize=512)
def _analyse(key: _Key) -> Analysis:
    design = key.design
    elaboration = elaborate(design)
    if not elaboration.compilation.getRoot().topInstances:
        problem = first_problem(elaboration, elaboration.compilation.getAllDiagnostics())
        where = f"{problem.file}:{problem.line}: {problem.message}; " if problem and problem.line else ""
        raise DesignError(f"{design.name}: {where}there is no module {design.top!r} to be the top; choose another")
    netlist = flatten(elaboration)
    ports = tuple(
        Port(port.name, _DIRECTIONS.get(port.direction, "inout"), _width(found), str(port.type))
        for port, found in netlist.ports
    )
    n_lines = sum(f.content.count(b"\n") + (not f.content.endswith(b"\n")) for f in (*design.sources, *design.includes))
    clocks, resets = _control(netlist, design, {p.name for p in ports if p.direction == "in"})
    return Analysis(Interface(ports, clocks, resets), tuple(netlist.hierarchy), n_lines, netlist)


_DIRECTIONS = {ast.ArgumentDirection.In: "in", ast.ArgumentDirection.Out: "out"}


def _width(found: Signal | Memory) -> int:
    return sum(s.width for s in found.elements) if isinstance(found, Memory) else found.width


RESET_NAME = re.compile(
    r"(^|_)(a|s|n|i|h|p|sys|sync|async)*(rst|reset|resetn|rstn|nrst|nreset)(n|b|p|h)?(_|$|\d)", re.IGNORECASE
)
"""Names by which people call a reset: it decides between candidates, never against the structure."""


def _control(netlist: Netlist, design: Design, inputs: set[str]) -> tuple[tuple[str, ...], tuple[Reset, ...]]:
    """Clocks and resets, from the sensitivity lists and from branches that only assign constants."""
    names = {s: port.name for port, s in netlist.ports if isinstance(s, Signal)}
    clocks: dict[str, int] = {}
    asynchronous: dict[str, bool] = {}
    for process in netlist.processes:
        tested = {s for s, _ in _sources(process.tests)} if process.tests is not None else set()
        for rising, event in process.events:
            for signal, direct in _sources(event):
                name = names.get(signal)
                if name not in inputs or signal.width != 1:
                    continue
                if len(process.events) > 1 and signal in tested:
                    asynchronous[name] = rising != direct
                else:
                    clocks[name] = clocks.get(name, 0) + len(process.registers)
                    for register in process.registers:
                        register.clock = register.clock or name
                    for point in process.points:
                        point.clock = name
                    break
    for name in asynchronous:
        clocks.pop(name, None)
    synchronous = _synchronous(netlist, names, inputs - set(clocks) - set(asynchronous), bool(asynchronous))
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


def _synchronous(
    netlist: Netlist, names: Mapping[Signal, str], inputs: set[str], has_asynchronous: bool
) -> dict[str, bool]:
    """Synchronous resets: {port: active low}. An input of another name counts only if it clears every process."""
    found: dict[tuple[str, bool], int] = {}
    first: dict[tuple[str, bool], int] = {}
    for branch in netlist.constant_branches:
        for signal, direct in _sources(branch.expression):
            name = names.get(signal)
            if name in inputs and signal.width == 1:
                key = (name, direct != branch.wanted)
                found[key] = found.get(key, 0) + branch.registers
                first[key] = first.get(key, 0) + branch.first
    named = {key: n for key, n in found.items() if RESET_NAME.search(key[0])}
    if not named and not has_asynchronous:
        named = {key: n for key, n in found.items() if first[key] == len(netlist.processes)}
        if len(named) > 1:
            best = max(named, key=lambda key: named[key])
            named = {best: named[best]}
    return dict(sorted(named, key=lambda key: named[key]))


def _sources(expression: Expression | None, direct: bool = True, depth: int = 0) -> Iterator[tuple[Signal, bool]]:
    """The inputs that an expression passes on, with whether it does so unchanged: through wires, negations, and/or."""
    if expression is None or depth > 20:
        return
    if expression.signal is not None:
        signal = expression.signal
        if signal.kind == "input":
            yield signal, direct
        elif signal.kind == "wire":
            yield from _sources(signal.driver, direct, depth + 1)
    elif expression.op == "not":
        yield from _sources(expression.args[0], not direct, depth + 1)
    elif expression.op in ("and", "or") and expression.width == 1:
        for argument in expression.args:
            yield from _sources(argument, direct, depth + 1)
    elif (
        expression.op == "eq"
        and expression.args[1].is_const
        and expression.width == 1
        and expression.args[0].width == 1
    ):
        yield from _sources(expression.args[0], direct == bool(expression.args[1].value), depth + 1)
