"""The questions of warehouse/queries answer what they ask."""

from __future__ import annotations

from pathlib import Path

import pytest
from example_rows import Example, example
from test_store import Provenance

from sim.identity import sha256
from warehouse.examples import load_examples
from warehouse.store import Store

Made = tuple[Store, Example]
QUESTIONS = load_examples()


def answer(store: Store, name: str) -> list[dict[str, object]]:
    return store.query(QUESTIONS[name].sql).to_dicts()


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_is_a_sentence_and_has_an_answer(made: Made, name: str) -> None:
    assert QUESTIONS[name].question.endswith("?")
    rows = answer(made[0], name)
    assert bool(rows) == (name != "contamination")


def test_designs_that_stay_worst_come_first_with_the_reason(made: Made) -> None:
    first, second = answer(made[0], "stay_worst")
    assert (first["design"], first["best_by_stage"]) == ("uart", [0.063, 0.063, 0.0])
    assert first["why"] == "every answer fails, mostly compile_error"
    assert (second["design"], second["best_by_stage"]) == ("fifo", [0.625, 0.875, 0.875])


def test_gain_per_cost(made: Made) -> None:
    [row] = [r for r in answer(made[0], "gain_per_cost") if r["stage"] == 2 and r["role"] == "repair"]
    assert (row["policy"], row["gain_per_simulation"], row["gain_per_cpu_s"]) == ("stage_1", 0.25, 5.0)


def test_what_the_cache_saved(made: Made) -> None:
    rows = answer(made[0], "cache")
    assert [(r["work"], r["simulations"], r["from_cache"]) for r in rows] == [
        ("stage 0", 6, 1),
        ("stage 1", 3, 1),
        ("stage 2", 3, 2),
        ("outside the stages", 15, 5),
    ]


def test_lines_that_no_simulation_ever_hit(made: Made) -> None:
    lines = {(r["design"], r["line"]) for r in answer(made[0], "never_hit")}
    assert lines == {("alu", 19), ("fifo", 19)} | {("uart", n) for n in range(11, 20)}


def test_lines_that_were_never_hit_say_how_many_tried_and_whether_they_are_excluded(tmp_path: Path) -> None:
    made = example()
    [exclusion] = [row for row in made.rows["exclusions", None, "designs", "batch_0"] if "uart" in row["reason"]]
    made.rows["exclusions", None, "designs", "batch_0"] += [
        exclusion | {"number": 1, "first_line": 12, "last_line": 14, "reason": "second"},
        exclusion | {"number": 2, "first_line": 14, "last_line": 15, "instance": "u?r*", "reason": "third"},
        exclusion | {"number": 3, "first_line": None, "last_line": None, "instance": "u[a]rt", "reason": "nowhere"},
        exclusion | {"number": 4, "first_line": None, "last_line": None, "metric": "fsm", "reason": "no such point"},
    ]
    store = Store(tmp_path)
    made.write(store)
    store.publish()
    rows = {r["line"]: r for r in answer(store, "never_hit") if r["design"] == "uart"}
    reasons = {12: "second", 13: "second", 14: "second", 15: "third"}
    assert {line: row["excluded"] for line, row in rows.items()} == {n: reasons.get(n) for n in range(11, 20)}
    with store.connect() as connection:
        tried = connection.execute(
            "select count(*) from simulations join designs using (design_id) join coverage_hits using (simulation_id) "
            "where name = 'uart'"
        ).fetchone()
    assert {row["simulations"] for row in rows.values()} == {tried[0]} and tried[0] > 0


def test_a_trajectory_step_by_step_with_what_changed_and_what_it_hit(made: Made) -> None:
    first, second = answer(made[0], "trajectory")
    assert (first["design"], first["policy"], first["step"], first["n_hit"]) == ("alu", "stage_2", 0, 9)
    assert (second["step"], second["before"], second["n_uncovered"], second["hit"]) == (1, 0.875, 1, [])
    chosen = made[1].steps["0/fifo/1"].trajectory_id
    with made[0].connect() as connection:
        connection.execute(f"set variable trajectory_id = '{chosen}'")
        first, second = connection.execute(QUESTIONS["trajectory"].sql).pl().to_dicts()
    assert (first["step"], first["status"], first["after"], first["n_hit"]) == (0, "load_error", 0.0, 0)
    assert (second["step"], second["status"], second["gain"]) == (1, "passed", 0.4375)
    assert second["hit"] == ["branch fifo.sv:14", "expression fifo.sv:16", "line fifo.sv:10"]
    assert (second["lines_added"], second["lines_removed"]) == ("# [0, 4, 6, 8]", "# []")


def test_what_each_round_adds_and_what_it_costs(made: Made) -> None:
    draft, repair = (r for r in answer(made[0], "rounds") if r["policy"] == "stage_1")
    assert (draft["avg_cov"], draft["added"], repair["avg_cov"], repair["added"]) == (0.75, None, 0.875, 0.125)
    draft, repair = (r for r in answer(made[0], "score_per_simulation") if r["policy"] == "stage_1")
    assert (repair["simulations_per_sample"], repair["added_per_simulation"]) == (2.0, 0.125)
    assert draft["added_per_simulation"] is None


def test_what_repairs_make_of_the_states_they_start_from(made: Made) -> None:
    first, *_, last = answer(made[0], "before_after")
    assert (first["repairs"], first["avg_before"], first["avg_after"]) == (3, 0.1875, 0.375)
    assert (first["share_better"], first["avg_before_accepted"], first["avg_after_accepted"]) == (2 / 3, 0.5, 0.625)
    assert (last["stage"], last["repairs"], last["median_after"], last["share_failing"]) == (2, 1, 0.875, 0.0)


