"""The SQL prompt: statements and dot commands in, tables, JSON or CSV out."""

from __future__ import annotations

import csv
import json
import math
import re
import readline
import sys
from collections.abc import Callable
from datetime import date, datetime
from typing import Any, Literal

import duckdb
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from llm4cov_assets.errors import UserError
from warehouse.examples import load_examples
from warehouse.reading import first_line
from warehouse.store import Store

Format = Literal["table", "json", "csv"]

HELP = """\
.tables            tables, one row a thing; ids as 32 hex digits
.views             views, which put tables together
.schema NAME       columns of a table or view, with what they mean
.examples          questions people ask
.example NAME      one of them: its SQL
.run NAME          one of them: its answer
.mode FORMAT       table, json or csv
.help              this text
.quit              leave (or Ctrl-D)
Everything else is SQL, up to a semicolon: `from leaderboard;`. The file is read-only: try what you like.
NAME shows the current configuration (that of the latest run), NAME_all shows all of them."""


class Prompt:
    """Answers statements and dot commands. Every answer reads the file as it is published at that moment."""

    def __init__(self, store: Store, mode: Format = "table", limit: int = 100) -> None:
        self.store = store
        self.mode: Format = mode
        self.limit = limit
        self.console = Console(highlight=False)
        self.commands: dict[str, Callable[[str], None]] = {
            ".tables": lambda _: self._list("table"),
            ".views": lambda _: self._list("view"),
            ".schema": self._schema,
            ".examples": lambda _: self._examples(),
            ".example": lambda name: self.console.print(escape(self._example(name).strip())),
            ".run": lambda name: self.answer(self._example(name)),
            ".mode": self._set_mode,
            ".help": lambda _: self.console.print(escape(HELP)),
        }

    def run(self) -> None:
        """Read from the terminal until Ctrl-D or .quit; an error is one line and the prompt goes on."""
        readline.parse_and_bind("tab: complete")
        readline.set_completer(self._complete)
        readline.set_completer_delims(" \t\n(),;")
        self.console.print("llm4cov warehouse, read-only. [bold].help[/] helps, [bold].examples[/] shows questions.")
        while (statement := _read_statement()) is not None:
            if statement.rstrip(";") in (".quit", ".exit"):
                return
            try:
                self.answer(statement)
            except (duckdb.Error, UserError) as error:
                self.console.print(f"[red]{escape(first_line(error))}[/]")
            except KeyboardInterrupt:
                self.console.print("interrupted")

    def script(self, text: str) -> None:
        """Answer every statement and dot command of a text, one after the other. Raises duckdb.Error or UserError."""
        for statement in split(text) or [""]:
            if statement.rstrip(";") in (".quit", ".exit"):
                return
            self.answer(statement)

    def answer(self, statement: str) -> None:
        """Print the answer to SQL or a dot command. Raises duckdb.Error or UserError."""
        name, _, argument = statement.strip().rstrip(";").partition(" ")
        if not name:
            raise UserError("nothing is asked: give SQL, or .help")
        if name.startswith("."):
            if name not in self.commands:
                raise UserError(f"no command {name}; .help lists them")
            self.commands[name](argument.strip())
            return
        with self.store.connect() as connection:
            result = connection.execute(statement)
            if not result or result.description is None:  # no result at all: comments alone
                return
            columns = [d[0] for d in result.description]
            rows = result.fetchmany(self.limit + 1) if self.mode == "table" and self.limit else result.fetchall()
        self._print(columns, rows)

    def _print(self, columns: list[str], rows: list[tuple[Any, ...]]) -> None:
        match self.mode:
            case "json":
                print(json.dumps([dict(zip(columns, map(plain, row), strict=True)) for row in rows]))
            case "csv":
                writer = csv.writer(sys.stdout, lineterminator="\n")
                writer.writerow(columns)
                writer.writerows([plain(value) for value in row] for row in rows)
            case "table":
                more = bool(self.limit) and len(rows) > self.limit
                show(self.console, columns, rows[: self.limit] if more else rows)
                if not rows:
                    print("no rows", file=sys.stderr)
                if more:
                    note = f"the first {self.limit} rows; --limit 0 shows all, --json and --csv always do"
                    print(note, file=sys.stderr)

    def _list(self, kind: Literal["table", "view"]) -> None:
        """Names with what they hold; the twins NAME_all go without saying."""
        from warehouse.catalog import load_views

        views = {view.name for view in load_views()}
        with self.store.connect() as connection:
            found = connection.execute(
                "select view_name, comment from duckdb_views() where not internal and schema_name = 'main'"
                " union all"
                " select table_name, comment from duckdb_tables() where schema_name = 'main' order by 1"
            ).fetchall()
        rows = [
            (name, comment)
            for name, comment in found
            if not name.endswith("_all") and (name in views) == (kind == "view")
        ]
        self._print([kind, "what it holds"], rows)

    def _schema(self, name: str) -> None:
        if not name:
            raise UserError(".schema NAME: name a table or view of .tables or .views")
        with self.store.connect() as connection:
            rows = connection.execute(
                "select column_name, lower(data_type), comment from duckdb_columns()"
                " where schema_name = 'main' and table_name = ? order by column_index",
                [name],
            ).fetchall()
        if not rows:
            raise UserError(f"no table or view {name!r}; .tables and .views list them")
        self._print(["column", "type", "what it is"], rows)

    def _examples(self) -> None:
        self._print(["name", "question"], [(e.name, e.question) for e in load_examples().values()])

    def _example(self, name: str) -> str:
        examples = load_examples()
        if name not in examples:
            raise UserError(f"no example {name!r}; .examples lists them")
        return examples[name].sql

    def _set_mode(self, name: str) -> None:
        if name not in ("table", "json", "csv"):
            raise UserError(".mode FORMAT: table, json or csv")
        self.mode = name

    def _complete(self, text: str, number: int) -> str | None:
        if number == 0:
            with self.store.connect() as connection:
                names = connection.execute(
                    "select distinct name from (select table_name as name from duckdb_columns()"
                    " where schema_name = 'main' union all select column_name from duckdb_columns()"
                    " where schema_name = 'main') where starts_with(name, ?) order by name",
                    [text],
                ).fetchall()
            self._completions = [c for c in self.commands if text and c.startswith(text)] + [n for (n,) in names]
        return self._completions[number] if number < len(self._completions) else None


