"""How far long work has come, told to whoever shows it."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int | None, str], None]
"""Told (what is being done, how many are done, of how many if known, which one now)."""


def silent(what: str, done: int, total: int | None, now: str) -> None:
    """Progress that nobody watches."""
