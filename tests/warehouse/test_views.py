"""The views show what the rows say, with the columns that people rely on."""

from __future__ import annotations

import duckdb
import pytest
from example_rows import CPU_S, FAILING, Example
from example_rows import example as filled

from warehouse.catalog import load_views
from warehouse.schema import TABLES
from warehouse.store import Store

Made = tuple[Store, Example]


def rows(made: Made, sql: str) -> list[tuple[object, ...]]:
    with made[0].connect() as connection:
        return connection.execute(sql).fetchall()


def columns(made: Made, name: str) -> list[str]:
    return made[0].query(f"from {name} limit 0").columns


def test_every_row_that_was_written_is_seen(made: Made) -> None:
    store, example = made
    for table in TABLES:
        keys = {
            tuple(str(row[k]) for k in TABLES[table].key)
            for (name, *_), its in example.rows.items()
            if name == table
            for row in its
        }
        assert rows(made, f"select count(*) from rows.{table}") == [(len(keys),)], table
    assert store.verify() == []


def test_ids_are_shown_as_hex_and_can_be_asked_for_as_hex(made: Made) -> None:
    step = made[1].steps["0/fifo/0"]
    found = rows(made, f"select status, overall from simulations where simulation_id = '{step.simulation_id}'")
    assert found == [("passed", 0.5)]


def test_the_columns_that_people_rely_on_stay(made: Made) -> None:
    assert columns(made, "trajectories") == [
        "trajectory_id", "design", "stage", "step", "role", "policy", "status", "overall", "gain", "testbench_id",
        "simulation_id",
    ]  # fmt: skip
    assert columns(made, "leaderboard") == [
        "policy", "benchmark", "mode", "n_designs", "n_clusters", "sim_pass", "cov_pass", "avg_cov", "avg_cov_low",
        "avg_cov_high", "avg_line_branch", "pass_at_1", "pass_at_n", "best_at_n", "simulations", "checkpoint_id",
    ]  # fmt: skip
    assert columns(made, "comparisons") == [
        "policy_a", "policy_b", "benchmark", "mode", "n_clusters", "diff", "diff_low", "diff_high",
    ]  # fmt: skip
    for view in load_views():
        assert columns(made, f"{view.name}_all") == ["config_hash", *columns(made, view.name)]
    for table in TABLES.values():
        if table.name != "comparisons":
            assert columns(made, table.name) == [c.name for c in table.all_columns]


def test_every_table_view_and_column_says_what_it_is(made: Made) -> None:
    without = rows(
        made,
        "select table_name, column_name from duckdb_columns()"
        " where not internal and schema_name = 'main' and coalesce(comment, '') = ''",
    )
    assert without == []
    without = rows(
        made, "select view_name from duckdb_views() where not internal and coalesce(comment, '') = ''"
    ) + rows(made, "select table_name from duckdb_tables() where coalesce(comment, '') = ''")
    assert without == []


def test_the_funnel_counts_each_step_of_a_stage(made: Made) -> None:
    assert rows(
        made,
        "select stage, designs, drafts, drafts_usable, drafts_running, drafts_passed, selected, repairs,"
        " repairs_running, repairs_gaining, repairs_accepted, drafts_accepted, pairs, examples, designs_trained,"
        " simulations, avg_cov_direct, avg_cov_agentic from stage_funnel order by stage",
    ) == [
        (0, 2, 4, 3, 2, 2, 3, 3, 3, 2, 1, 1, 2, 4, 1, 6, 0.625, 0.75),
        (1, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 0, 1, 2, 1, 3, 0.75, 0.875),
        (2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 0, 1, 2, 1, 3, 0.875, 0.875),
    ]


def test_gains_are_summed_by_stage_role_and_policy(made: Made) -> None:
    [(n, gaining, mean, best, simulations, per_simulation, per_cpu_s)] = rows(
        made,
        "select n, gaining, mean_gain, best_gain, simulations, gain_per_simulation, gain_per_cpu_s from gains"
        " where stage = 0 and role = 'repair'",
    )
    assert (n, gaining, best, simulations) == (3, 2, 0.4375, 3)
    assert mean == pytest.approx(0.1875)
    assert per_simulation == pytest.approx(0.5625 / 3)
    assert per_cpu_s == pytest.approx(0.5625 / (3 * CPU_S))


