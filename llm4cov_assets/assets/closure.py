"""Coverage closure: the trained policy used on a batch of designs."""

import dagster as dg

from llm4cov_assets.assets.partitions import backfill, design_batches
from llm4cov_assets.assets.resources import ProfileResource, SimulatorResource, WarehouseResource
from llm4cov_assets.assets.schemas import column_schema
from llm4cov_assets.assets.work import Outcome, Work, materialise


@dg.asset(
    group_name="closure", deps=["designs"], kinds={"verilator", "cocotb"}, owners=["team:llm4cov"], code_version="1",
    partitions_def=design_batches, backfill_policy=backfill, metadata=column_schema("transitions"), pool="simulation",
)  # fmt: skip
def closure(
    context: dg.AssetExecutionContext,
    profile: ProfileResource,
    warehouse: WarehouseResource,
    simulator: SimulatorResource,
) -> dg.MaterializeResult:
    """The best testbenches of each design of a batch, found by the newest student and the scripted policies in turn."""
    from llm4cov_assets.assets.closing import closed, newest_policies

    def body(work: Work) -> Outcome:
        with simulator.open() as running:
            return closed(work, running)

    return materialise(context, profile, warehouse, body, extra=lambda work: newest_policies(work.store.home))
