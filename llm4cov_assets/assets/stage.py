"""One stage as assets: drafts → simulate → select → repairs → simulate → filter → train → evaluate.

Stage 0 (warm-up) drafts and repairs with the teacher, stage 1 (imitation) drafts with the student and repairs with
the teacher, stage 2 (self-sampling) does both with the student. The student of stage k is the checkpoint of stage
k - 1, and stage k trains it further on its own data only (LLM4Cov, arXiv 2602.16953, section 3); a profile may
`replay` the rows of the stages before.
"""

import dagster as dg

from llm4cov_assets.assets.partitions import backfill, design_batches
from llm4cov_assets.assets.resources import (
    PoliciesResource,
    ProfileResource,
    SimulatorResource,
    TrainerResource,
    WarehouseResource,
)
from llm4cov_assets.assets.schemas import column_schema
from llm4cov_assets.assets.work import Outcome, Work, materialise

STAGES = (0, 1, 2)
OWNERS = ["team:llm4cov"]


def drafter(k: int) -> str:
    """Name of the policy that writes the drafts of stage k."""
    return "teacher" if k == 0 else f"stage_{k - 1}"


def repairer(k: int) -> str:
    """Name of the policy that repairs in stage k."""
    return "teacher" if k < 2 else f"stage_{k - 1}"


def parent_asset(k: int) -> str:
    """The asset whose weights stage k starts from."""
    return "base_student" if k == 0 else f"stage_{k - 1}/checkpoint"


