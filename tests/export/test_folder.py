"""The folder of an export: what `datasets` reads from it, the data card, and what happens when something goes wrong."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import rows_of, run

from llm4cov_assets.errors import UserError
from llm4cov_assets.export import writing
from llm4cov_assets.export.tally import Limits
from warehouse.schema import SCHEMA_VERSION
from warehouse.store import Store


@pytest.mark.parametrize("fmt", ["hf", "jsonl", "parquet"])
def test_datasets_opens_every_shape_and_split_without_a_network(filled: Store, tmp_path: Path, fmt: str) -> None:
    from datasets import load_dataset
    from huggingface_hub import DatasetCard

    out = tmp_path / "out"
    run(filled, out, "preferences", text="testbench", fmt=fmt, limits=Limits(validation=0.3))
    cache = str(tmp_path / "cache")
    loaded = load_dataset(str(out), cache_dir=cache)
    assert {split: data.num_rows for split, data in loaded.items()} == {"train": 2, "validation": 2}
    assert loaded["train"].column_names[:3] == ["prompt", "chosen", "rejected"]
    if fmt != "parquet":
        spoken = load_dataset(str(out), "messages", cache_dir=cache)["train"]
        assert spoken[0]["chosen"][0]["role"] == "assistant"
    about = DatasetCard.load(out / "README.md").data.to_dict()
    assert about["license"] == "apache-2.0" and about["size_categories"] == ["n<1K"]


def test_validation_holds_out_whole_clusters(filled: Store, tmp_path: Path) -> None:
    run(filled, tmp_path / "out", "preferences", text="testbench", limits=Limits(validation=0.01))
    splits = [{r["cluster"] for r in rows_of(tmp_path / "out", "messages", s)} for s in ("train", "validation")]
    assert sorted(len(s) for s in splits) == [1, 1] and splits[0].isdisjoint(splits[1])


def test_the_description_has_the_hash_of_every_file_and_what_it_was_made_of(filled: Store, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(filled, out, "sft", text="testbench")
    said = json.loads((out / "export.json").read_text())
    for file in (*said["files"], said["card"]):
        content = (out / file["path"]).read_bytes()
        assert (file["sha256"], file["bytes"]) == (hashlib.sha256(content).hexdigest(), len(content))
    assert {str(p.relative_to(out)) for p in out.rglob("*") if p.is_file()} == {
        "export.json", "README.md", *(file["path"] for file in said["files"])
    }  # fmt: skip
    assert said["versions"]["schema"] == SCHEMA_VERSION and said["versions"]["simulators"] == ["verilator 5.048"]
    assert {part["name"].split("/")[0] for part in said["source"]["parts"]} >= {"transitions", "testbenches"}
    for part in said["source"]["parts"]:
        assert (filled.parts / part["name"]).exists()
    assert {policy["policy"] for policy in said["policies"]} == {"teacher", "stage_0", "stage_1"} - {"stage_0"}
    assert [design["design"] for design in said["designs"]] == ["fifo"]


def test_the_same_rows_are_the_same_bytes(filled: Store, tmp_path: Path) -> None:
    for kind in ("sft", "preferences", "trajectories"):
        hashes = []
        for number in range(2):
            out = tmp_path / f"{kind}{number}"
            run(filled, out, kind)
            hashes.append([(f["path"], f["sha256"]) for f in json.loads((out / "export.json").read_text())["files"]])
        assert hashes[0] == hashes[1]


def test_large_data_is_cut_into_files(filled: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run(filled, tmp_path / "whole", "trajectories", split="all").rows
    monkeypatch.setattr(writing, "SHARD_BYTES", 1)
    monkeypatch.setattr(writing, "_GROUP_ROWS", 5)
    run(filled, tmp_path / "cut", "trajectories", split="all")
    assert len(list((tmp_path / "cut" / "steps").iterdir())) == -(-whole // 5)
    assert rows_of(tmp_path / "cut", "steps") == rows_of(tmp_path / "whole", "steps")


def test_nothing_is_replaced_and_nothing_is_left_of_an_export_that_fails(
    filled: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match="is not empty, and an export replaces nothing"):
        run(filled, out)
    assert [p.name for p in tmp_path.rglob("*")] == ["out", "mine.txt"]
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="is no folder"):
        run(filled, tmp_path / "file")

    def full(path: Path) -> str:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("llm4cov_assets.export.exporting.file_sha256", full)
    with pytest.raises(UserError, match="No space left on device; nothing was left there"):
        run(filled, tmp_path / "new")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "out"]


def test_an_empty_folder_is_taken(filled: Store, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert run(filled, tmp_path / "out").rows == 8
    assert (tmp_path / "out" / "README.md").exists()


def test_the_command_says_in_one_line_what_is_wrong(filled: Store, tmp_path: Path) -> None:
    def llm4cov(*arguments: str) -> tuple[int, str, str]:
        environment = os.environ | {"LLM4COV_HOME": str(filled.home)}
        command = [sys.executable, "-m", "llm4cov_assets.cli", "export", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout, done.stderr

    code, out, _ = llm4cov("sft", "out", "--design", "fifo", "--min-gain", "0.05", "--json")
    assert code == 0 and json.loads(out)["rows"] == len(rows_of(tmp_path / "out", "prompt_completion"))
    assert llm4cov("preferences", "none", "--design", "nothing*")[0] == 1
    for arguments in (("sft", "o", "--split", "eval"), ("sft", "o", "--text", "rtl"), ("sft", "out")):
        code, _, error = llm4cov(*arguments)
        assert code == 2 and error.startswith("llm4cov: ") and len(error.splitlines()) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]
