"""Checking that everything holds: parts, keys, references, and coverage against the bitsets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

from warehouse.errors import WarehouseError
from warehouse.frames import content_hash
from warehouse.parts import Part, read_part
from warehouse.schema import TABLES, Table
from warehouse.standing import Standing

METRICS = ("line", "branch", "expression", "toggle", "fsm", "functional")
OVERALL = ("line", "branch", "expression", "toggle")
"""The metrics whose unweighted mean is `overall`."""


@dataclass(frozen=True)
class Problem:
    """Something that does not hold: `where` is a part, or a table with its column; `what` says what is wrong."""

    where: str
    what: str


def check_part(part: Part) -> Problem | None:
    """Whether a part is readable, whole, of this schema, and holds what its name says."""
    try:
        rows = read_part(part)
    except WarehouseError as error:
        return Problem(f"parts/{part.name}", str(error))
    except FileNotFoundError:
        return None  # compacted away a moment ago
    known = {c.name for c in TABLES[part.table].all_columns}
    if unknown := [name for name in rows.column_names if name not in known]:
        return Problem(f"parts/{part.name}", f"unknown columns {', '.join(unknown)}")
    if (found := content_hash(rows)) != part.content_hash:
        return Problem(f"parts/{part.name}", f"its rows hash to {found}: it was changed after it was written")
    return None


def gone(write: Standing) -> Problem:
    """What is wrong when no part holds the write of an asset that counts."""
    made_by = f"{write.asset_key}[{write.partition_key}]" if write.partition_key else write.asset_key
    return Problem(
        f"parts/{write.name}",
        f"the rows of {made_by} of {write.created_at} are gone: restore their part, or run again what made it",
    )


def check_rows(connection: duckdb.DuckDBPyConnection) -> Iterator[Problem]:
    """Whether the rows of a database agree with each other."""
    for table in TABLES.values():
        yield from _keys(connection, table)
        yield from _references(connection, table)
    yield from _measures(connection)
    yield from _coverage(connection)


def _keys(connection: duckdb.DuckDBPyConnection, table: Table) -> Iterator[Problem]:
    key = ", ".join(f'"{k}"' for k in table.key)
    row = connection.execute(
        f"select count(*), first({_as_text(table)}) from"
        f" (select {key} from rows.{table.name} group by {key} having count(*) > 1)"
    ).fetchone()
    if row and row[0]:
        yield Problem(
            f"{table.name}.{','.join(table.key)}", f"{row[0]} keys occur more than once, for example {row[1]}"
        )


def _as_text(table: Table) -> str:
    types = {c.name: c.type for c in table.all_columns}
    shown = (f'lower(hex("{k}"))' if types[k] == "id" else f'"{k}"::varchar' for k in table.key)
    return " || ' ' || ".join(shown)


def _references(connection: duckdb.DuckDBPyConnection, table: Table) -> Iterator[Problem]:
    for column in table.columns:
        if not column.refers_to:
            continue
        target = TABLES[column.refers_to]
        row = connection.execute(
            f'select count(*), lower(hex(first(t."{column.name}"))) from rows.{table.name} as t'
            f' anti join rows.{target.name} as r on r."{target.key[0]}" = t."{column.name}"'
            f' where t."{column.name}" is not null'
        ).fetchone()
        if row and row[0]:
            yield Problem(
                f"{table.name}.{column.name}",
                f"{row[0]} rows refer to a row that {target.name} does not have, for example {row[1]}",
            )


_MEASURES = {
    "transitions.gain": (
        "gain is not coverage after minus coverage before",
        "select transition_id from rows.transitions where abs(gain - (score_after - score_before)) > 1e-9",
    ),
    "transitions.score_before": (
        "coverage before is not that of the state",
        "select t.transition_id from rows.transitions as t join rows.states as s using (state_id)"
        " where abs(t.score_before - s.score) > 1e-9",
    ),
    "transitions.score_after": (
        "coverage after is not that of the next state",
        "select t.transition_id from rows.transitions as t join rows.states as s on s.state_id = t.next_state_id"
        " where abs(t.score_after - s.score) > 1e-9",
    ),
    "states.score": (
        "score is not the coverage of the simulation (0 when failing)",
        "select s.state_id from rows.states as s left join rows.simulations as m using (simulation_id)"
        " where abs(s.score - if(is_running(m.status, m.overall), coalesce(m.overall, 0), 0)) > 1e-9",
    ),
    "coverage_hits.n_hit": (
        "n_hit is not the number of bits that are set",
        "select simulation_id from rows.coverage_hits where n_hit != coalesce(bitset_count(nullif(hits, ''::blob)), 0)",
    ),
    "simulations.n_hit": (
        "n_hit is not that of the bitset",
        "select simulation_id from rows.simulations as s join rows.coverage_hits as h using (simulation_id)"
        " where s.n_hit != h.n_hit",
    ),
    "simulations.n_points": (
        "n_points is not the number of points of the build",
        "select s.simulation_id from rows.simulations as s"
        " join (select build_id, count(*) as n from rows.coverage_points group by build_id) as p using (build_id)"
        " where s.n_points not in (p.n, 0)",
    ),
}


def _measures(connection: duckdb.DuckDBPyConnection) -> Iterator[Problem]:
    for where, (what, offenders) in _MEASURES.items():
        row = connection.execute(f"select count(*), lower(hex(first(columns(*)))) from ({offenders})").fetchone()
        if row and row[0]:
            yield Problem(where, f"{what} in {row[0]} rows, for example {row[1]}")


def _coverage(connection: duckdb.DuckDBPyConnection) -> Iterator[Problem]:
    """Recompute every metric of every simulation from its bitset and the points of its build."""
    connection.register("masks", _masks(connection))
    try:
        for metric in METRICS:
            row = connection.execute(
                f"select count(*), lower(hex(first(s.simulation_id))) from rows.simulations as s"
                " join rows.coverage_hits as h using (simulation_id)"
                " join masks as m on m.build_id = s.build_id and m.metric = ?"
                f' where s.overall is not null and abs(coalesce(s."{metric}", -1)'
                " - bitset_count(bitset_intersection(h.hits, m.mask)) / bitset_count(m.mask)) > 1e-9",
                [metric],
            ).fetchone()
            if row and row[0]:
                yield Problem(
                    f"simulations.{metric}", f"{row[0]} rows disagree with their bitset, for example {row[1]}"
                )
    finally:
        connection.unregister("masks")
    listed = ", ".join(f'"{m}"' for m in OVERALL)
    row = connection.execute(
        f"select count(*), lower(hex(first(simulation_id))) from rows.simulations"
        f" where abs(overall - list_avg([{listed}])) > 1e-9"
    ).fetchone()
    if row and row[0]:
        yield Problem("simulations.overall", f"{row[0]} rows are not the mean of their metrics, for example {row[1]}")


def _masks(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """A bitset of the points of each metric, for each build."""
    found = connection.execute(
        "select build_id, metric, list(point), max(max(point)) over (partition by build_id) + 1"
        " from rows.coverage_points group by build_id, metric"
    ).fetchall()
    masks: list[bytes] = []
    for _, _, points, n in found:
        bits = np.zeros(n, dtype=bool)
        bits[points] = True
        masks.append(np.packbits(bits, bitorder="little").tobytes())
    return pa.table(
        {
            "build_id": pa.array([row[0] for row in found], pa.binary()),
            "metric": pa.array([row[1] for row in found], pa.string()),
            "mask": pa.array(masks, pa.binary()),
        }
    )
