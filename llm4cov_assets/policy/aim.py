"""Concrete values for constraints on one port."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from random import Random

from sim.conditions import Constraint


def satisfy(constraints: Sequence[Constraint], width: int, held: int = 0, rng: Random | None = None) -> int:
    """Return a value of `width` bits that meets `constraints` (all on one port), as close to `held` as they allow.

    Constraints that contradict each other are met as far as possible.
    """
    offered = [(c, _choices(c, width, held, rng)) for c in constraints]
    # one that no value meets must not take the field from those that can be met
    able = [(c, values) for c, values in offered if any(holds(c, _with_field(held, c, width, v)) for v in values)]
    constraints, choices = [c for c, _ in able], [values for _, values in able]
    best, best_met = held, -1
    for picked in _bounded(product(*choices), 256):
        value = held
        # fixed bits go last: a range on the whole port must not move them
        for constraint, field_value in sorted(zip(constraints, picked, strict=True), key=lambda p: p[0].op == "=="):
            value = _with_field(value, constraint, width, field_value)
        met = sum(holds(c, value) for c in constraints)
        if met > best_met:
            best, best_met = value, met
        if met == len(constraints):
            break
    return best


def holds(constraint: Constraint, value: int) -> bool:
    """Whether the port's value meets the constraint."""
    found = value
    if constraint.high is not None:
        low = constraint.low or 0
        found = value >> low & (1 << constraint.high - low + 1) - 1
    wanted = constraint.value
    match constraint.op:
        case "==":
            return found == wanted
        case "!=":
            return found != wanted
        case "<":
            return found < wanted
        case "<=":
            return found <= wanted
        case ">":
            return found > wanted
        case ">=":
            return found >= wanted


def _field(constraint: Constraint, width: int) -> tuple[int, int]:
    """Lowest bit and largest value of the field that the constraint is about."""
    if constraint.high is None:
        return 0, (1 << width) - 1
    low = constraint.low or 0
    return low, (1 << constraint.high - low + 1) - 1


def _with_field(value: int, constraint: Constraint, width: int, field_value: int) -> int:
    low, top = _field(constraint, width)
    return value & ~(top << low) | (field_value & top) << low


def _choices(constraint: Constraint, width: int, held: int, rng: Random | None) -> list[int]:
    """Values of the field to try, best first: the one that is held, then boundaries."""
    low, top = _field(constraint, width)
    now, v = held >> low & top, constraint.value
    match constraint.op:
        case "==":
            return [v]
        case "!=":
            other = [now] if now != v else []
            if rng is not None and top > 1:
                other.insert(0, rng.randint(0, top))
            found = [*other, v ^ 1, v + 1, v - 1, 0, top]
        case "<" | "<=":
            edge = v - 1 if constraint.op == "<" else v
            found = [edge, 0, edge - 1, now]
            if rng is not None and edge > 0:
                found.insert(rng.randint(0, 1), rng.randint(0, min(edge, top)))
        case ">" | ">=":
            edge = v + 1 if constraint.op == ">" else v
            found = [edge, top, edge + 1, now]
            if rng is not None and edge < top:
                found.insert(rng.randint(0, 1), rng.randint(max(edge, 0), top))
    return list(dict.fromkeys(x for x in found if 0 <= x <= top)) or [now]


def _bounded(items: Iterable[tuple[int, ...]], most: int) -> Iterable[tuple[int, ...]]:
    for n, item in enumerate(items):
        if n == most:
            return
        yield item
