"""Bodies of `draft_coverage` and `repair_coverage`: what simulation says about proposals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from llm4cov_assets import rows
from llm4cov_assets.assets import budget
from llm4cov_assets.assets.proposals import design_states, selected
from llm4cov_assets.assets.recall import generations_of
from llm4cov_assets.assets.work import Outcome, Work
from llm4cov_assets.learning import filter as rejection
from llm4cov_assets.learning.rollout import Step, simulated
from llm4cov_assets.policy.base import State
from llm4cov_assets.report.plots import histogram, markdown
from sim.design import Design
from sim.simulation import Simulation, Testbench

if TYPE_CHECKING:
    from sim.simulator import Simulator


class Counted:
    """`rollout.Simulate` on a simulator: with the profile's limits, the budget, progress, and counts of what it did.

    `doing` is what progress calls the work.
    """

    def __init__(self, work: Work, simulator: Simulator) -> None:
        self._work, self.simulator = work, simulator
        self.logical = self.run = self.cached = 0
        self.cpu_s = 0.0
        self.doing = "simulating"
        self._builds_before = simulator.counters.builds
        self._build_cpu_before = simulator.counters.build_cpu_s

    def __call__(self, jobs: Sequence[tuple[Design, Sequence[Testbench]]]) -> Iterator[tuple[int, list[Simulation]]]:
        n = sum(len(testbenches) for _, testbenches in jobs)
        budget.spend(n)
        self.logical += n
        with self._work.task(f"{self.doing} on {len(jobs)} designs", n, "simulations") as task:
            for number, results in self.simulator.run_batches(jobs, limits=self._work.profile.limits, seed=0):
                for simulation in results:
                    self.cached += simulation.cached
                    self.run += not simulation.cached
                    self.cpu_s += 0.0 if simulation.cached else simulation.cpu_s
                task.advance(len(results))
                yield number, results

    @property
    def costs(self) -> dict[str, Any]:
        """Metadata: simulations run and from the cache, builds, CPU seconds of both."""
        counters = self.simulator.counters
        return {
            "simulations_run": self.run,
            "simulations_from_cache": self.cached,
            "builds_run": counters.builds - self._builds_before,
            "cpu_s": round(self.cpu_s + counters.build_cpu_s - self._build_cpu_before, 2),
        }


def simulated_drafts(work: Work, simulator: Simulator, policy: str) -> Outcome:
    """Transitions of the stage's drafts; those worth learning from directly are accepted."""
    simulate = Counted(work, simulator)
    states = {s.state_id: s for s in design_states(work)}
    steps = taken(work, f"stage_{work.stage}/drafts", states, simulate)
    transitions = rows.transition_rows(
        steps, config_hash=work.profile.config_hash, stage=work.stage, role="draft", policy=policy
    )
    candidates = rejection.candidates(steps, transitions["transition_id"].to_list())
    judged = rejection.direct_examples(
        candidates,
        work.profile.floor,
        per_design=work.profile.keep_per_design,
        stage=work.stage or 0,
        until=work.profile.drafts_until,
    )
    return covered(simulate, steps, rejection.with_verdicts(transitions, judged))


def simulated_repairs(work: Work, simulator: Simulator, policy: str, floor: float | None) -> Outcome:
    """Transitions of the stage's repairs, judged by the rejection filter."""
    simulate = Counted(work, simulator)
    states = {s.state_id: s for s in selected(work, simulator)}
    steps = taken(work, f"stage_{work.stage}/repairs", states, simulate)
    drafts = work.read("transitions", f"stage_{work.stage}/draft_coverage", work.partition)
    begun = drafts.drop_nulls("next_state_id").select("next_state_id", "trajectory_id")
    transitions = rows.transition_rows(
        steps,
        config_hash=work.profile.config_hash,
        stage=work.stage,
        role="repair",
        policy=policy,
        trajectories=dict(begun.reverse().iter_rows()),
    )
    candidates = rejection.candidates(steps, transitions["transition_id"].to_list())
    judged = rejection.keep_best(rejection.judge(candidates, work.profile.tau, floor), work.profile.keep_per_design)
    return covered(simulate, steps, rejection.with_verdicts(transitions, judged))


def taken(work: Work, asset: str, states: Mapping[str, State], simulate: Counted) -> list[Step]:
    """The steps of what `asset` proposed."""
    answers = [(states[g.state_id], g) for g in generations_of(work, asset, work.partition)]
    return simulated(answers, simulate)


def step_tables(simulator: Simulator, steps: Sequence[Step], transitions: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Rows of everything that steps leave behind, the transitions given."""
    observed = rows.observation_tables([s.simulation for s in steps if s.simulation], simulator.points)
    return observed | {
        "states": rows.state_rows(s for step in steps for s in (step.state, step.next_state)),
        "transitions": transitions,
    }


def covered(simulate: Counted, steps: Sequence[Step], transitions: pl.DataFrame) -> Outcome:
    """The outcome of simulated drafts or repairs."""
    tables = step_tables(simulate.simulator, steps, transitions)
    return Outcome(tables, step_metadata(steps, transitions) | simulate.costs, simulate.logical)


def step_metadata(steps: Sequence[Step], transitions: pl.DataFrame) -> dict[str, Any]:
    """The funnel from proposals to accepted examples, and the coverage reached as a picture."""
    statuses = transitions["status"].value_counts(sort=True).iter_rows()
    reasons = transitions.filter(pl.col("reject_reason") != "")["reject_reason"].value_counts(sort=True).iter_rows()
    scores = [step.score_after for step in steps]
    running = sum(bool(step.simulation and step.simulation.running) for step in steps)
    funnel = [
        ("proposed", len(steps)),
        ("usable", sum(step.simulation is not None for step in steps)),
        ("running", running),
        ("gained", sum(step.gain > 0 for step in steps)),
        ("accepted", int(transitions["accepted"].sum() or 0)),
    ]
    return {
        "designs": transitions["design_id"].n_unique(),
        "mean_coverage": round(sum(scores) / max(len(scores), 1), 4),
        "mean_gain": round(sum(step.gain for step in steps) / max(len(steps), 1), 4),
        "accepted": funnel[-1][1],
        "funnel": {"markdown": _counts("step", funnel)},
        "statuses": {"markdown": _counts("status", statuses)},
        "rejected": {"markdown": _counts("reason", reasons)},
        "coverage": {"markdown": markdown(histogram(scores, "coverage"), "coverage")},
    }


def _counts(what: str, pairs: Iterator[tuple[str, int]] | Sequence[tuple[str, int]]) -> str:
    return "\n".join([f"| {what} | n |", "| --- | ---: |", *(f"| {name} | {n} |" for name, n in pairs)])
