"""The inbox is looked at without ever waiting or reading without bound; versions follow from the names of batches."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import tarfile
import time
import zipfile
from pathlib import Path

import pytest

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest import looking, taking
from llm4cov_assets.ingest.inbox import Entry, Scan, entry_name, scan_inbox
from llm4cov_assets.ingest.kept import kept_batch
from llm4cov_assets.ingest.looking import Memory
from llm4cov_assets.ingest.pointers import Pointer, pointer, read_pointer
from llm4cov_assets.ingest.taking import take_in, taken
from llm4cov_assets.ingest.versions import batch_name, belongs_to, entry_key, first_batch, reason, standing
from sim.identity import content_id, sha256

LATER = 4_000_000_000.0


def module(name: str) -> str:
    """A module that differs from others in more than its name."""
    width = int.from_bytes(os.fsencode(name)[-2:], "big") % 1000 + 1
    return f"module {name}(input [{width}:0] a, output [{width}:0] b); assign b = ~a; endmodule\n"


def drop(inbox: Path, name: str, text: str | None = None) -> Path:
    """Put a file into the inbox; a module that is called like the file."""
    file = inbox / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(module(Path(name).stem) if text is None else text)
    return file


def scan(inbox: Path, **options) -> Scan:
    """Look at the inbox long after everything in it was written."""
    return scan_inbox(inbox, **{"now": LATER, **options})


def names(found: Scan) -> list[str]:
    return sorted(entry.name for entry in found.entries)


def batch_of(entry: Entry, number: int = 1) -> str:
    return batch_name(entry.name, number, entry.content_hash)


# What is an entry


def test_folders_and_files_are_entries_by_name(tmp_path: Path) -> None:
    drop(tmp_path, "fifo/fifo.sv")
    drop(tmp_path, "blink.v")
    drop(tmp_path, "list.f", "blink.v\n")
    drop(tmp_path, "chip.tar.gz", "")
    drop(tmp_path, "records.jsonl", "{}\n")
    drop(tmp_path, "table.parquet", "PAR1")
    drop(tmp_path, "ip.core", "CAPI=2:\n")
    drop(tmp_path, ".hidden/x.sv")
    found = scan(tmp_path)
    assert names(found) == ["blink", "chip", "fifo", "ip", "list", "records", "table"]
    assert found.left_out == {}
    assert scan(tmp_path / "nowhere") == Scan()


def test_what_is_left_out_is_named_with_the_reason(tmp_path: Path) -> None:
    good = drop(tmp_path, "good/good.sv")
    drop(tmp_path, "notes.doc")
    (tmp_path / "empty").mkdir()
    (tmp_path / "dangling.sv").symlink_to("nowhere.sv")
    os.mkfifo(tmp_path / "pipe.sv")
    drop(tmp_path, "young/young.sv")
    now = good.stat().st_mtime + 100
    os.utime(tmp_path / "young" / "young.sv", (now, now))
    found = scan(tmp_path, now=now)
    assert names(found) == ["good"]
    why = {label: left.why for label, left in found.left_out.items()}
    assert set(why) == {"notes.doc", "young", "empty", "dangling.sv", "pipe.sv"}
    assert "no RTL, list, archive" in why["notes.doc"] and "no file" in why["empty"]
    assert "No such file" in why["dangling.sv"] and "neither an ordinary file" in why["pipe.sv"]
    assert [label for label, left in found.left_out.items() if left.waits] == ["young"]


def test_two_entries_of_one_name_are_not_mixed_up(tmp_path: Path) -> None:
    drop(tmp_path, "fifo.sv")
    drop(tmp_path, "fifo.v")
    found = scan(tmp_path)
    assert [e.label for e in found.entries] == ["fifo.sv"]
    assert found.left_out["fifo.v"].why == "fifo.sv has the name 'fifo' already; rename one of them"


def test_one_odd_name_does_not_stop_the_others(tmp_path: Path) -> None:
    drop(tmp_path, "good/good.sv")
    drop(tmp_path, os.fsdecode(b"l\xe9/a.sv"), "module a; endmodule")
    drop(tmp_path, os.fsdecode(b"inside/\xe9.txt"), "text")
    drop(tmp_path, "x" * 240 + "/a.sv")
    drop(tmp_path, "do....ts/a.sv")
    drop(tmp_path, 'it\'s "quoted"\nand | more/a.sv')
    found = scan(tmp_path)
    batches = [new.batch for new in standing(found.entries, []).new]
    assert len(batches) == len(set(batches)) == 5
    assert list(found.left_out) == ["l\\udce9"]
    for entry, batch in zip(found.entries, batches, strict=True):
        assert len(batch.encode()) < 100 and "..." not in batch and batch.isprintable()
        assert belongs_to(entry.name, batch)


@pytest.mark.parametrize(
    ("file", "name"),
    [("a.sv", "a"), ("a.b.tar.gz", "a.b"), ("A.ZIP", "A"), ("chip", "chip"), ("chip.d", "chip.d"), (".sv", ".sv"),
     ("x.jsonl", "x"), ("x.toml", "x")],
)  # fmt: skip
def test_entries_are_called_like_their_file_without_what_says_its_kind(file: str, name: str) -> None:
    assert entry_name(file) == name


# What is still changing


def test_what_is_still_being_copied_is_left_for_later(tmp_path: Path) -> None:
    young = drop(tmp_path, "young/young.sv")
    drop(tmp_path, "partial/a.sv")
    drop(tmp_path, "partial/b.sv.part")
    drop(tmp_path, "edited/a.sv")
    drop(tmp_path, "edited/.a.sv.swp")
    old = young.stat().st_mtime - 100
    for path in tmp_path.rglob("*"):
        os.utime(path, (old, old))
    os.utime(young, (old + 99, old + 99))
    assert scan(tmp_path, now=old + 100).waiting == {"young", "partial", "edited"}
    assert names(scan(tmp_path, now=old + 102)) == ["young"]


def test_files_that_keep_their_old_time_are_waited_for_too(tmp_path: Path) -> None:
    """As cp -a and tar copy them: only the folder that they are put into tells."""
    file = drop(tmp_path, "d/rtl/deep/a.sv")
    now = file.stat().st_mtime + 100
    for path in (tmp_path / "d", *(tmp_path / "d").rglob("*")):
        os.utime(path, (now - 100, now - 100))
    assert names(scan(tmp_path, now=now)) == ["d"]
    os.utime(file.parent, (now, now))
    assert scan(tmp_path, now=now).waiting == {"d"}


def test_a_file_of_tomorrow_is_not_waited_for(tmp_path: Path) -> None:
    """Copied with its time from a machine whose clock goes ahead."""
    ahead = drop(tmp_path, "ahead/a.sv").stat().st_mtime
    assert names(scan(tmp_path, now=ahead - 86400)) == ["ahead"]
    assert names(scan(tmp_path, now=ahead - 1)) == []


# The hash


def test_the_hash_follows_content_and_names_of_files(tmp_path: Path) -> None:
    file = drop(tmp_path, "d/d.sv")
    hashes = {scan(tmp_path).entries[0].content_hash}
    assert {scan(tmp_path).entries[0].content_hash} == hashes
    file.write_text("module d2; endmodule\n")
    hashes.add(scan(tmp_path).entries[0].content_hash)
    drop(tmp_path, "d/design.toml", 'top = "d2"\n')
    hashes.add(scan(tmp_path).entries[0].content_hash)
    file.rename(file.with_name("e.sv"))
    hashes.add(scan(tmp_path).entries[0].content_hash)
    assert len(hashes) == 4


def test_the_hash_of_folders_and_files_is_that_of_earlier_programs(tmp_path: Path) -> None:
    """Or every design of an existing home would be closed again."""
    for name in ("d/a/x.sv", "d/a-b.sv", "f.sv"):
        drop(tmp_path, name)
    hashed = {e.name: e.content_hash for e in scan(tmp_path).entries}
    files = {n: sha256((tmp_path / n).read_bytes()) for n in ("d/a/x.sv", "d/a-b.sv", "f.sv")}
    assert hashed == {
        "d": content_id("inbox", [["d/a/x.sv", files["d/a/x.sv"]], ["d/a-b.sv", files["d/a-b.sv"]]]),
        "f": content_id("inbox", [["f.sv", files["f.sv"]]]),
    }


def test_a_file_list_changes_with_the_files_that_it_names(tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    away = drop(tmp_path, "away/m.sv", '`include "size.vh"\n' + module("m"))
    header = drop(tmp_path, "away/size.vh", "`define SIZE 1\n")
    drop(tmp_path, "away/other.sv")
    drop(inbox, "m.f", f"+incdir+{away.parent}\n{away}\n")
    memory = Memory(tmp_path / "memory.json")

    def seen() -> str:
        [entry] = scan(inbox, memory=memory).entries
        return entry.content_hash

    first = seen()
    assert seen() == first
    header.write_text("`define SIZE 2\n")
    second = seen()
    away.write_text(module("m2"))
    third = seen()
    drop(tmp_path, "away/other.sv", "module other2; endmodule\n")
    assert len({first, second, third}) == 3 and seen() == third
    away.unlink()
    assert seen() != third


def test_a_core_file_changes_with_the_files_that_it_names(tmp_path: Path) -> None:
    file = drop(tmp_path, "cores/m/m.sv")
    text = "CAPI=2:\nname: ::m:1\nfilesets:\n  rtl:\n    files: [m.sv]\n    file_type: systemVerilogSource\n"
    drop(tmp_path, "cores/m/m.core", f"{text}targets:\n  default:\n    filesets: [rtl]\n    toplevel: m\n")
    drop(tmp_path, "inbox/m.toml", f'path = "{tmp_path}/cores/m/m.core"\n')
    [first] = scan(tmp_path / "inbox").entries
    assert take_in(tmp_path, batch_of(first)).designs == 1
    file.write_text(module("m") + "// changed\n")
    assert scan(tmp_path / "inbox").entries[0].content_hash != first.content_hash


# Nothing is read without bound, nor read again


def test_what_did_not_change_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox, file = tmp_path / "inbox", tmp_path / "memory.json"
    for i in range(5):
        drop(inbox, f"d{i}/d.sv")
    read: list[str] = []
    real = looking.file_hash
    monkeypatch.setattr(looking, "file_hash", lambda path: read.append(path.parent.name) or real(path))
    first = scan(inbox, memory=Memory.load(file))
    assert sorted(read) == ["d0", "d1", "d2", "d3", "d4"]
    drop(inbox, "d3/d.sv", "module changed; endmodule\n")
    read.clear()
    second = scan(inbox, memory=Memory.load(file))
    assert read == ["d3"]
    file.write_text("no JSON")
    read.clear()
    assert scan(inbox, memory=Memory.load(file)) == second != first
    assert len(read) == 5


def test_a_circle_of_links_a_pipe_and_a_device_inside_do_no_harm(tmp_path: Path) -> None:
    drop(tmp_path, "d/d.sv")
    [plain] = scan(tmp_path).entries
    (tmp_path / "d" / "again").symlink_to(tmp_path / "d")
    (tmp_path / "d" / "itself").symlink_to("itself")
    (tmp_path / "d" / "zero.sv").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "d" / "pipe.sv")
    assert scan(tmp_path).entries == [plain]


def test_a_folder_with_too_many_files_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "MOST_FILES", 10)
    drop(tmp_path, "small/s.sv")
    for i in range(11):
        drop(tmp_path, f"large/{i}.sv")
    found = scan(tmp_path)
    assert names(found) == ["small"]
    assert "more than 10 files" in found.left_out["large"].why


def test_a_file_of_ten_gigabytes_is_left_out_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with drop(tmp_path, "huge.jsonl", "").open("r+b") as file:
        file.truncate(10 << 30)
    monkeypatch.setattr(looking, "file_hash", lambda path: pytest.fail("was read"))
    assert scan(tmp_path).left_out["huge.jsonl"].why.startswith("too large (10,240 MiB")


def test_one_look_reads_so_much_and_the_next_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking.Moment, "__init__", lambda self, now, settle_s: self.__dict__.update(
        now=now, settle_s=settle_s, bytes_left=100, untouched=True))  # fmt: skip
    inbox, memory = tmp_path / "inbox", Memory(tmp_path / "memory.json")
    for name in ("a", "b", "c"):
        drop(inbox, f"{name}/{name}.sv", "x" * 80)
    looks = [scan(inbox, memory=memory) for _ in range(3)]
    assert [names(found) for found in looks] == [["a"], ["a", "b"], ["a", "b", "c"]]
    assert all(left.waits for left in looks[0].left_out.values()), "their turn comes"


# Source files


def test_a_source_file_points_elsewhere(tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    file = drop(tmp_path, "away/rtl/x.sv")
    drop(inbox, "chip.toml", 'path = "../away"\n')
    [entry] = scan(inbox).entries
    assert (entry.name, entry.label) == ("chip", "chip.toml")
    assert entry.path.resolve() == (tmp_path / "away").resolve()
    file.write_text("module x2; endmodule\n")
    assert scan(inbox).entries[0].content_hash != entry.content_hash


def test_globs_of_a_source_file_make_an_entry_for_each_folder(tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    for name in ("ip/a/a.sv", "ip/b/b.sv", "ip/.c/c.sv", "docs/d/d.sv", "ip/e.txt"):
        drop(tmp_path, f"away/hw/{name}")
    drop(inbox, "chip.toml", f'path = "{tmp_path}/away"\nsubfolder = "hw"\ndesigns = ["ip/[a-b]", "docs/*"]\n')
    found = scan(inbox)
    assert [(e.name, e.label) for e in found.entries] == [
        ("chip.docs.d", "chip.toml: docs/d"), ("chip.ip.a", "chip.toml: ip/a"), ("chip.ip.b", "chip.toml: ip/b"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("path = ", "not valid TOML"),
        ("top = 'x'", "unknown key 'top'"),
        ("git = true", "names no path"),
        ("path = 3", "path is of the wrong type"),
        ("path = '/x'\nbranch = 'main'", "git = true"),
        ("path = '/x'\ndesigns = '../*'", "no path below the source"),
        ("path = '/x'\ndesigns = ['**/*']", "no path below the source"),
        ("path = '/nowhere/at/all'", "nothing is there"),
        ("path = '/" + "x" * 5000 + "'", "File name too long"),
        ("path = '/dev/null'", "no RTL, list, archive"),
        ("path = '/x'\n" + "#" * 70_000, "too large"),
    ],
)
def test_a_source_file_that_says_nothing_is_left_out_with_the_mend(tmp_path: Path, text: str, why: str) -> None:
    drop(tmp_path, "chip.toml", text)
    found = scan(tmp_path)
    assert found.entries == []
    assert why in found.left_out["chip.toml"].why and "\n" not in found.left_out["chip.toml"].why


def test_what_a_broken_source_pointed_at_is_not_gone(tmp_path: Path) -> None:
    """A network folder that is away for a while must not make its designs inactive for good."""
    drop(tmp_path, "chip.toml", "path = '/nowhere/at/all'\ndesigns = '*'\n")
    assert scan(tmp_path).waiting == {"chip", "chip."}


def test_source_files_are_read_as_they_are_written(tmp_path: Path) -> None:
    said = Pointer(Path('/a "b"\\c'), True, "dev", "hw/x", ("ip/*", "é"))
    file = drop(tmp_path, "p.toml", said.as_toml())
    assert read_pointer(file) == said
    with pytest.raises(UserError, match="null byte"):
        pointer({"path": "/a\0b"}, "p.toml", tmp_path)


# Versions


def test_a_changed_entry_is_a_new_version_and_so_is_one_that_changes_back() -> None:
    a, b = Entry("d", "a" * 32, Path("d"), "d"), Entry("d", "b" * 32, Path("d"), "d")
    batches = ["train-000"]
    kinds = []
    for entry in (a, a, b, a, a, b):
        stands = standing([entry], batches)
        kinds += [(new.kind, new.number, new.like) for new in stands.new]
        batches += [new.batch for new in stands.new]
    assert kinds == [("added", 1, None), ("changed", 2, None), ("changed back", 3, 1), ("changed back", 4, 2)]
    assert batches[1:] == sorted(batches[1:]) == [
        "inbox-d-v001-aaaaaaaa", "inbox-d-v002-bbbbbbbb", "inbox-d-v003-aaaaaaaa", "inbox-d-v004-bbbbbbbb",
    ]  # fmt: skip
    assert standing([b], batches).active == ["inbox-d-v004-bbbbbbbb"]


def test_run_keys_name_entry_content_and_version() -> None:
    [new] = standing([Entry("d", "a" * 32, Path("d"), "d")], []).new
    assert new.run_key == f"d:{'a' * 32}:1"


def test_reasons_say_what_happened() -> None:
    a, b = Entry("d", "a" * 32, Path("d"), "d.sv"), Entry("d", "b" * 32, Path("d"), "d.sv")
    first, second = ("inbox-d-v001-aaaaaaaa", "inbox-d-v002-bbbbbbbb")
    assert reason(standing([a], []).new[0], "d.sv") == "d.sv is new in the inbox"
    assert reason(standing([b], [first]).new[0], "d.sv", "commit 1f 'x'") == "d.sv changed in the inbox: commit 1f 'x'"
    back = reason(standing([a], [first, second]).new[0], "d.sv")
    assert back == "d.sv changed back in the inbox, its content is that of version 1"


def test_a_removed_entry_is_inactive_and_the_same_one_when_it_returns() -> None:
    entry = Entry("d", "a" * 32, Path("d"), "d")
    batches = ["inbox-d-v001-bbbbbbbb", "inbox-d-v002-aaaaaaaa", "inbox-d-v002-aaaaaaaa-000"]
    away = standing([], batches)
    assert away.active == [] and [v.number for v in away.gone["d"].versions] == [1, 2]
    again = standing([entry], batches)
    assert again.new == [] and again.active == batches[1:]


def test_batches_of_an_earlier_program_are_understood() -> None:
    """They say the content, not the order: what is there is the current version whichever it was."""
    old = ["inbox-d-aaaaaaaa-v1", "inbox-d-bbbbbbbb-v1", "inbox-my-design-cccccccc-v1", "inbox-ß-dddddddd-v1"]
    a, c = Entry("d", "a" * 32, Path("d"), "d"), Entry("d", "c" * 32, Path("d"), "d")
    spaced, eszett = (Entry(n, h * 32, Path(n), n) for n, h in (("my design", "c"), ("ß", "d")))
    stands = standing([a, spaced, eszett], old)
    assert stands.new == [] and stands.active == [old[0], old[2], old[3]] and stands.gone == {}
    [new] = standing([c], old).new
    assert (new.number, new.kind) == (3, "changed")
    [back] = standing([a], [*old, new.batch]).new
    assert (back.number, back.kind) == (4, "changed back")


def test_further_batches_belong_to_their_version() -> None:
    entry = Entry("d", "a" * 32, Path("d"), "d")
    batches = ["inbox-d-v001-aaaaaaaa", "inbox-d-v001-aaaaaaaa-000", "inbox-d-v001-aaaaaaaa-001"]
    stands = standing([entry], batches)
    assert stands.current["d"].parts == tuple(batches[1:])
    assert {first_batch(b) for b in batches} == {batches[0]}


def test_names_that_look_like_batches_are_told_apart() -> None:
    tricky = ["a", "a-v001-12345678", "a-v001-12345678-v002-12345678", "a-12345678-v1", "a-v001-12345678-000"]
    entries = [Entry(n, "12345678" * 4, Path(n), n) for n in tricky]
    batches = [new.batch for new in standing(entries, []).new]
    stands = standing(entries, batches)
    assert stands.new == [] and stands.gone == {}
    assert [stands.current[n].batch for n in tricky] == batches


def test_no_two_names_share_their_batches() -> None:
    alike = ["my design", "my-design", "my_design", "my..design", "x" * 70, "x" * 71, "ß", "ü", "a/b", "a-b"]
    assert len({entry_key(n) for n in alike}) == len(alike)


# Taking a version in


def test_what_is_taken_in_stays_whatever_happens_in_the_inbox(tmp_path: Path) -> None:
    file = drop(tmp_path / "inbox", "m/m.sv")
    [entry] = scan(tmp_path / "inbox").entries
    found = take_in(tmp_path, batch_of(entry))
    assert found.batches == {batch_of(entry): 1} and found.verdict == ""
    file.write_text("module other; endmodule\n")
    assert take_in(tmp_path, batch_of(entry)) == found == taken(tmp_path, batch_of(entry))
    [kept] = kept_batch(tmp_path, batch_of(entry))
    assert kept.load().design.top == "m" and kept.split == "inbox"


def test_what_changed_before_it_was_taken_in_is_told_apart(tmp_path: Path) -> None:
    file = drop(tmp_path / "inbox", "m/m.sv")
    [entry] = scan(tmp_path / "inbox").entries
    file.write_text("module other; endmodule\n")
    with pytest.raises(UserError, match=r"m changed before .* a version of its own"):
        take_in(tmp_path, batch_of(entry))
    file.unlink()
    file.parent.rmdir()
    with pytest.raises(UserError, match="put it back"):
        take_in(tmp_path, batch_of(entry))
    assert taken(tmp_path, batch_of(entry)) is None


def test_an_entry_without_a_design_says_why(tmp_path: Path) -> None:
    drop(tmp_path / "inbox", "torn.sv", "module torn(input a;\nendmodule\n")
    [entry] = scan(tmp_path / "inbox").entries
    found = take_in(tmp_path, batch_of(entry))
    assert found.designs == 0 and found.verdict.startswith("does not parse: ") and "torn.sv:1" in found.verdict
    assert taken(tmp_path, batch_of(entry)) == found


def test_a_large_entry_is_cut_into_batches_that_sort(tmp_path: Path) -> None:
    for i in range(7):
        drop(tmp_path / "inbox", f"many/d{i}/d{i}.sv")
    drop(tmp_path / "inbox", "many/torn/torn.sv", "module")
    [entry] = scan(tmp_path / "inbox").entries
    batch = batch_of(entry)
    found = take_in(tmp_path, batch, batch_size=3)
    assert found.batches == {f"{batch}-000": 3, f"{batch}-001": 3, f"{batch}-002": 1}
    assert [r.name for r in found.rejected] == ["torn"]
    assert [d.name for d in kept_batch(tmp_path, f"{batch}-001")] == ["d3", "d4", "d5"]


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_archives_of_designs_are_taken_in(tmp_path: Path, kind: str) -> None:
    content = {f"top/{n}/{n}.sv": module(n).encode() for n in ("a", "b")}
    file = drop(tmp_path / "inbox", f"pack.{kind}", "")
    if kind == "zip":
        with zipfile.ZipFile(file, "w") as archive:
            for name, data in content.items():
                archive.writestr(name, data)
    else:
        with tarfile.open(file, "w:gz") as archive:
            for name, data in content.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    [entry] = scan(tmp_path / "inbox").entries
    assert take_in(tmp_path, batch_of(entry)).batches == {batch_of(entry): 2}


def test_an_unsafe_archive_is_rejected_and_leaves_nothing(tmp_path: Path) -> None:
    file = drop(tmp_path / "inbox", "evil.zip", "")
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("../../evil.sv", module("evil"))
    [entry] = scan(tmp_path / "inbox").entries
    found = take_in(tmp_path, batch_of(entry))
    assert found.verdict.startswith("unsafe archive: ") and "evil.zip" in found.verdict
    assert [p.name for p in tmp_path.rglob("evil.sv")] == []


def test_records_of_a_data_set_are_taken_in(tmp_path: Path) -> None:
    rows = [{"problem_id": f"p{i}", "question": [{"role": "user", "content": "x"}, {"role": "user", "content": "spec"}],
             "ground_truth": [{"content": f"```verilog\n{module(f'm{i}')}```"}]} for i in range(3)]  # fmt: skip
    text = "".join(json.dumps(r) + "\n" for r in [*rows, {"problem_id": "bad"}])
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "set.jsonl").write_text(text)
    with gzip.open(tmp_path / "inbox" / "packed.jsonl.gz", "wt") as file:
        file.write(text)
    entries = {e.name: e for e in scan(tmp_path / "inbox").entries}
    assert set(entries) == {"set", "packed"}
    for entry in entries.values():
        found = take_in(tmp_path, batch_of(entry))
        assert found.designs == 3 and len(found.rejected) == 1, found.rejected


def test_a_thousand_entries_are_looked_at_with_one_look_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No time is asserted: nothing is read, and each file's state is asked for once."""
    inbox, memory = tmp_path / "inbox", Memory(tmp_path / "memory.json")
    for i in range(1000):
        drop(inbox, f"d{i}.sv")
    begin = time.monotonic()
    first = scan(inbox, memory=memory)
    monkeypatch.setattr(looking, "file_hash", lambda path: pytest.fail("was read again"))
    again = scan(inbox, memory=memory)
    print(f"two looks at 1,000 entries: {time.monotonic() - begin:.2f} s")
    assert first == again and len(again.entries) == 1000
    assert taking.memory_file(tmp_path).parent.name == "inbox"


