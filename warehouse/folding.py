"""Folding parts into the tables of a database: incremental, one transaction, one row a key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import duckdb

from warehouse import catalog
from warehouse.errors import WarehouseError
from warehouse.parts import Part, check_version, partition_folder, read_part
from warehouse.schema import SCHEMA_VERSION, TABLES, Table
from warehouse.standing import Standing

CURRENT = """
with
  recorded as (
    select config_hash, profile, started_at as since
    from rows.runs
    order by started_at desc, run_id
    limit 1
  ),
  latest_rows as (
    select config_hash, max(created_at) as since
    from (
      select config_hash, created_at from rows.scores
      union all
      select config_hash, created_at from rows.transitions where stage is not null
    )
    group by config_hash
    order by since desc, config_hash
    limit 1
  ),
  latest_anything as (
    select config_hash, max(created_at) as since
    from (
      select config_hash, created_at from rows.transitions
      union all
      select config_hash, created_at from rows.designs
      union all
      select config_hash, created_at from rows.rejected_designs
      union all
      select config_hash, created_at from rows.targets
    )
    group by config_hash
    order by since desc, config_hash
    limit 1
  )
select config_hash, profile, since
from recorded
union all
select config_hash, null, since
from latest_rows
where not exists (from recorded)
union all
select config_hash, null, since
from latest_anything
where not exists (from recorded) and not exists (from latest_rows)
"""


def create(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the empty tables, views and bookkeeping in an empty database."""
    connection.execute("begin")
    catalog.create_tables(connection)
    connection.execute("create table rows.about (schema_version bigint, tables varchar, catalog varchar)")
    connection.execute("insert into rows.about values (?, ?, '')", [SCHEMA_VERSION, catalog.tables_fingerprint()])
    connection.execute("comment on table rows.about is 'Which program made this database.'")
    connection.execute(
        "create table rows.standing (table_name varchar, config_hash varchar, asset_key varchar,"
        " partition_key varchar, counting timestamp)"
    )
    connection.execute("comment on table rows.standing is 'Which write of an asset counts, where it wrote again.'")
    connection.execute("commit")


def can_go_on(connection: duckdb.DuckDBPyConnection, parts: Sequence[Part]) -> bool:
    """Whether the database has the tables of this program and no rows of parts that are gone; otherwise it has to be
    built anew. WarehouseError if a newer program made it."""
    try:
        row = connection.execute("select schema_version, tables from rows.about").fetchone()
    except duckdb.CatalogException:
        return False
    if row is not None and row[0] > SCHEMA_VERSION:
        raise WarehouseError(
            f"the warehouse is of schema version {row[0]}, this program knows {SCHEMA_VERSION}: use the newer program"
        )
    if row is None or row[1] != catalog.tables_fingerprint():
        return False
    known = {name for (name,) in connection.execute("select name from parts").fetchall()}
    return known <= {p.name for p in parts}


def fold(connection: duckdb.DuckDBPyConnection, parts: Sequence[Part], writes: Sequence[Standing]) -> tuple[int, bool]:
    """Fold those of `parts` that the database lacks; (their number, whether anything changed).

    Of result tables, rows of writes that no longer count (see `standing`) are left out or taken out.
    """
    known = {name for (name,) in connection.execute("select name from parts").fetchall()}
    new = [p for p in parts if p.name not in known]
    changed = _changed_writes(connection, writes)
    stale = connection.execute("select catalog from rows.about").fetchone() != (catalog.catalog_fingerprint(),)
    if not new and not changed and not stale:
        return 0, False
    connection.execute("begin")
    try:
        _take_note(connection, changed)
        again = {(w.table, partition_folder(w.partition_key), w.config_hash) for w in changed}
        by_table: dict[str, list[Part]] = defaultdict(list)
        for part in parts:
            if part.name not in known or (part.table, part.partition, part.config_hash) in again:
                by_table[part.table].append(part)
        for name, its_parts in by_table.items():
            _fold_table(connection, TABLES[name], its_parts)
        connection.execute("delete from current_configuration")
        connection.execute(f"insert into current_configuration {CURRENT}")
        if stale:
            catalog.create_views(connection)
            connection.execute("update rows.about set catalog = ?", [catalog.catalog_fingerprint()])
        connection.execute("commit")
    except BaseException:
        connection.execute("rollback")
        raise
    return len(new), True


def _changed_writes(connection: duckdb.DuckDBPyConnection, writes: Sequence[Standing]) -> list[Standing]:
    """Writes that count now and did not at the last fold; those of content tables never matter here."""
    known = {Standing(*row) for row in connection.execute("from rows.standing").fetchall()}
    return [w for w in writes if w not in known and TABLES[w.table].scope == "scoped"]


