"""Writing rows as parts and reading them back."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from warehouse.errors import WarehouseError
from warehouse.schema import TABLES
from warehouse.store import Provenance, Store

A, B, C = "0a" * 16, "0b" * 16, "0c" * 16
DRAFTS = Provenance(0, "c0ffee00c0ffee00", "run-1", "stage_0/drafts", "batch_0", "1")
OTHER_SETTINGS = Provenance(0, "beefbeefbeefbeef", "run-2", "stage_0/drafts", "batch_0", "1")


def benches(*ids: str, text: str = "x", n_lines: int = 1) -> pl.DataFrame:
    return pl.DataFrame({"testbench_id": list(ids), "language": "cocotb", "text": text, "n_lines": n_lines})


def selections(*ids: str, score: float = 0.5) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "selection_id": list(ids),
            "state_id": A,
            "design_id": B,
            "strategy": "worst",
            "reason": "worst",
            "score": score,
        }
    )


def parts(store: Store) -> list[Path]:
    return sorted(store.parts.rglob("*.parquet"))


def test_rows_come_back_with_their_provenance(store: Store) -> None:
    assert store.write("testbenches", benches(A, B), DRAFTS) == 2
    rows = store.read("testbenches")
    assert rows["testbench_id"].to_list() == [A, B]
    assert rows.columns == [c.name for c in TABLES["testbenches"].all_columns]
    row = rows.row(0, named=True)
    assert (row["stage"], row["config_hash"], row["dagster_run_id"]) == (0, DRAFTS.config_hash, "run-1")
    assert (row["asset_key"], row["partition_key"], row["code_version"]) == ("stage_0/drafts", "batch_0", "1")
    assert isinstance(row["created_at"], datetime)


def test_everybody_may_read_what_is_written(store: Store) -> None:
    store.write("testbenches", benches(A), DRAFTS, whole=True)
    files = [path for path in store.parts.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".parquet", ".current"}
    assert {path.stat().st_mode & 0o777 for path in files} == {0o644}


def test_a_part_stores_ids_as_sixteen_bytes_below_table_and_partition(store: Store) -> None:
    store.write("testbenches", benches(A), DRAFTS)
    [part] = parts(store)
    assert part.parent == store.parts / "testbenches" / "batch_0"
    assert part.name.startswith(f"{DRAFTS.config_hash}-")
    column = pq.read_table(part)["testbench_id"]
    assert str(column.type) == "fixed_size_binary[16]"
    assert column[0].as_py() == bytes.fromhex(A)


@pytest.mark.parametrize("key", [None, "_", "a/b", "..", "data set 7", ""])
def test_any_partition_key_finds_its_rows_again(store: Store, key: str | None) -> None:
    store.write("testbenches", benches(A), Provenance(0, "c0ffee", partition_key=key))
    assert store.read("testbenches", partition_key=key)["partition_key"].to_list() == [key]
    [part] = parts(store)
    assert part.parent.parent == store.parts / "testbenches"


def test_the_same_work_done_again_writes_nothing(store: Store) -> None:
    store.write("testbenches", benches(A), DRAFTS)
    before = parts(store)[0].read_bytes()
    again = Provenance(**{**vars(DRAFTS), "dagster_run_id": "another run"})
    assert store.write("testbenches", benches(A), again) == 1
    assert [p.read_bytes() for p in parts(store)] == [before]


def test_other_content_other_settings_and_other_code_make_parts_of_their_own(store: Store) -> None:
    store.write("testbenches", benches(A), DRAFTS)
    store.write("testbenches", benches(B), DRAFTS)
    store.write("testbenches", benches(A), OTHER_SETTINGS)
    store.write("testbenches", benches(A), Provenance(**{**vars(DRAFTS), "code_version": "2"}))
    assert len(parts(store)) == 4


def test_filters_choose_rows(store: Store) -> None:
    store.write("selections", selections(A), DRAFTS)
    store.write("selections", selections(B), OTHER_SETTINGS)
    store.write("selections", selections(C), Provenance(1, DRAFTS.config_hash, None, "stage_1/drafts", "batch_1", "1"))
    assert store.read("selections").height == 3
    assert store.read("selections", config_hash=DRAFTS.config_hash)["selection_id"].to_list() == [A, C]
    assert store.read("selections", stage=1)["selection_id"].to_list() == [C]
    assert store.read("selections", asset_key="stage_0/drafts")["selection_id"].to_list() == [A, B]
    assert store.read("selections", partition_key="batch_1")["selection_id"].to_list() == [C]
    assert store.read("selections", stage=2).columns == [c.name for c in TABLES["selections"].all_columns]


def test_of_one_key_a_content_table_keeps_the_first_row_and_a_result_table_the_latest(store: Store) -> None:
    store.write("testbenches", benches(A, n_lines=1), DRAFTS)
    store.write("testbenches", benches(A, n_lines=2), DRAFTS)
    assert store.read("testbenches")["n_lines"].to_list() == [1]
    store.write("selections", selections(A, score=0.1), DRAFTS)
    store.write("selections", selections(A, score=0.2), DRAFTS)
    assert store.read("selections")["score"].to_list() == [0.2]


def test_rows_of_the_pipeline_go_before_ad_hoc_ones(store: Store) -> None:
    store.write("testbenches", benches(A, n_lines=1), Provenance(None, "adhoc", partition_key="adhoc"))
    store.write("testbenches", benches(A, n_lines=2), DRAFTS)
    assert store.read("testbenches")["n_lines"].to_list() == [2]


def test_a_key_twice_in_one_frame_is_stored_once(store: Store) -> None:
    store.write("testbenches", benches(A, A), DRAFTS)
    assert store.read("testbenches").height == 1


def test_the_order_of_rows_does_not_depend_on_when_they_were_written(tmp_path: Path) -> None:
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    for store, order in ((one, (A, B, C)), (two, (C, A, B))):
        for id_ in order:
            store.write("testbenches", benches(id_), DRAFTS)
    assert one.read("testbenches")["testbench_id"].equals(two.read("testbenches")["testbench_id"])


def test_a_whole_write_hides_what_the_asset_wrote_before(store: Store) -> None:
    store.write("selections", selections(A, B), DRAFTS, whole=True)
    store.write("selections", selections(A), OTHER_SETTINGS, whole=True)
    store.write("selections", selections(B, C), DRAFTS, whole=True)
    assert store.read("selections", config_hash=DRAFTS.config_hash)["selection_id"].to_list() == [B, C]
    assert store.read("selections", config_hash=OTHER_SETTINGS.config_hash)["selection_id"].to_list() == [A]
    store.write("selections", selections(A, B), DRAFTS, whole=True)
    assert store.read("selections", config_hash=DRAFTS.config_hash)["selection_id"].to_list() == [A, B]
    store.write("selections", selections(), DRAFTS, whole=True)
    assert store.read("selections", config_hash=DRAFTS.config_hash).is_empty()
    assert len(parts(store)) == 3


def test_lists_blobs_times_and_nulls_come_back(store: Store) -> None:
    hits = pl.DataFrame({"simulation_id": [A, B], "build_id": [C, C], "hits": [b"\x05\x80", b""], "n_hit": [3, 0]})
    store.write("coverage_hits", hits, DRAFTS)
    assert store.read("coverage_hits")["hits"].to_list() == [b"\x05\x80", b""]
    at = datetime(2026, 5, 4, 3, 2, 1, 123456)
    runs = pl.DataFrame({"run_id": ["r"], "profile": ["demo"], "settings": ["{}"], "started_at": [at]})
    store.write("runs", runs, DRAFTS)
    assert store.read("runs")["started_at"].to_list() == [at]
    policies = pl.DataFrame(
        {"policy_id": [A], "name": "p", "engine": "scripted", "checkpoint_id": pl.Series([None]), "settings": ""}
    )
    store.write("policies", policies, DRAFTS)
    assert store.read("policies")["checkpoint_id"].to_list() == [None]


def test_narrow_integers_and_integers_for_fractions_are_taken(store: Store) -> None:
    frame = benches(A).with_columns(pl.col("n_lines").cast(pl.Int32))
    store.write("testbenches", frame, DRAFTS)
    store.write("selections", selections(A).with_columns(pl.lit(1).alias("score")), DRAFTS)
    assert store.read("selections")["score"].to_list() == [1.0]


def test_wrong_frames_are_refused_in_one_line_that_names_the_column(store: Store) -> None:
    good = benches(A)
    wrong = {
        "missing columns n_lines": good.drop("n_lines"),
        "unknown columns mood": good.with_columns(mood=1),
        r"testbenches\.n_lines: expected int": good.with_columns(n_lines=pl.lit("many")),
        r"testbenches\.language: 1 of 1 values are null": good.with_columns(language=pl.lit(None, pl.String)),
        "'xyz' is no id": good.with_columns(testbench_id=pl.lit("xyz")),
    }
    for message, frame in wrong.items():
        with pytest.raises(WarehouseError, match=message) as caught:
            store.write("testbenches", frame, DRAFTS)
        assert "\n" not in str(caught.value)
    assert parts(store) == []


def test_an_unknown_table_is_named(store: Store) -> None:
    with pytest.raises(WarehouseError, match="no table 'drafts'; there are"):
        store.read("drafts")


def test_a_damaged_part_is_named_with_the_mend(store: Store) -> None:
    store.write("testbenches", benches(A), DRAFTS)
    [part] = parts(store)
    part.write_bytes(part.read_bytes()[:-40])
    with pytest.raises(WarehouseError, match=r"is damaged .* restore it") as caught:
        store.read("testbenches")
    assert part.name in str(caught.value)


def test_a_folder_that_cannot_be_written_gives_one_line(store: Store) -> None:
    store.home.joinpath("parts").write_text("not a folder")
    with pytest.raises(WarehouseError, match=r"cannot write .*Not a directory"):
        store.write("testbenches", benches(A), DRAFTS)


def test_nothing_temporary_is_left(store: Store) -> None:
    store.write("testbenches", benches(A), DRAFTS, whole=True)
    assert not [f for _, _, files in os.walk(store.home) for f in files if f.endswith(".tmp")]


def test_tables_are_written_after_those_they_refer_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(Store, "write", lambda self, table, *args, **options: written.append(table))
    Store(tmp_path).write_all(dict.fromkeys(reversed(TABLES), pl.DataFrame()), DRAFTS)
    assert sorted(written) == sorted(TABLES)
    for number, name in enumerate(written):
        assert {c.refers_to for c in TABLES[name].columns} - {""} <= set(written[: number + 1]), name
