"""The inbox sensor, the schedule of what is due, and publishing after runs that no terminal watches."""

from collections.abc import Iterator

import dagster as dg

from llm4cov_assets.assets.due import REASON
from llm4cov_assets.assets.jobs import close_new_designs
from llm4cov_assets.assets.partitions import design_batches
from llm4cov_assets.assets.schemas import column_schema
from llm4cov_assets.assets.work import TERMINAL
from llm4cov_assets.home import home

inbox_entries = dg.AssetSpec(
    "inbox",
    group_name="closure",
    kinds={"verilog"},
    owners=["team:llm4cov"],
    code_version="1",
    metadata=column_schema("design_events"),
    description=(
        "What lies in `data/inbox/`: each entry with its version, how it stands and why. An event here whenever that "
        "changes; `llm4cov inbox` shows the same, the view `design_history` the past.\n\n"
        "*Needs:* the sensor `inbox`. *Costs:* nothing."
    ),
)


@dg.sensor(
    job=close_new_designs,
    minimum_interval_seconds=5,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=(
        "Drop a folder with RTL, an RTL file, a file list, an archive or a data set into data/inbox/ (or "
        "$LLM4COV_HOME/inbox/), or point at one elsewhere with llm4cov inbox add PATH (add --git for what is committed "
        "in a repository): it is imported as a design batch of its own, several if it holds many designs, and a run of "
        "close_new_designs finds testbenches for it. What changes becomes a new version with a new batch; what is "
        "removed becomes inactive; what is still being copied waits. The asset inbox shows how each entry stands. "
        "Costs a tenth of a second while nothing is new, and at most 64 simulations for each new design. Trains "
        "nothing."
    ),
)
def inbox(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
    """One batch for each new version of an entry, and for each further batch that its import made."""
    from llm4cov_assets.assets.looking_after import look_after

    done = look_after(home(), context.instance)
    if not done.requests and not done.shown:
        return dg.SkipReason(done.words)
    return dg.SensorResult(
        run_requests=[
            dg.RunRequest(run_key=r.run_key, partition_key=r.batch, tags={REASON: r.reason}) for r in done.requests
        ],
        skip_reason=None if done.requests else done.words,
        dynamic_partitions_requests=[design_batches.build_add_request(done.batches)] if done.batches else None,
        asset_events=[
            dg.AssetMaterialization(
                "inbox",
                description=done.stands[:500],
                metadata={"entries": dg.MetadataValue.md(done.shown), **done.counts},
            )
        ]
        if done.shown
        else [],
    )


@dg.schedule(
    job=close_new_designs,
    cron_schedule="0 3 * * *",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description=(
        "Closes designs again every night, when that can help. Off until you switch it on; Preview tick result shows "
        "what it would start now, and why. A batch of the inbox is due (1) when there is a newer student and points "
        "are left; (2) when the simulator has another version than at its last closure; (3) when a design is below "
        "the target that llm4cov designs calibrate NAME has set: then once with 256 simulations a design instead of "
        "64; (4) when its first closure did not finish. Imported batches that were closed once are looked at in the "
        "same way. What was removed from the inbox, or replaced there, is left alone. What that does not help rests "
        "until there is a newer student. Designs without a target wait for a newer student or simulator. Training and "
        "evaluation never start by themselves, also not after new designs were imported for training: run llm4cov "
        "run, or the jobs stage_0_trajectories to comparison, which do only what is due."
    ),
)
def due_closures(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
    """One run for each batch that is due; or why there is none."""
    from llm4cov_assets.assets.closing import DUE_KEY, closed_imports, decision
    from llm4cov_assets.ingest.inbox import scan_inbox
    from llm4cov_assets.ingest.looking import Memory
    from llm4cov_assets.ingest.taking import memory_file
    from llm4cov_assets.ingest.versions import PREFIX, standing

    inbox_folder = home() / "inbox"
    batches = context.instance.get_dynamic_partitions(design_batches.name)
    found = scan_inbox(inbox_folder, memory=Memory.load(memory_file(home())).unsaved())
    active = standing(found.entries, batches).active
    inactive = len([b for b in batches if b.startswith(PREFIX)]) - len(active)
    decided = decision(home(), context.instance, [*active, *closed_imports(home(), batches)])
    for due in decided.due:
        yield dg.RunRequest(
            run_key=f"{due.batch}:{due.key}",
            partition_key=due.batch,
            run_config={"ops": {"closure": {"config": {"budget_sims": due.budget_sims}}}},
            tags={REASON: due.reason, DUE_KEY: due.key},
        )
    if not decided.due:
        old = f"; {inactive} older or removed left alone" if inactive else ""
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
