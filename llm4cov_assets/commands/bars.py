"""Progress bars of commands, on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str, int, int | None, str], None]
"""Told (what is being done, how many are done, of how many if known, which one now)."""


@contextmanager
def progress() -> Iterator[Progress]:
    """A bar for each thing that is done, one at a time; it goes away at the end. Lines without a terminal: none."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[now]}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, now="")
        doing = ""

        def tell(what: str, done: int, total: int | None, now: str) -> None:
            nonlocal doing
            if what != doing:
                bar.reset(task, total=total, description=what, now=now)
                doing = what
            bar.update(task, completed=done, total=total, now=now.replace("\n", " ")[:60])

        yield tell