def test_trajectories_hold_every_step_with_its_design(made: Made) -> None:
    step = made[1].steps["1/fifo/0"]
    assert rows(
        made,
        "select design, stage, step, role, policy, status, overall, gain from trajectories"
        f" where trajectory_id = '{step.trajectory_id}' order by step",
    ) == [
        ("fifo", 1, 0, "draft", "stage_0", "passed", 0.75, 0.75),
        ("fifo", 1, 1, "repair", "teacher", "passed", 0.875, 0.125),
    ]
    assert rows(made, "select count(*) from trajectories where status = 'unparsable' and testbench_id is null") == [
        (1,)
    ]


def test_the_leaderboard_is_sorted_best_first(made: Made) -> None:
    direct = rows(made, "select policy, avg_cov from leaderboard where mode = 'direct'")
    assert [policy for policy, _ in direct] == ["stage_2", "stage_1", "stage_0", "scripted/random", "untrained"]
    assert direct[0][1] == 0.875


def test_line_and_branch_coverage_stands_beside_overall(made: Made) -> None:
    assert rows(
        made, "select policy, avg_cov, avg_line_branch from leaderboard where mode = 'direct' order by policy limit 2"
    ) == [("scripted/random", 0.5, 0.5), ("stage_0", 0.625, 0.75)]


def test_rounds_follow_the_best_state_so_far(made: Made) -> None:
    assert rows(
        made,
        "select policy, round, n_samples, n_going, avg_cov, avg_line_branch, simulations_per_sample from rounds"
        " where benchmark = 'all' and policy in ('stage_0', 'stage_2') order by all",
    ) == [
        ("stage_0", 0, 1, 1, 0.625, 0.75, 1.0),
        ("stage_0", 1, 1, 1, 0.75, 0.75, 2.0),
        ("stage_2", 0, 1, 1, 0.875, 1.0, 1.0),
        ("stage_2", 1, 1, 1, 0.875, 1.0, 2.0),
    ]


def test_the_last_round_is_the_leaderboard(made: Made) -> None:
    last = "select policy, arg_max(avg_cov, round) from rounds where benchmark = 'all' group by policy order by policy"
    board = "select policy, avg_cov from leaderboard where mode = 'agentic' order by policy"
    assert rows(made, last) == rows(made, board)


def test_a_sample_that_stopped_or_failed_stays_in_the_rounds(store: Store) -> None:
    example = filled()
    for policy in ("full", "late"):
        example.policy(policy)
    full = example.step("full/0", "alu", "full", "eval_agentic", set(range(10)))
    example.evaluation("full", None, "agentic", full, 1)
    failed = example.step("late/0", "alu", "late", "eval_agentic", FAILING, status="load_error")
    late = example.step("late/1", "alu", "late", "eval_agentic", {0, 4}, before=failed)
    example.evaluation("late", None, "agentic", late, 2)
    example.write(store)
    store.publish(force=True)
    found = store.query(
        "select policy, round, n_going, avg_cov, avg_line_branch, share_full, simulations_per_sample from rounds"
        " where benchmark = 'hand_written' and policy in ('full', 'late') order by policy, round"
    )
    assert found.rows() == [
        ("full", 0, 1, 1.0, 1.0, 1.0, 1.0),
        ("full", 1, 0, 1.0, 1.0, 1.0, 1.0),
        ("late", 0, 1, 0.0, 0.0, 0.0, 1.0),
        ("late", 1, 1, 0.1875, 0.375, 0.0, 2.0),
    ]


def test_an_episode_tells_most_where_the_last_stage_gains_above_random(made: Made) -> None:
    found = rows(
        made,
        "select policy, design, draft, best, gain, rounds, gaining, simulations, avg_random from episodes"
        " where telling in (1, 2) order by telling",
    )
    assert found[0] == ("stage_2", "alu", 0.875, 0.875, 0.0, 1, 0, 2, 0.625)
    assert found[1] == ("stage_0", "alu", 0.625, 0.75, 0.125, 1, 1, 2, 0.625)


def test_repairs_stand_beside_the_state_they_mend(made: Made) -> None:
    assert rows(
        made, "select stage, design, policy, before, after, running, accepted, reject_reason from repairs order by all"
    ) == [
        (0, "fifo", "teacher", 0.0, 0.4375, True, False, "below the floor"),
        (0, "fifo", "teacher", 0.5, 0.625, True, True, ""),
        (0, "uart", "teacher", 0.0625, 0.0625, True, False, "no gain"),
        (1, "fifo", "teacher", 0.75, 0.875, True, True, ""),
        (2, "fifo", "stage_1", 0.625, 0.875, True, True, ""),
    ]


