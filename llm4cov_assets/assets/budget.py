"""A limit on logical simulations (those that a cold cache would run) of one `llm4cov run`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from llm4cov_assets.errors import UserError


class BudgetSpent(UserError):
    """The next simulations would go over the budget; nothing that is finished is lost."""


_left: ContextVar[list[int] | None] = ContextVar("llm4cov_budget", default=None)


@contextmanager
def limited_to(simulations: int | None) -> Iterator[None]:
    """Allow at most `simulations` logical simulations in this block; None is no limit."""
    token = _left.set(None if simulations is None else [simulations])
    try:
        yield
    finally:
        _left.reset(token)


def spend(simulations: int) -> None:
    """Take `simulations` from the budget; BudgetSpent when fewer are left."""
    left = _left.get()
    if left is None:
        return
    if simulations > left[0]:
        raise BudgetSpent(
            f"the budget has {left[0]} simulations left and the next step needs {simulations}; "
            "everything up to here is stored: raise --budget-sims to go on"
        )
    left[0] -= simulations
