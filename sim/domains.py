"""Sets of values of a bit vector: an interval, known bits and a few excluded values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sim.expressions import mask


class Domain(NamedTuple):
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
    def only_bits(self) -> bool:
        """Whether the known bits alone describe it."""
        return (
            not self.excluded and self.low == self.value and self.high == self.value | (mask(self.width) & ~self.fixed)
        )

    @property
    def is_full(self) -> bool:
        return self.low == 0 and self.high == mask(self.width) and not self.fixed and not self.excluded

    def has(self, v: int) -> bool:
        """Whether `v` is a member."""
        return self.low <= v <= self.high and v & self.fixed == self.value and v not in self.excluded

    def meet(self, other: Domain) -> Domain | None:
        """The values in both; None when there are none."""
        if self.low == self.high:
            return self if other.has(self.low) else None
        if other.low == other.high:
            return other if self.has(other.low) else None
        if other.is_full or other == self:
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
        if self.low == self.high:
            return other.has(self.low)
        if other.low > self.low or other.high < self.high or (self.fixed & other.fixed) != other.fixed:
            return False
        if self.value & other.fixed != other.value:
            return False
        return all(not self.has(v) for v in other.excluded)

    def inverted(self) -> Domain:
        """The domain of ~v."""
        ones = mask(self.width)
        inverted = frozenset(ones & ~v for v in self.excluded) if self.excluded else self.excluded
        return Domain(self.width, ones & ~self.high, ones & ~self.low, self.fixed, self.fixed & ~self.value, inverted)

    def samples(self) -> Iterator[int]:
        """Some members, boundaries first, without repetition."""
        seen: set[int] = set()
        middle = (self.low + self.high) // 2
        for v in (self.low, self.high, self.low + 1, self.high - 1, middle, middle + 1, self.low + 2):
            if self.has(v) and v not in seen:
                seen.add(v)
                yield v

    def nearest(self, v: int) -> int:
        """A member close to `v`: `v` itself, else a boundary or the neighbour of an excluded value."""
        if self.has(v):
            return v
        if v <= self.low:
            return self.low
        if v >= self.high:
            return self.high
        up = _next_match(v, self.fixed, self.value, self.width)
        for candidate in (up, v + 1, v - 1):
            if candidate is not None and self.has(candidate):
                return candidate
        return self.low


def build(width: int, low: int, high: int, fixed: int, value: int, excluded: frozenset[int]) -> Domain | None:
    """The domain of these conditions, with tight bounds; None when it is empty."""
    if not fixed and not excluded:
        if low > high:
            return None
        return Domain(width, low, high, mask(width), low) if low == high else Domain(width, low, high)
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


def shifted(domain: Domain, offset: int) -> list[Domain]:
    """Domains that together hold v + offset (modulo 2 ** width) for every v of `domain`."""
    width = domain.width
    size = 1 << width
    if domain.single is not None:
        return [exactly(width, (domain.low + offset) % size)]
    if domain.fixed:
        return [exactly(width, (v + offset) % size) for v in domain.samples()]
    excluded = frozenset((v + offset) % size for v in domain.excluded)
    low, high = (domain.low + offset) % size, (domain.high + offset) % size
    if domain.low == 0 and domain.high == size - 1:
        ranges = [(0, size - 1)]
    else:
        ranges = [(low, high)] if low <= high else [(low, size - 1), (0, high)]
    parts = [build(width, a, b, 0, 0, excluded) for a, b in ranges]
    return [p for p in parts if p is not None]


def bits(width: int, fixed: int, value: int) -> Domain | None:
    return build(width, 0, mask(width), fixed, value & fixed, frozenset())


def other_than(width: int, v: int) -> Domain | None:
    return build(width, 0, mask(width), 0, 0, frozenset((v,)))


TRUE = exactly(1, 1)
FALSE = exactly(1, 0)
