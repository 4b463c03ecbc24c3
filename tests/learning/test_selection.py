"""Which drafts are selected for repair, case by case."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm4cov_assets.learning.selection import STRATEGIES, select

SCHEMA = {
    "design_id": pl.String,
    "state_id": pl.String,
    "status": pl.String,
    "running": pl.Boolean,
    "score": pl.Float64,
}


def drafts(*scores: float | None, design: str = "d") -> pl.DataFrame:
    """Drafts s0, s1, ... of one design; None is a failing one."""
    rows = [
        (design, f"s{i}", "load_error" if s is None else "passed", s is not None, s or 0.0)
        for i, s in enumerate(scores)
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def chosen(frame: pl.DataFrame, **options: object) -> list[tuple[str, str]]:
    return list(select(frame, **options).select("state_id", "reason").iter_rows())


def test_when_all_drafts_fail_one_of_them_is_selected():
    assert chosen(drafts(None, None, None)) == [("s0", "failing")]


def test_otherwise_one_failing_draft_the_worst_and_the_lower_median_are_selected():
    assert chosen(drafts(0.9, None, 0.3, 0.6, None)) == [("s1", "failing"), ("s2", "worst"), ("s3", "lower_median")]


def test_the_lower_median_needs_more_than_the_gap():
    assert chosen(drafts(0.4, 0.5, 0.9)) == [("s0", "worst")]
    assert chosen(drafts(0.4, 0.51, 0.9)) == [("s0", "worst"), ("s1", "lower_median")]
    assert chosen(drafts(0.4, 0.51, 0.9), median_gap=0.2) == [("s0", "worst")]


def test_of_an_even_number_the_lower_of_the_two_middle_drafts_is_the_median():
    assert chosen(drafts(0.1, 0.3, 0.7, 0.9)) == [("s0", "worst"), ("s1", "lower_median")]
    assert chosen(drafts(0.1, 0.9)) == [("s0", "worst")]


def test_drafts_with_coverage_1_are_never_selected():
    assert chosen(drafts(1.0, 1.0)) == []
    assert chosen(drafts(1.0, None)) == [("s1", "failing")]
    assert chosen(drafts(0.5, 1.0, 1.0)) == [("s0", "worst")]


def test_a_failing_draft_is_not_the_worst_one_though_its_coverage_counts_as_0():
    assert chosen(drafts(None, 0.5)) == [("s0", "failing"), ("s1", "worst")]


def test_equal_drafts_are_told_apart_by_their_ids_whatever_the_order_of_rows():
    frame = drafts(0.5, 0.5, 0.5, None, None)
    assert chosen(frame) == chosen(frame[::-1]) == [("s3", "failing"), ("s0", "worst")]


def test_two_drafts_in_the_same_state_are_selected_once():
    frame = pl.concat([drafts(0.5, 0.9), drafts(0.5, 0.9)])
    assert chosen(frame) == [("s0", "worst")]


def test_answers_without_a_state_are_left_out_of_account():
    frame = drafts(0.5, None).with_columns(state_id=pl.when(pl.col("running")).then("state_id"))
    assert chosen(frame) == [("s0", "worst")]
    assert select(drafts()).is_empty()


def test_each_design_is_selected_for_on_its_own():
    frame = pl.concat([drafts(0.2, 0.8, design="b"), drafts(None, design="a"), drafts(1.0, design="c")])
    assert select(frame)["design_id"].to_list() == ["a", "b"]


def test_every_strategy_selects_the_same_failing_draft_and_as_many_running_ones():
    frame = drafts(0.1, 0.3, 0.5, 0.7, 0.9, None, 1.0)
    for strategy in STRATEGIES:
        found = chosen(frame, strategy=strategy)
        assert found[0] == ("s5", "failing") and len(found) == 3
        assert len({state for state, _ in found}) == 3 and "s6" not in {state for state, _ in found}


def test_median_takes_the_middle_best_the_top_and_uniform_a_seeded_choice():
    frame = drafts(0.1, 0.3, 0.5, 0.7, 0.9)
    assert chosen(frame, strategy="median") == [("s2", "median"), ("s1", "median")]
    assert chosen(frame, strategy="best") == [("s4", "best"), ("s3", "best")]
    assert chosen(frame, strategy="uniform", seed=3) == chosen(frame[::-1], strategy="uniform", seed=3)
    assert len({str(chosen(frame, strategy="uniform", seed=s)) for s in range(20)}) > 5


def test_an_unknown_strategy_is_refused():
    with pytest.raises(ValueError, match="worst, median, uniform, best"):
        select(drafts(0.5), strategy="first")


@given(
    st.lists(st.one_of(st.none(), st.integers(0, 20).map(lambda i: i / 20)), max_size=8), st.sampled_from(STRATEGIES)
)
def test_selection_never_depends_on_other_designs_or_exceeds_three(scores, strategy):
    alone = select(drafts(*scores), strategy=strategy)
    beside = select(pl.concat([drafts(0.3, None, design="a"), drafts(*scores)]), strategy=strategy)
    assert alone.height <= 3
    assert alone.equals(beside.filter(pl.col("design_id") == "d"))
    assert alone["score"].to_list() == [s for s in alone["score"] if s < 1]
