"""The inbox sensor and the schedule of what is due."""

import dagster as dg

from llm4cov_assets.assets.jobs import close_new_designs
from llm4cov_assets.assets.partitions import design_batches
from llm4cov_assets.home import home


@dg.sensor(
    job=close_new_designs,
    minimum_interval_seconds=15,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="A design folder or RTL file dropped into the inbox becomes a batch, and its closure run starts.",
)
def inbox(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
    """One batch for each new or changed entry of the inbox; entries that are still being copied wait a tick."""
    from llm4cov_assets.ingest.registry import register_inbox

    batches = register_inbox(home())
    known = set(context.instance.get_dynamic_partitions(design_batches.name))
    if not batches:
        return dg.SkipReason(f"nothing new in {home() / 'inbox'}")
    return dg.SensorResult(
        run_requests=[dg.RunRequest(run_key=b.run_key, partition_key=b.name) for b in batches],
        dynamic_partitions_requests=[design_batches.build_add_request([b.name for b in batches if b.name not in known])],
    )


@dg.schedule(
    job=close_new_designs,
    cron_schedule="0 3 * * *",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="Close again, at night, the inbox batches that are below their target or have not met the newest student.",
)
def due_closures(context: dg.ScheduleEvaluationContext) -> list[dg.RunRequest] | dg.SkipReason:
    """One run for each inbox batch that is due."""
    from llm4cov_assets.assets.closing import due_batches

    due = due_batches(home(), context.instance.get_dynamic_partitions(design_batches.name))
    return [dg.RunRequest(partition_key=b) for b in due] or dg.SkipReason("every batch is closed with the newest student")
