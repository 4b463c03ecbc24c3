"""How long a pipeline will still take: unit costs of each kind of run, corrected by how long the finished ones took."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from llm4cov_assets.profiles import Profile

BUILD_S, SIMULATION_S, GENERATION_S, STEP_S = 0.8, 0.03, 0.01, 0.15
"""Typical cost of one build, simulation, answer of a student and training step, s on one core."""

SELECTED = 1.2
"""States that a stage selects for repair, per design."""

SKIPPED_S = 1.0
"""A run that took less was there already and says nothing about the speed of this machine."""


def expected_s(job: str, profile: Profile, designs: int, evaluated: int) -> float:
    """Expected seconds of one run of `job`, for a batch of `designs` or for `evaluated` evaluation designs.

    A student's answers cost more than the teacher's; the builds of a batch are made by stage 0.
    """
    p = profile
    proposals = designs * (p.drafts + SELECTED * p.repairs)
    one_policy = evaluated * p.eval_samples * (1 + 1 + p.eval_rounds)
    student = one_policy * (SIMULATION_S + GENERATION_S)
    kind, _, rest = job.partition("_")
    if kind == "stage" and rest.endswith("trajectories"):
        builds = designs * BUILD_S if rest.startswith("0") else 0.0
        return builds + proposals * (SIMULATION_S + (0.0 if rest.startswith("0") else GENERATION_S))
    if kind == "stage":
        return p.steps[int(rest[0])] * STEP_S + student
    match job:
        case "register_designs":
            return 0.05 * designs
        case "preparation":
            return evaluated * (BUILD_S + p.calibration_sims * SIMULATION_S)
        case "baselines":
            return student + 3 * one_policy * SIMULATION_S
        case "control":
            return sum(p.steps[1:]) * STEP_S + student
        case _:
            return 2.0


class Forecast:
    """Follows the runs of a plan, one after the other. `expected` has one number of seconds for each run."""

    def __init__(self, expected: Sequence[float], clock: Callable[[], float] = time.monotonic) -> None:
        self._expected, self._clock = list(expected), clock
        self._done = 0
        self._began: float | None = None
        self._took, self._should = 0.0, 0.0

    @property
    def place(self) -> str:
        """`5/24`: the run at hand of all."""
        return f"{min(self._done + 1, len(self._expected))}/{len(self._expected)}"

    def begin(self) -> None:
        """The next run starts."""
        self._began = self._clock()

    def end(self) -> None:
        """The run at hand is finished."""
        took = self._clock() - (self._began if self._began is not None else self._clock())
        if took >= SKIPPED_S:
            self._took += took
            self._should += self._expected[self._done]
        self._done += 1
        self._began = None

    def left(self) -> float:
        """Seconds that the rest will take if it goes on like this."""
        pace = self._took / self._should if self._should else 1.0
        spent = self._clock() - self._began if self._began is not None else 0.0
        at_hand, *rest = self._expected[self._done :] or [0.0]
        return max(0.0, pace * at_hand - spent) + pace * sum(rest)


def minutes(seconds: float) -> str:
    """`7 min` or `40 s`."""
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
