"""The SQL cookbook `docs/cookbook.md`: each question of `queries/*.sql` with its SQL and an answer."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

from warehouse.examples import Example, load_examples

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cookbook.md"

ROWS = 5
"""Rows of an answer that the page shows."""

WIDTH = 60
"""Characters of a value that the page shows."""

INTRODUCTION = """\
# SQL cookbook

Questions people ask, each with its SQL and what it answers. `llm4cov sql .examples` lists them, `llm4cov sql ".run
NAME"` asks one of your own warehouse, `llm4cov sql ".example NAME"` prints its SQL to change.
[warehouse.md](warehouse.md) describes every table, view and macro.

The answers below come from a small made-up warehouse of two training designs (`fifo`, `uart`) and one of evaluation
(`alu`); long values and answers are cut. `UPDATE_SNAPSHOT=1 pytest tests/warehouse/test_cookbook.py` makes the page.
"""


def page(connection: duckdb.DuckDBPyConnection) -> str:
    """The whole page as Markdown, with the answers that `connection`, to a published file, gives."""
    return "\n".join([INTRODUCTION, *(_section(connection, example) for example in load_examples().values())])


def _section(connection: duckdb.DuckDBPyConnection, example: Example) -> str:
    result = connection.execute(example.sql)
    columns = [column[0] for column in result.description or ()]
    rows = result.fetchall()
    sql = example.sql.partition("\n")[2].strip()
    lines = [f"## {example.question}", "", f"`.run {example.name}`", "", "```sql", sql, "```", ""]
    lines += [_line(columns), _line(["---"] * len(columns)), *(_line([cell(v) for v in row]) for row in rows[:ROWS])]
    if len(rows) > ROWS:
        lines += ["", f"{len(rows) - ROWS} more rows."]
    if not rows:
        lines += ["", "No rows."]
    return "\n".join([*lines, ""])


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def cell(value: Any) -> str:
    """A value for a Markdown table: fractions with four digits, ids cut to ten, long text cut, one line."""
    match value:
        case None:
            return ""
        case float():
            return f"{value:.4f}".rstrip("0").rstrip(".")
        case datetime():
            return value.isoformat(" ", "seconds")
        case list():
            return cell(", ".join(map(cell, value)))
    text = re.sub(r"\b([0-9a-f]{10})[0-9a-f]{22}\b", r"\1…", str(value)).strip()
    text = text.replace("\n", " ⏎ ").replace("|", "\\|")
    return text if len(text) <= WIDTH else f"{text[:WIDTH].rstrip(chr(92))}…"