def stage_assets(k: int) -> list[dg.AssetsDefinition]:
    """The eight assets of stage k, in data order."""
    group = f"stage_{k}"
    partitioned = {"partitions_def": design_batches, "backfill_policy": backfill}

    def key(name: str) -> dg.AssetKey:
        return dg.AssetKey([group, name])

    def deps(*names: str) -> list[dg.AssetKey]:
        return [dg.AssetKey(name.split("/")) for name in names]

    @dg.asset(
        key=key("drafts"), group_name=group, deps=deps("designs", *([parent_asset(k)] if k else [])),
        kinds={"python", "parquet"}, owners=OWNERS, code_version="1", metadata=column_schema("generations"),
        **partitioned,
    )  # fmt: skip
    def drafts(
        context: dg.AssetExecutionContext,
        profile: ProfileResource,
        warehouse: WarehouseResource,
        policies: PoliciesResource,
    ) -> dg.MaterializeResult:
        """Testbenches proposed from s0: several per design, by the teacher (stage 0) or the student so far.

        *Needs:* `designs`, and the student of the stage before. *Costs:* seconds a batch; simulates nothing.
        """
        from llm4cov_assets.assets.proposals import design_states, propose

        def body(work: Work) -> Outcome:
            policy = policies.exploring(drafter(k), work)
            return propose(work, policy, design_states(work), work.profile.drafts)

        def which(work: Work) -> str:
            return policies.exploring(drafter(k), work).policy_id

        return materialise(context, profile, warehouse, body, stage=k, extra=which)

    @dg.asset(
        key=key("draft_coverage"), group_name=group, deps=[key("drafts")], kinds={"verilator", "cocotb"},
        owners=OWNERS, code_version="1", metadata=column_schema("transitions"), pool="simulation", **partitioned,
    )  # fmt: skip
    def draft_coverage(
        context: dg.AssetExecutionContext,
        profile: ProfileResource,
        warehouse: WarehouseResource,
        simulator: SimulatorResource,
    ) -> dg.MaterializeResult:
        """What simulation says about every draft; drafts good enough to train on directly are marked accepted.

        *Needs:* `drafts`. *Costs:* one simulation a draft and, the first time, one build a design.
        """
        from llm4cov_assets.assets.simulating import simulated_drafts

        def body(work: Work) -> Outcome:
            with simulator.open() as running:
                return simulated_drafts(work, running, drafter(k))

        return materialise(context, profile, warehouse, body, stage=k)

    @dg.asset(
        key=key("worst_states"), group_name=group, deps=[key("draft_coverage")], kinds={"python", "parquet"},
        owners=OWNERS, code_version="1", metadata=column_schema("selections"), **partitioned,
    )  # fmt: skip
    def worst_states(
        context: dg.AssetExecutionContext, profile: ProfileResource, warehouse: WarehouseResource
    ) -> dg.MaterializeResult:
        """Up to three states of each design that are worth a repair: failing, worst running, lower median.

        *Needs:* `draft_coverage`. *Costs:* nothing.
        """
        from llm4cov_assets.assets.selecting import selected_states

        return materialise(context, profile, warehouse, selected_states, stage=k)

    @dg.asset(
        key=key("repairs"), group_name=group, kinds={"python", "parquet"}, owners=OWNERS, code_version="1",
        deps=[key("worst_states"), *(deps(parent_asset(k)) if repairer(k) != "teacher" else [])],
        metadata=column_schema("generations"), **partitioned,
    )  # fmt: skip
    def repairs(
        context: dg.AssetExecutionContext,
        profile: ProfileResource,
        warehouse: WarehouseResource,
        policies: PoliciesResource,
        simulator: SimulatorResource,
    ) -> dg.MaterializeResult:
        """Testbenches proposed from the selected states, by the teacher (stages 0 and 1) or the student (stage 2).

        *Needs:* `worst_states`. *Costs:* seconds a batch; simulates nothing.
        """
        from llm4cov_assets.assets.proposals import propose, selected

        def body(work: Work) -> Outcome:
            policy = policies.exploring(repairer(k), work)
            with simulator.open() as running:
                return propose(work, policy, selected(work, running), work.profile.repairs)

        def which(work: Work) -> str:
            return policies.exploring(repairer(k), work).policy_id

        return materialise(context, profile, warehouse, body, stage=k, extra=which)

    @dg.asset(
        key=key("repair_coverage"), group_name=group, deps=[key("repairs")], kinds={"verilator", "cocotb"},
        owners=OWNERS, code_version="1", metadata=column_schema("transitions"), pool="simulation", **partitioned,
    )  # fmt: skip
    def repair_coverage(
        context: dg.AssetExecutionContext,
        profile: ProfileResource,
        warehouse: WarehouseResource,
        simulator: SimulatorResource,
    ) -> dg.MaterializeResult:
        """What simulation says about every repair, its gain, and whether the rejection filter accepts it.

        *Needs:* `repairs`. *Costs:* one simulation a repair.
        """
        from llm4cov_assets.assets.simulating import simulated_repairs

        def body(work: Work) -> Outcome:
            with simulator.open() as running:
                return simulated_repairs(work, running, repairer(k), floor=work.profile.floor if k == 0 else None)

        return materialise(context, profile, warehouse, body, stage=k)

    @dg.asset(
        key=key("sft_dataset"), group_name=group, deps=[key("repair_coverage"), key("draft_coverage")],
        kinds={"python", "parquet"}, owners=OWNERS, code_version="1", metadata=column_schema("sft_examples"),
    )  # fmt: skip
    def sft_dataset(
        context: dg.AssetExecutionContext,
        profile: ProfileResource,
        warehouse: WarehouseResource,
        simulator: SimulatorResource,
    ) -> dg.MaterializeResult:
        """Training rows made of the accepted drafts and repairs of this stage, training designs only.

        *Needs:* `repair_coverage` of every batch to train on. *Costs:* seconds; simulates nothing.
        """
        from llm4cov_assets.assets.training import training_rows

        def body(work: Work) -> Outcome:
            with simulator.open() as running:
                return training_rows(work, running)

        return materialise(context, profile, warehouse, body, stage=k)

    @dg.asset(
        key=key("checkpoint"), group_name=group,
        deps=[key("sft_dataset"), *deps(*(f"stage_{j}/sft_dataset" for j in range(k)), parent_asset(k))],
        kinds={"pytorch", "huggingface"}, owners=OWNERS, code_version="1", metadata=column_schema("checkpoints"),
        pool="training",
    )  # fmt: skip
    def checkpoint(
        context: dg.AssetExecutionContext,
        profile: ProfileResource,
        warehouse: WarehouseResource,
        trainer: TrainerResource,
    ) -> dg.MaterializeResult:
        """The student after this stage: the previous checkpoint, fine-tuned on this stage's rows (and, with `replay`,
        those of the stages before it).

        *Needs:* `sft_dataset` and the student of the stage before. *Costs:* minutes of training on one core.
        """
        from llm4cov_assets.assets.training import stage_data, trained

        def body(work: Work) -> Outcome:
            return trained(work, trainer, group, stage_data(work, k), parent=parent_asset(k), phases=[k])

        return materialise(context, profile, warehouse, body, stage=k)

    @dg.asset(
        key=key("evaluation"), group_name=group, deps=[key("checkpoint"), *deps("eval_designs")],
        kinds={"verilator", "cocotb", "pytorch"}, owners=OWNERS, code_version="1",
        metadata=column_schema("evaluations"), pool="simulation",
    )  # fmt: skip
    def evaluation(
        context: dg.AssetExecutionContext,
        profile: ProfileResource,
        warehouse: WarehouseResource,
        policies: PoliciesResource,
        simulator: SimulatorResource,
    ) -> dg.MaterializeResult:
        """The student of this stage on the evaluation designs: direct inference, and agentic with repair rounds.

        *Needs:* `checkpoint` and `eval_designs`. *Costs:* up to 25 simulations an evaluation design.
        """
        from llm4cov_assets.assets.evaluating import evaluated

        def body(work: Work) -> Outcome:
            with simulator.open() as running:
                return evaluated(work, running, [policies.named(group, work)])

        return materialise(context, profile, warehouse, body, stage=k)

    return [drafts, draft_coverage, worst_states, repairs, repair_coverage, sft_dataset, checkpoint, evaluation]
