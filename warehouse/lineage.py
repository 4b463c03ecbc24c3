"""Lineage: what a row was made from, and what was made from it.

Results (transitions, examples, checkpoints, evaluations) form the way through the warehouse. Content (states,
testbenches, simulations, prompts) may be shared by many of them, so its own neighbours are followed only from the row
that was asked for: a testbench in the lineage of a transition does not lead to the other transitions that came upon it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import duckdb

from warehouse.errors import WarehouseError
from warehouse.schema import TABLES, Table

SUMMARIES = {
    "designs": "name || ', ' || split || ', ' || n_lines || ' lines'",
    "design_files": "path || ' (' || role || ', ' || n_lines || ' lines)'",
    "exclusions": "reason",
    "design_events": "name || ', ' || what || coalesce(', version ' || version, '')",
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
    """One way from rows of table `at` to rows of table `to`; `pairs` is SQL for the keys (near, far) it joins.
    A step that is `first_only` is taken only from the row that was asked for."""

    at: str
    to: str
    pairs: str
    first_only: bool = False


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
    """(table, id) of the rows whose id begins with `prefix`, at most five a table; WarehouseError if it is no id.

    A trajectory has no row of its own: its id stands for its last transition.
    """
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
    for (id_,) in connection.execute(
        "select lower(hex(arg_max(transition_id, step))) from rows.transitions where trajectory_id between ? and ?"
        " group by trajectory_id order by 1 limit 5",
        [low, high],
    ).fetchall():
        yield "transitions", id_


def _has_ids(table: Table) -> bool:
    """Whether the rows of the table have ids of their own."""
    column = next(c for c in table.columns if c.name == table.key[0])
    return len(table.key) == 1 and column.type == "id" and not column.refers_to


def _by(holder: str, column: str, target: str, *, forwards: bool = False, first_only: bool = False) -> Step:
    """A step along a reference: from its holder to the target, or `forwards` from the target to the holder."""
    key, source = _key(TABLES[holder]), f"rows.{holder} where {column} is not null"
    if forwards:
        return Step(target, holder, f"select {column} as near, {key} as far from {source}", first_only)
    return Step(holder, target, f"select {key} as near, {column} as far from {source}", first_only)


def _both(at: str, to: str, joined: str, near: str, far: str) -> tuple[Step, Step]:
    """A step backwards from `at` to `to` along a join, and the same forwards."""
    return (
        Step(at, to, f"select {near} as near, {far} as far from {joined}"),
        Step(to, at, f"select {far} as near, {near} as far from {joined}"),
    )


def _key(table: Table) -> str:
    """SQL of what names a row: its id, or its place for tables without ids."""
    return table.key[0] if _has_ids(table) else "unhex(lpad(hex(rowid), 32, '0'))"


_PREVIOUS = _both(
    "transitions",
    "transitions",
    "rows.transitions as t join rows.transitions as p on p.trajectory_id = t.trajectory_id and p.step + 1 = t.step",
    "t.transition_id",
    "p.transition_id",
)
_TRAINED_ON = _both(
    "checkpoints",
    "sft_examples",
    "rows.checkpoints as c join rows.sft_examples as e on e.config_hash = c.config_hash and e.stage = c.stage",
    "c.checkpoint_id",
    "e.example_id",
)
_EVALUATED = _both(
    "evaluations",
    "transitions",
    "rows.evaluations as e join rows.transitions as t using (trajectory_id)",
    "e.evaluation_id",
    "t.transition_id",
)
_SCORED = _both(
    "scores",
    "evaluations",
    "rows.scores as s join rows.evaluations as e on e.config_hash = s.config_hash and e.policy_id = s.policy_id"
    " and e.mode = s.mode and s.benchmark in ('all', e.benchmark)",
    "s.score_id",
    "e.evaluation_id",
)
_COMPARED = _both(
    "comparisons",
    "scores",
    "rows.comparisons as c join rows.scores as s on s.config_hash = c.config_hash and s.mode = c.mode"
    " and s.benchmark = c.benchmark and s.policy in (c.policy_a, c.policy_b)",
    "c.comparison_id",
    "s.score_id",
)
_CALIBRATED = _both(
    "targets",
    "transitions",
    "rows.targets as g join rows.transitions as t on t.config_hash = g.config_hash and t.design_id = g.design_id"
    " and g.origin = 'calibrated' and t.role = 'calibration'",
    "unhex(lpad(hex(g.rowid), 32, '0'))",
    "t.transition_id",
)

BACKWARDS = (
    _by("sft_examples", "transition_id", "transitions"),
    _PREVIOUS[0],
    _by("transitions", "state_id", "states"),
    _by("transitions", "generation_id", "generations"),
    _by("transitions", "simulation_id", "simulations"),
    _by("generations", "prompt_id", "prompts"),
    _by("generations", "policy_id", "policies"),
    _by("generations", "state_id", "states", first_only=True),
    _by("prompts", "state_id", "states", first_only=True),
    _by("policies", "checkpoint_id", "checkpoints"),
    _by("checkpoints", "parent_checkpoint_id", "checkpoints"),
    _TRAINED_ON[0],
    _by("states", "design_id", "designs"),
    _by("states", "simulation_id", "simulations"),
    _by("transitions", "next_state_id", "states", forwards=True, first_only=True),
    _by("simulations", "testbench_id", "testbenches"),
    _by("simulations", "design_id", "designs"),
    _by("transitions", "simulation_id", "simulations", forwards=True, first_only=True),
    _by("generations", "testbench_id", "testbenches", forwards=True, first_only=True),
    _by("design_files", "design_id", "designs", forwards=True),
    _by("selections", "state_id", "states"),
    _EVALUATED[0],
    _SCORED[0],
    _COMPARED[0],
    _CALIBRATED[0],
)
FORWARDS = (
    _by("transitions", "design_id", "designs", forwards=True),
    _by("targets", "design_id", "designs", forwards=True),
    _by("policies", "checkpoint_id", "checkpoints", forwards=True),
    _by("checkpoints", "parent_checkpoint_id", "checkpoints", forwards=True),
    _by("transitions", "policy_id", "policies", forwards=True),
    _by("generations", "prompt_id", "prompts", forwards=True),
    _by("transitions", "generation_id", "generations", forwards=True),
    _by("transitions", "state_id", "states", forwards=True, first_only=True),
    _by("selections", "state_id", "states", forwards=True, first_only=True),
    _by("transitions", "testbench_id", "testbenches", forwards=True, first_only=True),
    _by("simulations", "testbench_id", "testbenches", forwards=True, first_only=True),
    _by("transitions", "simulation_id", "simulations", forwards=True, first_only=True),
    _by("coverage_hits", "simulation_id", "simulations", forwards=True, first_only=True),
    _PREVIOUS[1],
    _by("transitions", "testbench_id", "testbenches"),
    _by("transitions", "simulation_id", "simulations"),
    _by("sft_examples", "transition_id", "transitions", forwards=True),
    _TRAINED_ON[1],
    _EVALUATED[1],
    _SCORED[1],
    _COMPARED[1],
    _CALIBRATED[1],
)


class _Walk:
    """Walks in one direction, level by level, so that the number of queries does not grow with that of rows."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, limit: int, backwards: bool) -> None:
        self.connection = connection
        self.limit = limit
        self.steps = BACKWARDS if backwards else FORWARDS

    def tree(self, table: str, id_: str) -> Node:
        """The tree below one row; a row stands where it is nearest to the root."""
        root = self._nodes(table, [id_])[id_]
        seen = {(table, id_)}
        start = {(table, id_): root}
        level = start
        while level:
            following: dict[tuple[str, str], Node] = {}
            for node, to, children, hidden in self._next(level, first=level is start):
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

    def _next(
        self, level: dict[tuple[str, str], Node], first: bool
    ) -> Iterator[tuple[Node, str, list[tuple[str, Node]], int]]:
        """For each row of a level and each step: the neighbours shown, with their keys, and how many are hidden."""
        for step in self.steps:
            near = [id_ for table, id_ in level if table == step.at]
            if not near or (step.first_only and not first):
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
        first = True
        while run("select count(*) from frontier").fetchone() != (0,):
            run("insert into reached from frontier")
            names = {name for (name,) in run("select distinct name from frontier").fetchall()}
            found = [
                f"select '{step.to}' as name, far as id from ({step.pairs})"
                f" where near in (select id from frontier where name = '{step.at}')"
                for step in self.steps
                if step.at in names and (first or not step.first_only)
            ]
            first = False
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
