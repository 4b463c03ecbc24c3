"""What the inbox sensor asks for, shows and writes down, from tick to tick, with a real Dagster instance."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import dagster as dg
import polars as pl
import pytest
from test_due import FIFO, finish

from definitions import defs
from llm4cov_assets.assets import designing, looking_after, watching
from llm4cov_assets.assets.closing import closed_imports
from llm4cov_assets.assets.due import REASON
from llm4cov_assets.assets.inbox import due_closures, inbox
from llm4cov_assets.assets.partitions import design_batches
from llm4cov_assets.ingest import importing
from llm4cov_assets.ingest.importing import import_source
from llm4cov_assets.ingest.taking import take_in
from llm4cov_assets.profiles import PROFILES
from llm4cov_assets.rows import table_frame
from warehouse.store import Provenance, Store

JOB = "close_new_designs"


def module(name: str, width: int = 1) -> str:
    return f"module {name}(input [{width}:0] a, output [{width}:0] b); assign b = ~a; endmodule\n"


@dataclass
class Home:
    """A home with a Dagster instance, and what its ticks asked for."""

    path: Path
    instance: dg.DagsterInstance
    asked: list[dg.RunRequest] = field(default_factory=lambda: [])

    def drop(self, name: str, text: str) -> Path:
        """Put a file into the inbox, as if a minute ago."""
        file = self.path / "inbox" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        self.age()
        return file

    def age(self) -> None:
        old = time.time() - 60
        for path in (self.path / "inbox").rglob("*"):
            os.utime(path, (old, old), follow_symlinks=False)

    def tick(self) -> dg.SensorResult | dg.SkipReason:
        """One tick; what it asks for is made as the daemon would make it."""
        tick = inbox(dg.build_sensor_context(instance=self.instance, definitions=defs))
        assert isinstance(tick, dg.SensorResult | dg.SkipReason)
        if isinstance(tick, dg.SensorResult):
            for request in tick.dynamic_partitions_requests or ():
                self.instance.add_dynamic_partitions(design_batches.name, list(request.partition_keys))
            keys = {r.run_key for r in self.asked}
            self.asked += [r for r in tick.run_requests or () if r.run_key not in keys]
        return tick

    def runs(self) -> list[str | None]:
        """Batches that one tick starts runs for."""
        tick = self.tick()
        return [r.partition_key for r in tick.run_requests or ()] if isinstance(tick, dg.SensorResult) else []

    def shown(self) -> dict[str, list[str]]:
        """The cells of the table that the last change left, by entry."""
        tick = self.tick()
        assert isinstance(tick, dg.SensorResult) and tick.asset_events
        text = str(tick.asset_events[0].metadata["entries"].value)
        rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines()[2:] if line]
        return {row[0].replace("\\", ""): row[1:] for row in rows}

    def batches(self) -> list[str]:
        return sorted(self.instance.get_dynamic_partitions(design_batches.name))

    def history(self) -> list[tuple[str, str, int | None]]:
        rows = Store(self.path).read("design_events").sort("seen_at", "name")
        return [(r["name"], r["what"], r["version"]) for r in rows.iter_rows(named=True)]

    def run(self, batch: str, status: dg.DagsterRunStatus) -> None:
        """Leave a run of a batch."""
        job = defs.resolve_job_def(JOB)
        self.instance.create_run_for_job(job, status=status, tags={"dagster/partition": batch})


@pytest.fixture(scope="module")
def dagster() -> Iterator[dg.DagsterInstance]:
    """An instance on disk: making one takes longer than a tick."""
    with dg.instance_for_test() as instance:
        yield instance


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dagster: dg.DagsterInstance) -> Iterator[Home]:
    """An empty home."""
    monkeypatch.setenv("LLM4COV_HOME", str(tmp_path))
    (tmp_path / "inbox").mkdir()
    yield Home(tmp_path, dagster)
    for batch in dagster.get_dynamic_partitions(design_batches.name):
        dagster.delete_dynamic_partition(design_batches.name, batch)
    dagster.wipe()


def words(tick: dg.SensorResult | dg.SkipReason) -> str:
    skip = tick if isinstance(tick, dg.SkipReason) else tick.skip_reason
    return str(skip.skip_message) if skip else ""


def test_an_entry_has_a_history_of_versions_each_with_its_run(home: Home) -> None:
    file = home.drop("d.sv", module("d", 1))
    first = home.runs()
    assert home.runs() == [], "nothing new, nothing asked"
    home.drop("d.sv", module("d", 2))
    second = home.runs()
    home.drop("d.sv", module("d", 1))
    third = home.runs()
    file.unlink()
    assert home.runs() == []
    home.drop("d.sv", module("d", 1))
    assert home.runs() == [], "the same content as before needs no new run"
    assert [*first, *second, *third] == home.batches() and len(home.batches()) == 3
    assert [str(b)[:13] for b in home.batches()] == ["inbox-d-v001-", "inbox-d-v002-", "inbox-d-v003-"]
    assert str(first[0])[-8:] == str(third[0])[-8:] != str(second[0])[-8:]
    assert [r.tags[REASON] for r in home.asked] == [
        "d.sv is new in the inbox",
        "d.sv changed in the inbox",
        "d.sv changed back in the inbox, its content is that of version 1",
    ]
    keys = [str(r.run_key).split(":") for r in home.asked]
    assert [(k[0], k[2]) for k in keys] == [("d", "1"), ("d", "2"), ("d", "3")] and keys[0][1] == keys[2][1]
    assert home.history() == [
        ("d", "added", 1), ("d", "changed", 2), ("d", "changed back", 3), ("d", "removed", 3), ("d", "returned", 3),
    ]  # fmt: skip


def test_a_run_is_asked_for_with_the_batch_that_it_needs(home: Home) -> None:
    home.drop("d.sv", module("d"))
    tick = home.tick()
    assert isinstance(tick, dg.SensorResult) and tick.run_requests and tick.dynamic_partitions_requests
    assert [list(r.partition_keys) for r in tick.dynamic_partitions_requests] == [[tick.run_requests[0].partition_key]]
    [event] = tick.asset_events
    assert isinstance(event, dg.AssetMaterialization) and event.asset_key == dg.AssetKey("inbox")


def test_nothing_is_asked_for_again_when_everything_but_the_batches_is_lost(home: Home) -> None:
    for name in ("a", "b", "gone"):
        home.drop(f"{name}.sv", module(name))
    home.runs()
    (home.path / "inbox" / "gone.sv").unlink()
    home.runs()
    before = home.history()
    shutil.rmtree(home.path / "cache" / "inbox")
    assert home.runs() == [] and home.history() == before, "the history says what was there"
    shutil.rmtree(home.path / "cache" / "inbox")
    shutil.rmtree(home.path / "parts")
    assert home.runs() == [], "and without it the names of the batches"


def test_removed_and_older_versions_are_left_alone_by_the_schedule(home: Home) -> None:
    file = home.drop("d.sv", module("d", 1))
    [first] = home.runs()
    home.drop("d.sv", module("d", 2))
    [second] = home.runs()

    def due() -> list[dg.RunRequest | dg.SkipReason]:
        return list(due_closures(dg.build_schedule_context(instance=home.instance)))

    assert [r.partition_key for r in due() if isinstance(r, dg.RunRequest)] == [second] != [first]
    file.unlink()
    [skip] = due()
    assert isinstance(skip, dg.SkipReason) and "2 older or removed left alone" in str(skip.skip_message)


def test_imports_that_were_closed_once_are_looked_at_by_the_schedule(home: Home) -> None:
    for name in ("d", "e"):
        source = home.path / "rtl" / f"{name}.sv"
        source.parent.mkdir(exist_ok=True)
        source.write_text(module(name, ord(name)))
        import_source(source, home.path, batch=f"mine-{name}")
    home.instance.add_dynamic_partitions(design_batches.name, ["demo-000", "mine-d", "mine-e"])
    for batch in ("demo-000", "mine-d"):
        finish(home.path, batch, FIFO)
    assert closed_imports(home.path, home.batches()) == ["mine-d"]
    finish(home.path, "mine-d", FIFO.__class__(**{**vars(FIFO), "simulator": "verilator 4.0"}))
    [due] = list(due_closures(dg.build_schedule_context(instance=home.instance)))
    assert isinstance(due, dg.RunRequest) and due.partition_key == "mine-d"
    assert due.tags[REASON].startswith("closed with verilator 4.0, now there is verilator ")


def test_every_entry_is_shown_with_its_standing_and_why(home: Home) -> None:
    for name in ("closed", "closing", "failed", "new"):
        if name != "new":
            home.drop(f"{name}.sv", module(name, ord(name[2])))
    home.drop("torn.sv", "module torn(input a;\nendmodule\n")
    home.drop("notes.doc", "")
    by_name = {str(b).split("-")[1]: str(b) for b in home.runs()}
    take_in(home.path, by_name["torn"])
    finish(home.path, by_name["closed"], FIFO)
    home.run(by_name["closing"], dg.DagsterRunStatus.STARTED)
    home.run(by_name["failed"], dg.DagsterRunStatus.FAILURE)
    home.drop("new.sv", module("new"))
    home.drop("odd | *name*/d.sv", module("odd"))
    (home.path / "inbox" / "young.sv").write_text(module("young"))
    shown = home.shown()
    assert {name: row[0] for name, row in shown.items()} == {
        "closed": "closed", "closing": "closing", "failed": "failed", "new": "new", "notes.doc": "left out",
        "odd | *name*": "new", "torn": "rejected", "young.sv": "waiting",
    }  # fmt: skip
    assert "does not parse: " in shown["torn"][-1] and "torn.sv:1" in shown["torn"][-1]
    assert shown["closed"][1:3] == ["1", by_name["closed"]]
    assert shown["young.sv"][-1] == "still being copied"
    assert ("torn", "rejected", 1) in home.history() and ("notes.doc", "left out", None) in home.history()
    said = words(home.tick())
    for text in ("1 closed", "1 closing", "1 failed", "1 rejected", "'young.sv' waiting: still being copied"):
        assert text in said
    assert isinstance(home.tick(), dg.SkipReason), "what did not change is not shown again"
    assert len(home.history()) == len(set(home.history())), "nor written down again"


def test_a_rejected_entry_is_tried_again_when_it_changes_only(home: Home) -> None:
    home.drop("d.sv", "module d(input a;\nendmodule\n")
    [batch] = home.runs()
    take_in(home.path, str(batch))
    assert home.runs() == [] and home.runs() == []
    home.drop("d.sv", module("d"))
    [mended] = home.runs()
    assert str(mended).startswith("inbox-d-v002-")
    assert [what for _, what, _ in home.history()] == ["added", "rejected", "changed"]


def test_a_large_entry_is_closed_batch_by_batch(home: Home) -> None:
    for i in range(9):
        home.drop(f"many/d{i}/d{i}.sv", module(f"d{i}", i + 1))
    [batch] = home.runs()
    take_in(home.path, str(batch), batch_size=1)
    first = home.runs()
    assert first == [f"{batch}-{i:03d}" for i in range(watching.PARTS_AT_ONCE)]
    assert home.batches() == [batch, *(f"{batch}-{i:03d}" for i in range(9))], "all are there to be seen"
    for part in first:
        home.run(str(part), dg.DagsterRunStatus.STARTED)
    assert home.runs() == [], "no more than so many wait at once, so that others get their turn"
    for run in home.instance.get_runs():
        home.instance.delete_run(run.run_id)
    second = home.runs()
    assert second == [f"{batch}-{i:03d}" for i in range(4, 8)]
    assert home.asked[-1].tags[REASON] == "many holds 9 designs: batch 8 of 9"
    assert len({r.run_key for r in home.asked}) == len(home.asked)


def test_of_very_many_new_entries_each_tick_takes_some(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    for target in (watching, looking_after):
        monkeypatch.setattr(target, "MOST_NEW", 3)
    for i in range(7):
        home.drop(f"d{i}.sv", module(f"d{i}", i + 1))
    assert home.shown()["d6"][0] == "waiting"
    assert [len(home.runs()) for _ in range(3)] == [3, 1, 0]
    assert len(home.batches()) == 7 and len(home.history()) == 7


def test_a_new_commit_starts_what_it_changed_and_names_it(home: Home, tmp_path: Path) -> None:
    repository = tmp_path / "repo"

    def commit(message: str, **files: str) -> str:
        for name, text in files.items():
            (repository / name).mkdir(parents=True, exist_ok=True)
            (repository / name / f"{name}.sv").write_text(text)
        who = ["-c", "user.name=n", "-c", "user.email=n@example.org"]
        for arguments in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", message]):
            subprocess.run(["git", "-C", str(repository), *arguments], check=True)
        told = subprocess.run(["git", "-C", str(repository), "rev-parse", "HEAD"], capture_output=True, check=True)
        return told.stdout.decode()[:9]

    commit("First", a=module("a", 1), b=module("b", 2))
    home.drop("chip.toml", f'path = "{repository}"\ngit = true\n')
    assert [str(b)[:18] for b in home.runs()] == ["inbox-chip.a-v001-", "inbox-chip.b-v001-"]
    head = commit("Widen b", b=module("b", 3))
    [changed] = home.runs()
    assert str(changed).startswith("inbox-chip.b-v002-")
    assert home.asked[-1].tags[REASON] == f"chip.toml: b changed in the inbox: commit {head} 'Widen b'"
    shutil.rmtree(repository)
    assert home.runs() == [] and "no such folder" in words(home.tick())
    assert "removed" not in {what for _, what, _ in home.history()}, "it may come back"
    (home.path / "inbox" / "chip.toml").unlink()
    home.tick()
    assert [(n, w) for n, w, _ in home.history()][-2:] == [("chip.a", "removed"), ("chip.b", "removed")]


def test_events_are_rows_that_hold_together(home: Home) -> None:
    home.drop("d.sv", module("d"))
    home.runs()
    store = Store(home.path)
    run = {"run_id": "r", "profile": "demo", "settings": "{}", "started_at": datetime(2026, 1, 1)}
    store.write("runs", table_frame("runs", [run]), Provenance(None, PROFILES["demo"].config_hash))
    store.publish(force=True)
    assert store.verify() == []
    row = store.query("select name, what, version, batch, active, source from design_history").row(0, named=True)
    assert row == {
        "name": "d", "what": "added", "version": 1, "batch": home.batches()[0], "active": True,
        "source": str(home.path / "inbox" / "d.sv"),
    }  # fmt: skip
    assert store.read("design_events").schema["seen_at"] == pl.Datetime("us")


@pytest.mark.slow
def test_what_does_not_run_is_refused_where_it_is_checked(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small entry when it is imported, of a large one each batch: building everything first would take hours."""
    stuck = "module stuck(input clk, input a, output b); wire c; assign c = a ? ~c : 1'b0; assign b = c; " + (
        "initial $finish; endmodule\n")  # fmt: skip
    monkeypatch.setattr(designing, "BATCH_SIZE", 2)
    for i in range(3):
        home.drop(f"large/d{i}/d{i}.sv", module(f"d{i}", i + 1))
    home.drop("large/stuck/stuck.sv", stuck)
    home.drop("small/stuck.sv", stuck)
    home.drop("small/design.toml", 'name = "small"\n')
    large, small = (str(b) for b in home.runs())
    job = defs.resolve_job_def("register_designs")

    def register(batch: str) -> tuple[list[str], list[str]]:
        assert job.execute_in_process(instance=home.instance, partition_key=batch).success
        rows = [Store(home.path).read(table, partition_key=batch) for table in ("designs", "rejected_designs")]
        return sorted(rows[0]["name"]), [f"{r['name']}: {r['reason']}" for r in rows[1].iter_rows(named=True)]

    assert register(small) == ([], ["small: does not run"])
    monkeypatch.setattr(importing, "fitting_size", lambda count: 2)
    assert register(large) == ([], [])
    assert home.runs() == [f"{large}-000", f"{large}-001"]
    assert register(f"{large}-000") == (["d0", "d1"], [])
    assert register(f"{large}-001") == (["d2"], ["stuck: does not run"])
    assert set(Store(home.path).read("designs")["deterministic"]) == {True}
    assert home.shown()["small"][0] == "rejected"
