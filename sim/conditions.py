"""Path conditions: what the inputs must do, from reset, for a branch to be taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Operator = Literal["==", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True)
class Constraint:
    """`port[high:low] op value`, value unsigned; high = low = None for the whole port."""

    port: str
    op: Operator
    value: int
    high: int | None = None
    low: int | None = None


@dataclass(frozen=True)
class Step:
    """All constraints hold together for `cycles` clock cycles in a row (one settling for combinational logic)."""

    constraints: tuple[Constraint, ...]
    cycles: int = 1


@dataclass(frozen=True)
class BranchCondition:
    """One branch of one instance. `file`, `line`, `what` are those of the simulator's coverage point.

    `guards` is the conjunction of source conditions up the tree, outermost first. `steps` leads from reset to the
    branch; None means unknown, and `reason` says why the analysis gave up.
    """

    file: str
    line: int
    what: str
    instance: str
    guards: tuple[str, ...]
    steps: tuple[Step, ...] | None
    reason: str = ""
