"""Bodies of the evaluations and of their comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from llm4cov_assets import rows
from llm4cov_assets.assets.batches import evaluation_records
from llm4cov_assets.assets.proposals import proposal_metadata, proposal_tables
from llm4cov_assets.assets.simulating import Counted, step_tables
from llm4cov_assets.assets.stage import STAGES
from llm4cov_assets.assets.work import Outcome, Results, Work, markdown_table
from llm4cov_assets.errors import UserError
from llm4cov_assets.learning import evaluation
from llm4cov_assets.policy.base import Policy
from llm4cov_assets.report.plots import histogram, intervals, markdown

if TYPE_CHECKING:
    from sim.simulator import Simulator

MODES = ("direct", "agentic")

ASSETS = ("baselines/evaluation", *(f"stage_{k}/evaluation" for k in STAGES), "control/evaluation")
"""Assets that write evaluations."""

PAIRS = (
    ("stage_2", "untrained"),
    ("stage_2", "scripted/random"),
    ("stage_2", "control"),
    ("stage_1", "stage_0"),
    ("stage_2", "stage_1"),
    ("stage_2", "teacher"),
)
"""Comparisons: what training gave, over undirected stimulus, over more training, stage by stage, to the teacher."""


def evaluated(work: Work, simulator: Simulator, policies: Sequence[Policy]) -> Outcome:
    """Evaluate policies on the evaluation designs in both modes."""
    known = work.read("designs", "eval_designs")
    if known.is_empty():
        raise UserError("no evaluation design for this configuration: materialise eval_designs, or widen --designs")
    by_id = {r.design.design_id: r.design for r in evaluation_records(work.profile, work.store.home)}
    designs = [by_id[design_id] for design_id in known["design_id"]]
    targets: dict[str, dict[str, float]] = {}
    for row in work.read("targets", "eval_designs").filter(origin="calibrated").iter_rows(named=True):
        targets.setdefault(row["design_id"], {})[row["metric"]] = row["target"]
    simulate = Counted(work, simulator)
    tables: dict[str, list[pl.DataFrame]] = {}
    generations = []
    for policy in policies:
        for mode in MODES:
            simulate.doing = f"{policy.name}, {mode}, simulating"
            episodes = evaluation.evaluate(
                policy, designs, simulate, mode, work.profile.eval_samples, work.profile.eval_rounds, work.profile.seed
            )
            steps = [step for episode in episodes for step in episode.steps]
            proposed = [step.generation for step in steps]
            generations += proposed
            transitions = rows.episode_rows(episodes, policy, config_hash=work.profile.config_hash, stage=work.stage)
            found = proposal_tables(policy, proposed) | step_tables(simulator, steps, transitions)
            found["evaluations"] = rows.evaluation_rows(
                episodes,
                policy,
                config_hash=work.profile.config_hash,
                clusters=dict(known.select("design_id", "cluster").iter_rows()),
                benchmarks=dict(known.select("design_id", "benchmark").iter_rows()),
                targets=targets,
            )
            for table, frame in found.items():
                tables.setdefault(table, []).append(frame)
    whole = {table: pl.concat(frames) for table, frames in tables.items()}
    metadata = evaluation_metadata(whole["evaluations"]) | proposal_metadata(generations, len(designs)) | simulate.costs
    return Outcome(whole, metadata, simulate.logical)


def evaluation_metadata(evaluations: pl.DataFrame) -> dict[str, Any]:
    """Mean coverage by policy and mode, and its distribution."""
    means = evaluations.group_by("policy", "mode", maintain_order=True).agg(
        coverage=pl.col("overall").mean(), passed=pl.col("passed").mean(), simulations=pl.col("simulations").sum()
    )
    agentic = evaluations.filter(mode="agentic")["overall"].to_list()
    return {
        "evaluation_designs": evaluations["design_id"].n_unique(),
        "mean_coverage": {"markdown": markdown_table(means)},
        "agentic_coverage": {"markdown": markdown(histogram(agentic, "agentic coverage"), "agentic coverage")},
        "logical_simulations": int(evaluations["simulations"].sum()),
    }


def evaluations_of(results: Results) -> pl.DataFrame:
    """All evaluations of a configuration that are up to date."""
    return pl.concat([results.read("evaluations", asset) for asset in ASSETS])


def compared(work: Work) -> Outcome:
    """The leaderboard and the comparisons of everything evaluated."""
    evaluations = evaluations_of(work)
    if evaluations.is_empty():
        raise UserError("nothing is evaluated yet for this configuration")
    settings = (work.profile.resamples, work.profile.bootstrap_seed)
    scores = evaluation.leaderboard(evaluations, *settings, config_hash=work.profile.config_hash)
    differences = evaluation.compare(evaluations, PAIRS, *settings, config_hash=work.profile.config_hash)
    board = scores.filter(benchmark=evaluation.ALL).sort("mode", "policy")
    interval = ["avg_cov", "avg_cov_low", "avg_cov_high"]
    bars = [(f"{p} {mode[0]}", *values) for p, mode, *values in board.select("policy", "mode", *interval).iter_rows()]
    columns = ["policy", "mode", "sim_pass", "cov_pass", *interval, "best_at_n", "simulations"]
    plot = intervals(bars, "mean coverage (d direct, a agentic), 95 % intervals")
    metadata = {
        "leaderboard": {"markdown": markdown_table(board.select(columns))},
        "comparisons": {
            "markdown": markdown_table(
                differences.filter(benchmark=evaluation.ALL).select(
                    "policy_a", "policy_b", "mode", "diff", "diff_low", "diff_high", "n_clusters"
                )
            )
        },
        "plot": {"markdown": markdown(plot, "leaderboard")},
        "policies": scores["policy"].n_unique(),
        "evaluations": evaluations.height,
    }
    return Outcome({"scores": scores, "comparisons": differences}, metadata)
