"""`llm4cov run`: the jobs of the pipeline in order, executed in this process on the project's own instance."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg

from llm4cov_assets.assets import budget
from llm4cov_assets.assets.forecast import expected_s
from llm4cov_assets.assets.instance import end_dead_runs, only_one, terminal_instance
from llm4cov_assets.assets.partitions import design_batches
from llm4cov_assets.assets.progress import reporting_to
from llm4cov_assets.assets.resources import run_config
from llm4cov_assets.assets.stage import STAGES
from llm4cov_assets.assets.terminal import TerminalReporter
from llm4cov_assets.assets.work import COSTS, TERMINAL, announce
from llm4cov_assets.errors import UserError
from llm4cov_assets.profiles import Profile
from warehouse.errors import WarehouseError

if TYPE_CHECKING:
    from warehouse.store import Store


class RunFailed(Exception):
    """A step failed; the message names it, its partition and the cause in one line."""


@dataclass(frozen=True)
class Step:
    """One Dagster run of the plan."""

    job: str
    title: str
    partition: str | None = None


@dataclass
class Summary:
    """What a whole `llm4cov run` did. `costs` counts work that this call ran itself, `failed` names steps."""

    costs: dict[str, float] = field(default_factory=lambda: dict.fromkeys(COSTS, 0))
    failed: list[str] = field(default_factory=list)


def stages_of(text: str) -> list[int]:
    """`0-2`, `1`, `0,2` as a list of stages; UserError for anything else."""
    try:
        chosen: set[int] = set()
        for part in text.split(","):
            first, _, last = part.partition("-")
            chosen |= set(range(int(first), int(last or first) + 1))
    except ValueError:
        chosen = set()
    if not chosen or not chosen <= set(STAGES):
        raise UserError(f"--stages {text!r}: give stages like 0-2, 1 or 0,2; there are {STAGES[0]} to {STAGES[-1]}")
    return sorted(chosen)


def plan(batches: Sequence[str], stages: Sequence[int]) -> Iterator[Step]:
    """The runs of a pipeline, in order. The control is run when all later stages are, as it copies their steps."""
    yield from (Step("register_designs", "designs", batch) for batch in batches)
    yield Step("preparation", "evaluation designs and untrained student")
    yield Step("baselines", "baselines")
    for k in stages:
        yield from (Step(f"stage_{k}_trajectories", f"stage {k} trajectories", batch) for batch in batches)
        yield Step(f"stage_{k}_training", f"stage {k} training and evaluation")
    if set(stages) >= set(STAGES[1:]):
        yield Step("control", "control")
    yield Step("comparison", "comparison")


def run_pipeline(
    profile: Profile, stages: Sequence[int], home: Path, *, budget_sims: int | None = None, command: str = "llm4cov run"
) -> Summary:
    """Materialise the pipeline of `profile`, publish the warehouse, and say what was done.

    A failing batch does not stop the others of its stage, but nothing is trained on half of the batches: RunFailed.
    UserError when another terminal run holds the home. Ctrl-C ends the step at hand: KeyboardInterrupt.
    """
    from llm4cov_assets.assets.batches import training_batches
    from warehouse.store import Store

    with only_one(home, command), terminal_instance(home) as instance:
        batches = training_batches(profile, home)
        if not batches:
            raise UserError(f"--designs {profile.designs_glob!r} matches no training design of profile {profile.name}")
        steps = list(plan(batches, stages))
        reporter = TerminalReporter(_expected(steps, profile, home))
        if dead := end_dead_runs(instance):
            reporter.say(f"{dead} run(s) of a killed process were marked as failed; going on from what is stored")
        instance.add_dynamic_partitions(design_batches.name, batches)
        store, summary = Store(home), Summary()
        announce(store, profile, uuid.uuid4().hex, time.time())
        with reporter.live(), reporting_to(reporter), budget.limited_to(budget_sims):
            try:
                _execute(steps, profile, instance, store, reporter, summary)
            finally:
                reporter.begin("publishing the warehouse")
                _publish(store, reporter, force=True)
        return summary


def _execute(
    steps: Sequence[Step], profile: Profile, instance: dg.DagsterInstance, store: Store, reporter: TerminalReporter,
    summary: Summary,
) -> None:  # fmt: skip
    from definitions import defs

    repository = defs.get_repository_def()
    config = run_config(profile) | {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    tags = {TERMINAL: str(os.getpid()), "llm4cov/profile": profile.name}
    for step in steps:
        if summary.failed and step.partition is None:
            raise RunFailed("; ".join(summary.failed))
        reporter.begin(f"{step.title} [{step.partition}]" if step.partition else step.title)
        result = repository.get_job(step.job).execute_in_process(
            run_config=config,
            instance=instance,
            partition_key=step.partition,
            raise_on_error=False,
            tags=tags,
        )
        _add_costs(summary, result)
        if _interrupted(result):
            raise KeyboardInterrupt
        if not result.success:
            summary.failed.append(_failure(step, result))
            reporter.say(summary.failed[-1])
            if step.partition is None:
                raise RunFailed(summary.failed[-1])
        reporter.end()
        _publish(store, reporter)


def _expected(steps: Sequence[Step], profile: Profile, home: Path) -> list[float]:
    """Expected seconds of each step."""
    from llm4cov_assets.assets.batches import evaluation_records, profile_batches
    from llm4cov_assets.ingest.kept import kept_designs

    sizes = {batch: len(records) for batch, records in (profile_batches(profile) | kept_designs(home)).items()}
    evaluated = len(evaluation_records(profile, home))
    return [expected_s(step.job, profile, sizes.get(step.partition or "", 0), evaluated) for step in steps]


def _publish(store: Store, reporter: TerminalReporter, force: bool = False) -> None:
    """Publish what there is. A full disk or a broken public file stops nobody from computing: it is said."""
    try:
        for message in store.publish(force=force).messages:
            reporter.say(message)
    except WarehouseError as error:
        reporter.say(f"the warehouse is not published: {error}")


def _add_costs(summary: Summary, result: dg.ExecuteInProcessResult) -> None:
    for event in result.get_asset_materialization_events():
        for name in COSTS:
            value = event.materialization.metadata.get(name)
            summary.costs[name] += value.value if value else 0


def _interrupted(result: dg.ExecuteInProcessResult) -> bool:
    """Ctrl-C during a step, which Dagster turns into a failure of the step."""
    errors = [e.step_failure_data.error for e in result.filter_events(lambda e: e.is_step_failure)]
    return any(error and error.cls_name == "DagsterExecutionInterruptedError" for error in errors)


def _failure(step: Step, result: dg.ExecuteInProcessResult) -> str:
    """One line: which asset of which batch failed, and why."""
    where = f" [{step.partition}]" if step.partition else ""
    for event in result.filter_events(lambda e: e.is_step_failure):
        asset = str(event.step_key).replace("__", "/")
        failure = event.step_failure_data
        if failure.user_failure_data and failure.user_failure_data.description:
            return f"{asset}{where}: {failure.user_failure_data.description}"
        error = failure.error
        while error and error.cause:
            error = error.cause
        text = error.message.strip().splitlines()[0] if error else "failed"
        return f"{asset}{where}: {text} (see run {result.run_id} in the UI: script/server)"
    return f"{step.job}{where}: failed (see run {result.run_id} in the UI: script/server)"
