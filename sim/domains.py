"""Sets of values of a bit vector: an interval, known bits and a few excluded values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sim.expressions import mask


@dataclass(frozen=True)
class Domain:
    """All v with low <= v <= high, v & fixed == value, v not in excluded. Built by the functions below; never empty."""

    width: int
    low: int
    high: int
    fixed: int = 0
    value: int = 0
    excluded: frozenset[int] = frozenset()

    @property
    def single(self) -> int | None:
        """The only member, if there is just one."""
        return self.low if self.low == self.high else None

    @property
    def is_full(self) -> bool:
        return self.low == 0 and self.high == mask(self.width) and not self.fixed and not self.excluded

    def __contains__(self, v: int) -> bool:
        return self.low <= v <= self.high and v & self.fixed == self.value and v not in self.excluded

    def meet(self, other: Domain) -> Domain | None:
        """The values in both; None when there are none."""
        if other == self or other.is_full:
            return self
        if self.fixed & other.fixed & (self.value ^ other.value):
            return None
        return build(
            self.width,
            max(self.low, other.low),
            min(self.high, other.high),
            self.fixed | other.fixed,
            self.value | other.value,
            self.excluded | other.excluded,
        )

    def within(self, other: Domain) -> bool:
        """Whether every value is in `other` (may say no where the answer is yes)."""
        if other.low > self.low or other.high < self.high or (self.fixed & other.fixed) != other.fixed:
            return False
        if self.value & other.fixed != other.value:
            return False
        return all(v not in self for v in other.excluded)

    def complement(self) -> list[Domain]:
        """Domains that cover exactly the other values."""
        parts = [between(self.width, 0, self.low - 1), between(self.width, self.high + 1, mask(self.width))]
        inner = between(self.width, self.low, self.high)
        parts += [exactly(self.width, v) for v in sorted(self.excluded)]
        if inner is not None and self.single is None:
            for bit in range(self.width):
                if self.fixed >> bit & 1:
                    wrong = bits(self.width, 1 << bit, ~self.value & (1 << bit))
                    parts.append(inner.meet(wrong) if wrong else None)
        return [p for p in parts if p is not None]

    def samples(self) -> Iterator[int]:
        """Some members, boundaries first, without repetition."""
        seen: set[int] = set()
        middle = (self.low + self.high) // 2
        for v in (self.low, self.high, self.low + 1, self.high - 1, middle, middle + 1, self.low + 2):
            if v in self and v not in seen:
                seen.add(v)
                yield v

    def nearest(self, v: int) -> int:
        """A member close to `v`: `v` itself, else a boundary or the neighbour of an excluded value."""
        if v in self:
            return v
        if v <= self.low:
            return self.low
        if v >= self.high:
            return self.high
        up = _next_match(v, self.fixed, self.value, self.width)
        for candidate in (up, v + 1, v - 1):
            if candidate is not None and candidate in self:
                return candidate
        return self.low


def build(width: int, low: int, high: int, fixed: int, value: int, excluded: frozenset[int]) -> Domain | None:
    """The domain of these conditions, with tight bounds; None when it is empty."""
    while True:
        if fixed:
            up = _next_match(low, fixed, value, width)
            down = _next_match(mask(width) & ~high, fixed, fixed & ~value, width) if high >= 0 else None
            if up is None or down is None:
                return None
            low, high = up, mask(width) & ~down
        if low > high:
            return None
        if low in excluded:
            low += 1
        elif high in excluded:
            high -= 1
        else:
            break
    if low == high:
        return Domain(width, low, high, mask(width), low)
    if excluded:
        excluded = frozenset(v for v in excluded if low < v < high and v & fixed == value)
    return Domain(width, low, high, fixed, value, excluded)


def _next_match(low: int, fixed: int, value: int, width: int) -> int | None:
    """The smallest v >= low with v & fixed == value."""
    difference = (low ^ value) & fixed
    if not difference:
        return low if low >> width == 0 else None
    i = difference.bit_length() - 1
    if not low >> i & 1:
        return ((low >> i + 1) << i + 1) | (1 << i) | (value & mask(i))
    for j in range(i + 1, width):
        if not (fixed >> j & 1) and not (low >> j & 1):
            return ((low >> j + 1) << j + 1) | (1 << j) | (value & mask(j))
    return None


_full: dict[int, Domain] = {}


def full(width: int) -> Domain:
    found = _full.get(width)
    if found is None:
        found = _full[width] = Domain(width, 0, mask(width))
    return found


def exactly(width: int, v: int) -> Domain:
    return Domain(width, v, v, mask(width), v)


def between(width: int, low: int, high: int) -> Domain | None:
    return build(width, max(low, 0), min(high, mask(width)), 0, 0, frozenset())


def bits(width: int, fixed: int, value: int) -> Domain | None:
    return build(width, 0, mask(width), fixed, value & fixed, frozenset())


def other_than(width: int, v: int) -> Domain | None:
    return build(width, 0, mask(width), 0, 0, frozenset((v,)))


TRUE = exactly(1, 1)
FALSE = exactly(1, 0)
