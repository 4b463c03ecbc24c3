"""What the stages are measured against: baselines, the control, and the table that compares them all."""

import dagster as dg

from llm4cov_assets.assets.resources import (
    PoliciesResource,
    ProfileResource,
    SimulatorResource,
    TrainerResource,
    WarehouseResource,
)
from llm4cov_assets.assets.schemas import column_schema
from llm4cov_assets.assets.stage import STAGES
from llm4cov_assets.assets.work import Outcome, Work, materialise
from llm4cov_assets.policy.base import Policy

OWNERS = ["team:llm4cov"]


@dg.asset(
    key=["baselines", "evaluation"], group_name="baselines", deps=["base_student", "eval_designs"],
    kinds={"verilator", "cocotb", "pytorch"}, owners=OWNERS, code_version="1",
    metadata=column_schema("evaluations"), pool="simulation",
)  # fmt: skip
def baselines_evaluation(
    context: dg.AssetExecutionContext,
    profile: ProfileResource,
    warehouse: WarehouseResource,
    policies: PoliciesResource,
    simulator: SimulatorResource,
) -> dg.MaterializeResult:
    """The untrained student, the teacher and the scripted policies on the evaluation designs.

    *Needs:* `base_student` and `eval_designs`. *Costs:* up to 25 simulations a policy and evaluation design.
    """
    from llm4cov_assets.assets.evaluating import evaluated
    from llm4cov_assets.policy.registry import baseline_names

    def named(work: Work) -> list[Policy]:
        return [policies.named(name, work) for name in baseline_names(work.profile)]

    def body(work: Work) -> Outcome:
        with simulator.open() as running:
            return evaluated(work, running, named(work))

    def which(work: Work) -> str:
        return " ".join(policy.policy_id for policy in named(work))

    return materialise(context, profile, warehouse, body, extra=which)


@dg.asset(
    key=["control", "checkpoint"], group_name="control", deps=[["stage_0", "sft_dataset"], ["stage_0", "checkpoint"]],
    kinds={"pytorch", "huggingface"}, owners=OWNERS, code_version="1", metadata=column_schema("checkpoints"),
    pool="training",
)  # fmt: skip
def control_checkpoint(
    context: dg.AssetExecutionContext,
    profile: ProfileResource,
    warehouse: WarehouseResource,
    trainer: TrainerResource,
) -> dg.MaterializeResult:
    """Stage 0's student trained on with stage 0's data, with the steps and rates of stages 1 and 2: more training
    without new data.

    *Needs:* stage 0. *Costs:* minutes of training on one core.
    """
    from llm4cov_assets.assets.training import trained

    def body(work: Work) -> Outcome:
        data = work.read("sft_examples", "stage_0/sft_dataset")
        return trained(work, trainer, "control", data, parent="stage_0/checkpoint", phases=[1, 2])

    return materialise(context, profile, warehouse, body)


@dg.asset(
    key=["control", "evaluation"], group_name="control", deps=[["control", "checkpoint"], "eval_designs"],
    kinds={"verilator", "cocotb", "pytorch"}, owners=OWNERS, code_version="1",
    metadata=column_schema("evaluations"), pool="simulation",
)  # fmt: skip
def control_evaluation(
    context: dg.AssetExecutionContext,
    profile: ProfileResource,
    warehouse: WarehouseResource,
    policies: PoliciesResource,
    simulator: SimulatorResource,
) -> dg.MaterializeResult:
    """The control on the evaluation designs: what part of the gain is more training rather than new data.

    *Needs:* the control's checkpoint and `eval_designs`. *Costs:* up to 25 simulations an evaluation design.
    """
    from llm4cov_assets.assets.evaluating import evaluated

    def body(work: Work) -> Outcome:
        with simulator.open() as running:
            return evaluated(work, running, [policies.named("control", work)])

    return materialise(context, profile, warehouse, body)


@dg.asset(
    group_name="comparison",
    deps=[["baselines", "evaluation"], ["control", "evaluation"], *([f"stage_{k}", "evaluation"] for k in STAGES)],
    kinds={"python", "parquet"}, owners=OWNERS, code_version="2", metadata=column_schema("scores"),
)  # fmt: skip
def stage_comparison(
    context: dg.AssetExecutionContext, profile: ProfileResource, warehouse: WarehouseResource
) -> dg.MaterializeResult:
    """The leaderboard, and the paired differences with bootstrap intervals, of everything evaluated so far; in its
    metadata the tables and pictures of the report: coverage by round, what simulations bought, the funnel of each
    stage, coverage before and after repair, one trajectory step by step."""
    from llm4cov_assets.assets.evaluating import compared

    return materialise(context, profile, warehouse, compared)