def test_the_leaderboard_shows_line_and_branch_beside_overall(made: Made) -> None:
    best = next(r for r in answer(made[0], "leaderboard") if r["mode"] == "direct")
    assert (best["policy"], best["avg_cov"], best["avg_line_branch"]) == ("stage_2", 0.875, 1.0)


def test_the_winner_of_each_kind_of_design(made: Made) -> None:
    direct = [r for r in answer(made[0], "winners") if r["mode"] == "direct"]
    assert direct == [
        {
            "mode": "direct", "designs": "hand_written", "n_designs": 1, "winner": "stage_2", "avg_cov": 0.875,
            "runner_up": "stage_1", "ahead_by": 0.125,
        }
    ]  # fmt: skip


def test_examples_by_stage_and_role(made: Made) -> None:
    rows = answer(made[0], "examples")
    assert [(r["stage"], r["role"], r["examples"], r["mean_gain"]) for r in rows] == [
        (0, "draft", 2, 0.5),
        (0, "repair", 2, 0.125),
        (1, "repair", 2, 0.125),
        (2, "repair", 2, 0.25),
    ]


def test_new_points_of_accepted_repairs(made: Made) -> None:
    assert [(r["stage"], r["new_points"]) for r in answer(made[0], "new_points")] == [
        (0, [2, 3]),
        (1, [7]),
        (2, [5, 7]),
    ]


def test_how_answers_fail(made: Made) -> None:
    teacher = [r for r in answer(made[0], "failures") if r["policy"] == "teacher"]
    assert {(r["status"], r["share"]) for r in teacher} == {("load_error", 0.25), ("unparsable", 0.25)}


def test_an_example_leads_to_all_it_was_made_from(made: Made) -> None:
    [row, _] = [r for r in answer(made[0], "example_lineage") if r["stage"] == 2]
    before, after = made[1].steps["2/fifo/0"], made[1].steps["2/fifo/0/r"]
    assert (row["simulation_before"], row["simulation_after"]) == (before.simulation_id, after.simulation_id)
    assert (row["testbench_before"], row["testbench_after"]) == (before.testbench_id, after.testbench_id)
    assert (row["dagster_run_id"], row["asset_key"], row["code_version"]) == ("run-1", "stage_2/repairs", "1")


def test_contamination_is_found(store: Store) -> None:
    rows = example()
    dirty = rows.rows["design_files", None, "designs", "batch_0"]
    dirty[0]["sha256"] = dirty[2]["sha256"] = sha256(b"the same file")
    (examples,) = [its for (table, stage, *_), its in rows.rows.items() if table == "sft_examples" and stage == 1]
    examples[0]["design_id"] = dirty[2]["design_id"]
    examples[1]["prompt"], examples[1]["completion"] = examples[0]["prompt"], examples[0]["completion"]
    rows.write(store)
    store.publish(force=True)
    assert [r["finding"] for r in answer(store, "contamination")] == [
        "file in a training and in an evaluation design",
        "the same example more than once in a stage",
        "training example of an evaluation design",
    ]


def test_configurations_are_compared(store: Store) -> None:
    example().write(store)
    example("beef" * 4, "run-2").write(store)
    store.write("runs", store.read("runs").select("run_id", "profile", "settings", "started_at"), Provenance(None, "x"))
    store.publish(force=True)
    best = [r for r in answer(store, "settings") if r["mode"] == "direct"][:2]
    assert {(r["config_hash"], r["policy"], r["avg_cov"]) for r in best} == {
        ("beef" * 4, "stage_2", 0.875),
        ("c0ffee00" * 2, "stage_2", 0.875),
    }


def test_the_history_of_the_inbox_says_what_holds_now(made: Made) -> None:
    rows = answer(made[0], "inbox")
    assert [(r["what"], r["version"], r["active"]) for r in rows if r["name"] == "fifo"] == [
        ("added", 1, False),
        ("changed", 2, False),
        ("changed back", 3, False),
        ("removed", 3, False),
        ("returned", 3, True),
    ]
    assert [(r["what"], r["version"], r["active"]) for r in rows if r["name"] != "fifo"] == [("left out", None, False)]
    with made[0].connect() as connection:
        lasted = connection.execute("select until - seen_at from design_history where name = 'fifo'").fetchall()
    assert [str(t[0]) for t in lasted[:-1]] == ["0:01:00"] * 4 and lasted[-1] == (None,)


def test_hard_designs_come_first_with_what_they_compare(made: Made) -> None:
    first, *others = answer(made[0], "difficulty")
    assert (first["design"], first["difficulty_label"], first["difficulty"]) == ("uart", "hard", 0.75)
    assert first["examples"] == ["uart: data == 7'h5a", "uart: data == 7'b1??????"]
    assert {(r["design"], r["best_overall"]) for r in others} == {("alu", 0.875), ("fifo", None)}


def test_how_designs_are_to_be_talked_to(made: Made) -> None:
    [row, *_] = answer(made[0], "interfaces")
    assert (row["design"], row["clocks"], row["resets"]) == ("alu", ["clk"], ["!rst_n"])
    assert (row["handshakes"], row["parameters"]) == (["valid*/ready"], ["WIDTH = 7"])
    assert (row["inputs"], row["outputs"], row["inouts"], row["widest"]) == (2, 1, 0, 7)
