"""The bundled designs are clean, varied, described, and neither trivial nor out of reach."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from llm4cov_assets.ingest.reference import reference
from llm4cov_assets.ingest.registry import corpus_designs, development_designs
from sim.design import Design
from sim.elaborate import analyse
from sim.simulator import Simulator
from tests.soak.corpus import NEARLY, out_of_reach, too_easy

DESIGNS = {d.name: d for d in corpus_designs()}
FRESH = [d for d in DESIGNS.values() if reference(d.name).collection == "fresh"]
SOME = development_designs()[::3]
"""Of the older designs; `script/soak corpus` has them all."""


def test_there_are_enough_designs_of_either_collection() -> None:
    assert len(development_designs()) == 31
    assert len(FRESH) >= 12


@pytest.mark.parametrize("name", DESIGNS)
def test_a_bundled_design_is_lint_clean(name: str, lint: Callable[[Design], str]) -> None:
    assert lint(DESIGNS[name]) == ""


@pytest.mark.parametrize("name", DESIGNS)
def test_a_bundled_design_is_called_like_its_folder_and_described(name: str) -> None:
    design = DESIGNS[name]
    assert design.top == name
    assert 100 < len(design.specification) < 1600
    assert len(analyse(design).branches) > 8


@pytest.mark.parametrize("name", DESIGNS)
def test_the_clocks_and_resets_of_a_bundled_design_are_inferred_as_they_were_written_down(name: str) -> None:
    facts, interface = reference(name).facts, analyse(DESIGNS[name]).interface
    assert interface.clocks == facts.clocks
    inferred = {(r.port, r.active_low, r.synchronous) for r in interface.resets}
    assert inferred == {(r.port, r.active_low, r.synchronous) for r in facts.resets}


@pytest.mark.parametrize("name", [d.name for d in FRESH])
def test_the_specification_of_a_fresh_design_names_its_clocks_and_resets(name: str) -> None:
    text, facts = " ".join(DESIGNS[name].specification.split()), reference(name).facts
    assert all(f"`{port}`" in text for port in (*facts.clocks, *(r.port for r in facts.resets)))
    assert all(("active low" if r.active_low else "active high") in text for r in facts.resets)
    kinds = {"synchronous" if r.synchronous else "asynchronous" for r in facts.resets}
    assert all(f" {kind}" in text.replace("(", " ") for kind in kinds)


def test_the_corpus_has_every_kind_of_interface() -> None:
    interfaces = [analyse(d).interface for d in DESIGNS.values()]
    resets = {(r.active_low, r.synchronous) for i in interfaces for r in i.resets}
    assert {(True, False), (False, True), (True, True)} <= resets
    assert any(i.combinational for i in interfaces)
    assert sum(len(i.clocks) == 2 for i in interfaces) >= 2
    assert sum(len(d.sources) > 2 and bool(d.parameters) for d in DESIGNS.values()) >= 3


@pytest.mark.slow
def test_two_hundred_random_cycles_leave_branches_uncovered_in_bundled_designs(simulator: Simulator) -> None:
    assert too_easy(simulator, [*SOME, *FRESH]) == []


@pytest.mark.slow
def test_nothing_in_bundled_designs_is_out_of_reach_but_what_is_known_to_be(simulator: Simulator) -> None:
    """A testbench in `reaching` covers all of each fresh design; for the others there is a reference campaign."""
    assert out_of_reach(simulator, SOME, 64, NEARLY) == []
    assert out_of_reach(simulator, FRESH, 0) == []
