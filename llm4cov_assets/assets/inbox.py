"""The inbox sensor, the schedule of what is due, and publishing after runs that no terminal watches."""

from collections.abc import Iterator

import dagster as dg

from llm4cov_assets.assets.due import REASON
from llm4cov_assets.assets.jobs import close_new_designs
from llm4cov_assets.assets.partitions import design_batches
from llm4cov_assets.assets.work import TERMINAL
from llm4cov_assets.home import home


@dg.sensor(
    job=close_new_designs,
    minimum_interval_seconds=15,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=(
        "Drop a design folder or an RTL file into data/inbox/ (or $LLM4COV_HOME/inbox/): it becomes a design batch of "
        "its own, and a run of close_new_designs finds testbenches for it. A design that is changed there becomes a "
        "new batch; what is still being copied waits. Costs nothing while nothing is new, and at most 64 simulations "
        "for each new design. Trains nothing."
    ),
)
def inbox(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
    """One batch for each new or changed entry of the inbox; entries that are still being copied wait a tick."""
    from llm4cov_assets.assets.batches import INBOX_VERSION
    from llm4cov_assets.ingest.inbox import left_out, partition_changes, scan_inbox

    found = scan_inbox(home() / "inbox")
    changes = partition_changes(found, context.instance.get_dynamic_partitions(design_batches.name), INBOX_VERSION)
    if not changes.add:
        waiting = "".join(f"; {name!r} left out: {why}" for name, why in left_out(home() / "inbox").items())
        known = f"{len(found)} known {'design' if len(found) == 1 else 'designs'}, " if found else ""
        return dg.SkipReason(f"{known}nothing new in {home() / 'inbox'}{waiting}")
    return dg.SensorResult(
        run_requests=[
            dg.RunRequest(
                run_key=f"{entry.name}:{entry.content_hash}:{INBOX_VERSION}",
                partition_key=batch,
                tags={REASON: changes.reason(batch)},
            )
            for batch, entry in changes.add.items()
        ],
        dynamic_partitions_requests=[design_batches.build_add_request(list(changes.add))],
    )


@dg.schedule(
    job=close_new_designs,
    cron_schedule="0 3 * * *",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description=(
        "Closes designs of the inbox again every night, when that can help. Off until you switch it on; Preview tick "
        "result shows what it would start now, and why. A batch is due (1) when there is a newer student and points "
        "are left; (2) when a design is below the target that llm4cov designs calibrate NAME has set: then once with "
        "256 simulations a design instead of 64; (3) when its first closure did not finish. What that does not help "
        "rests until there is a newer student. Designs without a target wait for a newer student only. Training and "
        "evaluation never start by themselves, also not after new designs were imported for training: run llm4cov "
        "run, or the jobs stage_0_trajectories to comparison, which do only what is due."
    ),
)
def due_closures(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
    """One run for each inbox batch that is due; or why there is none."""
    from llm4cov_assets.assets.batches import INBOX_VERSION
    from llm4cov_assets.assets.closing import DUE_KEY, decision
    from llm4cov_assets.ingest.inbox import partition_changes, scan_inbox

    inbox_folder = home() / "inbox"
    known = [b for b in context.instance.get_dynamic_partitions(design_batches.name) if b.startswith("inbox-")]
    inactive = partition_changes(scan_inbox(inbox_folder), known, INBOX_VERSION).inactive
    decided = decision(home(), context.instance, [b for b in known if b not in inactive])
    for due in decided.due:
        yield dg.RunRequest(
            run_key=f"{due.batch}:{due.key}",
            partition_key=due.batch,
            run_config={"ops": {"closure": {"config": {"budget_sims": due.budget_sims}}}},
            tags={REASON: due.reason, DUE_KEY: due.key},
        )
    if not decided.due:
        old = f"; {len(inactive)} older or removed left alone" if inactive else ""
        yield dg.SkipReason(f"nothing is due: {decided.rest or f'no design in {inbox_folder}'}{old}")


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
    description=(
        "After each run that succeeded, brings its rows into trajectories.duckdb, where SQL sees them. Leave it on; "
        "costs a second or two. llm4cov run publishes by itself."
    ),
)(_publish)

publish_after_failure = dg.run_status_sensor(
    run_status=dg.DagsterRunStatus.FAILURE,
    name="publish_after_failure",
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=(
        "After each run that failed, brings the rows that it had stored before into trajectories.duckdb. Leave it on."
    ),
)(_publish)
