"""Which repairs and drafts are accepted, case by case."""

from __future__ import annotations

from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from worlds import design, simulation, state, testbench

from llm4cov_assets.learning.filter import candidates, direct_examples, judge, keep_best, with_verdicts
from llm4cov_assets.learning.rollout import Step
from llm4cov_assets.policy.base import Generation, State
from sim.simulation import Testbench

D = design("d")


def step(before: Testbench | None, after: Testbench | None) -> Step:
    at = state(D, before)
    generation = Generation("g", "p", at.state_id, 0, 0, "", "", after)
    found = simulation(D, after) if after else None
    return Step(at, generation, State(D, after, found) if after else None, found, after is not None)


def verdict(before: Testbench | None, after: Testbench | None, tau: float = 0.01, floor: float | None = None) -> str:
    """The reject reason, or "accepted"."""
    row = judge(candidates([step(before, after)], ["t"]), tau, floor).row(0, named=True)
    assert row["accepted"] == (row["reject_reason"] == "")
    return row["reject_reason"] or "accepted"


def test_a_repair_that_passes_and_gains_is_accepted():
    assert verdict(testbench("passed", 0.5), testbench("passed", 0.6)) == "accepted"
    assert verdict(testbench("test_failed", 0.5), testbench("passed", 0.6)) == "accepted"
    assert verdict(testbench("timeout", 0.5), testbench("passed", 0.6)) == "accepted"


def test_only_passed_is_accepted_however_much_it_covers():
    for status in ("test_failed", "timeout", "load_error", "forged"):
        overall = 0.9 if status in ("test_failed", "timeout") else None
        assert verdict(testbench("passed", 0.5), testbench(status, overall)) == "not_passed"
    assert verdict(testbench("passed", 0.5), None) == "not_passed"


def test_the_gain_must_reach_tau_exactly_is_enough():
    assert verdict(testbench("passed", 0.56), testbench("passed", 0.57)) == "accepted"
    assert verdict(testbench("passed", 0.56), testbench("passed", 0.569)) == "no_gain"
    assert verdict(testbench("passed", 0.56), testbench("passed", 0.569), tau=0.005) == "accepted"
    assert verdict(testbench("passed", 0.56), testbench("passed", 0.5)) in ("no_gain", "metric_falls")


def test_no_single_metric_may_fall_even_if_overall_gains():
    before = testbench("passed", 0.5)
    assert verdict(before, testbench("passed", 0.7, line=0.9, toggle=0.49)) == "metric_falls"
    assert verdict(before, testbench("passed", 0.7, line=0.9, toggle=0.5)) == "accepted"


def test_a_metric_without_points_does_not_fall():
    before, after = testbench("passed", 0.5, expression=None), testbench("passed", 0.6, expression=None)
    assert verdict(before, after) == "accepted"


def test_failing_to_passed_with_coverage_always_counts_as_a_gain():
    failing = testbench("load_error")
    assert verdict(failing, testbench("passed", 0.005)) == "accepted"
    assert verdict(failing, testbench("passed", 0.0)) == "no_gain"
    assert verdict(failing, testbench("passed")) == "no_gain"
    assert verdict(failing, testbench("test_failed", 0.9)) == "not_passed"
    assert verdict(testbench("timeout"), testbench("passed", 0.005)) == "accepted"


def test_stage_0_has_a_floor_for_rescued_states_too():
    assert verdict(testbench("passed", 0.3), testbench("passed", 0.49), floor=0.5) == "below_floor"
    assert verdict(testbench("passed", 0.3), testbench("passed", 0.5), floor=0.5) == "accepted"
    assert verdict(testbench("load_error"), testbench("passed", 0.3), floor=0.5) == "below_floor"


def judged(*rows: tuple[str, str, float, float]) -> pl.DataFrame:
    """Accepted repairs (design, transition, score before, score after)."""
    schema = {"design_id": pl.String, "transition_id": pl.String, "score_before": pl.Float64, "score_after": pl.Float64}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return frame.with_columns(prompt="transition_id", accepted=pl.lit(True), reject_reason=pl.lit(""))


def accepted(frame: pl.DataFrame) -> list[str]:
    return sorted(frame.filter("accepted")["transition_id"])


