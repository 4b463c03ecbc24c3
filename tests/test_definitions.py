"""The asset graph is a contract: a renamed asset loses its history, a lost dependency its lineage."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg

from definitions import defs

SNAPSHOT = Path(__file__).with_name("definitions.snapshot.txt")
ROOT = Path(__file__).resolve().parent.parent


def described() -> str:
    """Everything that is defined, one line each, sorted."""
    repository = defs.get_repository_def()
    lines = []
    for asset in repository.assets_defs_by_key.values():
        for spec in asset.specs:
            deps = ", ".join(sorted(d.asset_key.to_user_string() for d in spec.deps)) or "nothing"
            over = asset.partitions_def.name if asset.partitions_def else "unpartitioned"
            lines.append(f"asset {spec.key.to_user_string()} [{spec.group_name}, {over}] after {deps}")
    for checks in repository.asset_checks_defs_by_key.values():
        for spec in checks.check_specs:
            blocking = "blocking" if spec.blocking else "not blocking"
            lines.append(f"check {spec.name} of {spec.asset_key.to_user_string()} ({blocking})")
    for job in repository.get_all_jobs():
        if not job.name.startswith("__"):
            keys = sorted(k.to_user_string() for k in job.asset_layer.executable_asset_keys)
            over = job.partitions_def.name if job.partitions_def else "unpartitioned"
            lines.append(f"job {job.name} [{over}]: {', '.join(keys)}")
    lines += [f"sensor {s.name} ({s.default_status.value.lower()})" for s in repository.sensor_defs]
    lines += [
        f"schedule {s.name} ({s.default_status.value.lower()}) {s.cron_schedule}" for s in repository.schedule_defs
    ]
    return "\n".join(sorted(lines)) + "\n"


def test_definitions_are_as_recorded() -> None:
    if os.environ.get("UPDATE_SNAPSHOT"):
        SNAPSHOT.write_text(described())
    # a change on purpose is recorded with UPDATE_SNAPSHOT=1 pytest tests/test_definitions.py
    assert described() == SNAPSHOT.read_text()


def test_every_asset_says_what_it_is() -> None:
    for asset in defs.get_repository_def().assets_defs_by_key.values():
        for spec in asset.specs:
            assert spec.description and spec.kinds and spec.owners and spec.code_version, spec.key
            assert "dagster/column_schema" in spec.metadata, spec.key


def test_every_job_sensor_and_schedule_has_a_description() -> None:
    repository = defs.get_repository_def()
    named = [*repository.get_all_jobs(), *repository.sensor_defs, *repository.schedule_defs]
    assert [d.name for d in named if not d.description and not d.name.startswith("__")] == []


def test_every_job_says_what_it_needs_and_what_it_costs() -> None:
    described = {j.name: j.description or "" for j in defs.get_repository_def().get_all_jobs() if j.name[:2] != "__"}
    assert [name for name, text in described.items() if "Needs " not in text or "Costs " not in text] == []


def test_sensors_and_schedules_are_described_without_markup() -> None:
    """The UI shows markdown for jobs and assets, and plain text for these."""
    repository = defs.get_repository_def()
    assert [
        s.name for s in (*repository.sensor_defs, *repository.schedule_defs) if set("`*") & set(s.description or "")
    ] == []


def test_partitioned_jobs_stop_before_the_training_rows() -> None:
    for job in defs.get_repository_def().get_all_jobs():
        keys = {k.path[-1] for k in job.asset_layer.executable_asset_keys}
        if job.partitions_def and not job.name.startswith("__"):
            assert not keys & {"sft_dataset", "checkpoint", "evaluation"}


def test_the_closure_job_never_trains() -> None:
    job = defs.get_repository_def().get_job("close_new_designs")
    assert {k.to_user_string() for k in job.asset_layer.executable_asset_keys} == {"designs", "closure"}


def test_every_profile_is_run_config() -> None:
    from llm4cov_assets.assets.resources import run_config
    from llm4cov_assets.profiles import PROFILES

    repository = defs.get_repository_def()
    for profile in PROFILES.values():
        assert dg.validate_run_config(repository.get_job("comparison"), run_config(profile))


def test_loading_definitions_imports_nothing_heavy() -> None:
    heavy = ("torch", "trl", "transformers", "pyslang", "duckdb", "matplotlib")
    code = f"import definitions, sys; print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
