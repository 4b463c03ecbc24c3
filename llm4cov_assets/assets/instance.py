"""The project's own Dagster instance, and what a terminal run owes it: one at a time, no dead runs left behind."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg

from llm4cov_assets.assets.work import TERMINAL
from llm4cov_assets.errors import UserError

DAGSTER_YAML = """\
# Written by llm4cov; delete it to get the default again.
telemetry:
  enabled: false
nux:
  enabled: false
concurrency:
  pools:
    granularity: op
    default_limit: 1
run_monitoring:
  enabled: true
  start_timeout_seconds: 180
  max_resume_run_attempts: 0
  poll_interval_seconds: 30
  free_slots_after_run_end_seconds: 30
run_retries:
  enabled: false
retention:
  sensor:
    purge_after_days: {skipped: 1, success: 90, failure: 90}
  schedule:
    purge_after_days: {skipped: 7, success: 90, failure: 90}
"""

_UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def dagster_home(home: Path) -> Path:
    """`<home>/dagster` with its dagster.yaml, which is written when missing."""
    folder = home / "dagster"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "dagster.yaml").exists():
        temporary = folder / f".dagster.yaml.{os.getpid()}"
        temporary.write_text(DAGSTER_YAML)
        temporary.replace(folder / "dagster.yaml")
    return folder


@contextmanager
def terminal_instance(home: Path) -> Iterator[dg.DagsterInstance]:
    """The instance for runs in this process. Output of steps is not captured: two processes a step, and the terminal
    shows it anyway."""
    from dagster._core.instance.ref import InstanceRef  # the public way reads DAGSTER_HOME and takes no overrides

    folder = dagster_home(home)
    os.environ["DAGSTER_HOME"] = str(folder)
    silent = {"module": "dagster._core.storage.noop_compute_log_manager", "class": "NoOpComputeLogManager"}
    ref = InstanceRef.from_dir(str(folder), overrides={"compute_logs": silent})
    with dg.DagsterInstance.from_ref(ref) as instance:
        yield instance


@contextmanager
def only_one(home: Path, doing: str) -> Iterator[None]:
    """Hold the home for a terminal run; UserError that names the holder when another one has it.

    The lock is the kernel's, so it ends with its process however that dies.
    """
    path = dagster_home(home) / "terminal.lock"
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"{_holder(path)} is running in {home}: wait for it, or set LLM4COV_HOME") from None
        file.truncate(0)
        file.write(json.dumps({"pid": os.getpid(), "doing": doing, "since": time.strftime("%H:%M:%S")}))
        file.flush()
        yield


def _holder(path: Path) -> str:
    try:
        holder: dict[str, Any] = json.loads(path.read_text())
    except ValueError:
        return "another llm4cov run"
    return f"`{holder['doing']}` (process {holder['pid']}, since {holder['since']})"


def end_dead_runs(instance: dg.DagsterInstance) -> int:
    """Fail the terminal runs that a killed process left, and free their pool slots; returns how many there were.

    Call it with the lock of `only_one` held: then every unfinished terminal run is dead. Without this a killed run
    would keep its slots for ever when no daemon runs.
    """
    dead = [
        record.dagster_run
        for record in instance.get_run_records(dg.RunsFilter(statuses=_UNFINISHED))
        if TERMINAL in record.dagster_run.tags
    ]
    for run in dead:
        instance.report_run_failed(run, "the process of this run was killed; `llm4cov run` went on from there")
        instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
    return len(dead)
