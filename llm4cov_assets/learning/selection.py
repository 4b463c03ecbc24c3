"""Which drafts are worth a repair: worst-state prioritised selection (LLM4Cov, arXiv 2602.16953) and what it is
compared with."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from sim.identity import content_id

STRATEGIES = ("worst", "median", "uniform", "best")

FULL = 1.0 - 1e-9
"""Coverage from here on counts as 1: a state with it cannot gain."""


@dataclass(frozen=True)
class _Draft:
    state_id: str
    running: bool
    score: float


def select(drafts: pl.DataFrame, strategy: str = "worst", median_gap: float = 0.10, seed: int = 0) -> pl.DataFrame:
    """Choose up to three states of each design.

    `drafts` has one row per draft: `design_id, state_id, status, running, score` (coverage, 0 when failing). Rows
    without a state (unusable answers) are left out of account. Returns `design_id, state_id, strategy, reason, score`,
    designs in the order of their ids.

    `worst`: if all drafts fail, one failing draft. Otherwise one failing draft (if any), the worst running draft with
    coverage < 1, and the lower-median running draft if it is more than `median_gap` above the worst one (a draft with
    coverage 1 is never chosen: nothing can be gained from it).

    The other strategies choose the same failing draft and as many running drafts with coverage < 1 as `worst` does,
    so that the budget is the same: those closest to the lower median, seeded random ones, or the best ones.

    Equal drafts are told apart by their state ids, so that the order of rows does not matter.
    """
    if strategy not in STRATEGIES:
        raise ValueError(f"no strategy {strategy!r}; there are {', '.join(STRATEGIES)}")
    rows: list[tuple[str, str, str, str, float]] = []
    known = drafts.filter(pl.col("state_id").is_not_null()).sort("design_id", "score", "state_id")
    for (design_id,), group in known.group_by("design_id", maintain_order=True):
        columns = group["state_id"], group["running"], group["score"]
        found = [_Draft(*row) for row in zip(*(c.to_list() for c in columns), strict=True)]
        chosen = _of_design(found, strategy, median_gap, content_id("selection", seed, design_id))
        rows += [(str(design_id), draft.state_id, strategy, reason, draft.score) for draft, reason in chosen]
    schema = dict.fromkeys(("design_id", "state_id", "strategy", "reason"), pl.String) | {"score": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _of_design(drafts: Sequence[_Draft], strategy: str, gap: float, seed: str) -> list[tuple[_Draft, str]]:
    """The choice for one design; `drafts` are sorted by score."""
    failing = [d for d in drafts if not d.running]
    running = [d for d in drafts if d.running]
    chosen = [(failing[0], "failing")] if failing else []
    by_worst = _worst(running, gap)
    if strategy == "worst":
        return chosen + by_worst
    pool = list({d.state_id: d for d in running if d.score < FULL}.values())
    middle = (len(pool) - 1) // 2
    match strategy:
        case "median":
            ranked = sorted(range(len(pool)), key=lambda i: (abs(i - middle), i))
            pool = [pool[i] for i in ranked]
        case "best":
            pool = pool[::-1]
        case _:
            random.Random(seed).shuffle(pool)
    return chosen + [(d, strategy) for d in pool[: len(by_worst)]]


def _worst(running: Sequence[_Draft], gap: float) -> list[tuple[_Draft, str]]:
    if not running or running[0].score >= FULL:
        return []
    worst, lower_median = running[0], running[(len(running) - 1) // 2]
    if lower_median.score - worst.score > gap + 1e-9 and lower_median.score < FULL:
        return [(worst, "worst"), (lower_median, "lower_median")]
    return [(worst, "worst")]
