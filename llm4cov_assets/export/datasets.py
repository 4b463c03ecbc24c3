"""What every kind of export is made of: a query, and the shapes in which its rows are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

Row = dict[str, Any]
Columns = dict[str, tuple[pa.DataType, str]]
"""Type and comment of each column, in order."""
Text = Literal["compact", "testbench"]
"""`compact`: what the small student reads and writes, as it was trained on. `testbench`: RTL, testbench and feedback in
words, and a whole testbench as the answer."""


@dataclass(frozen=True)
class Shape:
    """One form of the rows, a `datasets` configuration of its own. `columns` are its columns with type and comment, in
    order; `make` gives those that differ from the row's."""

    name: str
    columns: Columns
    make: Callable[[Row], Row] = lambda row: {}

    @property
    def schema(self) -> pa.Schema:
        """Its Arrow schema."""
        return pa.schema([pa.field(name, kind) for name, (kind, _) in self.columns.items()])

    def row(self, row: Row) -> Row:
        """A row of the query in this shape."""
        made = row | self.make(row)
        return {name: made[name] for name in self.columns}


@dataclass(frozen=True)
class Source:
    """What an export reads, and what it makes of it.

    `picked` is a query that names the rows, small and in any order: `config_hash, design_id, cluster, transition_id,
    simulation_id`, whatever else `sql` needs, and what `order` sorts them by. They become the temporary table
    `picked` with a number `place`. `sql` is a query of `place` and all that a row has, over `picked as k`.
    `prepare` adds to a row what all shapes share. `chosen` has the column `design_id` and says, for the check against
    evaluation designs, what would be taken if the split were no filter. `tables` are those that are read, `group` the
    columns by which the card counts rows, `settings` what else decided them. Rows that are not `training` data may come
    from evaluation designs.
    """

    kind: str
    title: str
    about: str
    chosen: tuple[str, dict[str, Any]]
    picked: tuple[str, dict[str, Any]]
    order: tuple[str, ...]
    sql: str
    shapes: tuple[Shape, ...]
    tables: tuple[str, ...]
    group: tuple[str, ...]
    prepare: Callable[[Row], Row] = lambda row: row
    settings: Mapping[str, Any] = field(default_factory=dict)
    training: bool = True


TEXT, INT, FLOAT, BOOL, BLOB = pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.binary()
CONVERSATION = pa.list_(pa.struct([("role", TEXT), ("content", TEXT)]))

STEP_COLUMNS: Columns = {
    "transition_id": (TEXT, "the step: `llm4cov lineage ID` shows what it came from and what came of it"),
    "trajectory_id": (TEXT, "the draft and the repairs that follow it"),
    "config_hash": (TEXT, "configuration (profile) that made it"),
    "stage": (INT, "stage number"),
    "role": (TEXT, "draft or repair"),
    "design_id": (TEXT, "design"),
    "design": (TEXT, "its name"),
    "cluster": (TEXT, "unit of the bootstrap: the design itself, or its generator family"),
    "kind": (TEXT, "hand_written, generated or imported"),
    "policy": (TEXT, "policy that answered"),
    "state_id": (TEXT, "state before"),
    "testbench_id": (TEXT, "testbench after"),
    "simulation_id": (TEXT, "its simulation"),
    "status": (TEXT, "how the simulation ended"),
    "coverage_before": (FLOAT, "coverage of the state before, 0 when failing or without testbench"),
    "coverage": (FLOAT, "coverage after, 0 when failing"),
    "gain": (FLOAT, "coverage minus coverage_before"),
    "line": (FLOAT, "line coverage after"),
    "branch": (FLOAT, "branch coverage after"),
    "expression": (FLOAT, "expression coverage after"),
    "toggle": (FLOAT, "toggle coverage after"),
}
"""Columns that lead from a training row back to the warehouse."""

STEP_SQL = """
  lower(hex(t.transition_id)) as transition_id, lower(hex(t.trajectory_id)) as trajectory_id, t.config_hash, t.stage,
  t.role, lower(hex(t.design_id)) as design_id, d.name as design, d.cluster, d.kind, t.policy,
  lower(hex(t.state_id)) as state_id, lower(hex(t.testbench_id)) as testbench_id,
  lower(hex(t.simulation_id)) as simulation_id, t.status, t.score_before as coverage_before,
  t.score_after as coverage, t.gain, s.line, s.branch, s.expression, s.toggle
"""
"""The same of t (transitions), d (designs) and s (simulations)."""
