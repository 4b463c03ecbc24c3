"""States that a design is known to reach: found by running it, forwards, with values that its source compares with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import NamedTuple

from sim.domains import Domain
from sim.expressions import Expression, Signal, mask
from sim.interpreter import DriverOf, Interpreter, Values

IDLE_CYCLES = 64
RUN_CYCLES = 48
MAX_STATES = 4000


class Visit(NamedTuple):
    """A cycle of a run: its state, the inputs in it, and the cycle before (None: the first after reset)."""

    state: Values
    inputs: Values
    before: Visit | None
    cycle: int


class Exploration:
    """Runs from reset. `start` is the state after reset with unknown values as 0.

    Every visited state is kept with the first cycle that reached it. `hits` maps a condition's number to the first
    cycle in which it held. Deterministic.
    """

    def __init__(
        self, interpreter: Interpreter, start: Values, driver_of: DriverOf, roots: Iterable[Expression]
    ) -> None:
        self.interpreter = interpreter
        self.arrivals: list[tuple[Values, Visit | None]] = []
        self.known: dict[Values, int] = {}
        self.hits: dict[int, Visit] = {}
        self.cycles = 0
        self._random = Random(0)
        self._plans: dict[tuple[Values, ...], None] = {}
        self._values = _dictionary(interpreter.inputs, driver_of, roots)
        self._masks: dict[tuple[int, Domain], int] = {}
        self._by_value: list[dict[int, int]] = [{} for _ in interpreter.registers]
        self._position = {s: i for i, s in enumerate(interpreter.registers)}
        self._most = min(MAX_STATES, 200_000 // (1 + len(start)))
        self._arrive(start, None)
        self.idle = tuple(0 for _ in interpreter.inputs)
        self.run(0, [self.idle] * IDLE_CYCLES)

    def _arrive(self, state: Values, last: Visit | None) -> bool:
        if state in self.known or len(self.arrivals) >= self._most:
            return False
        number = len(self.arrivals)
        self.known[state] = number
        self.arrivals.append((state, last))
        for i, v in enumerate(state):
            values = self._by_value[i]
            values[v] = values.get(v, 0) | 1 << number
        if self._masks:
            self._masks.clear()
        return True

    def run(self, number: int, inputs: Iterable[Values]) -> int:
        """Go on from visited state `number` with the given inputs, cycle by cycle; returns how many states are new."""
        state, last = self.arrivals[number]
        new = 0
        step = self.interpreter.step
        for values in inputs:
            before = self.known.get(state)
            if before is not None:
                last = self.arrivals[before][1]  # the shortest way that is known
            cycle = 0 if last is None else last.cycle + 1
            visit = Visit(state, values, last, cycle)
            state, hits = step(state, values)
            self.cycles += 1
            while hits:
                lowest = hits & -hits
                hits ^= lowest
                i = lowest.bit_length() - 1
                found = self.hits.get(i)
                if found is None or found.cycle > cycle:
                    self.hits[i] = visit
            last = visit
            new += self._arrive(state, visit)
        return new

    def perform(self, cycles: Sequence[Values]) -> None:
        """Run a plan from reset and some idle cycles after it, and keep it to be tried again elsewhere."""
        self.run(0, [*cycles, *[self.idle] * 8])
        if len(cycles) <= 2 * RUN_CYCLES and tuple(cycles) not in self._plans:
            self._plans[tuple(cycles)] = None

    def wander(self, cycles: int) -> None:
        """Random runs from visited states, the later ones more often.

        In turn: what plans did, several in a row or one again and again; inputs that hold; inputs that change, each
        at its own pace, to values that the design compares with.
        """
        random = self._random
        end = self.cycles + cycles
        turn = 0
        while self.cycles < end:
            size = len(self.arrivals)
            number = 0 if random.random() < 0.2 else int(size * random.random() ** 0.4) % size
            turn += 1
            if turn % 3 == 0 and self._plans:
                plans = list(self._plans)
                again = random.random() < 0.5
                chosen = [random.choice(plans)] * random.randint(2, 16) if again else random.choices(plans, k=4)
                self.run(number, [values for cycles in chosen for values in cycles][: 8 * RUN_CYCLES])
                continue
            if turn % 3 == 1:
                held = tuple(random.choice(values) for values in self._values)
                self.run(number, [held] * RUN_CYCLES)
                continue
            plan = [(random.choice((1, 1, 2, 4, 16)), values) for values in self._values]
            current = [random.choice(values) if random.random() < 0.5 else 0 for values in self._values]
            inputs: list[Values] = []
            for _ in range(RUN_CYCLES):
                for i, (pace, values) in enumerate(plan):
                    if random.random() * pace < 1:
                        current[i] = random.choice(values)
                inputs.append(tuple(current))
            self.run(number, inputs)

    def satisfying(self, state: Sequence[tuple[Signal, Domain]]) -> Iterable[int]:
        """Numbers of visited states in which every register lies in its domain, the earliest first."""
        found = (1 << len(self.arrivals)) - 1
        for signal, domain in state:
            key = (self._position[signal], domain)
            members = self._masks.get(key)
            if members is None:
                members = 0
                for v, visits in self._by_value[key[0]].items():
                    if domain.has(v):
                        members |= visits
                self._masks[key] = members
            found &= members
            if not found:
                return
        while found:
            lowest = found & -found
            found ^= lowest
            yield lowest.bit_length() - 1


def _dictionary(inputs: Sequence[Signal], driver_of: DriverOf, roots: Iterable[Expression]) -> list[list[int]]:
    """For each input the values worth driving: constants that the design compares values of this width with."""
    by_width: dict[int, set[int]] = {}
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.number in seen:
            continue
        seen.add(node.number)
        if node.op in ("eq", "ult", "slt") and node.args[1].is_const:
            by_width.setdefault(node.args[0].width, set()).add(node.args[1].value)
        if node.signal is not None and node.signal.kind == "wire":
            driver = driver_of(node.signal)
            if driver is not None:
                stack.append(driver)
        stack += node.args
    result: list[list[int]] = []
    for signal in inputs:
        ones = mask(signal.width)
        if signal.width == 1:
            result.append([0, 1])
            continue
        values = sorted(by_width.get(signal.width, ()))[:32]
        near = {v + d for v in values for d in (-1, 0, 1)} | {0, 1, ones, ones >> 1}
        result.append([v & ones for v in sorted(near)] + values * 2)
    return result
