"""How far a register's value is from reset, judged by the register's own updates."""

from __future__ import annotations

from sim.domains import Domain
from sim.evaluation import DriverOf
from sim.expressions import Expression, Signal, signed

FAR = 64.0
"""Distance of a value that no update seems to lead to."""


class Distances:
    """Roughly how many cycles it takes from reset until a register has a value, from its updates alone."""

    def __init__(self, signal: Signal, known: Domain, driver_of: DriverOf) -> None:
        self._driver_of = driver_of
        self.loads = 0.0
        self.increments: set[int] = set()
        self.cost: dict[int, float] = {known.low: 0.0} if known.single is not None else {}
        moves: list[tuple[int | None, int]] = []
        self._left = 400
        driver = driver_of(signal)
        if driver is not None:
            self._collect(signal, driver, None, moves)
        for _ in range(len(moves)):
            changed = False
            for source, target in moves:
                before = 0.5 if source is None else self.cost.get(source)
                if before is not None and before + 1 < self.cost.get(target, FAR):
                    self.cost[target] = before + 1
                    changed = True
            if not changed:
                break

    def _collect(
        self, signal: Signal, node: Expression, source: int | None, moves: list[tuple[int | None, int]]
    ) -> None:
        self._left -= 1
        if self._left < 0:
            self.loads = 2.0
            return
        if node.op == "ite":
            here = compared_constant(node.args[0], signal)
            self._collect(signal, node.args[1], source if here is None else here, moves)
            self._collect(signal, node.args[2], source, moves)
        elif node.is_const:
            moves.append((source, node.value))
        elif node.signal is signal:
            return
        elif node.signal is not None and node.signal.kind == "wire":
            driver = self._driver_of(node.signal)
            if driver is not None:
                self._collect(signal, driver, source, moves)
        elif node.op == "add" and node.args[0].signal is signal and node.args[1].is_const:
            self.increments.add(signed(node.args[1].value, node.width))
        else:
            self.loads = 1.0 if node.signal is not None and node.signal.kind == "input" else 2.0

    def to(self, domain: Domain) -> float:
        best = min((c for v, c in self.cost.items() if domain.has(v)), default=FAR)
        for increment in self.increments:
            for v, c in self.cost.items():
                target = domain.nearest(v)
                distance = (target - v) if increment > 0 else (v - target)
                if distance >= 0:
                    # a long run of one counter is one jump
                    best = min(best, c + 1 + 0.01 * distance / abs(increment))
        return min(best, self.loads) if self.loads else best


def compared_constant(condition: Expression, signal: Signal) -> int | None:
    """The constant that the condition compares the signal with."""
    if condition.op == "eq" and condition.args[0].signal is signal and condition.args[1].is_const:
        return condition.args[1].value
    if condition.op == "and" and condition.width == 1:
        for part in condition.args:
            found = compared_constant(part, signal)
            if found is not None:
                return found
    if condition.signal is signal and signal.width == 1:
        return 1
    return None
