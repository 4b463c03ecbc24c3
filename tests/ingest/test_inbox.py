"""The inbox sees finished designs, once each, and never deletes a partition."""

from __future__ import annotations

import os
from pathlib import Path

from llm4cov_assets.ingest.inbox import batch_name, left_out, partition_changes, scan_inbox

LATER = 4_000_000_000.0


def drop(inbox: Path, name: str, text: str = "module m; endmodule\n") -> Path:
    file = inbox / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_folders_and_files_with_rtl_are_seen_by_name(tmp_path: Path) -> None:
    drop(tmp_path, "fifo/fifo.sv")
    drop(tmp_path, "blink.v")
    drop(tmp_path, "notes.txt")
    drop(tmp_path, ".hidden/x.sv")
    (tmp_path / "empty").mkdir()
    assert [(e.name, e.path.name) for e in scan_inbox(tmp_path, now=LATER)] == [("blink", "blink.v"), ("fifo", "fifo")]
    assert scan_inbox(tmp_path / "nowhere", now=LATER) == []


def test_what_is_left_out_is_named_with_the_reason(tmp_path: Path) -> None:
    drop(tmp_path, "notes.txt")
    drop(tmp_path, "young/young.sv")
    drop(tmp_path, "good/good.sv")
    drop(tmp_path, ".hidden/x.sv")
    (tmp_path / "empty").mkdir()
    (tmp_path / "dangling.sv").symlink_to("nowhere.sv")
    now = (tmp_path / "good" / "good.sv").stat().st_mtime + 100
    os.utime(tmp_path / "young" / "young.sv", (now, now))
    why = left_out(tmp_path, now=now)
    assert set(why) == {"notes.txt", "young", "empty", "dangling.sv"}
    assert "copied" in why["young"] and "no file" in why["empty"]


def test_one_odd_name_does_not_stop_the_others(tmp_path: Path) -> None:
    drop(tmp_path, "good/good.sv")
    drop(tmp_path, os.fsdecode(b"l\xe9/a.sv"))
    drop(tmp_path, os.fsdecode(b"inside/\xe9.txt"))
    drop(tmp_path, "x" * 240 + "/a.sv")
    drop(tmp_path, "do....ts/a.sv")
    found = scan_inbox(tmp_path, now=LATER)
    names = list(partition_changes(found, []).add)
    assert len(names) == len(set(names)) == 4
    assert list(left_out(tmp_path, now=LATER)) == ["l\\udce9"]
    for name in names:
        assert len(name.encode()) < 100 and "..." not in name and name.isprintable()


def test_a_file_of_tomorrow_is_not_waited_for(tmp_path: Path) -> None:
    """Copied with its time from a machine whose clock goes ahead."""
    ahead = drop(tmp_path, "ahead/a.sv").stat().st_mtime
    assert [e.name for e in scan_inbox(tmp_path, now=ahead - 86400)] == ["ahead"]
    assert scan_inbox(tmp_path, now=ahead - 1) == []


def test_what_is_still_being_copied_is_left_for_later(tmp_path: Path) -> None:
    young = drop(tmp_path, "young/young.sv")
    drop(tmp_path, "partial/a.sv")
    drop(tmp_path, "partial/b.sv.part")
    old = young.stat().st_mtime - 100
    for path in (*tmp_path.rglob("*"),):
        os.utime(path, (old, old))
    os.utime(young, (old + 99, old + 99))
    assert scan_inbox(tmp_path, now=old + 100) == []
    assert [e.name for e in scan_inbox(tmp_path, now=old + 102)] == ["young"]


def test_the_hash_follows_content_and_names_of_files(tmp_path: Path) -> None:
    file = drop(tmp_path, "d/d.sv")
    [first] = scan_inbox(tmp_path, now=LATER)
    [again] = scan_inbox(tmp_path, now=LATER)
    file.write_text("module d2; endmodule\n")
    [edited] = scan_inbox(tmp_path, now=LATER)
    drop(tmp_path, "d/design.toml", 'top = "d2"\n')
    [extended] = scan_inbox(tmp_path, now=LATER)
    assert first == again
    assert len({e.content_hash for e in (first, edited, extended)}) == 3


def test_new_and_changed_designs_get_new_batches_and_old_ones_stay(tmp_path: Path) -> None:
    file = drop(tmp_path, "d/d.sv")
    [entry] = scan_inbox(tmp_path, now=LATER)
    name = batch_name(entry.name, entry.content_hash, "1")
    changes = partition_changes([entry], ["train-000"])
    assert (list(changes.add), changes.inactive) == ([name], [])
    assert partition_changes([entry], ["train-000", name]).add == {}
    file.write_text("module d; wire w; endmodule\n")
    changes = partition_changes(scan_inbox(tmp_path, now=LATER), ["train-000", name])
    assert len(changes.add) == 1
    assert changes.inactive == [name]


def test_a_new_version_closes_every_design_again(tmp_path: Path) -> None:
    drop(tmp_path, "d.sv")
    found = scan_inbox(tmp_path, now=LATER)
    known = list(partition_changes(found, [], "1").add)
    assert len(partition_changes(found, known, "2").add) == 1


def test_batch_names_hold_no_awkward_characters() -> None:
    assert batch_name("my design: v2/ß", "0123456789abcdef", "1") == "inbox-my-design--v2-ß-01234567-v1"
