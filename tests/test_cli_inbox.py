"""`llm4cov inbox`: what a person sees of the inbox, and how they point it elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from llm4cov_assets import cli
from llm4cov_assets.ingest.pointers import Pointer, read_pointer


@pytest.fixture
def inbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The inbox of a home of its own."""
    monkeypatch.setenv("LLM4COV_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DAGSTER_HOME", "")
    (tmp_path / "home" / "inbox").mkdir(parents=True)
    return tmp_path / "home" / "inbox"


def llm4cov(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, ["inbox", *arguments])


def refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """The one line of a command that is refused."""
    monkeypatch.setattr("sys.argv", ["llm4cov", "inbox", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    said = capsys.readouterr().err
    assert end.value.code == 2 and said.count("\n") == 1
    return said


def old(path: Path) -> None:
    moment = time.time() - 60
    for file in (path, *path.rglob("*")):
        os.utime(file, (moment, moment))


def test_entries_are_listed_with_their_standing(inbox: Path) -> None:
    assert llm4cov().exit_code == 0
    (inbox / "d").mkdir()
    (inbox / "d" / "d.sv").write_text("module d(input a, output b); assign b = a; endmodule\n")
    (inbox / "notes.doc").touch()
    old(inbox)
    rows = {row["name"]: row for row in json.loads(llm4cov("list", "--json").stdout)}
    assert {name: row["status"] for name, row in rows.items()} == {"d": "new", "notes.doc": "left out"}
    assert rows["d"]["batch"].startswith("inbox-d-v001-") and "not imported yet" in rows["d"]["detail"]
    told = json.loads(llm4cov("status", "d", "--json").stdout)
    assert told["entry"]["status"] == "new" and told["history"] == [] and told["rejected"] == []
    assert llm4cov("status", "nobody").exit_code == 1
    assert "script/server" in llm4cov("list").stdout, "nothing is taken in while no daemon runs"


def test_add_writes_a_source_file_that_remove_takes_away(inbox: Path, tmp_path: Path) -> None:
    rtl = tmp_path / "my rtl"
    (rtl / "ip" / "a").mkdir(parents=True)
    (rtl / "ip" / "a" / "a.sv").write_text("module a; endmodule\n")
    done = llm4cov("add", str(rtl), "--designs", "ip/*")
    assert done.exit_code == 0 and "my-rtl.ip.a" in done.stdout
    assert read_pointer(inbox / "my-rtl.toml") == Pointer(rtl, designs=("ip/*",))
    assert llm4cov("remove", "my-rtl").exit_code == 0
    assert not list(inbox.iterdir()) and (rtl / "ip" / "a" / "a.sv").exists()


def test_a_repository_is_added_when_it_can_be_read(
    inbox: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rtl = tmp_path / "rtl"
    rtl.mkdir()
    (rtl / "a.sv").write_text("module a; endmodule\n")
    assert "not a git repository" in refused(capsys, monkeypatch, "add", str(rtl), "--git")
    for arguments in (["init", "-q"], ["add", "-A"],
                      ["-c", "user.name=n", "-c", "user.email=n@example.org", "commit", "-qm", "x"]):  # fmt: skip
        subprocess.run(["git", "-C", str(rtl), *arguments], check=True)
    assert llm4cov("add", str(rtl), "--git").exit_code == 0
    assert read_pointer(inbox / "rtl.toml").git


def test_what_cannot_be_added_or_removed_is_refused_with_the_mend(
    inbox: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (inbox / "mine.sv").write_text("module mine; endmodule\n")
    (inbox / "chip.toml").write_text("path = '/x'\n")
    assert "no such file" in refused(capsys, monkeypatch, "add", str(tmp_path / "nowhere"))
    assert "choose another --name" in refused(capsys, monkeypatch, "add", str(tmp_path), "--name", "mine")
    assert "is no name for an entry" in refused(capsys, monkeypatch, "add", str(tmp_path), "--name", "../x")
    assert "git = true" in refused(capsys, monkeypatch, "add", str(tmp_path), "--branch", "main")
    assert "no path below" in refused(capsys, monkeypatch, "add", str(tmp_path), "--designs", "../*")
    assert "say --delete" in refused(capsys, monkeypatch, "remove", "mine")
    assert "it comes from" in refused(capsys, monkeypatch, "remove", "chip.ip.a")
    assert "llm4cov inbox list" in refused(capsys, monkeypatch, "remove", "nobody")
    assert (inbox / "mine.sv").exists()
    assert llm4cov("remove", "mine", "--delete").exit_code == 0 and not (inbox / "mine.sv").exists()
