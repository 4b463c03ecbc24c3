"""Publishing: what people can open, at any moment, whatever they do to it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import polars as pl
import pyarrow.parquet as pq
import pytest
from example_rows import CONFIG, example
from test_store import DRAFTS, OTHER_SETTINGS, A, B, C, benches, parts, selections

from warehouse.errors import WarehouseError
from warehouse.schema import TABLES
from warehouse.store import Provenance, Store


def content(store: Store) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every stored table, in a fixed order."""
    with store.connect() as connection:
        return {t: connection.execute(f"from rows.{t} order by all").fetchall() for t in TABLES}


def test_an_empty_home_has_all_tables_and_views(store: Store) -> None:
    store.publish()
    for name in (*TABLES, "trajectories", "leaderboard", "stage_funnel", "uncovered_all", "current_configuration"):
        assert store.query(f"from {name}").height == 0


def test_a_query_on_an_empty_home_publishes_first(store: Store) -> None:
    assert store.query("select count(*) as n from simulations")["n"].to_list() == [0]


def test_the_public_file_is_read_only_and_a_copy(store: Store) -> None:
    store.publish()
    assert stat.S_IMODE(store.public.stat().st_mode) == 0o444
    assert not Path(f"{store.public}.wal").exists()


def test_new_parts_are_folded_into_what_is_there(store: Store) -> None:
    store.write("testbenches", benches(A), DRAFTS)
    assert store.publish(force=True).new_parts == 1
    store.write("testbenches", benches(B), DRAFTS)
    assert store.publish(force=True).new_parts == 1
    assert store.query("select testbench_id from testbenches order by 1")["testbench_id"].to_list() == [A, B]
    assert not store.publish(force=True).changed


def test_publications_are_ten_seconds_apart_unless_forced(store: Store) -> None:
    assert store.publish().changed
    store.write("testbenches", benches(A), DRAFTS)
    assert not store.publish().changed
    long_ago = time.time() - 11
    os.utime(store.public, (long_ago, long_ago))
    assert store.publish().changed


def test_a_clock_that_went_back_does_not_stop_publishing(store: Store) -> None:
    store.publish()
    tomorrow = time.time() + 86_400
    os.utime(store.public, (tomorrow, tomorrow))
    store.write("testbenches", benches(A), DRAFTS)
    assert store.publish().changed


def test_one_row_a_key_is_seen_whichever_order_parts_arrive_in(store: Store) -> None:
    store.write("testbenches", benches(A, n_lines=1), Provenance(None, "adhoc", partition_key="adhoc"))
    store.write("selections", selections(A, score=0.1), DRAFTS)
    store.publish(force=True)
    store.write("testbenches", benches(A, B, n_lines=2), DRAFTS)
    store.write("testbenches", benches(A, C, n_lines=3), OTHER_SETTINGS)
    store.write("selections", selections(A, score=0.2), DRAFTS)
    store.publish(force=True)
    n_lines = store.query("select n_lines from testbenches order by testbench_id")["n_lines"].to_list()
    assert n_lines == [2, 2, 3]
    assert store.query("select score from selections_all")["score"].to_list() == [0.2]


def test_rebuilding_gives_the_same_database(store: Store) -> None:
    rows = example()
    rows.write(store)
    store.publish(force=True)
    store.write("testbenches", benches(A, n_lines=2), OTHER_SETTINGS, whole=True)
    store.write("selections", selections(A, B), OTHER_SETTINGS, whole=True)
    store.publish(force=True)
    store.write("selections", selections(B, C), OTHER_SETTINGS, whole=True)
    store.publish(force=True)
    before = content(store)
    assert store.rebuild().changed
    assert content(store) == before
    store.write("selections", selections(A, B), OTHER_SETTINGS, whole=True)
    store.publish(force=True)
    went_back = content(store)
    assert {row[0].hex() for row in went_back["selections"] if row[7] == "beefbeefbeefbeef"} == {A, B}  # type: ignore[attr-defined]
    store.rebuild()
    assert content(store) == went_back


def test_a_part_that_was_taken_away_is_no_longer_seen(store: Store) -> None:
    store.write("testbenches", benches(A), DRAFTS)
    store.write("testbenches", benches(B), DRAFTS)
    store.publish(force=True)
    parts(store)[0].unlink()
    store.publish(force=True)
    assert store.query("from testbenches").height == 1


