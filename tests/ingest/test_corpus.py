"""The bundled designs are clean, varied, described, and neither trivial nor out of reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from llm4cov_assets.ingest.calibration import calibrate
from llm4cov_assets.ingest.registry import corpus_designs
from llm4cov_assets.policy.base import State
from llm4cov_assets.policy.scripted import ScriptedRandom
from sim.coverage import summarise, union
from sim.design import Design
from sim.elaborate import analyse
from sim.simulation import Testbench, UncoveredItem
from sim.simulator import Simulator

REACHING = Path(__file__).parent / "reaching"
DESIGNS = {d.name: d for d in corpus_designs()}


def test_there_are_enough_designs_for_two_dozen_clusters() -> None:
    assert len(DESIGNS) >= 24


@pytest.mark.parametrize("name", DESIGNS)
def test_a_bundled_design_is_lint_clean(name: str, lint: Callable[[Design], str]) -> None:
    assert lint(DESIGNS[name]) == ""


@pytest.mark.parametrize("name", DESIGNS)
def test_a_bundled_design_is_called_like_its_folder_and_described(name: str) -> None:
    design = DESIGNS[name]
    assert design.top == name
    assert 100 < len(design.specification) < 1200
    assert len(analyse(design).branches) > 8


def test_the_corpus_has_every_kind_of_interface() -> None:
    interfaces = [analyse(d).interface for d in DESIGNS.values()]
    resets = {(r.active_low, r.synchronous) for i in interfaces for r in i.resets}
    assert {(True, False), (False, True)} <= resets
    assert any(i.combinational for i in interfaces)
    assert any(len(i.clocks) == 2 for i in interfaces)
    assert any(len(d.sources) > 2 and d.parameters for d in DESIGNS.values())


def open_branches(found: Sequence[UncoveredItem]) -> set[tuple[str, int, str, str]]:
    """The line and branch points among uncovered ones."""
    return {(u.file, u.line, u.instance, u.what) for u in found if u.metric in ("line", "branch")}


@pytest.mark.slow
def test_two_hundred_random_cycles_leave_branches_uncovered_in_every_bundled_design(simulator: Simulator) -> None:
    policy = ScriptedRandom(bursts=2, cycles=100)
    jobs = [(d, [g.testbench for g in policy.propose([State(d)], 5, 0) if g.testbench]) for d in DESIGNS.values()]
    for number, results in simulator.run_batches(jobs, seed=0):
        name = jobs[number][0].name
        assert [r.status for r in results] == ["passed"] * 5, name
        assert all(0.25 < r.score < 0.98 for r in results), name
        assert all(len(open_branches(r.uncovered)) >= 2 for r in results), name


@pytest.mark.slow
def test_no_line_or_branch_of_a_bundled_design_is_out_of_reach(simulator: Simulator) -> None:
    """A reference campaign reaches nearly all of them; for what it leaves there is a testbench in `reaching`."""
    simulate = partial(simulator.run_batches, seed=0)
    references = calibrate(list(DESIGNS.values()), simulate, simulator.points, budget_sims=64)
    for reference in references:
        name, hits = reference.design.name, reference.hits
        build = simulator.build(reference.design)
        if (REACHING / f"{name}.py").exists():
            [result] = simulator.run_many(reference.design, [Testbench((REACHING / f"{name}.py").read_text())])
            assert result.status == "passed", name
            hits = union(hits, result.hits)
        assert open_branches(build.uncovered(hits)) == set(), name
        coverage = summarise(build.points, hits)[0]
        assert coverage.expression is None or coverage.expression > 0.9, name
        assert (coverage.toggle or 0.0) > 0.95, name
