"""Progress bars of commands, on stderr."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from llm4cov_assets.progress import Progress


@contextmanager
def progress() -> Iterator[Progress]:
    """A bar for each thing that is done, one at a time; it goes away at the end. Lines without a terminal: none."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[now]}", markup=False),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, now="")
        doing = ""

        def tell(what: str, done: int, total: int | None, now: str) -> None:
            nonlocal doing
            if what != doing:
                bar.reset(task, total=total, description=what, now=now)
                doing = what
            bar.update(task, completed=done, total=total, now=now.replace("\n", " ")[:60])

        yield tell
