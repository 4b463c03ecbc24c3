"""Between sets of values and constraints on ports."""

from __future__ import annotations

from sim.conditions import Constraint
from sim.domains import Domain
from sim.expressions import mask


def satisfying(constraint: Constraint, width: int) -> int:
    """A value of the constraint's field that meets it."""
    top = mask(width) if constraint.high is None else mask(constraint.high - (constraint.low or 0) + 1)
    match constraint.op:
        case "!=":
            return 0 if constraint.value else 1
        case "<":
            return 0
        case "<=":
            return 0
        case ">":
            return min(constraint.value + 1, top)
        case _:
            return constraint.value


def constraints(port: str, domain: Domain, offset: int = 0, whole: bool = True) -> list[Constraint]:
    """The domain of a port, or of the part of a port that starts at bit `offset`, as constraints."""
    field = (None, None) if whole else (offset + domain.width - 1, offset)
    if domain.single is not None:
        return [Constraint(port, "==", domain.low, *field)]
    if domain.fixed and not domain.only_bits:
        return [Constraint(port, "==", next(domain.samples()), *field)]
    if domain.fixed:
        result: list[Constraint] = []
        low = 0
        while domain.fixed >> low:
            while not domain.fixed >> low & 1:
                low += 1
            high = low
            while domain.fixed >> (high + 1) & 1:
                high += 1
            value = domain.value >> low & mask(high - low + 1)
            result.append(Constraint(port, "==", value, offset + high, offset + low))
            low = high + 1
        return result
    result = []
    if domain.low > 0:
        result.append(Constraint(port, ">=", domain.low, *field))
    if domain.high < mask(domain.width):
        result.append(Constraint(port, "<=", domain.high, *field))
    return result + [Constraint(port, "!=", v, *field) for v in sorted(domain.excluded)]
