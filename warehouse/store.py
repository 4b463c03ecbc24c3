"""The store: the one way in and out of the warehouse for the pipeline and the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa

from warehouse import compaction, frames, parts, standing
from warehouse.compaction import Compacted
from warehouse.errors import WarehouseError
from warehouse.publish import Published, Publisher
from warehouse.reading import open_public
from warehouse.schema import REFERENCE_ORDER, TABLES, Table
from warehouse.verification import Problem


@dataclass(frozen=True)
class Provenance:
    """Where rows come from; the same for every row of one write.

    `stage` is null outside the stages, `partition_key` is the design batch, `adhoc` for the command line, or null
    for unpartitioned assets.
    """

    stage: int | None
    config_hash: str
    dagster_run_id: str | None = None
    asset_key: str | None = None
    partition_key: str | None = None
    code_version: str | None = None


class Store:
    """The warehouse below `home`. Safe to use from many processes at once; nothing it wrote is ever replaced."""

    def __init__(self, home: Path) -> None:
        self.home = Path(home)
        self.parts = self.home / "parts"
        self.publisher = Publisher(self.home)

    @property
    def public(self) -> Path:
        """The DuckDB file that people read: `<home>/trajectories.duckdb`."""
        return self.publisher.public

    def write(self, table: str, frame: pl.DataFrame, provenance: Provenance, *, whole: bool = False) -> int:
        """Store the rows of `frame` as one part and return how many they are.

        `frame` has the columns of the table without provenance; ids are 32 hex digits. A key that occurs twice in
        the frame is stored once. Rows that a part with the same provenance holds already (run, time and effort
        apart) are not written again. Raises WarehouseError for wrong columns, types or values, and when the part
        cannot be written; nothing is stored then.

        `whole` says that these rows are all that the asset has in the table for this configuration and partition: what
        it wrote before is no longer read, and no longer seen in result tables.
        """
        definition = _table(table)
        if not provenance.config_hash or "/" in provenance.config_hash:
            raise WarehouseError(f"{table}: {provenance.config_hash!r} is no config_hash")
        rows = frames.checked(definition, frame)
        made_at = standing.NOTHING
        if not rows.is_empty():
            _, made_at = parts.write_part(
                self.parts,
                definition,
                parts.partition_folder(provenance.partition_key),
                provenance.config_hash,
                frames.to_arrow(definition, _with_provenance(definition, rows, provenance)),
            )
        if whole:
            asset, partition = provenance.asset_key, provenance.partition_key
            standing.put(self.parts, standing.Standing(table, provenance.config_hash, asset, partition, made_at))
        return frame.height

    def write_all(self, tables: Mapping[str, pl.DataFrame], provenance: Provenance, *, whole: bool = False) -> None:
        """`write` every table, what others refer to first: a writer that dies in the middle leaves no row that refers
        to one that is not there."""
        for name in sorted(tables, key=lambda t: REFERENCE_ORDER.index(_table(t).name)):
            self.write(name, tables[name], provenance, whole=whole)

    def read(
        self,
        table: str,
        *,
        stage: int | None = None,
        config_hash: str | None = None,
        asset_key: str | None = None,
        partition_key: str | None = None,
    ) -> pl.DataFrame:
        """The rows of a table, from parts, with provenance; None leaves a filter out.

        One row a key: of keyed tables the first that was written, of scoped tables the latest. Sorted by key, so the
        order depends on the content alone and not on when or in which parts things were written.
        """
        definition = _table(table)
        wanted = {"stage": stage, "config_hash": config_hash, "asset_key": asset_key, "partition_key": partition_key}
        folder = None if partition_key is None else parts.partition_folder(partition_key)
        rows = self._rows(definition, folder, config_hash)
        for name, value in wanted.items():
            rows = rows if value is None else rows.filter(pl.col(name) == value)
        return _one_row_a_key(definition, rows)

    def _rows(self, table: Table, folder: str | None, config_hash: str | None) -> pl.DataFrame:
        for _ in range(10):  # compaction may remove a part between listing and reading
            try:
                found = [parts.read_part(p) for p in parts.list_parts(self.parts, [table.name], folder, config_hash)]
            except FileNotFoundError:
                continue
            if not found:
                return frames.empty(table)
            rows = frames.from_arrow(table, pa.concat_tables(found, promote_options="default"))
            return _standing(rows, standing.load(self.parts, [table.name], folder, config_hash))
        raise self._restless(table.name)

    def _restless(self, tables: str) -> WarehouseError:
        return WarehouseError(f"parts of {tables} vanish while they are read: what deletes files in {self.parts}?")

    def holds(self, tables: Sequence[str], config_hash: str, asset_key: str, partition_key: str | None) -> bool:
        """Whether the rows that an asset wrote last (with `whole`) to each of `tables` are still there."""
        folder = parts.partition_folder(partition_key)
        for _ in range(10):  # compaction may remove a part between listing and reading
            writes = [s for s in standing.load(self.parts, tables, folder, config_hash) if s.asset_key == asset_key]
            try:
                return len(writes) == len(tables) and not standing.lost(self.parts, writes)
            except FileNotFoundError:
                continue
        raise self._restless(", ".join(tables))

    def publish(self, force: bool = False) -> Published:
        """Bring new parts into the public file; at most once in 10 s unless `force`. See `Publisher.publish`."""
        return self.publisher.publish(force)

    def rebuild(self) -> Published:
        """Make the public file anew from the parts alone."""
        return self.publisher.rebuild()

    def verify(self) -> list[Problem]:
        """What does not hold: parts, keys, references, coverage. Empty when everything does."""
        return self.publisher.verify()

    def compact(self, smaller_than: int = compaction.SMALL_BYTES) -> Compacted:
        """Merge parts smaller than `smaller_than` bytes; see `compaction.compact`."""
        return self.publisher.compact(smaller_than)

    def connect(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        """A read-only connection to the public file, or to a private copy when somebody holds it.

        An empty home is published first. Keep it short: it goes on showing the file as it was when it was opened.
        """
        if not self.public.exists():
            self.publish(force=True)
        return open_public(self.public)

    def query(self, sql: str) -> pl.DataFrame:
        """Run one statement on the public file, read-only."""
        with self.connect() as connection:
            return connection.sql(sql).pl()


def _table(name: str) -> Table:
    if name not in TABLES:
        raise WarehouseError(f"no table {name!r}; there are {', '.join(TABLES)}")
    return TABLES[name]


def _with_provenance(table: Table, rows: pl.DataFrame, provenance: Provenance) -> pl.DataFrame:
    return rows.unique(list(table.key), keep="first", maintain_order=True).with_columns(
        pl.lit(provenance.stage, pl.Int64).alias("stage"),
        pl.lit(provenance.config_hash).alias("config_hash"),
        pl.lit(datetime.now(UTC).replace(tzinfo=None), pl.Datetime("us")).alias("created_at"),
        pl.lit(provenance.dagster_run_id, pl.String).alias("dagster_run_id"),
        pl.lit(provenance.asset_key, pl.String).alias("asset_key"),
        pl.lit(provenance.partition_key, pl.String).alias("partition_key"),
        pl.lit(provenance.code_version, pl.String).alias("code_version"),
    )


def _standing(rows: pl.DataFrame, writes: Sequence[standing.Standing]) -> pl.DataFrame:
    """Leave out the rows of writes that no longer count."""
    if not writes:
        return rows
    scope = ["config_hash", "asset_key", "partition_key"]
    counting = pl.DataFrame(
        [(w.config_hash, w.asset_key, w.partition_key, w.created_at) for w in writes],
        schema={**dict.fromkeys(scope, pl.String()), "counting": pl.Datetime("us")},
        orient="row",
    )
    joined = rows.join(counting, on=scope, how="left", nulls_equal=True, maintain_order="left")
    return joined.filter(pl.col("counting").is_null() | (pl.col("counting") == pl.col("created_at"))).drop("counting")


def _one_row_a_key(table: Table, rows: pl.DataFrame) -> pl.DataFrame:
    order = [
        pl.col("partition_key").eq_missing("adhoc"),
        pl.col("created_at").dt.epoch("us") * (1 if table.scope == "keyed" else -1),
        *(pl.col(name).fill_null("") for name in ("config_hash", "asset_key", "partition_key", "code_version")),
    ]
    first = rows.sort(order, maintain_order=True).unique(list(table.key), keep="first", maintain_order=True)
    return first.sort(table.key)
