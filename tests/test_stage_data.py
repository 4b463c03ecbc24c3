"""Which rows a stage trains on."""

from __future__ import annotations

from types import SimpleNamespace

import polars as pl

from llm4cov_assets.assets.training import stage_data

ROWS = {f"stage_{k}/sft_dataset": pl.DataFrame({"example_id": [f"{k}"]}) for k in range(3)}


def trained_on(k: int, *, replay: bool, rows: dict[str, pl.DataFrame] = ROWS) -> list[str]:
    work = SimpleNamespace(profile=SimpleNamespace(replay=replay), read=lambda table, asset: rows[asset])
    return stage_data(work, k)["example_id"].to_list()  # type: ignore[arg-type]


def test_without_replay_a_stage_trains_on_its_own_rows_alone():
    assert trained_on(2, replay=False) == ["2"]


def test_with_replay_the_rows_of_the_stages_before_are_there_once_and_its_own_twice():
    assert trained_on(0, replay=True) == ["0"]
    assert trained_on(2, replay=True) == ["0", "1", "2", "2"]


def test_a_stage_that_accepted_nothing_does_not_train_on_old_rows():
    empty = ROWS | {"stage_1/sft_dataset": ROWS["stage_1/sft_dataset"].clear()}
    assert trained_on(1, replay=True, rows=empty) == []