def test_a_lost_or_broken_base_is_made_anew(store: Store) -> None:
    store.write("testbenches", benches(A), DRAFTS)
    store.publish(force=True)
    store.publisher.base.write_bytes(b"no database")
    store.write("testbenches", benches(B), DRAFTS)
    store.publish(force=True)
    assert store.query("from testbenches").height == 2
    store.publisher.base.unlink()
    store.write("testbenches", benches(C), DRAFTS)
    store.publish(force=True)
    assert store.query("from testbenches").height == 3


@contextmanager
def public_file_stays(store: Store) -> Iterator[None]:
    before = store.public.read_bytes()
    yield
    assert store.public.read_bytes() == before
    assert not list(store.home.glob(".trajectories-*"))


def test_a_damaged_part_leaves_the_public_file_as_it_was(store: Store) -> None:
    store.publish()
    store.write("testbenches", benches(A, text="long " * 500), DRAFTS)
    [part] = parts(store)
    whole = part.read_bytes()
    for damage in (whole[:-20], b"", whole[:40] + b"\0" * 60 + whole[100:]):
        part.write_bytes(damage)
        with public_file_stays(store), pytest.raises(WarehouseError, match="is damaged"):
            store.publish(force=True)
    part.write_bytes(whole)
    assert store.publish(force=True).new_parts == 1


