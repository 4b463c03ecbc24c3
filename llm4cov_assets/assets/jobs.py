"""Jobs: over design batches up to `repair_coverage`, unpartitioned from `sft_dataset` on."""

from __future__ import annotations

import dagster as dg

from llm4cov_assets.assets.stage import STAGES

_WHO = {
    0: "the teacher drafts testbenches and repairs the worst states",
    1: "the student drafts testbenches and the teacher repairs the worst states",
    2: "the student drafts testbenches and repairs its own worst states",
}


def _before(k: int) -> str:
    """What stage k goes on from."""
    return f"`stage_{k - 1}_training`" if k else "`register_designs` on the batch"


def _selection(*keys: str) -> dg.AssetSelection:
    return dg.AssetSelection.assets(*keys)


def trajectories_job(k: int):
    """The job of stage k over design batches."""
    names = ("drafts", "draft_coverage", "worst_states", "repairs", "repair_coverage")
    return dg.define_asset_job(
        f"stage_{k}_trajectories",
        selection=_selection(*(f"stage_{k}/{name}" for name in names)),
        description=(
            f"Stage {k} on one design batch: {_WHO[k]}; every testbench is simulated. Needs {_before(k)}. "
            "Costs about 10 simulations a design in the demo. Run it on every batch (*Materialize all* asks which), "
            f"then `stage_{k}_training`. Trains nothing."
        ),
    )


def training_job(k: int):
    """The unpartitioned job of stage k."""
    return dg.define_asset_job(
        f"stage_{k}_training",
        selection=_selection(*(f"stage_{k}/{name}" for name in ("sft_dataset", "checkpoint", "evaluation"))),
        description=(
            f"Stage {k} after its batches: makes the accepted drafts and repairs of all batches into training rows, "
            f"trains the student on them, and evaluates it as policy `stage_{k}`. Needs `stage_{k}_trajectories` on "
            "every batch, and `preparation`. Costs minutes of training and about 1,000 simulations in the demo. "
            "Training never starts by itself: this job, or `llm4cov run`, is started by you."
        ),
    )


register_designs = dg.define_asset_job(
    "register_designs",
    selection=_selection("designs"),
    description=(
        "Reads and elaborates the designs of one batch and stores them; what cannot be read becomes a rejected row "
        "with its reason. Needs nothing. Costs less than a second a design; simulates nothing."
    ),
)
preparation = dg.define_asset_job(
    "preparation",
    selection=_selection("eval_designs", "base_student"),
    description=(
        "What all stages are measured with: the evaluation designs, their coverage targets from a seeded reference "
        "campaign, and the untrained student. Needs nothing. Costs up to 24 simulations and one build a design."
    ),
)
baselines = dg.define_asset_job(
    "baselines",
    selection=_selection("baselines/evaluation"),
    description=(
        "Evaluates what students are compared with: the untrained student, the teacher and the scripted policies. "
        "Needs `preparation`. Costs about 1,000 simulations a policy in the demo."
    ),
)
control = dg.define_asset_job(
    "control",
    selection=_selection("control/checkpoint", "control/evaluation"),
    description=(
        "The control: trains stage 0's student on with stage 0's data, for as many steps as stages 1 and 2 took, and "
        "evaluates it. Without it nobody can tell what new data gave from what more training gave. Needs "
        "`stage_0_training`. Costs minutes of training and about 1,000 simulations in the demo."
    ),
)
comparison = dg.define_asset_job(
    "comparison",
    selection=_selection("stage_comparison"),
    description=(
        "The leaderboard and the paired differences, with intervals, of everything evaluated so far. Needs one "
        "evaluation at least. Costs seconds; simulates and trains nothing."
    ),
)
close_new_designs = dg.define_asset_job(
    "close_new_designs",
    selection=_selection("designs", "closure"),
    description=(
        "Finds the best testbenches for the designs of one batch, with the newest student and the scripted policies "
        "in turn; they lie in `reports/closure/BATCH/DESIGN/`. The sensor `inbox` starts it for what is dropped into "
        "the inbox, the schedule `due_closures` again when that can help. Needs a batch; a trained student helps, and "
        "is not needed. Costs at most 64 simulations a design (`budget_sims`). Never trains."
    ),
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
