"""Targets come from a seeded campaign, and are a share of what it reached."""

from __future__ import annotations

from functools import partial

import polars as pl
import pytest

from llm4cov_assets.ingest.calibration import SHARE, Reference, calibrate, reference_rows, target_rows
from llm4cov_assets.ingest.registry import corpus_designs
from sim.design import Design, SourceFile
from sim.simulator import Simulator

BROKEN = Design(name="broken", sources=(SourceFile("broken.sv", b"module broken(input a;\n"),), top="broken")


@pytest.mark.slow
def test_targets_are_a_share_of_the_merged_coverage_and_the_same_for_the_same_seed(simulator: Simulator) -> None:
    designs = [*(d for d in corpus_designs() if d.name in ("watchdog", "token_bucket")), BROKEN]
    simulate = partial(simulator.run_batches, seed=0)
    seen: list[tuple[int, int]] = []
    first = calibrate(designs, simulate, simulator.points, budget_sims=8, progress=lambda *done: seen.append(done))
    again = calibrate(designs, simulate, simulator.points, budget_sims=8)
    assert target_rows(first).equals(target_rows(again))
    assert seen[-1] == (24, 24)
    for reference in first[:2]:
        assert 0 < reference.simulations <= 8
        scores = [step.score_after for step in reference.steps]
        assert max(scores) <= (reference.coverage.overall or 0.0) <= 1.0
    rows = {(r["design_id"], r["metric"]): r for r in target_rows(first).iter_rows(named=True)}
    overall = rows[designs[0].design_id, "overall"]
    assert overall["target"] == pytest.approx(SHARE * overall["reference"], abs=1e-6)
    assert overall["origin"] == "calibrated" and "verilator" in overall["simulator"]
    assert (BROKEN.design_id, "overall") not in rows
    assert first[2].coverage.overall is None

    check_rows(reference_rows(first, simulator.points, "c" * 8), first)


def check_rows(tables: dict[str, pl.DataFrame], references: list[Reference]) -> None:
    """Every simulation of a campaign is a row with its hits, reached by transitions that go on from their drafts."""
    ran = [s.simulation for r in references for s in r.steps if s.simulation]
    assert set(tables["simulations"]["simulation_id"]) == {s.simulation_id for s in ran}
    assert set(tables["coverage_hits"]["simulation_id"]) == {s.simulation_id for s in ran if s.hits}
    transitions = tables["transitions"]
    assert transitions["transition_id"].n_unique() == sum(len(r.steps) for r in references)
    assert set(transitions["role"]) == {"calibration"}
    assert set(transitions["policy"]) == {"scripted/random", "scripted/directed"}
    assert set(transitions["policy_id"]) <= set(tables["policies"]["policy_id"])
    assert set(transitions["state_id"]) <= set(tables["states"]["state_id"])
    drafts = transitions.filter(step=0)
    assert drafts["score_before"].max() == 0
    repairs = transitions.filter(pl.col("step") > 0)
    assert repairs.height > 0
    assert set(repairs["trajectory_id"]) <= set(drafts["trajectory_id"])


def test_targets_that_a_design_brings_along_stand_beside_and_are_never_those_of_this_simulator() -> None:
    design = Design(name="d", sources=BROKEN.sources, top="d", targets=(("overall", 0.8),))
    references = calibrate([design], lambda jobs: (), lambda build: (), budget_sims=0)
    [row] = target_rows(references).iter_rows(named=True)
    assert (row["origin"], row["simulator"], row["target"]) == ("imported", "xcelium", 0.8)
