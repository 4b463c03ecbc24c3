"""The inbox sensor, the schedule of what is due, and publishing after runs that no terminal watches."""

import dagster as dg

from llm4cov_assets.assets.jobs import close_new_designs
from llm4cov_assets.assets.partitions import design_batches
from llm4cov_assets.assets.work import TERMINAL
from llm4cov_assets.home import home


@dg.sensor(
    job=close_new_designs,
    minimum_interval_seconds=15,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="A design folder or RTL file dropped into the inbox becomes a batch, and its closure run starts.",
)
def inbox(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
    """One batch for each new or changed entry of the inbox; entries that are still being copied wait a tick."""
    from llm4cov_assets.assets.batches import INBOX_VERSION
    from llm4cov_assets.ingest.inbox import left_out, partition_changes, scan_inbox

    found = scan_inbox(home() / "inbox")
    changes = partition_changes(found, context.instance.get_dynamic_partitions(design_batches.name), INBOX_VERSION)
    if not changes.add:
        waiting = "".join(f"; {name!r} left out: {why}" for name, why in left_out(home() / "inbox").items())
        return dg.SkipReason(f"nothing new in {home() / 'inbox'}{waiting}")
    return dg.SensorResult(
        run_requests=[
            dg.RunRequest(run_key=f"{entry.name}:{entry.content_hash}:{INBOX_VERSION}", partition_key=batch)
            for batch, entry in changes.add.items()
        ],
        dynamic_partitions_requests=[design_batches.build_add_request(list(changes.add))],
    )


@dg.schedule(
    job=close_new_designs,
    cron_schedule="0 3 * * *",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="Every night, close inbox batches again that have not met the newest student. Off until switched on.",
)
def due_closures(context: dg.ScheduleEvaluationContext) -> list[dg.RunRequest] | dg.SkipReason:
    """One run for each inbox batch that is due, with the run key of the student it is due for."""
    from llm4cov_assets.assets.closing import due_batches

    due = due_batches(home(), context.instance.get_dynamic_partitions(design_batches.name))
    requests = [dg.RunRequest(run_key=f"{batch}:{student}", partition_key=batch) for batch, student in due.items()]
    return requests or dg.SkipReason("every inbox batch is closed with the newest student")


def _publish(context: dg.RunStatusSensorContext) -> dg.SkipReason | None:
    from warehouse.store import Store

    if TERMINAL in context.dagster_run.tags:
        return dg.SkipReason("llm4cov run publishes itself")
    for message in Store(home()).publish(force=True).messages:
        context.log.warning(message)
    return None


publish_after_success = dg.run_status_sensor(
    run_status=dg.DagsterRunStatus.SUCCESS,
    name="publish_after_success",
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Publish the warehouse when a run has succeeded.",
)(_publish)

publish_after_failure = dg.run_status_sensor(
    run_status=dg.DagsterRunStatus.FAILURE,
    name="publish_after_failure",
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Publish what a failed run stored before it failed.",
)(_publish)
