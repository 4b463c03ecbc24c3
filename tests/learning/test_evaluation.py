"""Episodes, the leaderboard and comparisons."""

from __future__ import annotations

import polars as pl
import pytest
from worlds import Author, World, design, testbench

from llm4cov_assets import rows
from llm4cov_assets.learning.evaluation import compare, evaluate, leaderboard
from sim.identity import content_id
from warehouse.frames import checked
from warehouse.schema import TABLES

A, B, C = design("a"), design("b"), design("c")


def one_better(at, sample, seed):
    """Each step adds 0.25; the sample number decides the draft."""
    return testbench("passed", min(1.0, round(at.score + 0.25, 2)), sample=sample if at.testbench is None else None)


def scores(episode):
    return [step.score_after for step in episode.steps]


def test_direct_is_one_draft_and_agentic_a_draft_and_repairs():
    direct = evaluate(Author(one_better), [A, B], World().simulate, "direct", n=2)
    agentic = evaluate(Author(one_better), [A, B], World().simulate, "agentic", n=2, rounds=2)
    assert [(e.design, e.sample, scores(e)) for e in direct] == [(d, s, [0.25]) for d in (A, B) for s in (0, 1)]
    assert [scores(e) for e in agentic] == [[0.25, 0.5, 0.75]] * 4
    assert [e.rounds for e in agentic] == [2] * 4


def test_an_episode_stops_at_coverage_1():
    (episode,) = evaluate(Author(one_better), [A], World().simulate, "agentic", n=1, rounds=9)
    assert scores(episode) == [0.25, 0.5, 0.75, 1.0]


def test_each_repair_starts_from_the_best_state_so_far():
    falls = iter([0.6, 0.3, 0.7, 0.5])
    (episode,) = evaluate(Author(lambda *_: testbench("passed", next(falls))), [A], World().simulate, "agentic", n=1)
    assert [step.state.score for step in episode.steps] == [0.0, 0.6, 0.6, 0.7]
    assert episode.best.score == 0.7


def test_of_equal_states_running_beats_failing_passed_beats_the_rest_and_the_earlier_the_later():
    plan = iter([testbench("load_error", n=0), testbench("load_error", n=1), testbench("test_failed", 0.0)])
    (episode,) = evaluate(Author(lambda *_: next(plan)), [A], World().simulate, "agentic", n=1, rounds=2)
    assert [step.state.testbench for step in episode.steps] == [None, *[episode.steps[0].generation.testbench] * 2]
    assert episode.status == "test_failed"
    plan = iter([testbench("timeout", 0.5), testbench("passed", 0.5, n=1), testbench("passed", 0.5, n=2)])
    (episode,) = evaluate(Author(lambda *_: next(plan)), [A], World().simulate, "agentic", n=1, rounds=2)
    assert episode.best.testbench is episode.steps[1].generation.testbench


def test_until_an_answer_is_usable_the_state_stays_s0():
    plan = iter([None, testbench("passed", 0.5)])
    (episode,) = evaluate(Author(lambda *_: next(plan)), [A], World().simulate, "agentic", n=1, rounds=1)
    assert [step.state.testbench for step in episode.steps] == [None, None]
    assert (episode.status, episode.best.score, episode.simulations) == ("passed", 0.5, 1)


def test_an_episode_does_not_depend_on_which_other_designs_are_present():
    def answer(at, sample, seed):
        return testbench("passed", int(content_id(at.state_id, sample, seed), 16) % 90 / 100)

    together = evaluate(Author(answer), [A, B, C], World().simulate, "agentic", n=3)
    alone = evaluate(Author(answer), [B], World().simulate, "agentic", n=3)
    assert [scores(e) for e in together if e.design is B] == [scores(e) for e in alone]


def test_samples_in_the_same_state_get_answers_of_their_own():
    seen = []

    def answer(at, sample, seed):
        seen.append((at.state_id, sample, seed))
        return testbench("passed", 0.5)

    policy = Author(answer)
    evaluate(policy, [A, B], World().simulate, "agentic", n=3, rounds=2)
    assert len(seen) == len(set(seen)) == 2 * 3 * 3
    assert [call[:2] for call in policy.calls] == [(2, 3)] * 3


def test_a_round_of_all_designs_and_samples_is_one_call_to_policy_and_simulator():
    world, policy = World(), Author(one_better)
    evaluate(policy, [A, B], world.simulate, "agentic", n=3, rounds=2)
    assert len(world.jobs) == 3
    assert [call[:2] for call in policy.calls] == [(2, 3), (6, 1), (2, 3)]


