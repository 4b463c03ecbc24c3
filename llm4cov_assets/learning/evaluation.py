"""How good a policy is on designs it never trained on: episodes, the leaderboard, and paired comparisons."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import polars as pl

from llm4cov_assets.learning.intervals import Array, difference_interval, mean_interval
from llm4cov_assets.learning.rollout import UNPARSABLE, Simulate, Step, simulated
from llm4cov_assets.learning.selection import FULL
from llm4cov_assets.policy.base import Generation, Policy, State
from llm4cov_assets.rows import table_frame
from sim.design import Design
from sim.identity import content_id
from sim.simulation import Coverage

Mode = Literal["direct", "agentic"]

ALL = "all"
"""The benchmark that every evaluation design belongs to."""


@dataclass
class Episode:
    """One sample of a policy on one design: a draft and, in agentic mode, the repairs that followed.

    `best` is the state with the highest coverage so far; of equal ones a running state stands above a failing one,
    `passed` above other statuses, and the earlier above the later. It is s0 until an answer could be used.
    """

    design: Design
    mode: Mode
    sample: int
    best: State
    steps: list[Step] = field(default_factory=list)

    def add(self, step: Step) -> None:
        self.steps.append(step)
        if step.next_state is not None and _standing(step.next_state) > _standing(self.best):
            self.best = step.next_state

    @property
    def full(self) -> bool:
        """Nothing is left to cover."""
        return self.best.score >= FULL

    @property
    def rounds(self) -> int:
        """Repair rounds used."""
        return len(self.steps) - 1

    @property
    def status(self) -> str:
        return self.best.simulation.status if self.best.simulation else UNPARSABLE

    @property
    def coverage(self) -> Coverage:
        """Coverage of the best state, all null when failing."""
        simulation = self.best.simulation
        return simulation.coverage if simulation and simulation.running else Coverage()

    @property
    def simulations(self) -> int:
        """Logical simulations: what a cold cache would have run."""
        return sum(step.logical for step in self.steps)

    @property
    def cached_simulations(self) -> int:
        """Logical simulations whose result came from the cache."""
        return sum(step.logical and step.cached for step in self.steps)

    @property
    def completion_tokens(self) -> int:
        return sum(step.generation.completion_tokens for step in self.steps)

    def meets(self, targets: Mapping[str, float]) -> bool | None:
        """Running with every target (`overall` or a metric) met; None without targets.

        A target on a metric that the build has no points of counts as met: there is nothing left to cover.
        """
        if not targets:
            return None
        found = self.coverage.as_dict()
        running = self.best.simulation is not None and self.best.simulation.running
        return running and all((1.0 if found[m] is None else found[m] or 0.0) >= t - 1e-9 for m, t in targets.items())


def evaluate(
    policy: Policy,
    designs: Sequence[Design],
    simulate: Simulate,
    mode: Mode,
    n: int = 5,
    rounds: int = 3,
    seed: int = 0,
) -> list[Episode]:
    """Run n episodes on each design: a draft, then in agentic mode up to `rounds` repairs, each from the best state
    so far, until coverage is 1. Returns the episodes design by design.

    All designs and samples of a round go through the policy and the simulator together. Seeds depend on the round
    alone and samples that stand in the same state are asked for as samples of that state, so an episode does not
    depend on which other designs are present. Both modes start from the same drafts.
    """
    episodes = [Episode(design, mode, sample, State(design)) for design in designs for sample in range(n)]
    counted: set[tuple[str, str]] = set()
    for number in range(1 + (rounds if mode == "agentic" else 0)):
        going = [episode for episode in episodes if not episode.full]
        answers = list(_proposals(policy, going, int(content_id("evaluation", seed, number)[:8], 16)))
        steps = simulated([(episode.best, generation) for episode, generation in answers], simulate)
        for (episode, _), step in zip(answers, steps, strict=True):
            episode.add(_counted_once(step, counted))
    return episodes


def _proposals(policy: Policy, episodes: Sequence[Episode], seed: int) -> Iterator[tuple[Episode, Generation]]:
    """One proposal for each episode from its best state, in the order of the episodes.

    Several samples of a design may stand in the same state (always in the first round). The policy is asked once per
    state for as many samples as it needs, with one call for all states that need the same number.
    """
    standing: dict[str, list[int]] = defaultdict(list)
    for i, episode in enumerate(episodes):
        standing[episode.best.state_id].append(i)
    found: dict[int, Generation] = {}
    for m in sorted({len(members) for members in standing.values()}):
        groups = [members for members in standing.values() if len(members) == m]
        generations = policy.propose([episodes[members[0]].best for members in groups], m, seed)
        if len(generations) != m * len(groups):
            raise ValueError(f"{policy.name} returned {len(generations)} generations for {len(groups)} states, n = {m}")
        found |= dict(zip((i for members in groups for i in members), generations, strict=True))
    return ((episode, found[i]) for i, episode in enumerate(episodes))


def _counted_once(step: Step, counted: set[tuple[str, str]]) -> Step:
    """The step, not logical when an earlier round simulated the same testbench of the same design."""
    testbench = step.generation.testbench
    if testbench is None:
        return step
    key = (step.state.design.design_id, testbench.testbench_id)
    logical = step.logical and key not in counted
    counted.add(key)
    return replace(step, logical=logical)


def _standing(state: State) -> tuple[float, bool, bool, bool]:
    """What makes one state better than another; s0 stands below every state with an observation."""
    simulation = state.simulation
    if simulation is None:
        return (0.0, False, False, False)
    return (simulation.score, simulation.running, simulation.status == "passed", True)


def leaderboard(
    evaluations: pl.DataFrame, resamples: int = 10_000, seed: int = 7, *, config_hash: str = ""
) -> pl.DataFrame:
    """Sum up `evaluations` rows to `scores` rows: one per policy, benchmark ("all" and each value) and mode."""
    rows: list[dict[str, object]] = []
    for (policy, benchmark, mode), group in _groups(evaluations):
        sums, counts = _clusters(group)
        interval = mean_interval(sums, counts, resamples, seed)
        best = group.group_by("design_id", maintain_order=True).agg(pl.col("overall").max())
        with_target = group.filter(pl.col("target_met").is_not_null())
        per_design = with_target.group_by("design_id", maintain_order=True).agg(
            one=pl.col("target_met").mean(), any=pl.col("target_met").any().cast(pl.Float64)
        )
        rows.append(
            {
                "score_id": content_id("score", config_hash, policy, benchmark, mode),
                "policy": policy,
                "policy_id": group["policy_id"][0],
                "checkpoint_id": group["checkpoint_id"][0],
                "benchmark": benchmark,
                "mode": mode,
                "n_designs": group["design_id"].n_unique(),
                "n_clusters": sums.shape[1],
                "sim_pass": group["passed"].mean(),
                "cov_pass": with_target["target_met"].mean(),
                "avg_cov": interval.estimate,
                "avg_cov_low": interval.low,
                "avg_cov_high": interval.high,
                "avg_line_branch": group.select(_line_branch()).to_series().mean(),
                "pass_at_1": per_design["one"].mean(),
                "pass_at_n": per_design["any"].mean(),
                "best_at_n": best["overall"].mean(),
                "simulations": group["simulations"].sum(),
                "cached_simulations": group["cached_simulations"].sum(),
                "bootstrap_seed": seed,
                "resamples": resamples,
            }
        )
    return table_frame("scores", rows)


def compare(
    evaluations: pl.DataFrame,
    pairs: Sequence[tuple[str, str]],
    resamples: int = 10_000,
    seed: int = 7,
    *,
    config_hash: str = "",
    runs: str | None = None,
) -> pl.DataFrame:
    """`comparisons` rows: coverage of policy a minus that of b for each pair, benchmark and mode, over the designs that
    both were evaluated on (in the same run); clusters are resampled for both together. Pairs without such designs give
    no row.

    `runs` is the column that tells training runs apart; None is one run. With several, they are resampled too.
    """
    rows: list[dict[str, object]] = []
    groups = dict(_groups(evaluations))
    places = sorted({(benchmark, mode) for _, benchmark, mode in groups}, key=lambda p: (p[0] != ALL, p))
    for a, b in pairs:
        for benchmark, mode in places:
            of_a, of_b = groups.get((a, benchmark, mode)), groups.get((b, benchmark, mode))
            if of_a is None or of_b is None:
                continue
            same = ["design_id", *([runs] if runs else [])]
            of_a, of_b = of_a.join(of_b, on=same, how="semi"), of_b.join(of_a, on=same, how="semi")
            if of_a.is_empty():
                continue
            sums, counts = _clusters(of_a, runs)
            interval = difference_interval(sums, counts, *_clusters(of_b, runs), resamples, seed)
            rows.append(
                {
                    "comparison_id": content_id("comparison", config_hash, a, b, benchmark, mode),
                    "policy_a": a,
                    "policy_b": b,
                    "benchmark": benchmark,
                    "mode": mode,
                    "n_clusters": sums.shape[1],
                    "diff": interval.estimate,
                    "diff_low": interval.low,
                    "diff_high": interval.high,
                    "bootstrap_seed": seed,
                    "resamples": resamples,
                }
            )
    return table_frame("comparisons", rows)


def _groups(evaluations: pl.DataFrame) -> Iterator[tuple[tuple[str, str, str], pl.DataFrame]]:
    """((policy, benchmark, mode), rows), where every row belongs to its own benchmark and to "all".

    Rows are sorted, so that sums have the same last bit whatever the order they were stored in.
    """
    parts = [evaluations.with_columns(benchmark=pl.lit(ALL)), evaluations.filter(pl.col("benchmark") != ALL)]
    both = pl.concat(parts).sort("policy", "mode", "benchmark", "cluster", "design_id", "sample")
    for key, group in both.group_by("policy", "benchmark", "mode", maintain_order=True):
        yield (str(key[0]), str(key[1]), str(key[2])), group


def _clusters(group: pl.DataFrame, runs: str | None = None) -> tuple[Array, Array]:
    """Sum of coverage and number of samples of each run and cluster, both sorted by name; shape (runs, clusters)."""
    run = pl.col(runs) if runs else pl.lit("")
    cells = group.group_by(run.alias("run"), "cluster", maintain_order=True).agg(pl.col("overall").sum(), n=pl.len())
    every = cells.select("run").unique().join(cells.select("cluster").unique(), how="cross").sort("run", "cluster")
    cells = every.join(cells, on=["run", "cluster"], how="left", maintain_order="left").fill_null(0)
    shape = (cells["run"].n_unique(), cells["cluster"].n_unique())
    return tuple(cells[c].to_numpy().astype(np.float64).reshape(shape) for c in ("overall", "n"))


def _line_branch() -> pl.Expr:
    """Mean of line and branch coverage, of those that a design has; 0 where failing, null where it has neither."""
    mean = pl.mean_horizontal("line", "branch")
    return pl.when(mean.is_null() & (pl.col("overall") == 0)).then(0.0).otherwise(mean)
