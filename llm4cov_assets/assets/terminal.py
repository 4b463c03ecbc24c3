"""Progress bars in the terminal: the whole plan, and the task at hand."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from llm4cov_assets.assets.forecast import Forecast, minutes

EVERY_S = 15.0
"""Where there are no bars, a line at most this often."""


class TerminalReporter:
    """Shows what is being done, how far and how long still, on stderr.

    On a terminal these are bars; otherwise lines: for a task that takes long, and for each that is finished.
    `expected` has the expected seconds of each run of the plan.
    """

    def __init__(self, expected: Sequence[float]) -> None:
        # A copy of the descriptor: whatever redirects stderr while a step runs does not take the bars with it.
        self.console = Console(file=os.fdopen(os.dup(2), "w"), highlight=False)
        self.forecast = Forecast(expected)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[unit]}"),
            TimeElapsedColumn(),
            _Left(self.forecast),
            console=self.console,
            disable=not self.console.is_terminal,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._whole = self._progress.add_task("pipeline", total=len(expected), unit="runs", whole=True)

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
        self.forecast.begin()
        self._progress.update(self._whole, description=title)

    def end(self) -> None:
        """One more step of the plan is finished."""
        self.forecast.end()
        self._progress.advance(self._whole)

    def in_all(self) -> str:
        """Where the plan stands, in words."""
        return f"run {self.forecast.place}, about {minutes(self.forecast.left())} left in all"

    @contextmanager
    def task(self, what: str, total: int, unit: str) -> Iterator[TerminalTask]:
        """See `Reporter.task`."""
        row = self._progress.add_task(f"  {what}", total=total or None, unit=unit, whole=False)
        task = TerminalTask(self, self._progress, row, what, total, unit)
        try:
            yield task
        finally:
            self._progress.remove_task(row)
        if task.done:
            self.say(f"{what}: {task.done} {unit} in {time.monotonic() - task.started:.1f} s")


class TerminalTask:
    """One bar, or a line now and then where there are none."""

    def __init__(
        self, reporter: TerminalReporter, progress: Progress, row: TaskID, what: str, total: int, unit: str
    ) -> None:
        self._reporter, self._progress, self._row = reporter, progress, row
        self._what, self._total, self._unit = what, total, unit
        self.done = 0
        self.started = self._said = time.monotonic()

    def advance(self, n: int = 1) -> None:
        """`n` more units are finished."""
        self.done += n
        self._progress.advance(self._row, n)
        now = time.monotonic()
        if self._reporter.console.is_terminal or now - self._said < EVERY_S or not 0 < self.done < self._total:
            return
        self._said = now
        left = (now - self.started) * (self._total - self.done) / self.done
        self._reporter.say(
            f"{self._what}: {self.done} of {self._total} {self._unit}, about {minutes(left)} left"
            f" ({self._reporter.in_all()})"
        )


class _Left(ProgressColumn):
    """The time left: of the whole plan by the forecast, of a task by its speed."""

    def __init__(self, forecast: Forecast) -> None:
        super().__init__()
        self._forecast = forecast

    def render(self, task: Task) -> Text:
        seconds = self._forecast.left() if task.fields["whole"] else task.time_remaining
        return Text("" if seconds is None else f"about {minutes(seconds)} left")
