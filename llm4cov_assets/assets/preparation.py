"""What the stages start from: designs, evaluation designs with targets, and the untrained student."""

import dagster as dg

from llm4cov_assets.assets.partitions import backfill, design_batches
from llm4cov_assets.assets.resources import ProfileResource, SimulatorResource, WarehouseResource
from llm4cov_assets.assets.schemas import column_schema
from llm4cov_assets.assets.work import Outcome, Work, materialise

GROUP = "preparation"
OWNERS = ["team:llm4cov"]


@dg.asset(
    group_name=GROUP, kinds={"verilog", "parquet"}, owners=OWNERS, code_version="2", partitions_def=design_batches,
    backfill_policy=backfill, metadata=column_schema("designs"),
)  # fmt: skip
def designs(
    context: dg.AssetExecutionContext,
    profile: ProfileResource,
    warehouse: WarehouseResource,
    simulator: SimulatorResource,
) -> dg.MaterializeResult:
    """The designs of a batch with their files, ports and path conditions; what cannot be read is a rejected row.

    *Needs:* a batch: generated for the profile, imported (`llm4cov designs import`), or from the inbox.
    *Costs:* less than a second a design; what comes from the inbox is built here and takes one simulation.
    """
    from llm4cov_assets.assets.designing import batch_content, registered_designs

    def body(work: Work) -> Outcome:
        return registered_designs(work, simulator)

    return materialise(context, profile, warehouse, body, extra=batch_content)


@dg.asset(
    group_name=GROUP, kinds={"verilog", "verilator", "parquet"}, owners=OWNERS, code_version="3",
    metadata=column_schema("targets"), pool="simulation",
)  # fmt: skip
def eval_designs(
    context: dg.AssetExecutionContext,
    profile: ProfileResource,
    warehouse: WarehouseResource,
    simulator: SimulatorResource,
) -> dg.MaterializeResult:
    """The evaluation designs, never trained on, with coverage targets from a seeded reference campaign.

    *Needs:* nothing. *Costs:* one build and up to 24 simulations (`calibration_sims`) a design.
    """
    from llm4cov_assets.assets.designing import evaluation_content, evaluation_designs

    def body(work: Work) -> Outcome:
        with simulator.open() as running:
            return evaluation_designs(work, running)

    return materialise(context, profile, warehouse, body, extra=evaluation_content)


@dg.asset(
    group_name=GROUP, kinds={"pytorch", "huggingface"}, owners=OWNERS, code_version="1",
    metadata=column_schema("checkpoints"),
)  # fmt: skip
def base_student(
    context: dg.AssetExecutionContext, profile: ProfileResource, warehouse: WarehouseResource
) -> dg.MaterializeResult:
    """The student before any training (policy `untrained`): seeded initial weights.

    *Needs:* nothing. *Costs:* seconds; trains nothing.
    """
    from llm4cov_assets.assets.training import initial_checkpoint, initial_student

    def which(work: Work) -> str:
        return initial_checkpoint(work).checkpoint_id

    return materialise(context, profile, warehouse, initial_student, extra=which)
