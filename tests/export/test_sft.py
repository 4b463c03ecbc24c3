"""`export sft`: the text that training used, whole testbenches, filters, and a way back to the warehouse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import rows_of, run
from example_rows import CONFIG

from llm4cov_assets.export.tally import Limits
from llm4cov_assets.learning.training import data_hash
from warehouse.lineage import trace
from warehouse.store import Store


def test_the_text_is_that_of_the_training_and_the_card_says_of_which_checkpoint(filled: Store, tmp_path: Path) -> None:
    done = run(filled, tmp_path / "out")
    rows = rows_of(tmp_path / "out", "prompt_completion")
    for stage in (0, 1, 2):
        trained_on = filled.read("sft_examples", stage=stage).sort("example_id")
        mine = [(r["example_id"], r["prompt"], r["completion"]) for r in rows if r["stage"] == stage]
        assert mine == list(trained_on.select("example_id", "prompt", "completion").iter_rows())
    first, second, _ = json.loads((tmp_path / "out" / "export.json").read_text())["trained"]
    assert first["data_hash"] == data_hash(filled.read("sft_examples", stage=0).sort("example_id"))
    assert (first["same"], second["same"]) == (True, False)
    assert first["checkpoint_id"] in (tmp_path / "out" / "README.md").read_text()
    assert done.rows == len(rows) == 8


def test_messages_leave_the_end_of_a_turn_to_the_chat_template(filled: Store, tmp_path: Path) -> None:
    run(filled, tmp_path / "out")
    texts, spoken = (rows_of(tmp_path / "out", shape) for shape in ("prompt_completion", "messages"))
    for text, row in zip(texts, spoken, strict=True):
        asked, answered = row["messages"]
        assert (asked["role"], asked["content"]) == ("user", text["prompt"])
        assert answered == {"role": "assistant", "content": text["completion"].removesuffix(" <eos>")}
        assert text["completion"].endswith(" <eos>")


def test_every_row_leads_back_to_the_warehouse(filled: Store, tmp_path: Path) -> None:
    run(filled, tmp_path / "out")
    row = rows_of(tmp_path / "out", "prompt_completion")[0]
    with filled.connect() as connection:
        for name in ("example_id", "transition_id", "simulation_id"):
            traced = trace(connection, row[name])
            assert traced is not None, name


def test_a_repair_in_words_has_rtl_testbench_and_feedback_and_the_whole_accepted_file(
    filled: Store, tmp_path: Path
) -> None:
    run(filled, tmp_path / "out", text="testbench", stages=(0,))
    rows = {row["role"]: row for row in rows_of(tmp_path / "out", "prompt_completion")}
    repair, draft = rows["repair"], rows["draft"]
    for row in (repair, draft):
        assert "module fifo;" in row["prompt"] and "`rst_n` (active low)" in row["prompt"]
    assert "# [0, 1, 4, 6, 8]" in repair["prompt"] and "passed" in repair["prompt"]
    assert repair["completion"] == "```python\n# [0, 1, 2, 3, 4, 6, 8]\n```"
    assert "was simulated" not in draft["prompt"]
    said = rows_of(tmp_path / "out", "messages")
    assert [m["role"] for m in said[0]["messages"]] == ["system", "user", "assistant"]
    accepted = filled.read("transitions", stage=0).filter(accepted=True)
    assert {row["transition_id"] for row in said} == set(accepted["transition_id"])


@pytest.mark.parametrize(
    ("filters", "n"),
    [
        ({}, 8),
        ({"stages": (1, 2)}, 4),
        ({"designs": ("f*", "x*")}, 8),
        ({"designs": ("x*",)}, 0),
        ({"policies": ("stage_1",)}, 2),
        ({"roles": ("draft",)}, 2),
        ({"min_gain": 0.3}, 2),
        ({"split": "adhoc"}, 0),
    ],
)
def test_filters_take_what_they_say(filled: Store, tmp_path: Path, filters: dict, n: int) -> None:
    assert run(filled, tmp_path / "out", dry_run=True, **filters).rows == n
    assert not (tmp_path / "out").exists()


def test_long_rows_and_texts_that_come_again_are_left_out_and_counted(filled: Store, tmp_path: Path) -> None:
    limits = Limits(max_characters=1)
    assert run(filled, tmp_path / "none", limits=limits).rows == 0
    assert not list(tmp_path.iterdir())
    done = run(filled, tmp_path / "out", text="testbench", limits=Limits(unique=True))
    every = run(filled, tmp_path / "every", text="testbench")
    assert every.description["duplicates"] == done.description["left_out"].get("same text as an earlier row", 0)
    assert done.rows == every.rows - every.description["duplicates"]


def test_a_configuration_is_named_by_the_head_of_its_hash_and_an_unknown_one_is_refused(
    filled: Store, tmp_path: Path
) -> None:
    assert run(filled, tmp_path / "a", config=CONFIG[:8], dry_run=True).rows == 8
    assert run(filled, tmp_path / "a", config="all", dry_run=True).rows == 8
    with pytest.raises(Exception, match=f"--config 1234567: is no configuration here; there are {CONFIG}, and all"):
        run(filled, tmp_path / "a", config="1234567")
