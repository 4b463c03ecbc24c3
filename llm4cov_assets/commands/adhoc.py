"""Rows of what the command line simulates: stage null, partition `adhoc`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from llm4cov_assets import rows
from llm4cov_assets.ingest.kept import keep
from llm4cov_assets.ingest.records import DesignRecord
from llm4cov_assets.ingest.registry import record_by_name
from llm4cov_assets.learning.closure import MERGE_POLICY
from llm4cov_assets.profiles import profile
from sim.design import DesignError
from sim.elaborate import analyse
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
    _write(home, _observed(home, design, testbenches, simulations, points))


def record_closure(home: Path, closure: Closure, policies: Sequence[Policy], points: Callable[[str], Points]) -> None:
    """Store everything that a closure tried. All its steps are one trajectory."""
    config_hash = profile("demo").config_hash
    steps = closure.steps
    generations = [s.generation for s in steps]
    begins = rows.trajectory_id(config_hash, None, "closure", generations[0].generation_id) if steps else ""
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
    testbenches = [g.testbench for g in generations if g.testbench]
    simulations = [s.simulation for s in steps if s.simulation]
    settings = {p.name: str(getattr(p, "settings", "")) for p in policies}
    tables = _observed(home, closure.design, testbenches, simulations, points) | {
        "policies": pl.concat([rows.policy_rows(policies, settings), rows.table_frame("policies", [MERGE_POLICY])]),
        "prompts": rows.prompt_rows(generations),
        "generations": rows.generation_rows(generations),
        "states": rows.state_rows(states),
        "transitions": pl.concat([rows.table_frame("transitions"), *transitions]),
    }
    _write(home, tables)


def _known(home: Path, design: Design) -> bool:
    """A name already stands for this very design."""
    named = record_by_name(design.name, home)
    return named is not None and named.design.design_id == design.design_id


def _observed(
    home: Path,
    design: Design,
    testbenches: Sequence[Testbench],
    simulations: Sequence[Simulation],
    points: Callable[[str], Points],
) -> dict[str, pl.DataFrame]:
    builds = {s.build_id: s.rtl_id for s in simulations if s.hits}
    found = [rows.point_rows(build_id, rtl_id, points(build_id)) for build_id, rtl_id in builds.items()]
    try:
        analysis = analyse(design)
    except DesignError:
        analysis = None
    record = DesignRecord(design, "adhoc", "imported", design.name, source="command line")
    if not _known(home, design):
        keep(record, home, PARTITION)
    described = rows.design_row(design, split="adhoc", kind="imported", source=record.source, analysis=analysis)
    return {
        "designs": rows.design_rows([described]),
        "design_files": rows.file_rows([design]),
        "testbenches": rows.testbench_rows(testbenches),
        "simulations": rows.simulation_rows(simulations),
        "coverage_points": pl.concat([rows.table_frame("coverage_points"), *found]),
        "coverage_hits": rows.hit_rows(simulations),
    }


def _write(home: Path, tables: Mapping[str, pl.DataFrame]) -> None:
    store = Store(home)
    provenance = Provenance(None, profile("demo").config_hash, partition_key=PARTITION, code_version="1")
    store.write_all(tables, provenance)
    store.publish()
