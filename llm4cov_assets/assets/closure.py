"""Coverage closure: the trained policy used on a batch of designs."""

import dagster as dg

from llm4cov_assets.assets.partitions import backfill, design_batches
from llm4cov_assets.assets.resources import PoliciesResource, ProfileResource, SimulatorResource, WarehouseResource
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
    policies: PoliciesResource,
    simulator: SimulatorResource,
) -> dg.MaterializeResult:
    """The best testbench of each design of a batch, found by the agentic loop with the newest student."""
    from llm4cov_assets.assets.closing import closed, newest_policy

    def body(work: Work) -> Outcome:
        with simulator.open() as running:
            return closed(work, running, policies.named(newest_policy(work), work.profile, work.store))

    return materialise(context, profile, warehouse, body, extra=newest_policy)