def test_a_part_of_a_newer_schema_leaves_the_public_file_as_it_was(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.publish()
    monkeypatch.setattr("warehouse.parts.SCHEMA_VERSION", 99)
    store.write("testbenches", benches(A), DRAFTS)
    monkeypatch.undo()
    with public_file_stays(store), pytest.raises(WarehouseError, match=r"schema version 99.*use the newer program"):
        store.publish(force=True)


def test_a_full_disk_leaves_the_public_file_as_it_was(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.publish()
    store.write("testbenches", benches(A), DRAFTS)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("warehouse.publish.os.fsync", full)
    with public_file_stays(store), pytest.raises(WarehouseError, match=r"No space left on device.*stays as it was"):
        store.publish(force=True)
    monkeypatch.undo()
    assert store.publish(force=True).changed
    assert store.query("from testbenches").height == 1


def test_a_reader_that_stays_does_not_stop_publishing_and_keeps_what_it_sees(store: Store) -> None:
    store.publish()
    code = (
        "import duckdb, sys; c = duckdb.connect(sys.argv[1], read_only=True); print(0, flush=True); input();"
        "print(c.execute('select count(*) from testbenches').fetchone()[0], flush=True)"
    )
    reader = subprocess.Popen(
        [sys.executable, "-c", code, str(store.public)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert reader.stdin and reader.stdout and reader.stdout.readline() == "0\n"
    store.write("testbenches", benches(A), DRAFTS)
    store.publish(force=True)
    assert store.query("from testbenches").height == 1
    out, _ = reader.communicate("\n")
    assert out == "0\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can open a read-only file for writing")
def test_somebody_who_writes_into_the_public_file_blocks_nobody(store: Store) -> None:
    store.write("testbenches", benches(A), DRAFTS)
    store.publish(force=True)
    code = (
        "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(0, flush=True); input();"
        "c.execute('create table mine as select 1 as x'); print(1, flush=True); input()"
    )
    writer = subprocess.Popen(
        [sys.executable, "-c", code, str(store.public)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert writer.stdin and writer.stdout and writer.stdout.readline() == "0\n"
    assert store.query("from testbenches").height == 1  # the file is held: a copy is read
    store.write("testbenches", benches(B), DRAFTS)
    store.publish(force=True)
    writer.stdin.write("\n")
    writer.stdin.flush()
    assert writer.stdout.readline() == "1\n"
    log = Path(f"{store.public}.wal")
    assert log.exists()  # beside the new file lies the log of the old one
    with pytest.raises(duckdb.Error):
        duckdb.connect(store.public, read_only=True)
    assert store.query("from testbenches").height == 2
    published = store.publish(force=True)
    assert any("moved to" in message for message in published.messages)
    assert not log.exists()
    assert list(store.home.glob("trajectories.duckdb.wal.foreign-*"))
    with duckdb.connect(store.public, read_only=True) as connection:
        assert connection.execute("select count(*) from testbenches").fetchone() == (2,)
    writer.kill()
    writer.wait()


def _write_and_publish(home: Path, number: int) -> None:
    store = Store(home)
    for round_ in range(3):
        store.write("testbenches", benches(f"{number:02x}{round_:02x}" * 8), DRAFTS)
        store.publish(force=True)


def test_writers_and_publishers_at_once_lose_nothing(store: Store) -> None:
    store.publish()
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_and_publish, args=(store.home, n)) for n in range(3)]
    for writer in writers:
        writer.start()
    counts = []
    while any(w.is_alive() for w in writers):
        counts.append(store.query("select count(*) as n from testbenches")["n"][0])
        time.sleep(0.05)
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert counts == sorted(counts)
    assert store.query("from testbenches").height == 9
    assert store.verify() == []


@pytest.mark.slow
def test_a_publisher_killed_at_any_moment_leaves_a_warehouse_that_holds(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.publish()
    code = (
        "import sys; sys.path.insert(0, sys.argv[2]); from pathlib import Path; from test_publish import *\n"
        "store = Store(Path(sys.argv[1])); print('ready', flush=True)\n"
        "for n in range(int(sys.argv[3]), 10**6):\n"
        "    store.write('testbenches', benches(f'{n:032x}'), DRAFTS); print(n, flush=True)\n"
        "    store.publish(force=True)\n"
        "    if n % 3 == 0: store.compact()"
    )
    written = -1
    for attempt in range(6):
        writer = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path), str(Path(__file__).parent), str(written + 1)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert writer.stdout and writer.stdout.readline() == "ready\n"
        numbers = [int(writer.stdout.readline()) for _ in range(2)]
        time.sleep(0.013 * attempt)
        writer.send_signal(signal.SIGKILL)
        numbers += [int(line) for line in writer.stdout.read().split()]
        writer.wait()
        written = max(numbers)
        assert store.verify() == []
        store.publish(force=True)
        assert store.query("select count(*) as n from testbenches")["n"][0] >= written + 1


def test_plain_views_show_the_latest_run_and_all_views_everything(store: Store) -> None:
    from datetime import datetime

    example(CONFIG, "run-1", datetime(2026, 1, 1)).write(store)
    example("beef" * 4, "run-2", datetime(2026, 1, 2)).write(store)
    store.publish(force=True)
    assert store.query("select config_hash from current_configuration")["config_hash"].to_list() == ["beef" * 4]
    assert store.query("from leaderboard").height == 10
    assert store.query("from leaderboard_all").height == 20
    assert store.query("from transitions").height * 2 == store.query("from transitions_all").height
    assert store.query("from designs").height == 3
    again = pl.DataFrame(
        {"run_id": ["run-3"], "profile": ["quick"], "settings": ["{}"], "started_at": [datetime(2026, 1, 3)]}
    )
    store.write("runs", again, Provenance(None, CONFIG))
    store.publish(force=True)
    assert store.query("select config_hash from current_configuration")["config_hash"].to_list() == [CONFIG]


def test_before_any_run_of_the_pipeline_imports_and_ad_hoc_work_are_the_current_configuration(store: Store) -> None:
    refused = pl.DataFrame({"name": ["torn"], "source": ["torn.sv"], "reason": ["no parse"], "detail": ["line 1"]})
    store.write("rejected_designs", refused, Provenance(None, CONFIG))
    store.publish(force=True)
    assert store.query("select name from rejected_designs")["name"].to_list() == ["torn"]


def test_without_a_recorded_run_the_latest_rows_decide(store: Store) -> None:
    rows = example()
    rows.rows = type(rows.rows)(list, {k: v for k, v in rows.rows.items() if k[0] != "runs"})
    rows.write(store)
    store.publish(force=True)
    assert store.query("from leaderboard").height == 10


def test_rows_of_a_program_that_knew_fewer_columns_are_published(store: Store) -> None:
    example().write(store)
    added = ["n_tokens", "difficulty", "difficulty_label", "declared_difficulty", "instance"]
    for path in (store.home / "parts" / "designs").rglob("*.parquet"):
        older = pq.read_table(path).drop_columns(added)
        with pq.ParquetWriter(path, older.schema) as writer:
            writer.write_table(older)
            writer.add_key_value_metadata({"schema_version": "1", "table": "designs"})
    store.publish(force=True)
    rows = store.query(f"select name, n_lines, {', '.join(added)} from designs order by name")
    assert rows.select("name", "n_lines").rows() == [("alu", 40), ("fifo", 40), ("uart", 40)]
    assert rows.select(added).null_count().row(0) == (3,) * len(added)
    assert store.read("designs")["instance"].null_count() == 3