def _read_statement() -> str | None:
    """One dot command, or lines up to a semicolon; None at the end of the input."""
    lines: list[str] = []
    while True:
        try:
            line = input("   ...> " if lines else "sql> ")
        except EOFError:
            print()
            return None
        except KeyboardInterrupt:
            print()
            lines = []
            continue
        if not lines and not line.strip():
            continue
        lines.append(line)
        if line.rstrip().endswith(";") or (len(lines) == 1 and line.startswith(".")):
            return "\n".join(lines)


def split(text: str) -> list[str]:
    """The statements and dot commands of a text, as the prompt would read them: a dot command is a line, SQL goes up
    to a line that ends with a semicolon, or to the end."""
    statements: list[str] = []
    lines: list[str] = []
    for line in text.splitlines():
        if not lines and not line.strip():
            continue
        lines.append(line)
        if line.rstrip().endswith(";") or (len(lines) == 1 and line.startswith(".")):
            statements.append("\n".join(lines).strip())
            lines = []
    rest = "\n".join(lines).strip()
    return [*statements, rest] if rest else statements


def plain(value: Any) -> Any:
    """A value as JSON and CSV can hold it: blobs as hex, times in ISO 8601, what is no number as null."""
    match value:
        case float() if not math.isfinite(value):
            return None
        case None | bool() | int() | float() | str():
            return value
        case bytes():
            return value.hex()
        case datetime() | date():
            return value.isoformat()
        case list() | tuple():
            return [plain(v) for v in value]
        case dict():
            return {str(k): plain(v) for k, v in value.items()}
        case _:
            return str(value)


def show(console: Console, columns: list[str], rows: list[tuple[Any, ...]]) -> None:
    """Print a table for people: numbers to the right, four digits after the point, a dot for null.

    Where the terminal is too narrow, ids are cut to what `llm4cov lineage` needs; where that does not help, every row
    is printed as a list of its values. Nothing is cut when the output goes to a file or a pipe.
    """
    cells = [[_cell(value) for value in row] for row in rows]
    numeric = [
        any(isinstance(row[i], int | float) and not isinstance(row[i], bool) for row in rows)
        for i in range(len(columns))
    ]
    if not console.is_terminal:
        wide = Console(width=1 << 20, file=console.file, highlight=False)
        wide.print(_table(columns, cells, numeric))
        return
    for attempt in (cells, [[_short(cell) for cell in row] for row in cells]):
        table = _table(columns, attempt, numeric)
        if Measurement.get(console, console.options.update(width=1 << 20), table).maximum <= console.width:
            console.print(table)
            return
    if len(columns) <= 3:  # sentences wrap well
        console.print(_table(columns, cells, numeric))
        return
    name_width = max(map(len, columns))
    for number, row in enumerate(cells, 1):
        console.print(f"[dim]row {number}[/]")
        for name, cell in zip(columns, row, strict=True):
            text = escape(cell) if cell != _NULL else f"[dim]{_NULL}[/]"
            console.print(f"  [bold]{escape(name):{name_width}}[/]  {text}", soft_wrap=True)


def _table(columns: list[str], cells: list[list[str]], numeric: list[bool]) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, header_style="bold", pad_edge=False)
    for name, right in zip(columns, numeric, strict=True):
        table.add_column(escape(name), justify="right" if right else "left", overflow="fold")
    for row in cells:
        table.add_row(*(escape(cell) if cell != _NULL else f"[dim]{_NULL}[/]" for cell in row))
    return table


_NULL = "·"


def _short(cell: str) -> str:
    return f"{cell[:10]}…" if re.fullmatch(r"[0-9a-f]{32}", cell) else cell


def _cell(value: Any) -> str:
    match value:
        case None:
            return _NULL
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:,.4f}".rstrip("0").rstrip(".") if value == value else "nan"
        case datetime():
            return value.isoformat(" ", "seconds")
        case _:
            return str(plain(value))
