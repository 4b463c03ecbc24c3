"""Tables, views, macros and comments of a warehouse database, made from the schema and `views/*.sql`.

Schema `rows` holds the tables as stored, ids as 16-byte blobs. Schema `main` is what people see: one view for each
table, ids as hex text, and the views of `views/*.sql`. Rows of one configuration are seen twice: `NAME_all` shows all
configurations, `NAME` only the current one (the single row of the table `current_configuration`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import duckdb

from warehouse.schema import PROVENANCE, SCHEMA_VERSION, TABLES, Column, Table

VIEWS = Path(__file__).parent / "views"

DUCKDB_TYPES = {
    "id": "blob",
    "text": "varchar",
    "int": "bigint",
    "float": "double",
    "bool": "boolean",
    "timestamp": "timestamp",
    "blob": "blob",
    "text[]": "varchar[]",
    "id[]": "blob[]",
}

PARTS_TABLE = Table(
    "parts",
    ("name",),
    "scoped",
    "Parquet parts that this database was made from.",
    (
        Column("name", "text", "path below LLM4COV_HOME/parts"),
        Column("table_name", "text", "table it belongs to"),
        Column("n_rows", "int", "rows in the part, before keys are made unique"),
        Column("n_bytes", "int", "size of the file"),
        Column("schema_version", "int", "schema version it was written with"),
    ),
)
CURRENT_COLUMNS = (
    Column("config_hash", "text", "configuration that the plain views show"),
    Column("profile", "text", "name of its profile, null when no run was recorded", nullable=True),
    Column("since", "timestamp", "when its latest run started, or its latest row was made (UTC)"),
)


@dataclass(frozen=True)
class View:
    """One view of `views/*.sql`: `name_all` is defined by `sql`; `name` is the same for the current configuration,
    sorted by `order` (SQL, may be empty): DuckDB forgets the order inside a view that is filtered."""

    name: str
    comment: str
    column_comments: dict[str, str]
    sql: str
    order: str


def load_views(folder: Path = VIEWS) -> tuple[View, ...]:
    """The views of `folder`, by file name.

    A file begins with comment lines: sentences about the view, then `-- column: what it is` for each column. The
    statement is `create view NAME_all as ...` and has a column `config_hash`, so that `NAME` can be derived; if it is
    sorted, its last line is `order by config_hash, ...` with names of its columns.
    """
    return tuple(_parse_view(path) for path in sorted(folder.glob("*.sql")) if path.name != "macros.sql")


def _parse_view(path: Path) -> View:
    text = path.read_text()
    head = [line[2:].strip() for line in text[: text.index("create view")].splitlines() if line.startswith("--")]
    columns = {m[1]: m[2] for line in head if (m := re.fullmatch(r"(\w+): (.+)", line))}
    comment = " ".join(line for line in head if line and not re.fullmatch(r"\w+: .+", line))
    sql = text[text.index("create view") :].strip().rstrip(";")
    order = sql.splitlines()[-1].removeprefix("order by config_hash, ")
    return View(path.stem, comment, columns, sql, order if order != sql.splitlines()[-1] else "")


def tables_fingerprint() -> str:
    """Changes when a stored table changes, so that a base of another program is built anew."""
    shape = [(t.name, t.key, t.scope, [(c.name, c.type) for c in t.all_columns]) for t in TABLES.values()]
    return hashlib.sha256(repr((SCHEMA_VERSION, shape)).encode()).hexdigest()[:32]


def catalog_fingerprint() -> str:
    """Changes when a view, a macro or a comment changes."""
    digest = hashlib.sha256(repr((TABLES, PROVENANCE, PARTS_TABLE, CURRENT_COLUMNS)).encode())
    for path in (Path(__file__), *sorted(VIEWS.glob("*.sql"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:32]


def create_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the empty tables in schema `rows`."""
    connection.execute("create schema rows")
    for table in (*TABLES.values(),):
        _create_table(connection, "rows", table.name, table.all_columns)
    _create_table(connection, "main", "parts", PARTS_TABLE.columns)
    _create_table(connection, "main", "current_configuration", CURRENT_COLUMNS)


def _create_table(connection: duckdb.DuckDBPyConnection, schema: str, name: str, columns: Iterable[Column]) -> None:
    body = ", ".join(f'"{c.name}" {DUCKDB_TYPES[c.type]}' + ("" if c.nullable else " not null") for c in columns)
    connection.execute(f"create table {schema}.{name} ({body})")


def create_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Drop and make anew every macro, view and comment in schema `main`."""
    for (name,) in connection.execute("select view_name from duckdb_views() where not internal").fetchall():
        connection.execute(f"drop view if exists main.{name}")
    connection.execute((VIEWS / "macros.sql").read_text())
    views = load_views()
    named = {v.name for v in views}
    for table in TABLES.values():
        _comment(connection, "table", f"rows.{table.name}", table.comment, _column_comments(table.all_columns))
        if table.name not in named:
            _create_table_view(connection, table)
    for view in views:
        connection.execute(view.sql)
        _create_current(connection, view.name, "* exclude (config_hash)", view.order)
        everything = f"{view.comment} All configurations."
        config = {"config_hash": "configuration; `current_configuration` names the current one"}
        _comment(connection, "view", f"main.{view.name}_all", everything, {**config, **view.column_comments})
        _comment(connection, "view", f"main.{view.name}", view.comment, view.column_comments)
    current = "The configuration that the plain views show: that of the latest run."
    _comment(connection, "table", "main.parts", PARTS_TABLE.comment, _column_comments(PARTS_TABLE.columns))
    _comment(connection, "table", "main.current_configuration", current, _column_comments(CURRENT_COLUMNS))


def _create_table_view(connection: duckdb.DuckDBPyConnection, table: Table) -> None:
    columns = ", ".join(_shown(c) for c in table.all_columns)
    comments = _column_comments(table.all_columns)
    if table.scope == "keyed":
        connection.execute(f"create view main.{table.name} as select {columns} from rows.{table.name}")
        _comment(connection, "view", f"main.{table.name}", table.comment, comments)
        return
    connection.execute(f"create view main.{table.name}_all as select {columns} from rows.{table.name}")
    _create_current(connection, table.name)
    _comment(connection, "view", f"main.{table.name}_all", f"{table.comment} All configurations.", comments)
    _comment(connection, "view", f"main.{table.name}", table.comment, comments)


def _create_current(connection: duckdb.DuckDBPyConnection, name: str, columns: str = "*", order: str = "") -> None:
    connection.execute(
        f"create view main.{name} as select {columns} from main.{name}_all"
        " where config_hash = (select config_hash from main.current_configuration)"
        + (f" order by {order}" if order else "")
    )


def _shown(column: Column) -> str:
    match column.type:
        case "id":
            return f'lower(hex("{column.name}")) as "{column.name}"'
        case "id[]":
            return f'[lower(hex(x)) for x in "{column.name}"] as "{column.name}"'
        case _:
            return f'"{column.name}"'


def _column_comments(columns: Iterable[Column]) -> dict[str, str]:
    return {c.name: c.comment for c in columns}


def _comment(
    connection: duckdb.DuckDBPyConnection, kind: str, name: str, comment: str, columns: dict[str, str]
) -> None:
    connection.execute(f"comment on {kind} {name} is {_quoted(comment)}")
    for column, text in columns.items():
        connection.execute(f'comment on column {name}."{column}" is {_quoted(text)}')


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