def test_simulations_are_counted_as_with_a_cold_cache_and_the_cached_share_beside_them():
    world = World()
    policy = Author(lambda *_: testbench("passed", 0.5))
    first = evaluate(policy, [A], world.simulate, "agentic", n=2, rounds=1)
    again = evaluate(policy, [A], world.simulate, "agentic", n=2, rounds=1)
    assert [(e.simulations, e.cached_simulations) for e in first] == [(1, 0), (0, 0)]
    assert [(e.simulations, e.cached_simulations) for e in again] == [(1, 1), (0, 0)]


def table(episodes, policy, targets=None, clusters=None, benchmark="eval") -> pl.DataFrame:
    ids = {e.design.design_id: e.design.name for e in episodes}
    return rows.evaluation_rows(
        episodes,
        policy,
        config_hash="c",
        clusters=clusters or ids,
        benchmarks=dict.fromkeys(ids, benchmark),
        targets=targets,
    )


def test_evaluations_and_transitions_are_rows_of_their_tables():
    policy = Author(lambda at, sample, seed: None if sample == 1 else testbench("passed", 0.5))
    for mode, statuses in (("direct", ["passed", "unparsable"]), ("agentic", ["passed", "passed"])):
        episodes = evaluate(policy, [A], World().simulate, mode, n=2, rounds=1)
        evaluations = checked(TABLES["evaluations"], table(episodes, policy))
        steps = checked(TABLES["transitions"], rows.episode_rows(episodes, policy, config_hash="c", stage=1))
        assert evaluations["status"].to_list() == statuses
        assert evaluations["target_met"].to_list() == [None, None]
        assert steps["role"].unique().to_list() == [f"eval_{mode}"]
        assert steps["step"].to_list() == [step for e in episodes for step in range(e.rounds + 1)]
        assert set(evaluations["trajectory_id"]) == set(steps["trajectory_id"])
        assert steps["transition_id"].n_unique() == steps.height and steps["accepted"].null_count() == steps.height


def test_targets_are_met_when_running_and_every_one_is_reached():
    def met(bench, targets):
        policy = Author(lambda *_: bench)
        (episode,) = evaluate(policy, [A], World().simulate, "direct", n=1)
        return table([episode], policy, {A.design_id: targets})["target_met"][0]

    good = testbench("test_failed", 0.8, toggle=0.6, expression=None)
    assert met(good, {"overall": 0.8, "toggle": 0.6}) is True
    assert met(good, {"overall": 0.8, "toggle": 0.7}) is False
    assert met(good, {"expression": 0.9}) is True
    assert met(testbench("load_error"), {"overall": 0.0}) is False
    assert met(None, {"overall": 0.1}) is False
    assert met(good, {}) is None


def evaluations(
    policy: str, scores: dict[str, list[float]], benchmark="eval", mode="direct", **columns
) -> pl.DataFrame:
    """Hand-made rows: design name -> coverage of its samples; the part before a dash is the cluster."""
    made = [
        {
            "policy": policy,
            "policy_id": policy,
            "benchmark": benchmark,
            "mode": mode,
            "design_id": name,
            "cluster": name.partition("-")[0],
            "sample": i,
            "overall": s,
            "line": s,
            "branch": s,
            "passed": s > 0,
            "simulations": 1,
            "cached_simulations": 0,
            **columns,
        }
        for name, samples in scores.items()
        for i, s in enumerate(samples)
    ]
    return rows.table_frame("evaluations", made)


def test_the_leaderboard_has_a_row_per_policy_mode_and_benchmark_and_one_for_all():
    frame = pl.concat(
        [
            evaluations("p", {"a": [0.2, 0.4], "b": [0.6, 0.8]}),
            evaluations("p", {"c": [1.0, 1.0]}, benchmark="held_out"),
            evaluations("q", {"a": [0.5, 0.5]}, mode="agentic"),
        ]
    )
    board = checked(TABLES["scores"], leaderboard(frame, 200, 1).with_columns(policy_id=pl.lit("0" * 32)))
    found = {(r["policy"], r["benchmark"], r["mode"]): r for r in board.iter_rows(named=True)}
    assert set(found) == {
        ("p", "all", "direct"),
        ("p", "eval", "direct"),
        ("p", "held_out", "direct"),
        ("q", "all", "agentic"),
        ("q", "eval", "agentic"),
    }
    row = found["p", "all", "direct"]
    assert row["avg_cov"] == pytest.approx(4.0 / 6) and row["n_designs"] == row["n_clusters"] == 3
    assert row["best_at_n"] == pytest.approx((0.4 + 0.8 + 1.0) / 3)
    assert row["avg_cov_low"] <= row["avg_cov"] <= row["avg_cov_high"]
    assert (row["simulations"], row["sim_pass"], row["cov_pass"], row["pass_at_1"]) == (6, 1.0, None, None)


