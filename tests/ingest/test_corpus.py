"""The bundled designs are clean, varied, described, and neither trivial nor out of reach."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from llm4cov_assets.ingest.registry import corpus_designs
from llm4cov_assets.policy.base import State
from llm4cov_assets.policy.scripted import ScriptedRandom
from sim.design import Design
from sim.elaborate import analyse
from sim.simulator import Simulator

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


@pytest.mark.slow
def test_two_hundred_random_cycles_leave_something_uncovered_in_every_bundled_design(simulator: Simulator) -> None:
    policy = ScriptedRandom(bursts=2, cycles=100)
    jobs = [(d, [g.testbench for g in policy.propose([State(d)], 1, 0) if g.testbench]) for d in DESIGNS.values()]
    for number, results in simulator.run_batches(jobs, seed=0):
        name = jobs[number][0].name
        assert [r.status for r in results] == ["passed"], name
        assert 0.25 < results[0].score < 0.97, name
        assert any(u.metric in ("line", "branch") for u in results[0].uncovered), name
