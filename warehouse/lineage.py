"""Lineage: what a row was made from, and what was made from it.

The edges are the references of the schema. A reference points from what was made to what it was made from, but for
the results that some rows name: a transition names the state it led to, a generation the testbench it holds. Such a
row is what its results were made from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import duckdb

from warehouse.errors import WarehouseError
from warehouse.schema import TABLES, Table

RESULTS = {
    ("transitions", "next_state_id"),
    ("transitions", "testbench_id"),
    ("transitions", "simulation_id"),
    ("generations", "testbench_id"),
}
"""References to what a row led to."""

SUMMARIES = {
    "designs": "name || ', ' || split || ', ' || n_lines || ' lines'",
    "design_files": "path || ' (' || role || ', ' || n_lines || ' lines)'",
    "policies": "name || ' (' || engine || ')'",
    "prompts": "length(text) || ' characters'",
    "generations": "'sample ' || sample || ', ' || if(error = '', finish_reason, error)",
    "testbenches": "language || ', ' || n_lines || ' lines'",
    "simulations": "status || coalesce(', coverage ' || round(overall, 4), '')",
    "coverage_hits": "n_hit || ' points hit'",
    "states": "if(simulation_id is null, 's0', 'coverage ' || round(score, 4))",
    "selections": "strategy || ', ' || reason || ', coverage ' || round(score, 4)",
    "transitions": "role || ' by ' || policy || ', step ' || step || ', ' || status || ', '"
    " || round(score_before, 4) || ' → ' || round(score_after, 4)"
    " || case accepted when true then ', accepted' when false then ', ' || reject_reason else '' end",
    "sft_examples": "role || ', variant ' || variant || ', ' || n_tokens || ' tokens'",
    "checkpoints": "policy || ', ' || steps || ' steps on ' || n_examples || ' examples'",
    "evaluations": "policy || ', ' || mode || ', ' || benchmark || ', coverage ' || round(overall, 4)",
    "scores": "policy || ', ' || mode || ', ' || benchmark || ', coverage ' || round(avg_cov, 4)",
    "comparisons": "policy_a || ' - ' || policy_b || ', ' || mode || ', ' || round(diff, 4)",
    "targets": "metric || ' ≥ ' || round(target, 4) || ' (' || origin || ')'",
}


@dataclass(frozen=True)
class Step:
    """One way from rows of table `at` to rows of table `to`; `pairs` is SQL for the keys (near, far) it joins."""

    at: str
    to: str
    pairs: str


@dataclass
class Node:
    """One row and its neighbours in one direction.

    `id` is empty for rows without an id of their own. `hidden` counts the neighbours left out, by table. `shown` says
    why there may be no neighbours: `here` (there are none), `elsewhere` (the row stands in the tree a second time),
    `first_only` (of several alike only the first is followed).
    """

    table: str
    id: str
    summary: str
    provenance: dict[str, Any]
    children: list[Node] = field(default_factory=list)
    hidden: dict[str, int] = field(default_factory=dict)
    shown: Literal["here", "elsewhere", "first_only"] = "here"

    def as_json(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "id": self.id,
            "summary": self.summary,
            **self.provenance,
            "shown": self.shown,
            "hidden": self.hidden,
            "rows": [child.as_json() for child in self.children],
        }


@dataclass(frozen=True)
class Lineage:
    """`made_from` and `led_to` are trees from the same row; the counts are of all rows, those not shown included."""

    made_from: Node
    led_to: Node
    n_made_from: dict[str, int]
    n_led_to: dict[str, int]

    def as_json(self) -> dict[str, Any]:
        root = self.made_from
        return {
            "table": root.table,
            "id": root.id,
            "summary": root.summary,
            **root.provenance,
            "made_from": {"counts": self.n_made_from, "rows": self.made_from.as_json()["rows"]},
            "led_to": {"counts": self.n_led_to, "rows": self.led_to.as_json()["rows"]},
        }


def trace(connection: duckdb.DuckDBPyConnection, prefix: str, limit: int = 5) -> Lineage | None:
    """The lineage of the row whose id begins with `prefix` (six hex digits or more); None if there is none.

    At most `limit` rows of one table are shown below one row. WarehouseError if the prefix is no id or not unique.
    """
    found = list(find(connection, prefix))
    if len(found) > 1:
        listed = ", ".join(f"{table} {id_}" for table, id_ in found[:4])
        raise WarehouseError(f"{prefix!r} is the beginning of several ids ({listed}, …): give more digits")
    if not found:
        return None
    [(table, id_)] = found
    backwards = _Walk(connection, limit, backwards=True)
    forwards = _Walk(connection, limit, backwards=False)
    return Lineage(
        backwards.tree(table, id_), forwards.tree(table, id_), backwards.counts(table, id_), forwards.counts(table, id_)
    )


def find(connection: duckdb.DuckDBPyConnection, prefix: str) -> Iterator[tuple[str, str]]:
    """(table, id) of the rows whose id begins with `prefix`, at most five a table; WarehouseError if it is no id."""
    prefix = prefix.strip().lower()
    if not re.fullmatch(r"[0-9a-f]{6,32}", prefix):
        raise WarehouseError(f"{prefix!r} is no id: 6 to 32 hex digits, as the views show them")
    low, high = bytes.fromhex(prefix.ljust(32, "0")), bytes.fromhex(prefix.ljust(32, "f"))
    for table in TABLES.values():
        if _has_ids(table):
            key = table.key[0]
            for (id_,) in connection.execute(
                f"select lower(hex({key})) from rows.{table.name} where {key} between ? and ? order by 1 limit 5",
                [low, high],
            ).fetchall():
                yield table.name, id_


def _has_ids(table: Table) -> bool:
    """Whether the rows of the table have ids of their own."""
    column = next(c for c in table.columns if c.name == table.key[0])
    return len(table.key) == 1 and column.type == "id" and not column.refers_to


def steps(backwards: bool) -> list[Step]:
    """All ways from a row to what it was made from, or to what was made from it."""
    found: list[Step] = []
    for table in TABLES.values():
        for column in table.columns:
            if column.refers_to:
                is_result = (table.name, column.name) in RESULTS
                found.append(_step(table, column.name, column.refers_to, from_holder=backwards != is_result))
    if backwards:
        # parts of what a row holds, and what it led to, belong to the answer to "where does this come from"
        found.append(_step(TABLES["design_files"], "design_id", "designs", from_holder=False))
        found += [_step(TABLES["transitions"], f"{to[:-1]}_id", to, True) for to in ("testbenches", "simulations")]
    trained = "rows.checkpoints as c join rows.sft_examples as e on e.config_hash = c.config_hash and e.stage = c.stage"
    if backwards:
        pairs = f"select c.checkpoint_id as near, e.example_id as far from {trained}"
        found.append(Step("checkpoints", "sft_examples", pairs))
    else:
        pairs = f"select e.example_id as near, c.checkpoint_id as far from {trained}"
        found.append(Step("sft_examples", "checkpoints", pairs))
    return found


def _step(holder: Table, column: str, target: str, from_holder: bool) -> Step:
    key, source = _key(holder), f"rows.{holder.name} where {column} is not null"
    if from_holder:
        return Step(holder.name, target, f"select {key} as near, {column} as far from {source}")
    return Step(target, holder.name, f"select {column} as near, {key} as far from {source}")


def _key(table: Table) -> str:
    """SQL of what names a row: its id, or its place for tables without ids."""
    return table.key[0] if _has_ids(table) else "unhex(lpad(hex(rowid), 32, '0'))"


class _Walk:
    """Walks in one direction, level by level, so that the number of queries does not grow with that of rows."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, limit: int, backwards: bool) -> None:
        self.connection = connection
        self.limit = limit
        self.steps = steps(backwards)

    def tree(self, table: str, id_: str) -> Node:
        """The tree below one row; a row stands where it is nearest to the root."""
        root = self._nodes(table, [id_])[id_]
        seen = {(table, id_)}
        level = {(table, id_): root}
        while level:
            following: dict[tuple[str, str], Node] = {}
            for node, to, children, hidden in self._next(level):
                if hidden:
                    node.hidden[to] = node.hidden.get(to, 0) + hidden
                for place, (key, child) in enumerate(children):
                    if any(sibling.table == to and sibling.id == child.id and child.id for sibling in node.children):
                        continue
                    node.children.append(child)
                    if (to, key) in seen:
                        child.shown = "elsewhere"
                    elif place:
                        child.shown = "first_only"
                    elif _has_ids(TABLES[to]):
                        seen.add((to, key))
                        following[to, key] = child
            level = following
        return root

    def _next(self, level: dict[tuple[str, str], Node]) -> Iterator[tuple[Node, str, list[tuple[str, Node]], int]]:
        """For each row of a level and each step: the neighbours shown, with their keys, and how many are hidden."""
        for step in self.steps:
            near = [id_ for table, id_ in level if table == step.at]
            if not near:
                continue
            rows = self.connection.execute(
                "with alike as ("
                f" select distinct near, far from ({step.pairs})"
                " where near in (select unhex(unnest(?)))"
                "), numbered as ("
                " select near, far, row_number() over (partition by near order by far) as place,"
                " count(*) over (partition by near) as n from alike"
                ") select lower(hex(near)), lower(hex(far)), n from numbered where place <= ? order by near, far",
                [near, self.limit],
            ).fetchall()
            nodes = self._nodes(step.to, sorted({far for _, far, _ in rows}))
            groups: dict[str, list[str]] = {}
            totals: dict[str, int] = {}
            for id_, far, n in rows:
                groups.setdefault(id_, []).append(far)
                totals[id_] = n
            for id_, far in groups.items():
                children = [(key, replace(nodes[key], children=[], hidden={})) for key in far]
                yield level[step.at, id_], step.to, children, totals[id_] - len(far)

    def counts(self, table: str, id_: str) -> dict[str, int]:
        """How many rows of each table can be reached."""
        run = self.connection.execute
        run("create or replace temp table reached (name varchar, id blob)")
        run("create or replace temp table frontier as select ? as name, unhex(?) as id", [table, id_])
        while run("select count(*) from frontier").fetchone() != (0,):
            run("insert into reached from frontier")
            names = {name for (name,) in run("select distinct name from frontier").fetchall()}
            found = [
                f"select '{step.to}' as name, far as id from ({step.pairs})"
                f" where near in (select id from frontier where name = '{step.at}')"
                for step in self.steps
                if step.at in names
            ]
            run(
                "create or replace temp table frontier as select distinct name, id from"
                f" ({' union all '.join(found) or 'from frontier where false'}) as n anti join reached using (name, id)"
            )
        rows = run(
            "select name, count(*) from reached where not (name = ? and id = unhex(?)) group by name order by name",
            [table, id_],
        ).fetchall()
        return dict(rows)

    def _nodes(self, table: str, keys: list[str]) -> dict[str, Node]:
        """Nodes without neighbours for the rows with these keys; a row that is missing says so."""
        names = ("stage", "asset_key", "partition_key", "code_version", "dagster_run_id", "config_hash", "created_at")
        own = _has_ids(TABLES[table])
        wanted = (
            f"{TABLES[table].key[0]} in (select unhex(unnest(?)))"
            if own
            else "rowid in (select ('0x' || unnest(?))::bigint)"
        )
        rows = self.connection.execute(
            f"select lower(hex({_key(TABLES[table])})), {SUMMARIES[table]}, stage, asset_key, partition_key,"
            f" code_version, dagster_run_id, config_hash, created_at::varchar from rows.{table} where {wanted}",
            [keys if own else [key[-15:] for key in keys]],
        ).fetchall()
        found = {
            row[0]: Node(table, row[0] if own else "", row[1], dict(zip(names, row[2:], strict=True))) for row in rows
        }
        return {key: found.get(key) or Node(table, key, "not in the warehouse", dict.fromkeys(names)) for key in keys}
