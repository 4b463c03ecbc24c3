"""Nothing that is evaluated on leaves the warehouse as training data."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from conftest import rows_of, run
from example_rows import CONFIG, Example

from llm4cov_assets.errors import UserError
from llm4cov_assets.export.guard import refuse_split
from sim.identity import content_id
from warehouse.store import Store


@pytest.fixture(scope="module")
def leaky(filled: Store, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The same with training rows of the evaluation design `alu` and of `twin`, which has its RTL, and with another
    configuration that evaluates on `fifo`."""
    home = tmp_path_factory.mktemp("leaky") / "home"
    shutil.copytree(filled.home, home)
    rows = Example()
    rows.design("twin", "train", known=4)
    rows.rows["designs", None, "designs", "batch_0"][0]["rtl_id"] = content_id("rtl", "alu")
    for design in ("alu", "twin"):
        draft = rows.step(f"0/{design}/0", design, "teacher", "draft", {0, 1}, stage=0, accepted=True)
        for hits in ({0, 1, 2, 3}, {0}):
            name = f"0/{design}/0/{len(hits)}"
            rows.example(0, design, rows.step(name, design, "teacher", "repair", hits, stage=0, before=draft), "repair")
    other = Example("beef" * 4, "run-2")
    other.evaluation("teacher", None, "direct", other.step("direct", "fifo", "teacher", "eval_direct", {0, 1}), 1)
    other.rows["evaluations", None, "evaluation", None][0]["design_id"] = content_id("design", "fifo")
    store = Store(home)
    rows.write(store)
    other.write(store)
    store.publish(force=True)
    return store


@pytest.mark.parametrize(
    ("design", "why"),
    [
        ("alu", "its split is eval"),
        ("twin", "has the RTL of alu: its split is eval"),
        ("fifo", "configuration beefbeefbeefbeef evaluates on it"),
    ],
)
def test_rows_of_what_is_evaluated_on_stop_the_whole_export(
    leaky: Store, tmp_path: Path, design: str, why: str
) -> None:
    for kind, text in (("sft", "compact"), ("sft", "testbench"), ("preferences", "testbench")):
        for designs in ((design,), ()):
            with pytest.raises(UserError, match=rf"refused: .* {design} \({why}\)"):
                run(leaky, tmp_path / "out", kind, text=text, config=CONFIG, designs=designs)
    assert not list(tmp_path.iterdir())


def test_what_is_left_can_be_exported(leaky: Store, tmp_path: Path) -> None:
    filters = {"designs": ("uart",), "roles": ("repair",)}
    assert run(leaky, tmp_path / "out", "preferences", text="testbench", config=CONFIG, **filters).rows == 1


def test_training_trajectories_are_guarded_too(leaky: Store, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"refused: 2 .* fifo .*; twin "):
        run(leaky, tmp_path / "out", "trajectories", config=CONFIG)


@pytest.mark.parametrize("split", ["eval", "all"])
def test_the_split_eval_cannot_be_asked_for_as_training_data(split: str) -> None:
    with pytest.raises(UserError, match="never exported as training data"):
        refuse_split(split)


def test_evaluation_trajectories_are_written_for_analysis_and_marked(filled: Store, tmp_path: Path) -> None:
    run(filled, tmp_path / "out", "trajectories", split="eval")
    assert {row["split"] for row in rows_of(tmp_path / "out", "steps")} == {"eval"}
    assert "**Not for training.**" in (tmp_path / "out" / "README.md").read_text()
    run(filled, tmp_path / "train", "trajectories")
    assert {row["split"] for row in rows_of(tmp_path / "train", "steps")} == {"train"}
    assert "Not for training" not in (tmp_path / "train" / "README.md").read_text()
