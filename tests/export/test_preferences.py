"""`export preferences`: the best answer to a state against the worst."""

from __future__ import annotations

from pathlib import Path

from conftest import extended, rows_of, run
from example_rows import Example

from warehouse.store import Store


def pairs(store: Store, folder: Path, **options: object) -> list[dict]:
    run(store, folder, "preferences", **{"text": "testbench", "roles": ("repair",), **options})
    return rows_of(folder, "prompt_chosen_rejected")


def ids(rows: Example, *names: str) -> tuple[str, ...]:
    return tuple(rows.steps[name].transition_id for name in names)


def test_the_best_that_passed_stands_against_the_worst_that_was_simulated(filled: Store, tmp_path: Path) -> None:
    rows = extended()
    by_design = {row["design"]: row for row in pairs(filled, tmp_path / "out", stages=(0,))}
    fifo, uart = by_design["fifo"], by_design["uart"]
    # neither the fault of a tool nor an answer without a testbench is in a pair
    assert (fifo["chosen_transition_id"], fifo["rejected_transition_id"]) == ids(rows, "0/fifo/0/r", "0/fifo/0/hangs")
    assert fifo["n_answers"] == 3 and fifo["rejected_status"] == "timeout"
    assert (uart["chosen_transition_id"], uart["rejected_transition_id"]) == ids(rows, "0/uart/0/near", "0/uart/0/r")
    assert uart["margin"] == uart["chosen_coverage"] - uart["rejected_coverage"] == 0.0625
    assert fifo["prompt"].count("# [0, 1, 4, 6, 8]") == 1
    assert (fifo["chosen"], fifo["rejected"]) == (
        "```python\n# [0, 1, 2, 3, 4, 6, 8]\n```",
        "```python\n# []\n```",
    )


def test_a_larger_margin_keeps_only_what_runs_against_what_does_not(filled: Store, tmp_path: Path) -> None:
    kept = pairs(filled, tmp_path / "out", stages=(0,), margin=0.9)
    assert [row["design"] for row in kept] == ["fifo"]
    assert kept[0]["margin"] < 0.9 and kept[0]["rejected_coverage"] == 0


def test_compact_pairs_share_their_prompt_and_have_the_answers_of_the_student(tmp_path: Path) -> None:
    rows = Example()
    rows.design("fifo", "train", known=4)
    rows.policy("stage_0", rows.checkpoint("stage_0", 0, None, 4))
    rows.policy("teacher")
    first = rows.step("d0", "fifo", "stage_0", "draft", {0}, stage=1)
    rows.step("d1", "fifo", "stage_0", "draft", {0, 1, 2}, stage=1)
    rows.step("d2", "fifo", "teacher", "draft", set(range(10)), stage=1)
    rows.step("r0", "fifo", "stage_0", "repair", {0, 1}, stage=1, before=first)
    for (table, *_), made in rows.rows.items():
        for number, row in enumerate(made):
            if table == "generations":
                row["text"] = f"r 0{number}"
    store = Store(tmp_path / "home")
    rows.write(store)
    store.publish(force=True)
    [pair] = pairs(store, tmp_path / "out", text="compact", roles=())
    assert (pair["chosen_transition_id"], pair["rejected_transition_id"]) == ids(rows, "d1", "d0")
    assert (pair["prompt"], pair["chosen"], pair["rejected"]) == ("cover this", "r 01 <eos>", "r 00 <eos>")
    [spoken] = rows_of(tmp_path / "out", "messages")
    assert spoken["chosen"] == [{"role": "assistant", "content": "r 01"}]
