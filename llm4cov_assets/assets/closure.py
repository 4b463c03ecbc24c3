"""Coverage closure: the trained policy used on a batch of designs."""

import dagster as dg
import pydantic

from llm4cov_assets.assets.due import FIRST_BUDGET, REASON
from llm4cov_assets.assets.partitions import backfill, design_batches
from llm4cov_assets.assets.resources import ProfileResource, SimulatorResource, WarehouseResource
from llm4cov_assets.assets.schemas import column_schema
from llm4cov_assets.assets.work import Outcome, Work, materialise


class ClosureConfig(dg.Config):
    """What one closure run may spend."""

    budget_sims: int = pydantic.Field(
        default=FIRST_BUDGET, ge=1, description="simulations for each design of the batch, as with a cold cache"
    )


@dg.asset(
    group_name="closure", deps=["designs"], kinds={"verilator", "cocotb"}, owners=["team:llm4cov"], code_version="2",
    partitions_def=design_batches, backfill_policy=backfill, metadata=column_schema("transitions"), pool="simulation",
)  # fmt: skip
def closure(
    context: dg.AssetExecutionContext,
    config: ClosureConfig,
    profile: ProfileResource,
    warehouse: WarehouseResource,
    simulator: SimulatorResource,
) -> dg.MaterializeResult:
    """The best testbenches of each design of a batch, found by the newest student and the scripted policies in turn.

    They take turns at repairing the best testbench so far and start from what the batch's last closure found, so
    closing again never loses coverage. The files lie in `reports/closure/BATCH/DESIGN/`.

    *Needs:* the batch's `designs`; a student if there is one (without any, the scripted policies work alone).
    *Costs:* at most `budget_sims` simulations a design (64): seconds for a small design, minutes for a processor core.
    Trains nothing.
    """
    from llm4cov_assets.assets.closing import closed, policies_hash
    from llm4cov_assets.policy.portfolio import portfolio

    def body(work: Work) -> Outcome:
        with simulator.open() as running:
            return closed(work, running, config.budget_sims, context.run.tags.get(REASON, "started by hand"))

    def which(work: Work) -> str:
        return f"{policies_hash(portfolio((), work.store.home))} {config.budget_sims}"

    return materialise(context, profile, warehouse, body, extra=which)