def _take_note(connection: duckdb.DuckDBPyConnection, changed: Sequence[Standing]) -> None:
    """Remove the rows of writes that no longer count, and remember those that do."""
    same = (
        "config_hash = $config_hash and asset_key is not distinct from $asset_key"
        " and partition_key is not distinct from $partition_key"
    )
    for write in changed:
        scope = {k: v for k, v in vars(write).items() if k not in ("table", "created_at")}
        connection.execute(
            f"delete from rows.{write.table} where {same} and created_at != $counting",
            {**scope, "counting": write.created_at},
        )
        connection.execute(
            f"delete from rows.standing where table_name = $table_name and {same}",
            {**scope, "table_name": write.table},
        )
        connection.execute(
            "insert into rows.standing values ($table_name, $config_hash, $asset_key, $partition_key, $counting)",
            {**scope, "table_name": write.table, "counting": write.created_at},
        )


def _fold_table(connection: duckdb.DuckDBPyConnection, table: Table, parts: Sequence[Part]) -> None:
    versions = {p.name: check_version(p) for p in parts}
    try:
        _insert(connection, table, [str(p.path) for p in parts])
    except duckdb.Error:
        for part in parts:
            read_part(part)  # names the damaged one
        raise
    connection.execute("delete from parts where name in (select unnest(?))", [[p.name for p in parts]])
    _list_parts(connection, parts, versions)


def _list_parts(connection: duckdb.DuckDBPyConnection, parts: Sequence[Part], versions: Mapping[str, int]) -> None:
    connection.execute(
        "insert into parts"
        " select v.name, split_part(v.name, '/', 1), m.num_rows, v.n_bytes, v.version"
        " from (select unnest(?) as name, unnest(?) as path, unnest(?) as n_bytes, unnest(?) as version) as v"
        " join parquet_file_metadata(?) as m on m.file_name = v.path",
        [
            [p.name for p in parts],
            [str(p.path) for p in parts],
            [p.path.stat().st_size for p in parts],
            [versions[p.name] for p in parts],
            [str(p.path) for p in parts],
        ],
    )


def replace_parts(connection: duckdb.DuckDBPyConnection, old: Sequence[Part], new: Part) -> None:
    """Take note that the rows of `old` are in `new` now."""
    connection.execute("begin")
    connection.execute("delete from parts where name in (select unnest(?))", [[p.name for p in (*old, new)]])
    _list_parts(connection, [new], {new.name: check_version(new)})
    connection.execute("commit")


def _insert(connection: duckdb.DuckDBPyConnection, table: Table, paths: Sequence[str]) -> None:
    """Insert the rows of the files; where a key occurs more than once, keep the one that comes first in `_order`."""
    key = ", ".join(f'"{k}"' for k in table.key)
    source = "read_parquet($paths, union_by_name = true, filename = true, file_row_number = true)"
    held = connection.execute(f"describe from {source}", {"paths": list(paths)}).fetchall()
    # parts of an earlier program lack columns that were added since: those stay null
    names = ", ".join(f'"{c.name}"' for c in table.all_columns if c.name in {name for name, *_ in held})
    connection.execute(
        f"create or replace temp table incoming as"
        f" select filename, file_row_number, {key}, {_order(table)} as place"
        f" from {source} as read where {_counts(table)}"
        f" qualify row_number() over (partition by {key} order by place, filename, file_row_number) = 1",
        {"paths": list(paths)},
    )
    same = " and ".join(f'standing."{k}" = incoming."{k}"' for k in table.key)
    stored = f"(select {key}, {_order(table)} as place from rows.{table.name})"
    connection.execute(
        f"create or replace temp table overtaken as select incoming.*, incoming.place < standing.place as wins"
        f" from incoming join {stored} as standing on {same}"
    )
    counts = connection.execute("select count(*) filter (wins), count(*) filter (not wins) from overtaken").fetchone()
    wins, loses = counts or (0, 0)
    if loses:
        connection.execute(f"delete from incoming using overtaken as standing where not standing.wins and {same}")
    if wins:
        same_stored = " and ".join(f'overtaken."{k}" = stored."{k}"' for k in table.key)
        connection.execute(
            f"delete from rows.{table.name} as stored using overtaken where overtaken.wins and {same_stored}"
        )
    connection.execute(
        f"insert into rows.{table.name} by name select {names} from {source}"
        " semi join incoming using (filename, file_row_number)",
        {"paths": list(paths)},
    )
    connection.execute("drop table incoming")
    connection.execute("drop table overtaken")


def _counts(table: Table) -> str:
    """Whether a row is of a write that counts."""
    if table.scope == "keyed":
        return "true"
    return (
        f"not exists (from rows.standing as s where s.table_name = '{table.name}'"
        " and s.config_hash = read.config_hash and s.asset_key is not distinct from read.asset_key"
        " and s.partition_key is not distinct from read.partition_key and s.counting != read.created_at)"
    )


def _order(table: Table) -> str:
    """What decides between rows of one key: ad hoc rows last; then the first or the latest; then by content."""
    sign = "" if table.scope == "keyed" else "-"
    return (
        "{'adhoc': partition_key is not distinct from 'adhoc',"
        f" 'at': {sign}epoch_us(created_at), 'config': config_hash, 'asset': coalesce(asset_key, ''),"
        " 'partition': coalesce(partition_key, ''), 'code': coalesce(code_version, '')}"
    )
