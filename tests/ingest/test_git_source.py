"""Of a repository what is committed is read, and nothing that it says is run."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest
from test_inbox import LATER, batch_of, drop, module

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest import git_source
from llm4cov_assets.ingest.git_source import (
    GitError,
    GitSlow,
    TreeFile,
    commit_id,
    design_folders,
    export,
    read_commit,
    tree_files,
    useful_files,
)
from llm4cov_assets.ingest.inbox import SLOW_S, Scan, scan_inbox
from llm4cov_assets.ingest.kept import kept_batch
from llm4cov_assets.ingest.looking import Memory
from llm4cov_assets.ingest.taking import take_in


def git(repository: Path, *arguments: str) -> str:
    """Run git as a person does, with settings of its own."""
    environment = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "protocol.file.allow=always")
    done = subprocess.run(
        ["git", *who, "-C", str(repository), *arguments], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit(repository: Path, message: str, **files: str) -> str:
    """Write files (double underscores are slashes, `_sv` ends Verilog files) and commit everything."""
    for name, text in files.items():
        drop(repository, name.replace("__", "/").replace("_sv", ".sv"), text)
    git(repository, "add", "-A", "-f")
    git(repository, "commit", "-q", "-m", message)
    return git(repository, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two designs and a document."""
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "Two designs", a__a_sv=module("a"), b__rtl__b_sv=module("b"), docs__x="text")
    return folder


def look(tmp_path: Path, text: str, memory: Memory | None = None) -> Scan:
    """The inbox with one source file."""
    drop(tmp_path / "inbox", "chip.toml", text)
    return scan_inbox(tmp_path / "inbox", memory=memory, now=LATER)


def source(repository: Path, more: str = "") -> str:
    return f'path = "{repository}"\ngit = true\n{more}'


def test_each_design_folder_of_the_commit_is_an_entry(tmp_path: Path, repository: Path) -> None:
    found = look(tmp_path, source(repository))
    assert [(e.name, e.label, e.folder) for e in found.entries] == [
        ("chip.a", "chip.toml: a", "a"), ("chip.b", "chip.toml: b", "b"),
    ]  # fmt: skip
    head = git(repository, "rev-parse", "HEAD")
    assert {e.commit for e in found.entries} == {head}
    assert {e.note for e in found.entries} == {f"commit {head[:9]} 'Two designs'"}


def test_what_is_not_committed_does_not_count(tmp_path: Path, repository: Path) -> None:
    before = look(tmp_path, source(repository))
    drop(repository, "a/a.sv", "module changed; endmodule\n")
    drop(repository, "c/c.sv")
    git(repository, "add", "c")
    assert look(tmp_path, source(repository)) == before


def test_a_new_commit_changes_only_the_designs_that_it_touches(tmp_path: Path, repository: Path) -> None:
    before = {e.name: e.content_hash for e in look(tmp_path, source(repository)).entries}
    commit(repository, "Mend b\n\nand more", b__rtl__b_sv=module("b2"))
    found = {e.name: e for e in look(tmp_path, source(repository)).entries}
    assert found["chip.a"].content_hash == before["chip.a"]
    assert found["chip.b"].content_hash != before["chip.b"]
    assert "'Mend b'" in found["chip.b"].note