def test_failing_samples_count_as_0():
    frame = evaluations("p", {"a": [0.0, 0.8]}).with_columns(
        line=pl.when(pl.col("overall") > 0).then("line"), branch=None
    )
    row = leaderboard(frame, 50).row(0, named=True)
    assert (row["avg_cov"], row["sim_pass"], row["avg_line_branch"]) == (0.4, 0.5, 0.4)


def test_designs_without_targets_are_left_out_of_cov_pass_and_pass_at_k():
    frame = pl.concat(
        [
            evaluations("p", {"a": [0.9, 0.9]}).with_columns(target_met=pl.col("sample") == 0),
            evaluations("p", {"b": [0.9, 0.9]}, target_met=False),
            evaluations("p", {"c": [0.9, 0.9]}),
        ]
    )
    row = leaderboard(frame, 50).row(0, named=True)
    assert (row["cov_pass"], row["pass_at_1"], row["pass_at_n"]) == (0.25, 0.25, 0.5)


def test_a_comparison_is_paired_over_clusters():
    """Designs differ a lot, policies by the same amount on each: a paired interval is narrow, an unpaired one not."""
    scores = {f"f{i}-{j}": [i / 10, i / 10] for i in range(8) for j in range(2)}
    better = {name: [s + 0.1 for s in samples] for name, samples in scores.items()}
    frame = pl.concat([evaluations("a", better), evaluations("b", scores)])
    row = checked(TABLES["comparisons"], compare(frame, [("a", "b")], 1000)).row(0, named=True)
    assert (row["policy_a"], row["policy_b"], row["benchmark"], row["n_clusters"]) == ("a", "b", "all", 8)
    assert row["diff"] == pytest.approx(0.1)
    assert row["diff_low"] == pytest.approx(0.1) and row["diff_high"] == pytest.approx(0.1)
    board = leaderboard(frame, 1000).filter(pl.col("benchmark") == "all")
    assert (board["avg_cov_high"] - board["avg_cov_low"]).min() > 0.2


def test_only_designs_that_both_were_evaluated_on_are_compared():
    frame = pl.concat([evaluations("a", {"x": [0.9], "y": [0.1]}), evaluations("b", {"x": [0.5], "z": [0.0]})])
    assert compare(frame, [("a", "b")], 50)["diff"].to_list() == pytest.approx([0.4, 0.4])
    assert compare(frame, [("a", "missing")], 50).is_empty()
    assert compare(evaluations("a", {"x": [1.0]}), [], 50).is_empty()


def test_training_runs_are_resampled_too_and_seeds_of_one_pair_stay_together():
    designs = {f"f{i}": [i / 10] for i in range(8)}

    def run(name, gain):
        better = {d: [s + gain for s in samples] for d, samples in designs.items()}
        both = pl.concat([evaluations("a", better), evaluations("b", designs)])
        return both.with_columns(run=pl.lit(name))

    frame = pl.concat([run("seed 0", 0.1), run("seed 1", 0.2)])
    row = compare(frame, [("a", "b")], 1000, runs="run").row(0, named=True)
    assert row["n_clusters"] == 8
    assert [row[c] for c in ("diff_low", "diff", "diff_high")] == pytest.approx([0.1, 0.15, 0.2])


def test_a_run_that_lacks_one_of_a_pair_takes_no_part_in_its_difference():
    pair = pl.concat([evaluations("a", {"x": [0.5], "y": [0.7]}), evaluations("b", {"x": [0.4], "y": [0.6]})])
    alone = evaluations("b", {"x": [0.0], "y": [0.0]})
    frame = pl.concat([pair.with_columns(run=pl.lit("seed 0")), alone.with_columns(run=pl.lit("seed 1"))])
    row = compare(frame, [("a", "b")], 200, runs="run").row(0, named=True)
    assert [row[c] for c in ("diff_low", "diff", "diff_high")] == pytest.approx([0.1, 0.1, 0.1])


def test_the_same_seed_gives_the_same_table_in_any_order_of_rows():
    frame = pl.concat([evaluations(p, {f"d{i}": [(i * k) % 7 / 7] for i in range(9)}) for k, p in ((3, "a"), (5, "b"))])
    shuffled = frame.sample(fraction=1, shuffle=True, seed=1)
    assert leaderboard(frame, 300, 5).equals(leaderboard(shuffled, 300, 5))
    assert compare(frame, [("a", "b")], 300, 5).equals(compare(shuffled, [("a", "b")], 300, 5))
    assert not compare(frame, [("a", "b")], 300, 5).equals(compare(frame, [("a", "b")], 300, 6))
