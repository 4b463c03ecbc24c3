"""Jobs: over design batches up to `repair_coverage`, unpartitioned from `sft_dataset` on."""

from __future__ import annotations

import dagster as dg

from llm4cov_assets.assets.stage import STAGES


def _selection(*keys: str) -> dg.AssetSelection:
    return dg.AssetSelection.assets(*keys)


def trajectories_job(k: int):
    """The job of stage k over design batches."""
    names = ("drafts", "draft_coverage", "worst_states", "repairs", "repair_coverage")
    return dg.define_asset_job(
        f"stage_{k}_trajectories",
        selection=_selection(*(f"stage_{k}/{name}" for name in names)),
        description=f"Stage {k} for one design batch: drafts, their coverage, worst states, repairs, their coverage.",
    )


def training_job(k: int):
    """The unpartitioned job of stage k."""
    return dg.define_asset_job(
        f"stage_{k}_training",
        selection=_selection(*(f"stage_{k}/{name}" for name in ("sft_dataset", "checkpoint", "evaluation"))),
        description=f"Stage {k} after its trajectories: training rows of all batches, checkpoint, evaluation.",
    )


register_designs = dg.define_asset_job(
    "register_designs",
    selection=_selection("designs"),
    description="Bring the designs of a batch into the warehouse.",
)
preparation = dg.define_asset_job(
    "preparation",
    selection=_selection("eval_designs", "base_student"),
    description="Evaluation designs with targets, and the untrained student.",
)
baselines = dg.define_asset_job(
    "baselines",
    selection=_selection("baselines/evaluation"),
    description="Evaluate the untrained student, the teacher and the scripted policies.",
)
control = dg.define_asset_job(
    "control",
    selection=_selection("control/checkpoint", "control/evaluation"),
    description="Train stage 0's student on with stage 0's data, and evaluate it.",
)
comparison = dg.define_asset_job(
    "comparison",
    selection=_selection("stage_comparison"),
    description="Leaderboard and paired comparisons of everything evaluated so far.",
)
close_new_designs = dg.define_asset_job(
    "close_new_designs",
    selection=_selection("designs", "closure"),
    description="Bring a batch in and close its coverage with the newest student. Never trains.",
)
JOBS = [
    register_designs,
    preparation,
    baselines,
    *(job for k in STAGES for job in (trajectories_job(k), training_job(k))),
    control,
    comparison,
    close_new_designs,
]
