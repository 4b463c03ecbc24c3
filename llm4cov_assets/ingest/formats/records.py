"""Data sets: files or names of many records, each of which may be a design."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from types import ModuleType
from typing import Any, NoReturn

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest.candidates import Candidate
from llm4cov_assets.ingest.formats import codev_r1, cvdp, ecov, rows, verithoughts
from llm4cov_assets.ingest.formats.fields import record_id
from sim.assembly import Gathered
from sim.design import DesignError

FORMATS: dict[str, ModuleType] = {
    "cvdp": cvdp, "cvdp-ecov": ecov, "codev-r1": codev_r1, "verithoughts": verithoughts,
}  # fmt: skip
"""Modules have FIELDS (columns that are read), ID (the one with the record's id) and `gathered(row, place, name)`; some
have `difficulty(row)`."""

_LOOKED_AT = 20
"""Rows that may tell the format: the first ones may be broken."""


def candidates(source: str, format: str) -> Iterator[Candidate]:
    """One candidate for each record, broken ones included. Raises UserError when the source cannot be read, and when
    there is no record in it."""
    read = FORMATS[format]
    stem = rows.stem(source)
    empty = True
    for row in rows.rows(source, read.FIELDS):
        empty = False
        yield _candidate(row, format, read, stem)
    if empty:
        raise UserError(f"{source}: no records in it")


def count(source: str, format: str) -> int | None:
    """How many records there are, if that is known before they are read."""
    return rows.count(source)


def record_format(source: str) -> str:
    """The format of a data set, by the fields of its first records. Raises UserError when they are of none."""
    keys: list[str] = []
    for row in islice(rows.rows(source), _LOOKED_AT):
        if row.value is None:
            continue
        found = _format_of(row.value)
        if found:
            return found
        keys = keys or [str(key) for key in row.value]
    if not keys:
        raise UserError(f"{source}: no readable record among the first {_LOOKED_AT}; name its kind with --format")
    named = ", ".join(key if key.isprintable() else ascii(key) for key in keys[:8])[:200]
    raise UserError(f"{source}: records with fields {named} are of no known format; name one of "
                    f"{', '.join(FORMATS)} with --format")  # fmt: skip


def _format_of(row: Mapping[str, Any]) -> str | None:
    if "rtl_files" in row:
        return "cvdp-ecov"
    if "categories" in row and "harness" in row:
        return "cvdp"
    if "question" in row and "ground_truth" in row:
        return "codev-r1" if "problem_id" in row or isinstance(row["question"], list) else "verithoughts"
    return None


def _candidate(row: rows.Row, format: str, read: ModuleType, stem: str) -> Candidate:
    """The candidate of a row. Its name is the record's id; a number alone gets the format before it, and a record
    without an id is called after the source and its place there."""
    kind = format.replace("-", "_")
    name = f"{kind if format == 'verithoughts' else stem}_{row.number:06d}"
    if row.value is None:
        assert row.problem is not None
        return Candidate(name, row.place, partial(_refused, row.problem))
    try:
        found = record_id(row.value.get(read.ID), read.ID, row.place)
    except DesignError as error:
        return Candidate(name, row.place, partial(_refused, error))
    if found:
        name = f"{kind}_{found}" if found.isdecimal() else found
    difficulty = read.difficulty(row.value) if hasattr(read, "difficulty") else ""
    return Candidate(name, row.place, partial(_gathered, read, row.value, row.place, name), difficulty)


def _refused(problem: DesignError) -> NoReturn:
    raise problem


def _gathered(read: ModuleType, row: Mapping[str, Any], place: str, name: str) -> Gathered:
    found: Gathered = read.gathered(row, place, name)
    return found
