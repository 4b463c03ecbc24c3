"""From reset to a wanted condition: backward search over sets of register states.

A node of the search says what registers must hold at the start of a cycle and what inputs must be in it. Its
predecessors are the cubes that make every register's next value fit. Each step is implied whatever the unmentioned
inputs do, so a plan is right by construction, for two-valued logic and one clock.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from sim.conditions import Constraint, Step
from sim.constraints import constraints, satisfying
from sim.distances import Distances
from sim.domains import FALSE, TRUE, Domain, between, exactly, full
from sim.evaluation import Evaluator
from sim.exploration import IDLE_CYCLES, Exploration, Visit
from sim.expressions import Expression, Signal, mask, signed
from sim.frames import Condition, Memory
from sim.interpreter import Interpreter
from sim.justify import BudgetError, Cube, Literal, Solver
from sim.netlist import Netlist

MAX_CYCLES = 4096
MAX_STEPS = 64
MAX_CUBES = 24
"""Predecessors looked at for one node."""
MAX_NODES = 600
FIRST_WORK = 3_000
"""Steps of the solver for one goal in the first round; a step takes about 2 us."""
GOAL_WORK = 40_000
"""The same in the second round and for single goals."""
DESIGN_WORK = 100_000
"""Steps of the solver for all branches of a design, and as much again for every 100 lines up to MOST_LINES."""
MOST_LINES = 1000
WANDER_CYCLES = 4_000
"""Cycles of random runs for a design whose branches are not all found by the first round."""
RESET_CYCLES = 2

State = tuple[tuple[Signal, Domain], ...]


@dataclass(eq=False)
class _Node:
    """`state`: what registers hold at the start of the first cycle; `inputs` hold for `cycles` cycles, then `later`
    follows. `total` counts the cycles up to the goal."""

    state: State
    inputs: State
    cycles: int
    later: _Node | None
    total: int


Plan = tuple[tuple[Step, ...] | None, str]
"""Steps, or None and the reason."""


class Planner:
    """Plans for one design. `resets`: {port: active level}."""

    def __init__(self, netlist: Netlist, resets: dict[str, int], n_lines: int) -> None:
        self.netlist = netlist
        self.n_lines = n_lines
        self.x = netlist.x
        inputs = {port.name: s for port, s in netlist.ports if isinstance(s, Signal) and s.kind == "input"}
        self.ports = _port_names(netlist)
        self.order = {signal: i for i, signal in enumerate(netlist.signals)}
        levels = {inputs[p]: level for p, level in resets.items() if p in inputs}
        self._resets = {s: self.x.const(level, 1) for s, level in levels.items()}
        self._idle = self._with_aliases({s: self.x.const(1 - level, 1) for s, level in levels.items()})
        self._active = self._with_aliases(self._resets)
        self._memo: dict[int, Expression] = {}
        self._distances: dict[Signal, Distances] = {}
        self._plans: dict[object, Plan] = {}
        self._anywhere = False
        self.after_reset = self._reset_state()
        self.solver = Solver(self.x, self._driver, self.after_reset)

    @cached_property
    def exploration(self) -> Exploration:
        """The states that the design is known to reach."""
        registers = [s for s in self.netlist.signals if s.kind == "register" and s.driver is not None]
        inputs = [s for s in self.netlist.signals if s.kind == "input" and s not in self._resets]
        conditions = [
            [(self.idle(c.expression), c.wanted) for c in path] for point in self.netlist.points for path in point.paths
        ]
        interpreter = Interpreter(registers, inputs, conditions, self._driver)
        start = tuple(self.after_reset[s].single or 0 for s in registers)
        roots = [d for s in registers if (d := self._driver(s)) is not None] + [
            e for path in conditions for e, _ in path
        ]
        return Exploration(interpreter, start, self._driver, roots)

    def _with_aliases(self, known: dict[Signal, Expression]) -> dict[Signal, Expression]:
        """`known` and the wires that only pass on another signal or a constant, as most ports of instances do."""
        result = dict(known)
        for signal in self.netlist.signals:
            seen: set[Signal] = set()
            end = self.x.signal(signal)
            while (here := end.signal) is not None and here not in seen:
                seen.add(here)
                driver = known.get(here) or (here.driver if here.kind == "wire" else None)
                if driver is None or not (driver.is_const or driver.signal is not None):
                    break
                end = driver
            if end.signal is not signal:
                result[signal] = end
        return result

    def _driver(self, signal: Signal) -> Expression | None:
        """Next value or value of a signal while no reset is active."""
        return self.idle(signal.driver) if signal.driver is not None else None

    def idle(self, node: Expression) -> Expression:
        """`node` with every reset inactive."""
        return self.x.substitute(node, self._idle, self._memo)

    def under_reset(self, node: Expression) -> Expression:
        """`node` with every reset active."""
        return self.x.substitute(node, self._active, {})

    def _reset_state(self) -> dict[Signal, Domain]:
        """What is known of the registers after reset with all other inputs 0.

        Without a reset the initial values of the source (or 0) stand, which is right for the first segment only.
        """
        registers = [s for s in self.netlist.signals if s.kind == "register"]
        if not self._resets:
            return {s: exactly(s.width, s.initial) for s in registers}
        levels = {s: exactly(1, e.value) for s, e in self._resets.items()}
        zeros = {s: exactly(s.width, 0) for s in self.netlist.signals if s.kind == "input" and s not in levels}
        state: dict[Signal, Domain] = {s: full(s.width) for s in registers}
        for _ in range(RESET_CYCLES):
            evaluator = Evaluator({**state, **zeros, **levels}, lambda s: s.driver)
            state = {s: evaluator.of(s.driver) if s.driver is not None else full(s.width) for s in registers}
        return state

    @cached_property
    def at_reset(self) -> Evaluator:
        """Evaluates signals in the cycle after reset with all inputs 0."""
        zeros = {s: exactly(s.width, 0) for s in self.netlist.signals if s.kind == "input"}
        return Evaluator({**self.after_reset, **zeros}, self._driver)

    @property
    def reset_steps(self) -> tuple[Step, ...]:
        """A reset in the middle of other steps; empty when the design has none."""
        if not self._resets:
            return ()
        active = tuple(Constraint(self.ports[s][0], "==", e.value) for s, e in self._resets.items())
        return (Step(active, RESET_CYCLES),)

    # planning

    def plan(self, literals: Sequence[Literal], anywhere: bool = False, work: int = GOAL_WORK) -> Plan:
        """Steps from reset (or, `anywhere`, from any state) that make all literals true in the last cycle."""
        key = (anywhere, work, *((e.number, d) for e, d in literals))
        found = self._plans.get(key)
        if found is None:
            self._anywhere = anywhere
            found = self._plans[key] = self._plan(literals, work)
        return found

    def plan_points(self) -> list[tuple[Plan, int]]:
        """A plan for every branch point of the netlist, and which of its paths it follows.

        First a short search for each; then random runs, whose states shorten the searches that follow. What is found
        for one point is run, and serves every other point that it passes.
        """
        points = self.netlist.points
        literals = [[_literals(path) for path in point.paths] for point in points]
        plans: dict[int, tuple[Plan, int]] = {}
        budget = self.solver.work + DESIGN_WORK * (100 + min(self.n_lines, MOST_LINES)) // 100
        numbers: list[list[int]] = []
        for paths in literals:
            start = numbers[-1][-1] + 1 if numbers and numbers[-1] else sum(len(n) for n in numbers)
            numbers.append(list(range(start, start + len(paths))))
        self._anywhere = False
        for work in (FIRST_WORK, GOAL_WORK):
            for i, paths in enumerate(literals):
                if i in plans and plans[i][0][0] is not None:
                    continue
                for k, path in enumerate(paths):
                    left = min(work, budget - self.solver.work)
                    visit = self.exploration.hits.get(numbers[i][k])
                    plan = self._plan_visit(path, visit) if visit is not None else (None, "")
                    if plan[0] is None:
                        plan = self._plan(path, left)
                    plans[i] = plan, k
                    if plan[0] is not None:
                        self._perform(plan[0])
                        break
            if any(plan[0] is None for plan, _ in plans.values()):
                self.exploration.wander(WANDER_CYCLES)
        return [plans.get(i, ((None, point.reason), 0)) for i, point in enumerate(points)]

    def _plan_visit(self, literals: Sequence[Literal], visit: Visit) -> Plan:
        """The plan that a visited cycle is evidence for, freed of everything that it does not need."""
        self.solver.limit = self.solver.work + GOAL_WORK
        try:
            first = self._explain([(self.idle(e), d) for e, d in literals], visit, None)
        except (BudgetError, RecursionError):
            first = None
        if first is None:
            return None, "the way there depends on registers that reset leaves as they are"
        steps = self._steps(first)
        return (steps, "") if len(steps) <= MAX_STEPS else (None, "no short way to it was found")

    def _explain(self, literals: list[Literal], visit: Visit | None, later: _Node | None) -> _Node | None:
        """The way from reset to `visit`, in which the literals hold: what each cycle must be, backwards, cut short
        where another visited state serves as well."""
        interpreter = self.exploration.interpreter
        while visit is not None:
            actual = {s: exactly(s.width, v) for s, v in zip(interpreter.registers, visit.state, strict=True)}
            actual |= {s: exactly(s.width, v) for s, v in zip(interpreter.inputs, visit.inputs, strict=True)}
            cube = self.solver.follow(literals, actual)
            if cube is None:
                return None
            node = self._node(cube, later)
            if self._reached(node):
                return node
            visit = visit.before
            for number in islice(self.exploration.satisfying(node.state), 8):
                other = self.exploration.arrivals[number][1]
                if other is not None and (visit is None or other.cycle < visit.cycle):
                    visit = other
            literals = [(e, d) for s, d in node.state if (e := self._driver(s)) is not None]
            later = node
        return None

    def _perform(self, steps: tuple[Step, ...]) -> None:
        """Run the steps with the other inputs 0, so that the states on the way are known."""
        inputs = self.exploration.interpreter.inputs
        if sum(s.cycles for s in steps) > IDLE_CYCLES and len(steps) < 2:
            return
        cycles: list[tuple[int, ...]] = []
        for step in steps:
            values = {s: 0 for s in inputs}
            for c in step.constraints:
                for signal in inputs:
                    port, offset, _ = self.ports[signal]
                    if port == c.port and (c.high is None or offset <= (c.low or 0) < offset + signal.width):
                        low = 0 if c.low is None else c.low - offset
                        values[signal] = values[signal] | satisfying(c, signal.width) << low
            cycles += [tuple(values.values())] * step.cycles
        self.exploration.perform(cycles)

    def _plan(self, literals: Sequence[Literal], work: int) -> Plan:
        wanted = [(self.idle(e), d) for e, d in literals]
        for expression, domain in wanted:
            if expression.is_const and not domain.has(expression.value):
                return self._plan_in_reset(literals)
        if work <= 0:
            return None, "the time for this design is used up"
        self.solver.reason = ""
        self.solver.limit = self.solver.work + work
        try:
            found = self._search(wanted)
        except BudgetError:
            return None, "the search was given up"
        except RecursionError:
            return None, "the logic is too deep"
        if found is None:
            return None, self.solver.reason or "no way to it was found"
        return self._steps(found), ""

    def _plan_in_reset(self, literals: Sequence[Literal]) -> Plan:
        wanted = [(self.under_reset(e), d) for e, d in literals]
        if any(e.is_const and not d.has(e.value) for e, d in wanted):
            return None, "it never happens"
        self.solver.limit = self.solver.work + GOAL_WORK
        constraints = tuple(Constraint(self.ports[s][0], "==", e.value) for s, e in self._resets.items())
        try:
            for cube in islice(self.solver.solve(wanted, {}), 4):
                if all(s.kind == "input" or self._holds_after_reset(s, d) for s, d in cube.items()):
                    inputs = tuple((s, d) for s, d in cube.items() if s.kind == "input")
                    return (Step((*constraints, *self._constraints(inputs))),), ""
        except (BudgetError, RecursionError):
            pass
        return None, "it needs a reset in the middle of other work"

    def _search(self, wanted: list[Literal]) -> _Node | None:
        heap: list[tuple[float, int, _Node]] = []
        seen: set[State] = set()
        count = 0
        for node in self._nodes(wanted, None):
            finished = self._finish(node)
            if finished is not None:
                return finished
            count += 1
            heapq.heappush(heap, (self._estimate(node.state), count, node))
        while heap and count < MAX_NODES * 4 and len(seen) < MAX_NODES:
            _, _, node = heapq.heappop(heap)
            if node.state in seen:
                continue
            seen.add(node.state)
            literals = [(e, d) for s, d in node.state if (e := self._driver(s)) is not None]
            for earlier in self._nodes(literals, node):
                finished = self._finish(earlier)
                if finished is not None:
                    return finished
                if earlier.state in seen or earlier.total > MAX_CYCLES:
                    continue
                count += 1
                cost = 0.1 * earlier.total**0.5 + self._estimate(earlier.state)
                heapq.heappush(heap, (cost, count, earlier))
        return None

    def _nodes(self, literals: list[Literal], later: _Node | None) -> Iterator[_Node]:
        for cube in islice(self.solver.solve(literals, {}), MAX_CUBES):
            node = self._node(cube, later)
            if later is not None and not self._reached(node):
                jumped = self._jump(node, later)
                if jumped is not None:
                    yield jumped
            yield node
            near = self._nearest(node.state)
            if near != node.state:
                yield _Node(near, node.inputs, 1, later, node.total)

    def _node(self, cube: Cube, later: _Node | None) -> _Node:
        state = self._sorted((s, d) for s, d in cube.items() if s.kind == "register")
        inputs = self._sorted((s, d) for s, d in cube.items() if s.kind == "input")
        return _Node(state, inputs, 1, later, 1 + (later.total if later else 0))

    def _finish(self, node: _Node) -> _Node | None:
        """The first node of the way from reset to `node`, if that is known."""
        if self._reached(node):
            return node
        if self._anywhere:
            return None
        literals = [(e, d) for s, d in node.state if (e := self._driver(s)) is not None]
        for number in islice(self.exploration.satisfying(node.state), 4):
            found = self._explain(literals, self.exploration.arrivals[number][1], node)
            if found is not None:
                return found
        return None

    def _sorted(self, items: Iterator[tuple[Signal, Domain]]) -> State:
        return tuple(sorted(items, key=lambda item: self.order[item[0]]))

    def _nearest(self, state: State) -> State:
        """The state with every open choice made in favour of the value that is nearest to the one after reset."""
        result: list[tuple[Signal, Domain]] = []
        for signal, domain in state:
            known = self.after_reset[signal]
            if domain.single is None and not known.within(domain) and not domain.fixed:
                domain = exactly(signal.width, domain.nearest(known.low))
            result.append((signal, domain))
        return tuple(result)

    def _reached(self, node: _Node) -> bool:
        return not node.state or (not self._anywhere and all(self._holds_after_reset(s, d) for s, d in node.state))

    def _holds_after_reset(self, signal: Signal, domain: Domain) -> bool:
        return self.after_reset[signal].within(domain)

    def _estimate(self, state: State) -> float:
        return sum(self._distance(s, d) for s, d in state)

    def _distance(self, signal: Signal, domain: Domain) -> float:
        if self.after_reset[signal].within(domain):
            return 0.0
        found = self._distances.get(signal)
        if found is None:
            found = self._distances[signal] = Distances(signal, self.after_reset[signal], self._driver)
        return found.to(domain)

    # counters

    def _jump(self, node: _Node, later: _Node) -> _Node | None:
        """Take many cycles at once: where `node` differs from `later` only in a counter, go on to the value after
        reset, if the same inputs keep everything else and count in every cycle between."""
        if len(node.state) != len(later.state):
            return None
        moved: tuple[Signal, int, int] | None = None
        for (s, d), (t, e) in zip(node.state, later.state, strict=True):
            if s is not t:
                return None
            if d != e:
                if moved or d.single is None or e.single is None:
                    return None
                moved = s, d.low, e.low
        if moved is None:
            return None
        counter, before, after = moved
        step = signed((after - before) & mask(counter.width), counter.width)
        home = self.after_reset[counter].single
        if home is None or step == 0 or (before - home) % step or (before - home) // step <= 0:
            return None
        count = (before - home) // step
        while count >= 2:
            target = before - count * step
            inner = between(counter.width, *sorted((target, before)))
            if inner is not None and self._keeps(node, later, counter, inner, step):
                state = tuple((s, exactly(s.width, target) if s is counter else d) for s, d in node.state)
                return _Node(state, node.inputs, count + 1, later, later.total + count + 1)
            count //= 2
        return None

    def _keeps(self, node: _Node, later: _Node, counter: Signal, inner: Domain, step: int) -> bool:
        """Whether in every state with the counter in `inner` one cycle adds `step` and leaves the rest as it is."""
        domains: Cube = {**dict(node.state), **dict(node.inputs), counter: inner}
        evaluator = Evaluator(domains, self._driver)
        for signal, domain in later.state:
            driver = self._driver(signal)
            if driver is None:
                return False
            if signal is not counter:
                if not evaluator.of(driver).within(domain):
                    return False
                continue
            leaf = self._leaf(driver, evaluator)
            if leaf is None or leaf.op not in ("add", "sub") or leaf.args[0].signal is not counter:
                return False
            amount = evaluator.of(leaf.args[1]).single
            amount = amount if leaf.op == "add" or amount is None else -amount
            if amount is None or (amount - step) & mask(counter.width):
                return False
        self.solver.work += evaluator.work
        return True

    def _leaf(self, node: Expression, evaluator: Evaluator) -> Expression | None:
        """What an expression comes down to when the conditions on the way are decided."""
        while True:
            if node.op == "ite":
                condition = evaluator.of(node.args[0]).single
                if condition is None:
                    return None
                node = node.args[1] if condition else node.args[2]
            elif node.signal is not None and node.signal.kind == "wire":
                driver = self._driver(node.signal)
                if driver is None:
                    return None
                node = driver
            else:
                return node

    # steps

    def _steps(self, first: _Node) -> tuple[Step, ...]:
        steps: list[Step] = []
        node: _Node | None = first
        while node is not None:
            constraints = self._constraints(node.inputs)
            if steps and steps[-1].constraints == constraints:
                steps[-1] = Step(constraints, steps[-1].cycles + node.cycles)
            else:
                steps.append(Step(constraints, node.cycles))
            node = node.later
        return tuple(steps)

    def _constraints(self, inputs: State) -> tuple[Constraint, ...]:
        result: list[Constraint] = []
        for signal, domain in inputs:
            port, offset, whole = self.ports[signal]
            result += constraints(port, domain, offset, whole)
        return tuple(result)


def _literals(path: Sequence[Condition]) -> list[Literal]:
    return [(c.expression, TRUE if c.wanted else FALSE) for c in path]


def _port_names(netlist: Netlist) -> dict[Signal, tuple[str, int, bool]]:
    """Of every input signal: its port, its lowest bit there, and whether it is the whole port."""
    names: dict[Signal, tuple[str, int, bool]] = {}
    for port, found in netlist.ports:
        if isinstance(found, Memory):
            # the last element has the lowest bits, as in a concatenation of all elements
            offset = sum(s.width for s in found.elements)
            for signal in found.elements:
                offset -= signal.width
                names[signal] = (port.name, offset, False)
        else:
            names[found] = (port.name, 0, True)
    return names