def test_keep_best_keeps_the_highest_coverage_then_the_highest_gain_of_each_design():
    rows = judged(("a", "1", 0.1, 0.6), ("a", "2", 0.5, 0.9), ("a", "3", 0.2, 0.9), ("b", "4", 0.1, 0.2))
    assert accepted(keep_best(rows, 1)) == ["3", "4"]
    assert accepted(keep_best(rows, 2)) == ["2", "3", "4"]
    assert keep_best(rows, 1).filter(~pl.col("accepted"))["reject_reason"].unique().to_list() == ["not_best"]


def test_of_answers_to_one_prompt_only_the_best_is_kept_so_that_answers_compete_and_not_prompts():
    rows = judged(("a", "1", 0.1, 0.9), ("a", "2", 0.1, 0.8), ("a", "3", 0.1, 0.5), ("a", "4", 0.1, 0.4))
    rows = rows.with_columns(prompt=pl.Series(["easy", "easy", "hard", "hard"]))
    assert accepted(keep_best(rows, 2)) == ["1", "3"]
    assert accepted(keep_best(rows, 1)) == ["1"]
    assert keep_best(rows, 2)["reject_reason"].to_list() == ["", "not_best_of_prompt", "", "not_best_of_prompt"]


def test_keep_best_0_is_no_limit_and_ties_do_not_depend_on_the_order_of_rows():
    rows = judged(("a", "2", 0.1, 0.6), ("a", "1", 0.1, 0.6))
    assert keep_best(rows, 0).equals(rows)
    assert accepted(keep_best(rows, 1)) == accepted(keep_best(rows[::-1], 1)) == ["1"]


def test_keep_best_never_revives_a_rejected_repair():
    rows = judged(("a", "1", 0.1, 0.9), ("a", "2", 0.1, 0.6)).with_columns(
        accepted=pl.col("transition_id") == "2", reject_reason=pl.lit("no_gain")
    )
    assert accepted(keep_best(rows, 1)) == ["2"]
    assert keep_best(rows, 1).row(0, named=True)["reject_reason"] == "no_gain"


def drafts(*rows: tuple[str, str, str, float]) -> pl.DataFrame:
    schema = {"design_id": pl.String, "transition_id": pl.String, "status_after": pl.String, "score_after": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(prompt="transition_id")


DRAFTS = drafts(
    ("a", "1", "passed", 0.6), ("a", "2", "passed", 0.8), ("a", "3", "test_failed", 0.9), ("b", "4", "passed", 0.4)
)


def test_the_direct_example_of_a_design_is_its_best_passed_draft_over_the_floor():
    assert accepted(direct_examples(DRAFTS, 0.5)) == ["2"]
    assert accepted(direct_examples(DRAFTS, 0.4)) == ["2", "4"]
    assert direct_examples(DRAFTS, 0.5)["reject_reason"].to_list() == ["not_best", "", "not_passed", "below_floor"]


def test_without_a_limit_every_passed_draft_over_the_floor_is_an_example():
    assert accepted(direct_examples(DRAFTS, 0.5, per_design=0)) == ["1", "2"]


def test_drafts_are_examples_in_stages_0_and_1_only():
    assert accepted(direct_examples(DRAFTS, 0.5, stage=1)) == ["2"]
    assert accepted(direct_examples(DRAFTS, 0.5, stage=2)) == []


def test_profile_may_train_on_the_drafts_of_later_stages_too():
    assert accepted(direct_examples(DRAFTS, 0.5, stage=2, until=2)) == ["2"]


def test_verdicts_reach_their_transitions_and_leave_others_alone():
    table = {"transition_id": ["x", "2", "1"], "accepted": [None, None, None], "reject_reason": ["", "", ""]}
    transitions = pl.DataFrame(table, schema_overrides={"accepted": pl.Boolean})
    found = with_verdicts(transitions, direct_examples(DRAFTS, 0.5))
    assert found.rows() == [("x", None, ""), ("2", True, ""), ("1", False, "not_best")]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 5), st.integers(0, 5)), max_size=12), st.integers(1, 3))
def test_keep_best_agrees_with_sorting(rows, k):
    made: list[tuple[str, str, float, float]] = [(d, f"{i:02}", b / 9, a / 9) for i, (d, b, a) in enumerate(rows)]
    expected: list[Any] = []
    for d in "ab":
        ranked = sorted((r for r in made if r[0] == d), key=lambda r: (-r[3], -(r[3] - r[2]), r[1]))
        expected += [r[1] for r in ranked[:k]]
    assert accepted(keep_best(judged(*made), k)) == sorted(expected)
