"""What a design looks like from outside and inside, from its elaborated source: ports, clocks, resets, branches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from pyslang import ast

from sim import reasons
from sim.conditions import BranchCondition, Step
from sim.control import Reset, control
from sim.design import Design, DesignError, listed
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
        modules = sorted(
            d.name for d in elaboration.compilation.getDefinitions() if isinstance(d, ast.DefinitionSymbol)
        )
        others = f"choose another with --top: {listed(modules)}" if modules else "nothing in it could be read"
        raise DesignError(f"{design.name}: {where}there is no module {design.top!r} to be the top; {others}",
                          reasons.NO_TOP)  # fmt: skip
    netlist = flatten(elaboration)
    ports = tuple(
        Port(port.name, _DIRECTIONS.get(port.direction, "inout"), _width(found), str(port.type))
        for port, found in netlist.ports
    )
    n_lines = sum(f.content.count(b"\n") + (not f.content.endswith(b"\n")) for f in (*design.sources, *design.includes))
    clocks, resets = control(netlist, design, {p.name for p in ports if p.direction == "in"})
    return Analysis(Interface(ports, clocks, resets), tuple(netlist.hierarchy), n_lines, netlist)


_DIRECTIONS = {ast.ArgumentDirection.In: "in", ast.ArgumentDirection.Out: "out"}


def _width(found: Signal | Memory) -> int:
    return sum(s.width for s in found.elements) if isinstance(found, Memory) else found.width
