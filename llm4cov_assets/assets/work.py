"""What all asset bodies share: read rows, call a pure function, write rows, say what happened."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import dagster as dg

from llm4cov_assets.assets import budget, progress
from llm4cov_assets.assets.finished import Finished, Record, work_key
from llm4cov_assets.assets.resources import ProfileResource, WarehouseResource
from llm4cov_assets.errors import UserError
from llm4cov_assets.home import home
from llm4cov_assets.profiles import Profile
from sim.identity import content_id, sha256
from sim.occupancy import in_use
from warehouse.errors import WarehouseError
from warehouse.schema import EFFORT, TABLES

if TYPE_CHECKING:
    import polars as pl

    from warehouse.store import Store

COSTS = ("simulations_run", "simulations_from_cache", "builds_run", "generations_run", "generations_from_cache",
         "training_steps_run", "cpu_s")  # fmt: skip
"""Metadata that counts work done by this run; all 0 when the result was there already."""


TERMINAL = "llm4cov/terminal"
"""Tag of the Dagster runs that `llm4cov run` started; its value is the process id."""


@dataclass(frozen=True)
class Outcome:
    """What an asset body returns: rows per table, metadata for people, and `memo`, plain JSON that later work reads
    from the record and nobody is shown."""

    tables: Mapping[str, pl.DataFrame]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    logical_simulations: int = 0
    memo: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Results:
    """What was materialised for one configuration and is up to date."""

    profile: Profile
    store: Store

    @property
    def finished(self) -> Finished:
        """The records of what is finished."""
        return Finished(self.store.home, self.profile.config_hash)

    def read(self, table: str, asset: str, partition: str | None = None) -> pl.DataFrame:
        """Rows of `table` from the last time that `asset` was materialised: one partition, or (None) all of them."""
        return self.store.read(table, config_hash=self.profile.config_hash, asset_key=asset, partition_key=partition)


@dataclass(frozen=True)
class Work(Results):
    """One asset and partition being materialised. `partition` is None for unpartitioned assets."""

    asset: str
    stage: int | None
    partition: str | None
    code_version: str
    run_id: str
    reporter: progress.Reporter

    def seed(self, *what: Any) -> int:
        """A seed of its own for this asset, from the profile's seed."""
        return int(content_id("seed", self.profile.seed, self.asset, *what)[:8], 16)

    @contextmanager
    def task(self, what: str, total: int, unit: str) -> Iterator[progress.Task]:
        """Show a piece of work of known size."""
        where = f" [{self.partition}]" if self.partition else ""
        with self.reporter.task(f"{self.asset}{where}: {what}", total, unit) as task:
            yield task


def materialise(
    context: dg.AssetExecutionContext,
    profile: ProfileResource,
    warehouse: WarehouseResource,
    body: Callable[[Work], Outcome],
    *,
    stage: int | None = None,
    extra: Callable[[Work], str] = lambda work: "",
) -> dg.MaterializeResult:
    """Run `body` for every partition of this run whose result is not there yet, and describe the result.

    `extra` names anything outside the upstream assets that the result depends on (for example files on disk).
    A UserError becomes a failure with its one-line message and no retries.
    """
    partitions: list[str | None] = list(context.partition_keys) if context.assets_def.partitions_def else [None]
    try:
        if stage is not None and TERMINAL not in context.run.tags:
            record = context.instance.get_run_record_by_id(context.run.run_id)
            started = record.create_timestamp.timestamp() if record else 0.0
            announce(warehouse.store(), profile.resolved(), context.run.run_id, started)
        works = [_work(context, profile, warehouse, stage, context.asset_key, partition) for partition in partitions]
        upstream = sorted(key.to_user_string() for key in context.assets_def.asset_deps[context.asset_key])
        results = [_once(work, body, upstream, extra(work)) for work in works]
    except (UserError, WarehouseError) as error:
        raise dg.Failure(description=str(error), allow_retries=False) from error
    if len(results) == 1:
        version, metadata = results[0]
        return dg.MaterializeResult(data_version=dg.DataVersion(version), metadata=metadata)
    for partition, (_, metadata) in zip(partitions, results, strict=True):
        context.add_asset_metadata(metadata, partition_key=partition)
    return dg.MaterializeResult(data_version=dg.DataVersion(content_id([version for version, _ in results])))