@pytest.mark.parametrize("kind", ["file", "folder", "pointer", "wide"])
def test_the_longest_names_are_taken_in_under_short_ones(tmp_path: Path, kind: str) -> None:
    inbox, long = tmp_path / "inbox", "n" * 240
    if kind == "pointer":
        drop(tmp_path, f"rtl/{long}/m.sv")
        drop(inbox, f"{long}.toml", f'path = "{tmp_path}/rtl"\ndesigns = "*"\n')
    else:
        drop(inbox, {"file": f"{long}.v", "folder": f"{long}/m.v", "wide": f"{'é' * 120}.v"}[kind], module("m"))
    [entry] = scan(inbox).entries
    assert take_in(tmp_path, batch_of(entry)).designs == 1
    made = [p.name for folder in ("designs", "designs/.imports") for p in (tmp_path / folder).iterdir()]
    assert batch_of(entry) in made and f"{batch_of(entry)}.json" in made
    assert max(len(os.fsencode(name)) for name in made) < 100
    assert [d.name for d in kept_batch(tmp_path, batch_of(entry))]


@pytest.mark.parametrize("where", ["/", "{home}", "{inbox}", "{above}", "{inbox}/../inbox", "{link}"])
@pytest.mark.parametrize("more", ["", "git = true", 'designs = "*"'])
def test_a_source_that_holds_the_inbox_is_refused_unread(
    tmp_path: Path, where: str, more: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = tmp_path / "above" / "home" / "inbox"
    (tmp_path / "link").symlink_to(tmp_path / "above")
    place = where.format(home=inbox.parent, inbox=inbox, above=tmp_path / "above", link=tmp_path / "link")
    drop(inbox, "all.toml", f'path = "{place}"\n{more}\n')
    monkeypatch.setattr("llm4cov_assets.ingest.git_source.commit_id", lambda *_: pytest.fail("was read"))
    found = scan(inbox)
    assert not found.entries and "holds the inbox" in found.left_out["all.toml"].why


def test_a_link_to_what_holds_the_inbox_is_refused_and_its_neighbours_are_not(tmp_path: Path) -> None:
    inbox = tmp_path / "home" / "inbox"
    drop(inbox, "good.sv")
    (inbox / "all").symlink_to("/")
    drop(tmp_path, "rtl/a/a.sv")
    (tmp_path / "rtl" / "b").symlink_to(tmp_path)
    drop(inbox, "more.toml", f'path = "{tmp_path}/rtl"\ndesigns = "*"\n')
    found = scan(inbox)
    assert names(found) == ["good", "more.a"]
    assert set(found.left_out) == {"all", "more.toml: b"}
    assert all("holds the inbox" in left.why for left in found.left_out.values())


def test_only_what_is_taken_in_is_looked_at_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        drop(tmp_path, f"rtl/{name}/{name}.sv")
    long = "long" * 30
    drop(tmp_path / "inbox", "chip.toml", f'path = "{tmp_path}/rtl"\ndesigns = "*"\n')
    drop(tmp_path / "inbox", f"{long}.sv", module("m"))
    entries = {e.name: e for e in scan(tmp_path / "inbox").entries}
    looked: list[str] = []
    walk = looking._walk
    monkeypatch.setattr(looking, "_walk", lambda root, *rest: looked.append(root.name) or walk(root, *rest))
    for name, seen in {"chip.b": ["b", "chip.toml"], long: ["chip.toml", f"{long}.sv"]}.items():
        looked.clear()
        assert take_in(tmp_path, batch_of(entries[name])).designs == 1
        assert sorted(looked) == seen


def test_a_file_of_an_entry_that_cannot_be_read_is_a_rejection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drop(tmp_path / "inbox", "m/m.sv")
    [entry] = scan(tmp_path / "inbox").entries

    def failing(code: int, file: Path):
        def fail(*_: object, **__: object) -> None:
            raise OSError(code, os.strerror(code), str(file))

        return fail

    for code, file in [(errno.EIO, entry.path / "m.sv"), (errno.EACCES, tmp_path / "designs")]:
        monkeypatch.setattr(taking, "import_source", failing(code, file))
        with pytest.raises(OSError, match=os.strerror(code)):
            take_in(tmp_path, batch_of(entry))
    monkeypatch.setattr(taking, "import_source", failing(errno.EACCES, entry.path / "m.sv"))
    [rejected] = take_in(tmp_path, batch_of(entry)).rejected
    assert rejected.reason == "unreadable" and rejected.detail.startswith(f"{entry.path}/m.sv: cannot be read (Perm")
