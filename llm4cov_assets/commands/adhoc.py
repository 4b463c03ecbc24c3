"""Rows of what the command line simulates: stage null, partition `adhoc`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from llm4cov_assets import rows
from llm4cov_assets.commands.storing import tables_of
from llm4cov_assets.ingest.kept import keep
from llm4cov_assets.ingest.records import DesignRecord
from llm4cov_assets.ingest.registry import record_by_name
from llm4cov_assets.learning.closure import MERGE_POLICY
from llm4cov_assets.profiles import profile
from warehouse.store import Provenance, Store

if TYPE_CHECKING:
    from pathlib import Path

    from llm4cov_assets.learning.closure import Closure
    from llm4cov_assets.policy.base import Policy
    from sim.coverage import Points
    from sim.design import Design
    from sim.simulation import Simulation, Testbench

PARTITION = "adhoc"


def record_simulations(
    home: Path,
    design: Design,
    testbenches: Sequence[Testbench],
    simulations: Sequence[Simulation],
    points: Callable[[str], Points],
) -> None:
    """Store simulations that a person asked for; `points` gives the points of a build."""
    tables = {
        **_described(home, design),
        "testbenches": rows.testbench_rows(testbenches),
        **rows.observation_tables(simulations, points),
    }
    _write(home, tables)


def record_closure(home: Path, closure: Closure, policies: Sequence[Policy], points: Callable[[str], Points]) -> None:
    """Store everything that a closure tried. All its steps are one trajectory."""
    config_hash = profile("demo").config_hash
    steps = closure.steps
    begins = rows.trajectory_id(config_hash, None, "closure", steps[0].generation.generation_id) if steps else ""
    trajectories = {s.step.state.state_id: begins for s in steps}
    transitions = [
        rows.transition_rows(
            [s.step],
            config_hash=config_hash,
            stage=None,
            role="repair" if s.step.state.testbench else "draft",
            policy=s.policy,
            trajectories=trajectories,
            number=s.round,
        ).with_columns(accepted=pl.lit(s.accepted))
        for s in steps
    ]
    states = [state for s in steps for state in (s.step.state, s.step.next_state)]
    simulations = [s.simulation for s in steps if s.simulation]
    settings = {p.name: str(getattr(p, "settings", "")) for p in policies}
    tables = {
        **_described(home, closure.design),
        **rows.answer_tables([s.generation for s in steps]),
        **rows.observation_tables(simulations, points),
        "policies": pl.concat([rows.policy_rows(policies, settings), rows.table_frame("policies", [MERGE_POLICY])]),
        "states": rows.state_rows(states),
        "transitions": pl.concat([rows.table_frame("transitions"), *transitions]),
    }
    _write(home, tables)


def _known(home: Path, design: Design) -> bool:
    """A name already stands for this very design."""
    named = record_by_name(design.name, home)
    return named is not None and named.design.design_id == design.design_id


def _described(home: Path, design: Design) -> dict[str, pl.DataFrame]:
    """Rows of the design, which is kept under its name when that is new."""
    record = DesignRecord(design, "adhoc", "imported", design.name, source="command line")
    if not _known(home, design):
        keep(record, home, PARTITION)
    return tables_of([record])


def _write(home: Path, tables: Mapping[str, pl.DataFrame]) -> None:
    store = Store(home)
    provenance = Provenance(None, profile("demo").config_hash, partition_key=PARTITION, code_version="1")
    store.write_all(tables, provenance)
    store.publish()
