"""Progress bars in the terminal: the whole plan, and the task at hand."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class TerminalReporter:
    """Shows what is being done, how far and how long still, on stderr.

    On a terminal these are bars; otherwise one line for each finished task.
    """

    def __init__(self, steps: int) -> None:
        # A copy of the descriptor: whatever redirects stderr while a step runs does not take the bars with it.
        self.console = Console(file=os.fdopen(os.dup(2), "w"), highlight=False)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[unit]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False),
            console=self.console,
            disable=not self.console.is_terminal,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._whole = self._progress.add_task("pipeline", total=steps, unit="runs")

    @contextmanager
    def live(self) -> Iterator[None]:
        """Draw the bars while the block runs."""
        with self._progress:
            yield

    def say(self, line: str) -> None:
        """One line above the bars."""
        self._progress.console.print(line, markup=False, soft_wrap=True)

    def begin(self, title: str) -> None:
        """Name the step of the plan that runs now."""
        self._progress.update(self._whole, description=title)

    def end(self) -> None:
        """One more step of the plan is finished."""
        self._progress.advance(self._whole)

    @contextmanager
    def task(self, what: str, total: int, unit: str) -> Iterator[TerminalTask]:
        """See `Reporter.task`."""
        started = time.monotonic()
        row = self._progress.add_task(f"  {what}", total=total or None, unit=unit)
        task = TerminalTask(self._progress, row)
        try:
            yield task
        finally:
            self._progress.remove_task(row)
        if task.done:
            self.say(f"{what}: {task.done} {unit} in {time.monotonic() - started:.1f} s")


class TerminalTask:
    """One bar."""

    def __init__(self, progress: Progress, row: TaskID) -> None:
        self._progress, self._row = progress, row
        self.done = 0

    def advance(self, n: int = 1) -> None:
        self.done += n
        self._progress.advance(self._row, n)
