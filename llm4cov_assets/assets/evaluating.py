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
from llm4cov_assets.report import trajectory
from llm4cov_assets.report.numbers import PAIRS, Numbers, numbers
from llm4cov_assets.report.pictures import pictures
from llm4cov_assets.report.plots import histogram, markdown
from llm4cov_assets.rows import table_frame

if TYPE_CHECKING:
    from sim.simulator import Simulator
    from warehouse.store import Store

MODES = ("direct", "agentic")

ASSETS = ("baselines/evaluation", *(f"stage_{k}/evaluation" for k in STAGES), "control/evaluation")
"""Assets that write evaluations."""


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
    found = numbers(work.store, work.profile.config_hash, scores.to_dicts(), differences.to_dicts())
    return Outcome({"scores": scores, "comparisons": differences}, comparison_metadata(work.store, found, evaluations))


def comparison_metadata(store: Store, found: Numbers, evaluations: pl.DataFrame) -> dict[str, Any]:
    """The tables and pictures of the report, and its example. The board of `found` are rows of `scores`."""
    board = table_frame("scores", found.board)
    interval = ["avg_cov", "avg_cov_low", "avg_cov_high"]
    columns = ["policy", "mode", *interval, "avg_line_branch", "sim_pass", "cov_pass", "best_at_n", "simulations"]
    pairs = ["policy_a", "policy_b", "benchmark", "mode", "diff", "diff_low", "diff_high", "n_clusters"]
    kinds = ["policy", "benchmark", "mode", *interval, "avg_line_branch", "n_designs", "n_clusters"]
    tables = {
        "leaderboard": board.filter(benchmark=evaluation.ALL).select(columns),
        "by_kind_of_design": board.filter(pl.col("benchmark") != evaluation.ALL).select(kinds),
        "comparisons": table_frame("comparisons", found.differences).select(pairs),
        "funnel": found.funnel,
        "rounds": found.rounds.filter(benchmark=evaluation.ALL),
    }
    metadata: dict[str, Any] = {name: {"markdown": markdown_table(frame)} for name, frame in tables.items()}
    metadata |= {f"plot/{name}": {"markdown": picture.markdown} for name, picture in pictures(found).items()}
    if found.trajectory_id:
        with store.connect() as connection:
            example = trajectory.read(connection, found.trajectory_id)
        metadata["trajectory"] = {"markdown": trajectory.markdown(example)}
    return metadata | {"policies": len(found.policies()), "evaluations": evaluations.height}
