"""`export trajectories`: one row a step, with everything that was seen and done."""

from __future__ import annotations

from pathlib import Path

from conftest import rows_of, run

from warehouse.store import Store


def test_there_is_one_row_for_each_step_with_what_the_tables_say(filled: Store, tmp_path: Path) -> None:
    run(filled, tmp_path / "out", "trajectories", split="all")
    rows = rows_of(tmp_path / "out", "steps")
    steps = {row["transition_id"]: row for row in filled.read("transitions").to_dicts()}
    assert len(rows) == len(steps)
    texts = dict(filled.read("testbenches").select("testbench_id", "text").iter_rows())
    feedback = dict(filled.read("simulations").select("simulation_id", "feedback").iter_rows())
    for row in rows:
        step = steps.pop(row["transition_id"])
        assert (row["coverage"], row["gain"]) == (step["score_after"], step["gain"])
        assert row["testbench"] == texts.get(step["testbench_id"])
        assert row["observation"] == feedback.get(step["simulation_id"])
        assert (row["observation_before"] is None) == (row["step"] == 0 and row["role"] != "repair")
    order = [(row["stage"] is not None, row["stage"] or 0, row["trajectory_id"], row["step"]) for row in rows]
    assert order == sorted(order)


def test_the_hits_of_a_step_name_points_that_stand_beside_it(filled: Store, tmp_path: Path) -> None:
    run(filled, tmp_path / "out", "trajectories", hits=True, stages=(0,), fmt="parquet")
    points = {(p["build_id"], p["point"]): p for p in rows_of(tmp_path / "out", "points")}
    rows = [row for row in rows_of(tmp_path / "out", "steps") if row["hits"]]
    assert rows
    for row in rows:
        set_bits = [i for i in range(8 * len(row["hits"])) if row["hits"][i // 8] >> (i % 8) & 1]
        assert len(set_bits) == row["n_hit"]
        lines = [points[row["build_id"], i] for i in set_bits if points[row["build_id"], i]["metric"] == "line"]
        assert len(lines) / 4 == row["line"]