def test_a_step_knows_the_points_it_started_from_and_those_it_hit_and_lost(made: Made) -> None:
    ask = (
        "select step, before, after, [p.line - 10 for p in uncovered], [p.line - 10 for p in hit],"
        " [p.line - 10 for p in lost] from trajectory_steps where trajectory_id = '{}' order by step"
    )
    better, failed = (rows(made, ask.format(made[1].steps[name].trajectory_id)) for name in ("0/fifo/0", "0/fifo/1"))
    assert better == [
        (0, 0.0, 0.5, list(range(10)), [0, 1, 4, 6, 8], []),
        (1, 0.5, 0.625, [2, 3, 5, 7, 9], [2, 3], []),
    ]
    assert failed == [(0, 0.0, 0.0, list(range(10)), [], []), (1, 0.0, 0.4375, list(range(10)), [0, 4, 6, 8], [])]
    assert rows(made, "select count(*) from trajectory_steps") == rows(made, "select count(*) from trajectories")


def test_a_step_without_a_testbench_hits_nothing(made: Made) -> None:
    [found] = rows(made, "select step, hit, lost, uncovered from trajectory_steps where status = 'unparsable'")
    assert found == (0, [], [], [])


def test_worst_designs_say_why(made: Made) -> None:
    assert rows(made, "select design, stage, best, failing, why from worst_designs where design = 'uart'") == [
        ("uart", 0, 0.0625, 1, "no repair gains"),
        ("uart", 1, 0.0625, 0, "nothing was repaired"),
        ("uart", 2, 0.0, 1, "every answer fails, mostly compile_error"),
    ]


def test_uncovered_are_the_points_that_nothing_ever_hit(made: Made) -> None:
    assert rows(made, "select metric, line, source from uncovered where design = 'fifo'") == [("toggle", 19, "line 9;")]
    assert rows(made, "select line from uncovered where design = 'uart' order by line") == [(n,) for n in range(11, 20)]


def test_what_the_cache_saved_is_what_it_did_not_run(made: Made) -> None:
    assert rows(
        made,
        "select simulations, from_cache, share_from_cache, cpu_s_spent, cpu_s_saved from cache_savings"
        " where stage = 2 and role = 'draft'",
    ) == [(2, 1, 0.5, CPU_S, CPU_S)]


def test_the_budget_lists_simulation_generation_and_training(made: Made) -> None:
    assert rows(
        made, "select work, n, from_cache, cpu_s, wall_s, tokens from budget where stage = 1 order by work"
    ) == [
        ("generation", 3, None, None, 0.75, 120),
        ("simulation", 3, 1, pytest.approx(2 * CPU_S), None, None),
        ("training", 1, None, 3.0, None, 400),
    ]


def test_bitsets_count_unite_differ_and_list() -> None:
    from warehouse.catalog import VIEWS

    connection = duckdb.connect()
    connection.execute((VIEWS / "macros.sql").read_text())
    a, b = bytes([0b10000001, 0b1]), bytes([0b10000010, 0])

    def ask(sql: str) -> object:
        row = connection.execute(
            f"with s as (select ?::blob as a, ?::blob as b) select {sql} from s", [a, b]
        ).fetchone()
        return row[0] if row else None

    assert ask("bitset_count(a)") == 3
    assert ask("bitset_list(a)") == [0, 7, 8]
    assert ask("bitset_list(bitset_union(a, b))") == [0, 1, 7, 8]
    assert ask("bitset_list(bitset_intersection(a, b))") == [7]
    assert ask("bitset_list(bitset_difference(a, b))") == [0, 8]
    assert ask("[bitset_has(a, i) for i in range(16)]") == [i in (0, 7, 8) for i in range(16)]
    assert connection.execute(
        "select bitset_list(bitset_union_agg(h)) from (values (?::blob), (?::blob), (null)) as v(h)", [a, b]
    ).fetchone() == ([0, 1, 7, 8],)


def test_the_file_can_be_attached_beside_others(made: Made) -> None:
    connection = duckdb.connect()
    connection.execute(f"attach '{made[0].public}' as warehouse (read_only)")
    assert connection.execute("select count(*) from warehouse.uncovered where design = 'fifo'").fetchone() == (1,)
