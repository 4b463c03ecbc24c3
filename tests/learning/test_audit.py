"""What must hold of training data."""

from __future__ import annotations

import polars as pl
import pytest
from worlds import Author, World, design, state, testbench

from llm4cov_assets import rows
from llm4cov_assets.learning.audit import false_gains, leaked
from llm4cov_assets.learning.filter import candidates, judge, with_verdicts
from llm4cov_assets.learning.rollout import rollout
from sim.coverage import bitset
from sim.simulation import CoveragePoint

D = design("d")


@pytest.fixture
def repaired():
    """Transitions, states and simulations of one accepted and one rejected repair."""
    before = state(D, testbench("passed", 0.5))
    author = Author(lambda at, sample, seed: testbench("passed", 0.5 + sample / 4))
    steps = rollout(author, [before], 2, 0, World().simulate)
    transitions = rows.transition_rows(steps, config_hash="c", stage=0, role="repair", policy="author")
    transitions = with_verdicts(transitions, judge(candidates(steps, transitions["transition_id"].to_list())))
    states = rows.state_rows([before, *(s.next_state for s in steps)])
    simulations = rows.simulation_rows([before.simulation, *(s.simulation for s in steps)])
    return transitions, states, simulations


def test_true_gains_give_no_row(repaired):
    transitions, states, simulations = repaired
    assert transitions["accepted"].to_list() == [False, True]
    assert false_gains(transitions, states, simulations).is_empty()


@pytest.mark.parametrize("column", ["score_before", "score_after", "gain"])
def test_an_accepted_row_that_claims_too_much_is_returned(repaired, column):
    transitions, states, simulations = repaired
    forged = transitions.with_columns(pl.col(column) + 0.1)
    found = false_gains(forged, states, simulations)
    assert found["transition_id"].to_list() == [transitions["transition_id"][1]]
    assert found.select("found_before", "found_after").row(0) == (0.5, 0.75)


def test_a_row_whose_simulation_or_state_is_missing_is_returned(repaired):
    transitions, states, simulations = repaired
    assert false_gains(transitions, states, simulations.clear()).height == 1
    assert false_gains(transitions, states.clear(), simulations).height == 1


def test_a_draft_gains_from_0(repaired):
    transitions, states, simulations = repaired
    s0 = state(D)
    draft = transitions.with_columns(
        state_id=pl.lit(s0.state_id), score_before=0.0, gain=pl.col("score_after"), accepted=True
    )
    assert false_gains(draft, pl.concat([states, rows.state_rows([s0])]), simulations).is_empty()


def test_coverage_is_counted_again_from_the_bitsets(repaired):
    transitions, states, simulations = repaired
    points = rows.point_rows("b" * 32, "c" * 32, [CoveragePoint("line", "d.sv", i, 1, "d", "x", "") for i in range(4)])

    def hits(*counts: int) -> pl.DataFrame:
        bits = [{"build_id": "b" * 32, "hits": bitset([i < n for i in range(4)])} for n in counts]
        return rows.table_frame("coverage_hits", bits).with_columns(simulation_id=simulations["simulation_id"].head(2))

    simulations = simulations.unique("simulation_id", maintain_order=True)
    honest, forged = hits(2, 3), hits(2, 4)
    assert false_gains(transitions, states, simulations, honest, points).is_empty()
    assert false_gains(transitions, states, simulations, forged, points)["found_after"].to_list() == [1.0]
    assert false_gains(transitions, states, simulations, honest.head(1), points)["found_after"].to_list() == [None]


def test_training_on_a_design_or_on_the_rtl_of_an_evaluation_design_is_a_leak():
    designs = pl.DataFrame({"design_id": ["t", "e", "copy"], "rtl_id": ["1", "2", "2"]})
    evaluation = designs.filter(pl.col("design_id") == "e")
    training = pl.DataFrame({"design_id": ["t", "e", "copy", "unknown"], "example_id": ["w", "x", "y", "z"]})
    assert leaked(training, designs, evaluation)["example_id"].to_list() == ["x", "y", "z"]
    assert leaked(training.head(1), designs, evaluation).is_empty()
