"""How long a pipeline will still take."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from llm4cov_assets.assets import terminal
from llm4cov_assets.assets.forecast import Forecast, expected_s, minutes
from llm4cov_assets.assets.plan import plan
from llm4cov_assets.profiles import Profile


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def run(forecast: Forecast, clock: Clock, seconds: float) -> None:
    forecast.begin()
    clock.now += seconds
    forecast.end()


def test_the_pace_of_finished_runs_corrects_the_rest():
    clock = Clock()
    forecast = Forecast([10, 10, 20], clock)
    assert (forecast.left(), forecast.place) == (40, "1/3")
    run(forecast, clock, 20)
    assert (forecast.left(), forecast.place) == (60, "2/3")
    forecast.begin()
    clock.now += 5
    assert forecast.left() == 55
    clock.now += 100
    assert forecast.left() == 40


def test_what_was_there_already_says_nothing_about_the_pace():
    clock = Clock()
    forecast = Forecast([10, 10, 20], clock)
    run(forecast, clock, 0.1)
    assert forecast.left() == 30
    for seconds in (10, 20):
        run(forecast, clock, seconds)
    assert (forecast.left(), forecast.place) == (0, "3/3")


def test_every_job_of_a_plan_has_an_expectation_that_grows_with_its_work():
    small, large = Profile(steps=(10, 10, 10), drafts=1), Profile(steps=(100, 100, 100), drafts=8)
    for step in plan(["a"], [0, 1, 2]):
        less, more = (expected_s(step.job, p, n, n) for p, n in ((small, 10), (large, 100)))
        assert 0 < less < more or step.job == "comparison"


def test_durations_are_read_at_a_glance():
    assert [minutes(s) for s in (0, 40.4, 89, 95, 1500)] == ["0 s", "40 s", "89 s", "2 min", "25 min"]


def test_without_bars_a_long_task_says_how_far_it_is_and_how_long_still(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(terminal, "EVERY_S", 0.0)
    reporter = terminal.TerminalReporter([5.0, 60.0])
    said = io.StringIO()
    reporter.console = reporter._progress.live.console = Console(file=said, width=200)
    reporter.begin("stage 0")
    with reporter.live(), reporter.task("simulating", 4, "simulations") as task:
        for _ in range(4):
            task.advance()
    lines = said.getvalue().splitlines()
    assert lines[0].startswith("simulating: 1 of 4 simulations, about 0 s left (run 1/2, about 65 s left in all)")
    assert lines[-1].startswith("simulating: 4 simulations in 0.0 s") and len(lines) == 4