def test_an_unchanged_commit_is_not_read_again(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = Memory(tmp_path / "memory.json")
    before = look(tmp_path, source(repository), memory)
    monkeypatch.setattr(git_source, "tree_files", lambda *_: pytest.fail("was read again"))
    assert look(tmp_path, source(repository), memory) == before


def test_a_branch_a_subfolder_and_globs_choose(tmp_path: Path, repository: Path) -> None:
    git(repository, "checkout", "-q", "-b", "dev")
    commit(repository, "Deep", hw__ip__c__c_sv=module("c"), hw__ip__d__d_sv=module("d"), hw__tb__t_sv=module("t"))
    git(repository, "checkout", "-q", "main")
    chosen = look(tmp_path, source(repository, 'branch = "dev"\nsubfolder = "hw"\ndesigns = "ip/[cx]"\n'))
    assert [(e.name, e.folder) for e in chosen.entries] == [("chip.ip.c", "hw/ip/c")]
    assert {e.name for e in look(tmp_path, source(repository, 'subfolder = "b"\n')).entries} == {"chip"}


def test_a_repository_that_is_one_design_is_one_entry(tmp_path: Path) -> None:
    folder = tmp_path / "one"
    folder.mkdir()
    git(folder, "init", "-q")
    commit(folder, "One", top_sv=module("top"), inc__x="`define X\n")
    assert [(e.name, e.folder) for e in look(tmp_path, source(folder)).entries] == [("chip", "")]
    commit(folder, "Moved", rtl__top_sv=module("top"))
    (folder / "top.sv").unlink()
    commit(folder, "Moved on")
    assert [(e.name, e.folder) for e in look(tmp_path, source(folder)).entries] == [("chip", "")]


def test_a_design_of_a_commit_is_taken_in_and_called_like_its_folder(tmp_path: Path, repository: Path) -> None:
    commit(repository, "Torn", torn__t_sv="module t(input a;\n")
    entries = {e.name: e for e in look(tmp_path, source(repository)).entries}
    drop(repository, "a/a.sv", "nothing that is committed")
    found = take_in(tmp_path, batch_of(entries["chip.a"]))
    assert found.designs == 1
    head = git(repository, "rev-parse", "HEAD")
    [kept] = kept_batch(tmp_path, batch_of(entries["chip.a"]))
    assert (kept.name, kept.source) == ("a", f"{repository}@{head[:9]}:a")
    torn = take_in(tmp_path, batch_of(entries["chip.torn"]))
    assert torn.verdict.startswith(f"does not parse: {repository}@{head[:9]}:torn/t.sv:1")
    assert not list((tmp_path / "designs" / ".exported").iterdir()), "what was written out is gone"


def test_links_submodules_and_hidden_files_are_left_out(tmp_path: Path, repository: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    commit(other, "Other", o_sv=module("o"))
    git(repository, "submodule", "add", "-q", str(other), "sub")
    (repository / "a" / "link.sv").symlink_to("/etc/passwd")
    drop(repository, "a/.hidden.sv")
    head = commit(repository, "More")
    paths = {f.path for f in tree_files(repository, head)}
    assert paths == {"a/a.sv", "b/rtl/b.sv", "docs/x"}
    assert set(design_folders(tree_files(repository, head))) == {"a", "b"}


def test_odd_names_and_contents_come_out_as_they_are(tmp_path: Path, repository: Path) -> None:
    drop(repository, 'odd/it\'s "x" é.sv', module("odd"))
    (repository / "odd" / "crlf.sv").write_bytes(b"// a\r\n\r\n// \xff\0 b\n")
    head = commit(repository, "Odd")
    drop(repository, ".git/info/attributes", "*.sv text eol=lf working-tree-encoding=UTF-16 ident\n")
    files = [f for f in tree_files(repository, head) if f.path.startswith("odd/")]
    export(repository, useful_files(files), tmp_path / "out")
    assert (tmp_path / "out" / "odd" / "crlf.sv").read_bytes() == b"// a\r\n\r\n// \xff\0 b\n"
    assert (tmp_path / "out" / "odd" / 'it\'s "x" é.sv').read_text() == module("odd")


def test_settings_of_a_repository_start_nothing(tmp_path: Path, repository: Path) -> None:
    """Hooks, a file system monitor, filters, a pager, aliases and an include of more settings."""
    mark = tmp_path / "started"
    evil = drop(tmp_path, "evil.sh", f"#!/bin/sh\necho $0 >> {mark}\ncat\n")
    evil.chmod(0o755)
    for hook in ("post-checkout", "pre-commit", "reference-transaction", "post-index-change"):
        drop(repository / ".git" / "hooks", hook, evil.read_text()).chmod(0o755)
    head = git(repository, "rev-parse", "HEAD")
    drop(tmp_path, "more", f"[core]\n\tpager = {evil}\n\tsshCommand = {evil}\n[diff]\n\texternal = {evil}\n")
    for key, value in {
        "core.fsmonitor": str(evil), "filter.evil.clean": str(evil), "filter.evil.smudge": str(evil),
        "filter.evil.process": str(evil), "alias.ls-tree": f"!{evil}", "alias.cat-file": f"!{evil}",
        "core.editor": str(evil), "include.path": str(tmp_path / "more"), "core.gitProxy": str(evil),
        "remote.origin.url": f"ext::{evil}", "remote.origin.promisor": "true", "protocol.ext.allow": "always",
        "extensions.partialClone": "origin", "core.alternateRefsCommand": str(evil),
    }.items():  # fmt: skip
        git(repository, "config", key, value)
    drop(repository, ".git/info/attributes", "*.sv filter=evil diff=evil\n")
    entries = look(tmp_path, source(repository)).entries
    assert [e.name for e in entries] == ["chip.a", "chip.b"] and entries[0].commit == head
    assert take_in(tmp_path, batch_of(entries[0])).designs == 1
    # an object that is missing is not fetched from the promised remote
    blob = next(f.blob for f in tree_files(repository, head) if f.path == "b/rtl/b.sv")
    (repository / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(UserError, match=r"b/rtl/b\.sv is missing"):
        take_in(tmp_path, batch_of(entries[1]))
    assert not mark.exists(), mark.read_text()


@pytest.mark.parametrize(
    ("make", "more", "why"),
    [
        ("missing", "", "no such folder"),
        ("plain", "", "not a git repository"),
        ("empty", "", "nothing is committed yet"),
        ("whole", 'branch = "nope"', "no branch 'nope'"),
        ("whole", 'branch = "--upload-pack=evil"', "no branch"),
        ("whole", 'subfolder = "nope"', "no folder 'nope' in commit"),
        ("whole", 'designs = "nope*"', "no RTL in commit"),
        ("torn", "", "cannot be read; try git fsck"),
        ("headless", "", "not a git repository"),
    ],
)
def test_a_repository_that_cannot_be_read_is_left_out_with_one_reason(
    tmp_path: Path, repository: Path, make: str, more: str, why: str
) -> None:
    place = tmp_path / make
    if make in ("whole", "torn", "headless"):
        repository.rename(place)
    elif make != "missing":
        place.mkdir()
    if make == "empty":
        git(place, "init", "-q")
    if make == "torn":
        tree = git(place, "rev-parse", "HEAD^{tree}")
        (place / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    if make == "headless":
        (place / ".git" / "HEAD").unlink()
    found = look(tmp_path, source(place, more))
    assert found.entries == [] and list(found.left_out) == ["chip.toml"]
    said = found.left_out["chip.toml"].why
    assert why in said and "\n" not in said and str(place) in said
    assert found.waiting == {"chip", "chip."}, "what it held before is not gone"


def test_a_folder_of_a_repository_is_not_taken_for_the_repository(tmp_path: Path, repository: Path) -> None:
    with pytest.raises(GitError, match="not a git repository"):
        commit_id(repository / "a")


def test_the_subject_of_a_commit_is_one_line_of_plain_text(repository: Path) -> None:
    head = commit(repository, "Line \x1b[31mone\nand two\n\nmore", a__a_sv=module("x"))
    assert read_commit(repository, head).subject == "Line [31mone"


def test_too_much_for_a_design_is_left_out_unread(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_source, "MOST_BYTES", 100)
    commit(repository, "Large", a__a_sv="/" * 101)
    found = look(tmp_path, source(repository))
    assert [e.name for e in found.entries] == ["chip.b"]
    assert "too large" in found.left_out["chip.toml: a"].why
    files = tree_files(repository, commit_id(repository))
    with pytest.raises(GitError, match="too large"):
        export(repository, files, tmp_path / "out")


def made_commit(repository: Path, *paths: str) -> str:
    """Commit a file at each of these paths, also where no folder could hold them all."""
    blob = git(repository, "rev-parse", "HEAD:a/a.sv")

    def tree(files: list[list[str]]) -> str:
        lines = [f"100644 blob {blob}\t{parts[0]}" for parts in files if len(parts) == 1]
        for folder in sorted({parts[0] for parts in files if len(parts) > 1}):
            below = tree([parts[1:] for parts in files if len(parts) > 1 and parts[0] == folder])
            lines.append(f"040000 tree {below}\t{folder}")
        done = subprocess.run(["git", "-C", str(repository), "mktree"], input="\n".join(lines) + "\n", text=True,
                              capture_output=True, check=True)  # fmt: skip
        return done.stdout.strip()

    made = git(repository, "commit-tree", "-m", "Made", tree([path.split("/") for path in paths]))
    git(repository, "update-ref", "refs/heads/main", made)
    return made


@pytest.mark.parametrize(
    ("paths", "why"),
    [
        (["d/x.sv", "d/x.sv/y.sv"], "exists|directory"),
        (["d/" + "n" * 300 + ".sv"], "name too long"),
        (["d/" + f"{'f' * 100}/" * 60 + "x.sv"], "name too long"),
    ],
    ids=["file and folder", "long name", "deep"],
)
def test_a_tree_that_no_folder_can_hold_is_rejected(
    tmp_path: Path, repository: Path, paths: list[str], why: str
) -> None:
    made_commit(repository, *paths)
    [entry] = look(tmp_path, source(repository)).entries
    found = take_in(tmp_path, batch_of(entry))
    [rejected] = found.rejected
    assert found.designs == 0 and rejected.reason == "unreadable" and rejected.name == "chip.d"
    assert any(w in rejected.detail.lower() for w in why.split("|")) and len(rejected.detail) < 400
    assert not list((tmp_path / "designs" / ".exported").iterdir())


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_full_disk_is_not_held_against_an_entry(
    tmp_path: Path, repository: Path, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = look(tmp_path, source(repository)).entries[0]

    def full(path: Path, data: bytes) -> None:
        raise OSError(code, os.strerror(code), str(path))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match=os.strerror(code)):
            take_in(tmp_path, batch_of(entry))
    assert take_in(tmp_path, batch_of(entry)).designs == 1


@pytest.mark.parametrize("name", ["config", "HEAD", "packed-refs", "objects/info/alternates"])
def test_a_pipe_in_a_repository_is_refused_before_git_runs(
    tmp_path: Path, repository: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = repository / ".git" / name
    file.unlink(missing_ok=True)
    os.mkfifo(file)
    monkeypatch.setattr(git_source, "_git", lambda *_, **__: pytest.fail("git was run"))
    assert "no ordinary file" in look(tmp_path, source(repository)).left_out["chip.toml"].why


def test_a_working_tree_of_another_repository_is_read_and_watched(tmp_path: Path, repository: Path) -> None:
    commit(repository, "Settings", config__x_sv=module("x"))
    git(repository, "worktree", "add", "-q", "-b", "dev", str(tmp_path / "tree"))
    assert {e.name for e in look(tmp_path, source(tmp_path / "tree")).entries} == {"chip.a", "chip.b", "chip.config"}
    before = git_source.state(tmp_path / "tree")
    commit(tmp_path / "tree", "More", a__a_sv=module("a2"))
    assert git_source.state(tmp_path / "tree") != before
    (repository / ".git" / "config").unlink()
    os.mkfifo(repository / ".git" / "config")
    with pytest.raises(GitError, match="no ordinary file"):
        commit_id(tmp_path / "tree")


def test_a_repository_that_is_too_slow_is_tried_again_when_it_changes_or_later(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def slow(*_: object) -> list[TreeFile]:
        calls.append(1)
        raise GitSlow("git takes longer")

    drop(tmp_path / "inbox", "chip.toml", source(repository))

    def at(later_s: float) -> int:
        found = scan_inbox(tmp_path / "inbox", memory=Memory.load(tmp_path / "memory.json"), now=LATER + later_s)
        assert found.left_out["chip.toml"].why == "git takes longer" and found.waiting == {"chip", "chip."}
        return len(calls)

    with monkeypatch.context() as patched:
        patched.setattr(git_source, "tree_files", slow)
        assert [at(0), at(1), at(SLOW_S - 1), at(SLOW_S + 1), at(SLOW_S + 2)] == [1, 1, 1, 2, 2]
        commit(repository, "Mended", a__a_sv=module("a2"))
        assert [at(SLOW_S + 3), at(SLOW_S + 4)] == [3, 3]
        commit(repository, "Mended again", a__a_sv=module("a3"))
    found = scan_inbox(tmp_path / "inbox", memory=Memory.load(tmp_path / "memory.json"), now=LATER + SLOW_S + 5)
    assert [e.name for e in found.entries] == ["chip.a", "chip.b"]


def test_a_slow_moment_of_git_is_not_held_against_an_entry(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = look(tmp_path, source(repository)).entries[0]

    def slow(*_: object) -> None:
        raise GitSlow("git takes longer")

    with monkeypatch.context() as patched:
        patched.setattr(git_source, "export", slow)
        with pytest.raises(UserError, match="cannot be imported now: git takes longer"):
            take_in(tmp_path, batch_of(entry))
    assert take_in(tmp_path, batch_of(entry)).designs == 1
