"""From the warehouse to a folder: check, count, write, describe."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import duckdb
import pyarrow.compute as pc

from llm4cov_assets.export import card, provenance
from llm4cov_assets.export.datasets import Row, Shape, Source
from llm4cov_assets.export.guard import refuse_evaluation
from llm4cov_assets.export.selection import Selection, Validation
from llm4cov_assets.export.tally import NO_LIMITS, Limits, Tally
from llm4cov_assets.export.writing import Shards, file_sha256, new_folder
from sim.identity import sha256

Format = Literal["hf", "jsonl", "parquet"]
"""`hf` and `jsonl` write every shape, `parquet` the first one only."""

_BATCH = 1000  # rows that become Python objects at a time
_FIRST, _MOST, _PIECE = 2_000, 200_000, 128 << 20  # rows of the first piece, of any, and bytes of one
_MEMORY = "1GB"  # for the database; what does not fit goes to disk

Progress = Callable[[int, int], None]
"""Called with (rows written, rows in all)."""


class _NothingLeft(Exception):
    pass


@dataclass(frozen=True)
class Exported:
    """What was written, or would be: `description` is the content of `export.json`."""

    rows: int
    description: dict[str, Any]


def export(
    connection: duckdb.DuckDBPyConnection,
    source: Source,
    selection: Selection,
    target: Path,
    *,
    fmt: Format,
    limits: Limits = NO_LIMITS,
    points: tuple[str, Shape] | None = None,
    dry_run: bool = False,
    progress: Progress = lambda done, total: None,
) -> Exported:
    """Write the rows of `source` to the new folder `target`, with README.md and export.json beside them.

    `points` is written as a data set of its own. With `dry_run`, or when there are no rows, nothing is written.
    UserError when rows come from evaluation designs, and when `target` is taken or cannot be written.
    """
    connection.execute(f"set memory_limit = '{_MEMORY}'")
    if source.training:
        refuse_evaluation(connection, *source.chosen)
    total = _pick(connection, source)
    held_out = _validation(connection, limits.validation)
    tally = Tally(source)
    rows = tally.taken(_reported(_picked(connection, source.sql, total), total, progress), limits)
    description = {
        "kind": source.kind,
        "title": source.title,
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "format": fmt,
        "filters": selection.as_json(),
        "settings": {**source.settings, "max_characters": limits.max_characters, "unique": limits.unique},
        "training_data": source.training,
        "validation": {"share": limits.validation, "clusters": sorted(held_out.clusters)},
        **provenance.describe(connection, source, selection),
    }
    if dry_run or not total:
        for _ in rows:
            pass
        return Exported(tally.rows, description | tally.as_json())
    shapes = source.shapes[:1] if fmt == "parquet" else source.shapes
    ending = "jsonl" if fmt == "jsonl" else "parquet"
    with contextlib.suppress(_NothingLeft), new_folder(target) as folder:
        files = _write(folder, rows, shapes, ending, held_out)
        description |= tally.as_json()
        if not tally.rows:
            raise _NothingLeft
        shown = [(shape, held_out.splits) for shape in shapes]
        if points is not None:
            files += _write(folder, _rows(connection, points[0]), (points[1],), ending, Validation())
            shown.append((points[1], ("train",)))
        if tally.hashes:
            description["trained"] = provenance.trained(connection, tally.hashes)
        description["files"] = _described(folder, files)
        description["splits"] = _splits(files, source.shapes[0].name)
        readme = folder / "README.md"
        readme.write_text(card.card(source, description, shown, ending), encoding="utf-8")
        about_card = {"path": "README.md", "bytes": readme.stat().st_size, "sha256": file_sha256(readme)}
        (folder / "export.json").write_bytes(card.as_json(description | {"card": about_card}))
    return Exported(tally.rows, description)


def _pick(connection: duckdb.DuckDBPyConnection, source: Source) -> int:
    """Make the temporary table `picked` and return its number of rows."""
    sql, parameters = source.picked
    connection.execute(
        "create or replace temp table picked as"
        f" select row_number() over (order by {', '.join(source.order)}) - 1 as place, * from ({sql})",
        parameters,
    )
    [(total,)] = connection.execute("select count(*) from picked").fetchall()
    return int(total)


def _picked(connection: duckdb.DuckDBPyConnection, sql: str, total: int) -> Iterator[Row]:
    """The rows in their order, a piece at a time: DuckDB holds a whole result before it hands over its first row.

    A piece reads the texts of all rows once (7 CPU seconds for a million testbenches), so pieces are large.
    """
    place, size = 0, _FIRST
    while place < total:
        limits = {"begin": place, "until": place + size}
        try:
            piece = connection.execute(f"{sql} where k.place >= $begin and k.place < $until", limits).to_arrow_table()
        except duckdb.OutOfMemoryException:
            if size == 1:
                raise
            size = max(1, size // 4)
            continue
        # sorted here: DuckDB would carry the texts along, and take twice the memory
        for batch in piece.take(pc.sort_indices(piece["place"])).to_batches(_BATCH):
            yield from batch.to_pylist()
        place += size
        size = max(1, min(_MOST, int(_PIECE * size / max(piece.nbytes, 1))))


def _rows(connection: duckdb.DuckDBPyConnection, sql: str) -> Iterator[Row]:
    """The rows of a query whose result is small."""
    for batch in connection.execute(sql).to_arrow_reader(_BATCH):
        yield from batch.to_pylist()


def _reported(rows: Iterator[Row], total: int, progress: Progress) -> Iterator[Row]:
    for number, row in enumerate(rows, 1):
        yield row
        if number % _BATCH == 0 or number == total:
            progress(number, total)


def _validation(connection: duckdb.DuckDBPyConnection, share: float) -> Validation:
    """Clusters in the order of a hash of their name, until they have `share` of the rows; never all of them."""
    rows = dict(connection.execute("select cluster, count(*) from picked group by 1").fetchall())
    total = sum(rows.values())
    chosen: set[str] = set()
    for cluster in sorted(rows, key=lambda name: sha256(["validation", name]))[:-1]:
        if sum(rows[c] for c in chosen) >= share * total:
            break
        chosen.add(cluster)
    return Validation(frozenset(chosen))


def _write(
    folder: Path, rows: Iterator[Row], shapes: tuple[Shape, ...], ending: str, validation: Validation
) -> list[tuple[Path, int]]:
    writers: dict[tuple[str, str], Shards] = {}
    for row in rows:
        split = validation.split(row.get("cluster", ""))
        for shape in shapes:
            made = shape.row(row)
            if (shape.name, split) not in writers:
                writers[shape.name, split] = Shards(folder / shape.name, split, shape.schema, ending)
            writers[shape.name, split].add(made, _size(made))
    for writer in writers.values():
        writer.close()
    return [file for key in sorted(writers) for file in writers[key].files]


def _size(row: Row) -> int:
    """About how many bytes a row takes in memory: its texts."""
    total = 200
    for value in row.values():
        if isinstance(value, (str, bytes)):
            total += len(value)
        elif isinstance(value, list):
            total += sum(len(part["content"]) for part in value)
    return total


def _described(folder: Path, files: list[tuple[Path, int]]) -> list[dict[str, Any]]:
    return [
        {
            "path": str(path.relative_to(folder)),
            "rows": rows,
            "bytes": path.stat().st_size,
            "sha256": file_sha256(path),
        }
        for path, rows in files
    ]


def _splits(files: list[tuple[Path, int]], shape: str) -> dict[str, int]:
    found: Counter[str] = Counter()
    for path, rows in files:
        if path.parent.name == shape:
            found[path.name.partition("-")[0]] += rows
    return dict(found)
