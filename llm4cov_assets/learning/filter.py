"""Which repairs and drafts are worth learning from: the rejection filter (LLM4Cov, arXiv 2602.16953)."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from llm4cov_assets.learning.rollout import Step
from sim.identity import content_id
from sim.simulation import METRICS, Simulation

EPSILON = 1e-9
"""Differences of fractions below this are rounding."""

NOT_PASSED, METRIC_FALLS, NO_GAIN, BELOW_FLOOR, NOT_BEST_OF_PROMPT, NOT_BEST, REPAIRS_ONLY = (
    "not_passed", "metric_falls", "no_gain", "below_floor", "not_best_of_prompt", "not_best", "repairs_only",
)  # fmt: skip
"""Values of `reject_reason`, in the order in which they are given; empty for an accepted row."""


def candidates(steps: Sequence[Step], transition_ids: Sequence[str]) -> pl.DataFrame:
    """Drafts or repairs as rows to judge, with the ids of their transitions (in the same order)."""
    text, truth, number = pl.String(), pl.Boolean(), pl.Float64()
    schema: dict[str, pl.DataType] = {
        "design_id": text, "transition_id": text, "prompt": text, "running_before": truth, "status_after": text,
        "score_before": number, "score_after": number,
        **{f"{m}_{when}": number for when in ("before", "after") for m in METRICS},
    }  # fmt: skip
    rows = [
        (
            step.state.design.design_id,
            transition_id,
            content_id("asked", step.state.state_id, step.generation.prompt),
            step.state.simulation is not None and step.state.simulation.running,
            step.status,
            step.state.score,
            step.score_after,
            *_metrics(step.state.simulation),
            *_metrics(step.simulation),
        )
        for step, transition_id in zip(steps, transition_ids, strict=True)
    ]
    return pl.DataFrame(rows, schema=schema, orient="row")


def with_verdicts(transitions: pl.DataFrame, judged: pl.DataFrame) -> pl.DataFrame:
    """`transitions` with `accepted` and `reject_reason` of the judged rows; others stay as they are."""
    verdicts = judged.select("transition_id", "accepted", "reject_reason")
    return transitions.update(verdicts, on="transition_id", how="left", maintain_order="left")


def judge(candidates: pl.DataFrame, tau: float = 0.01, floor: float | None = None) -> pl.DataFrame:
    """Add `accepted` and `reject_reason` to repairs.

    A repair is kept if it `passed`, its gain is at least `tau`, no single metric falls, and its coverage is at least
    `floor` (stage 0 only; None is no floor). A failing state that becomes `passed` with coverage always counts as a
    gain.

    Columns read: `running_before`, `status_after`, `score_before`, `score_after` (0 when failing), and
    `<metric>_before`, `<metric>_after` for line, branch, expression and toggle (null when failing or without points).
    """
    rescued = ~pl.col("running_before") & (pl.col("score_after") > 0)
    gained = (pl.col("score_after") - pl.col("score_before") >= tau - EPSILON) | rescued
    falls = pl.any_horizontal(
        (pl.col(f"{m}_after").fill_null(0.0) < pl.col(f"{m}_before") - EPSILON).fill_null(False) for m in METRICS
    )
    high_enough = pl.lit(True) if floor is None else pl.col("score_after") >= floor - EPSILON
    reason = (
        pl.when(pl.col("status_after") != "passed")
        .then(pl.lit(NOT_PASSED))
        .when(falls)
        .then(pl.lit(METRIC_FALLS))
        .when(~gained)
        .then(pl.lit(NO_GAIN))
        .when(~high_enough)
        .then(pl.lit(BELOW_FLOOR))
        .otherwise(pl.lit(""))
    )
    return candidates.with_columns(reject_reason=reason).with_columns(accepted=pl.col("reject_reason") == "")


def keep_best(judged: pl.DataFrame, per_design: int) -> pl.DataFrame:
    """Reject all accepted repairs that answer the same prompt but the best one, then all of a design but the best
    `per_design`; 0 is no limit on either.

    The best has the highest coverage, then the highest gain, then the smallest `transition_id`.
    """
    gain = pl.col("score_after") - pl.col("score_before")
    return _limited(judged, per_design, [-pl.col("score_after"), -gain, pl.col("transition_id")])


def direct_examples(
    drafts: pl.DataFrame, floor: float, *, per_design: int = 1, stage: int = 0, until: int = 1
) -> pl.DataFrame:
    """Add `accepted` and `reject_reason` to drafts: the best `passed` drafts of a design with coverage of at least
    `floor`, in stages up to `until` (1 in the paper); later stages train on repairs only.

    `per_design` keeps that many, each the best answer to its prompt, 0 all of them. Columns read:
    `design_id, transition_id, prompt, status_after, score_after`.
    """
    reason = (
        pl.when(pl.lit(stage > until))
        .then(pl.lit(REPAIRS_ONLY))
        .when(pl.col("status_after") != "passed")
        .then(pl.lit(NOT_PASSED))
        .when(pl.col("score_after") < floor - EPSILON)
        .then(pl.lit(BELOW_FLOOR))
        .otherwise(pl.lit(""))
    )
    judged = drafts.with_columns(reject_reason=reason).with_columns(accepted=pl.col("reject_reason") == "")
    return _limited(judged, per_design, [-pl.col("score_after"), pl.col("transition_id")])


def _limited(judged: pl.DataFrame, per_design: int, order: list[pl.Expr]) -> pl.DataFrame:
    if per_design <= 0:
        return judged
    for group, most, reason in (("prompt", 1, NOT_BEST_OF_PROMPT), ("design_id", per_design, NOT_BEST)):
        accepted = judged.filter("accepted").sort(order).with_columns(place=pl.int_range(pl.len()).over(group))
        best = accepted.filter(pl.col("place") < most)["transition_id"]
        surplus = pl.col("accepted") & ~pl.col("transition_id").is_in(best.implode())
        judged = judged.with_columns(
            accepted=pl.col("accepted") & ~surplus,
            reject_reason=pl.when(surplus).then(pl.lit(reason)).otherwise(pl.col("reject_reason")),
        )
    return judged


def _metrics(simulation: Simulation | None) -> tuple[float | None, ...]:
    if simulation is None or not simulation.running:
        return (None,) * len(METRICS)
    return tuple(getattr(simulation.coverage, m) for m in METRICS)
