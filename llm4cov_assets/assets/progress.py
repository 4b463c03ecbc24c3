"""What is being done, how far, and how long still: one reporter, shown in the terminal or logged to Dagster."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Task(Protocol):
    """One piece of work with a known size."""

    def advance(self, n: int = 1) -> None:
        """Say that `n` more units are finished."""
        ...


class Reporter(Protocol):
    """Shows tasks. `total` is the number of units, 0 when unknown; `unit` is a plural noun."""

    @contextmanager
    def task(self, what: str, total: int, unit: str) -> Iterator[Task]:
        """Show a task while the block runs."""
        ...


class LogReporter:
    """Reports to a logger: at the start, at most every ten seconds, and at the end."""

    def __init__(self, log: logging.Logger, every_s: float = 10.0):
        self._log, self._every_s = log, every_s

    @contextmanager
    def task(self, what: str, total: int, unit: str) -> Iterator[Task]:
        task = _LoggedTask(self._log, what, total, unit, self._every_s)
        yield task
        task.say(ended=True)


class _LoggedTask:
    def __init__(self, log: logging.Logger, what: str, total: int, unit: str, every_s: float):
        self._log, self._what, self._total, self._unit, self._every_s = log, what, total, unit, every_s
        self._done, self._start = 0, time.monotonic()
        self._said = self._start

    def advance(self, n: int = 1) -> None:
        self._done += n
        if time.monotonic() - self._said >= self._every_s:
            self.say()

    def say(self, ended: bool = False) -> None:
        self._said = time.monotonic()
        elapsed = self._said - self._start
        # a task may end before its total, as a closure does that has covered everything
        going_on = not ended and self._done and self._total > self._done
        left = elapsed * (self._total - self._done) / self._done if going_on else 0.0
        rest = f", about {left:.0f} s left" if left else f" in {elapsed:.1f} s"
        self._log.info(f"{self._what}: {self._done} of {self._total or '?'} {self._unit}{rest}")


class Silent:
    """Shows nothing: for the parts of a task that is shown as a whole."""

    @contextmanager
    def task(self, what: str, total: int, unit: str) -> Iterator[Task]:
        """Run the block."""
        yield self

    def advance(self, n: int = 1) -> None:
        """Nothing to show."""


_current: ContextVar[Reporter | None] = ContextVar("llm4cov_progress", default=None)


def current() -> Reporter | None:
    """The reporter of this process, if a terminal shows one."""
    return _current.get()


@contextmanager
def reporting_to(reporter: Reporter) -> Iterator[None]:
    """Send everything that assets report in this block to `reporter` instead of the Dagster log."""
    token = _current.set(reporter)
    try:
        yield
    finally:
        _current.reset(token)