def check(
    context: dg.AssetCheckExecutionContext,
    profile: ProfileResource,
    warehouse: WarehouseResource,
    offenders: Callable[[Work], pl.DataFrame],
    *,
    stage: int | None = None,
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR,
) -> dg.AssetCheckResult:
    """Check that `offenders` finds no row in any partition of this run; the first ones are shown.

    A check that is run on its own looks at every finished partition.
    """
    import polars as pl

    op = context.op_execution_context
    (asset,) = {key.asset_key for key in op.selected_asset_check_keys}
    partitions = list(op.partition_keys) if op.has_partition_key else [None]
    if partitions == [None] and (
        finished := Finished(home(), profile.resolved().config_hash).partitions(asset.to_user_string())
    ):
        partitions = finished
    found = pl.concat([offenders(_work(op, profile, warehouse, stage, asset, p)) for p in partitions])
    shown = {"first": dg.MetadataValue.md(markdown_table(found.head(10)))} if found.height else {}
    for row in found.head(10).iter_rows():
        op.log.warning(f"{asset.to_user_string()}: {', '.join(str(value) for value in row)}")
    return dg.AssetCheckResult(
        passed=found.is_empty(), severity=severity, metadata={"offending_rows": found.height, **shown}
    )


def _work(
    context: dg.OpExecutionContext | dg.AssetExecutionContext,
    profile: ProfileResource,
    warehouse: WarehouseResource,
    stage: int | None,
    asset: dg.AssetKey,
    partition: str | None,
) -> Work:
    settings = profile.resolved()
    return Work(
        profile=settings,
        store=warehouse.store(),
        asset=asset.to_user_string(),
        stage=stage,
        partition=partition,
        code_version=context.assets_def.code_versions_by_key.get(asset) or "",
        run_id=context.run.run_id,
        reporter=progress.current() or progress.LogReporter(context.log),
    )


def announce(store: Store, profile: Profile, run_id: str, started: float) -> None:
    """Make this configuration the current one, the one that views show. `started` is a Unix time."""
    import polars as pl

    from warehouse.store import Provenance

    row = {
        "run_id": run_id,
        "profile": profile.name,
        "settings": profile.model_dump_json(),
        "started_at": datetime.fromtimestamp(started, UTC).replace(tzinfo=None),
    }
    store.write("runs", pl.DataFrame([row]), Provenance(None, profile.config_hash))


def markdown_table(frame: pl.DataFrame) -> str:
    """A frame as a markdown table."""
    lines = ["| " + " | ".join(frame.columns) + " |", "|" + " --- |" * frame.width]
    for row in frame.iter_rows():
        cells = (f"{v:.3f}" if isinstance(v, float) else "" if v is None else str(v) for v in row)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _once(work: Work, body: Callable[[Work], Outcome], upstream: list[str], extra: str) -> tuple[str, dict[str, Any]]:
    """Materialise one partition unless its result is there; returns its data version and metadata."""
    key = work_key(work.code_version, work.finished.versions(upstream, work.partition), extra)
    record = work.finished.get(work.asset, work.partition)
    if record and record.key == key and _is_stored(work, record):
        budget.spend(record.logical_simulations)
        return record.data_version, _described(record.metadata | dict.fromkeys(COSTS, 0)) | {"reused": record.run_id}
    with in_use(work.store.home):  # what is found in the caches stays there until the rows refer to it
        outcome = body(work)
        rows = _write(work, outcome.tables)
    costs = {name: outcome.metadata.get(name, 0) for name in COSTS}
    metadata = {k: v for k, v in outcome.metadata.items() if k not in costs} | costs
    metadata |= {f"rows/{table}": n for table, n in rows.items()} | {"config_hash": work.profile.config_hash}
    version = data_version(outcome.tables)
    record = Record(key, version, rows, metadata, work.run_id, outcome.logical_simulations, dict(outcome.memo))
    work.finished.put(work.asset, work.partition, record)
    return version, _described(metadata)


def _described(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata as Dagster shows it: `{"markdown": text}` becomes markdown, tables and plots included."""
    return {k: dg.MetadataValue.md(v["markdown"]) if isinstance(v, dict) else v for k, v in metadata.items()}


def _write(work: Work, tables: Mapping[str, pl.DataFrame]) -> dict[str, int]:
    from warehouse.store import Provenance

    provenance = Provenance(
        work.stage, work.profile.config_hash, work.run_id, work.asset, work.partition, work.code_version
    )
    work.store.write_all(tables, provenance, whole=True)
    return {table: frame.height for table, frame in tables.items()}


def _is_stored(work: Work, record: Record) -> bool:
    """The rows of a finished result are still in the store (somebody may have deleted some)."""
    tables = [table for table, n in record.rows.items() if n]
    return work.store.holds(tables, work.profile.config_hash, work.asset, work.partition)


def data_version(tables: Mapping[str, pl.DataFrame]) -> str:
    """Content hash of a result: keys of content tables, all columns but the effort of the others; any row order."""
    parts = {}
    for name, frame in sorted(tables.items()):
        table = TABLES[name]
        lasting = list(table.key) if table.scope == "keyed" else [c for c in frame.columns if c not in EFFORT]
        order = [c for c in table.key if c != "config_hash"]
        parts[name] = sha256(frame.select(lasting).sort(order).write_json().encode())
    return content_id("data", parts)
