"""The state of a process while it is followed symbolically."""

from __future__ import annotations

from dataclasses import dataclass, field

from sim.expressions import Expression, Signal


class UnsupportedError(Exception):
    """A construct that the analysis does not follow; the message names it."""


@dataclass(eq=False)
class Memory:
    """An unpacked array of one dimension: element i has index first + i * step."""

    elements: list[Signal]
    left: int
    right: int

    def position(self, index: int) -> int:
        return index - self.left if self.left <= self.right else self.left - index

    @property
    def indices(self) -> range:
        step = 1 if self.left <= self.right else -1
        return range(self.left, self.right + step, step)


@dataclass(eq=False)
class Condition:
    """One source condition on the way to a branch: `expression` is true (or false), written `text`."""

    expression: Expression
    wanted: bool
    text: str


@dataclass
class Frame:
    """Where symbolic execution of one process stands.

    values: variables as the following statements read them; following: what non-blocking assignments leave for after
    the clock edge; written: bits that the process assigns; path: the conditions that hold here; left: whether a
    return, break or continue has been taken.
    """

    values: dict[Signal, Expression] = field(default_factory=lambda: {})
    following: dict[Signal, Expression] = field(default_factory=lambda: {})
    written: dict[Signal, int] = field(default_factory=lambda: {})
    path: tuple[Condition, ...] = ()
    left: Expression | None = None
    depth: int = 0

    def copy(self) -> Frame:
        return Frame(dict(self.values), dict(self.following), self.written, self.path, self.left, self.depth)
