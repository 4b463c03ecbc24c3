"""Malformed files, lists, cores, folders and archives: one clear refusal each, no traceback, nothing taken over."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest.importing import import_source
from llm4cov_assets.ingest.kept import kept_designs
from sim import reasons

LEAF = "module leaf(input logic a, output logic y); assign y = ~a; endmodule\n"
USER = "not a rejection but a source that cannot be read"

Make = Callable[[Path], object]
"""Writes a malformed source into a folder, beside what is good."""


def write(path: Path, content: str | bytes = LEAF) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refused(folder: Path, home: Path, name: str, format: str, reason: str) -> str:
    """What is said of the source `name`, which is refused for `reason`, alone and as a whole."""
    source = folder / name if name else folder
    if reason == USER:
        with pytest.raises(UserError) as error:
            import_source(source, home, split="inbox", format=format)
        message = str(error.value)
    else:
        report = import_source(source, home, split="inbox", format=format)
        [rejection] = report.rejected
        assert rejection.reason == reason
        assert not report.accepted and rejection.name.isprintable() and rejection.source.isprintable()
        message = rejection.detail
    assert message.isprintable() and len(message) < 1000
    assert kept_designs(home) == {}
    return message.replace(str(folder), "HERE")


# file lists


def chain(length: int, times: int) -> Make:
    """Lists in lists, each read by the one before as often as told."""

    def make(folder: Path) -> None:
        for i in range(length):
            write(folder / f"l{i}.f", f"-f l{i + 1}.f\n" * times)
        write(folder / f"l{length}.f", "leaf.v")
        write(folder / "a.f", "-f l0.f")

    return make


def many_files(folder: Path) -> None:
    for i in range(5_001):
        os.link(folder / "leaf.v", folder / f"f{i}.v")
    write(folder / "a.f", "\n".join(f"f{i}.v" for i in range(5_001)))


def huge_file(folder: Path) -> None:
    with open(folder / "huge.v", "wb") as file:
        file.truncate(70 << 30)  # a hole, which takes no room on disk
    write(folder / "a.f", "leaf.v huge.v")


def beside(name: str, text: str | bytes, listed: str) -> Make:
    """A list that names a malformed file."""

    def make(folder: Path) -> None:
        write(folder / name, text)
        write(folder / "a.f", listed)

    return make


def special(make_it: Callable[[Path], object], name: str = "odd.v") -> Make:
    def make(folder: Path) -> None:
        make_it(folder / name)
        write(folder / "a.f", f"leaf.v {name}")

    return make


LISTS: dict[str, tuple[str | bytes | Make, str, str]] = {
    "empty": ("", reasons.NO_RTL, "HERE/a.f: the list names no files; add"),
    "comments alone": ("// leaf.v\n# leaf.v\n", reasons.NO_RTL, "HERE/a.f: the list names no files; add"),
    "reads itself": ("leaf.v\n-f a.f", reasons.MALFORMED, "HERE/a.f:2: the list reads itself (a.f reads a.f); take"),
    "read each other": (beside("b.f", "\n-f a.f", "-f b.f"), reasons.MALFORMED, "HERE/b.f:2: the list reads itself"),
    "list as RTL": (beside("b.f", "", "leaf.v b.f"), reasons.MALFORMED, "HERE/a.f:1: 'b.f' is a file list; write -f"),
    "too deep": (chain(80, 1), reasons.TOO_LARGE, "HERE/l62.f:1: more than 64 lists in lists; write"),
    "doubles itself": (chain(40, 2), reasons.TOO_LARGE, "more than 1,000 lists are read; name each list once"),
    "no such file": ("leaf.v\nb.v c.v\n", reasons.UNREADABLE, "HERE/a.f:2: there is no file 'b.v'; it is looked for"),
    "no such list": ("leaf.v -f b.f", reasons.UNREADABLE, "HERE/a.f:1: there is no file 'b.f'"),
    "endless name": ("leaf.v " + "x" * 100_000, reasons.UNREADABLE, "HERE/a.f:1: there is no file 'xxx"),
    "wildcard": ("*.v", reasons.UNREADABLE, "HERE/a.f:1: there is no file '*.v'; wildcards are not expanded"),
    "no variable": ("leaf.v\n$NOWHERE_AT_ALL/b.v", reasons.MALFORMED, "HERE/a.f:2: the environment has no variable"),
    "open comment": ("leaf.v\n/* b.v", reasons.MALFORMED, "HERE/a.f:2: the comment has no end; close it with */"),
    "open quotes": ('leaf.v "b.v\n', reasons.MALFORMED, "HERE/a.f:1: a quotation mark without its end; close it"),
    "folder": (special(Path.mkdir, "d"), reasons.MALFORMED, "HERE/a.f:1: 'd' is a folder; list its files"),
    "pipe": (special(os.mkfifo), reasons.UNREADABLE, "HERE/a.f:1: 'odd.v' is no ordinary file; list RTL"),
    "device": (special(lambda p: p.symlink_to("/dev/zero")), reasons.UNREADABLE, "'odd.v' is no ordinary file"),
    "link loop": (special(lambda p: p.symlink_to("odd.v")), reasons.UNREADABLE, "there is no file 'odd.v'"),
    "no value": ("leaf.v\n-f", reasons.MALFORMED, "HERE/a.f:2: -f is the last word; write its value after it"),
    "bad macro": ("+define+1=2 leaf.v", reasons.MALFORMED, "HERE/a.f:1: '1' is no name for a macro; write"),
    "bad parameter": ("-GW leaf.v", reasons.MALFORMED, "HERE/a.f:1: 'W' sets no parameter; write -GNAME=VALUE"),
    "two tops": ("-top a\n-top b leaf.v", reasons.SEVERAL_TOPS, "HERE/a.f:2: a second top, 'b' beside 'a'; keep one"),
    "no such top": ("-top b leaf.v", reasons.NO_TOP, "HERE/a.f: there is no module 'b' to be the top; choose"),
    "no such library": ("-y none -v leaf.v", reasons.NO_RTL, "HERE/a.f: no RTL found"),
    "binary": (b"\x7fELF\0\0", reasons.UNREADABLE, "HERE/a.f: a binary file, not text"),
    "UTF-16": ("leaf.v".encode("utf-16"), reasons.UNREADABLE, "HERE/a.f: UTF-16 text; save it as UTF-8"),
    "Latin-1": (b"leaf.v\n// \xe4\n", reasons.UNREADABLE, "HERE/a.f:2: not UTF-8 text; save it as UTF-8"),
    "enormous": (b"leaf.v\n" * 2_500_000, reasons.TOO_LARGE, "HERE/a.f: more than 16 MiB"),
    "many files": (many_files, reasons.TOO_LARGE, "HERE/a.f:5001: more than 5,000 files, which no design has; list"),
    "huge file": (huge_file, reasons.TOO_LARGE, "HERE/a.f: 2 files, 71680 MiB of RTL; a design has at most"),
    "VHDL": (beside("b.vhd", "entity b is end;", "b.vhd"), reasons.VHDL, "HERE/a.f: VHDL only (b.vhd)"),
    "binary RTL": (beside("b.v", b"\n\0\1", "leaf.v b.v"), reasons.UNREADABLE, "HERE/b.v:2: a null byte"),
    "UTF-16 RTL": (beside("b.v", LEAF.encode("utf-16"), "b.v"), reasons.UNREADABLE, "HERE/b.v: UTF-16 text; save it"),
    "quotes in a name": (beside('b".v', LEAF, "'b\".v'"), reasons.MALFORMED, "rename it, without quotation marks"),
    "endless include": (
        lambda f: [write(f / "a.f", "b.v"), write(f / "b.v", '`include "c.h"\n'), write(f / "c.h", '`include "c.h"\n')],
        reasons.DOES_NOT_PARSE, "HERE/c.h:1: ",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LISTS)
def test_a_malformed_list_is_one_rejection(tmp_path: Path, home: Path, case: str) -> None:
    content, reason, said = LISTS[case]
    folder = write(tmp_path / "l" / "leaf.v").parent
    if callable(content):
        content(folder)
    else:
        write(folder / "a.f", content)
    assert said in refused(folder, home, "a.f", "auto", reason)


# folders and files


def deep_folders(folder: Path) -> None:
    (folder / "/".join("d" * 300)).mkdir(parents=True)


def settings(text: str | bytes) -> Make:
    def make(folder: Path) -> None:
        write(folder / "leaf.v")
        write(folder / "design.toml", text)

    return make


def file(name: str, content: str | bytes = LEAF) -> Make:
    return lambda folder: write(folder / name, content)


def good_and(make_it: Callable[[Path], object]) -> Make:
    def make(folder: Path) -> None:
        write(folder / "leaf.v")
        make_it(folder)

    return make


def huge(folder: Path) -> None:
    with open(folder / "huge.v", "wb") as opened:
        opened.truncate(70 << 30)


ENCRYPTED = "`pragma protect begin_protected\nabc\n`pragma protect end_protected\n"

FILES: dict[str, tuple[Make, str, str, str]] = {
    "nothing there": (lambda f: None, "none", USER, "HERE/none: no such file or folder"),
    "pipe": (lambda f: os.mkfifo(f / "a.v"), "a.v", USER, "HERE/a.v: neither a file nor a folder that can be read"),
    "device": (lambda f: (f / "a.v").symlink_to("/dev/zero"), "a.v", USER, "HERE/a.v: neither a file nor a folder"),
    "link loop": (lambda f: (f / "a.v").symlink_to("a.v"), "a.v", USER, "HERE/a.v: no such file or folder"),
    "no RTL": (file("a.txt"), "a.txt", reasons.NO_RTL, "HERE/a.txt: not RTL; name a *.v or *.sv file"),
    "VHDL": (file("a.vhd"), "a.vhd", reasons.VHDL, "HERE/a.vhd: VHDL only (a.vhd)"),
    "empty file": (file("a.v", ""), "a.v", reasons.NO_TOP, "HERE/a.v: no module found; name"),
    "binary file": (file("a.v", os.urandom(999) + b"\0"), "a.v", reasons.UNREADABLE, "a null byte"),
    "UTF-16 file": (file("a.sv", LEAF.encode("utf-16")), "a.sv", reasons.UNREADABLE, "HERE/a.sv: UTF-16 text; save"),
    "UTF-32 file": (file("a.sv", LEAF.encode("utf-32")), "a.sv", reasons.UNREADABLE, "HERE/a.sv: UTF-16 text; save"),
    "encrypted file": (file("a.v", ENCRYPTED), "a.v", reasons.ENCRYPTED, "HERE/a.v:1: encrypted RTL"),
    "huge file": (huge, "huge.v", reasons.TOO_LARGE, "HERE/huge.v: 1 files, 71680 MiB of RTL"),
    "cut off": (file("a.v", LEAF[:30]), "a.v", reasons.DOES_NOT_PARSE, "HERE/a.v:1: "),
    "includes itself": (file("a.v", '`include "a.v"\n'), "a.v", reasons.DOES_NOT_PARSE, "HERE/a.v:1: "),
    "endless line": (file("a.v", "x" * 300_000), "a.v", reasons.DOES_NOT_PARSE, "HERE/a.v:1: "),
    "odd file name": (file('a"b.v'), "", reasons.MALFORMED, "rename it"),
    "file name with a line break": (file("a\nb.v"), "", reasons.MALFORMED, "rename it"),
    "file name that is no text": (file(os.fsdecode(b"\xff.v")), "", reasons.MALFORMED, "rename it"),
    "folder name that is no text": (file(os.fsdecode(b"\xff/a.v")), os.fsdecode(b"\xff"), reasons.MALFORMED,
                                     "rename it"),
    "empty folder": (lambda f: None, "", reasons.NO_RTL, "HERE: no RTL found"),
    "pipes alone": (lambda f: os.mkfifo(f / "a.v"), "", reasons.NO_RTL, "HERE: no RTL found"),
    "links alone": (lambda f: (f / "a.v").symlink_to("a.v"), "", reasons.UNREADABLE, "HERE/a.v: a link that leads"),
    "link out": (good_and(lambda f: (f / "p.v").symlink_to("/etc/passwd")), "", reasons.UNREADABLE,
                 "HERE/p.v: a link that leads out of the folder; put a copy"),
    "text by a link out": (good_and(lambda f: (f / "p.txt").symlink_to("/etc/passwd")), "", reasons.UNREADABLE,
                           "HERE/p.txt: a link that leads out of the folder"),
    "link upwards": (lambda f: [(f / "p").mkdir(), (f / "p" / "q").symlink_to("..")], "p", reasons.UNREADABLE,
                     "HERE/p/q: a link to a folder above it; remove it"),
    "folders without end": (good_and(deep_folders), "", reasons.TOO_LARGE, "HERE: more than 100 folders in folders"),
    "no TOML": (settings("top = \n"), "", reasons.MALFORMED, "HERE/design.toml:1: not valid TOML: Invalid value"),
    "cut off TOML": (settings('name = "a"\ntop = "le'), "", reasons.MALFORMED, "HERE/design.toml:2: not valid TOML"),
    "deep TOML": (settings("top = " + "[" * 100_000), "", reasons.MALFORMED, "HERE/design.toml: values are nested"),
    "Latin-1 TOML": (settings(b'name = "\xe9"'), "", reasons.UNREADABLE, "HERE/design.toml: not UTF-8 text (byte 8)"),
    "UTF-16 TOML": (settings('name = "a"'.encode("utf-16")), "", reasons.UNREADABLE, "HERE/design.toml: not UTF-8"),
    "unknown key": (settings('\ntop_module = "leaf"'), "", reasons.MALFORMED, "HERE/design.toml:2: unknown key"),
    "wrong type": (settings('name = "a"\ntop = ["leaf"]'), "", reasons.MALFORMED, "design.toml:2: top has the wrong"),
    "odd target": (settings("[targets]\nline = 90"), "", reasons.MALFORMED, "HERE/design.toml:2: targets.line must be"),
    "headers outside": (settings('include_dirs = [".."]'), "", reasons.MALFORMED, "HERE/design.toml:1: include_dirs"),
    "sources outside": (settings('sources = ["../*"]'), "", reasons.MALFORMED, "HERE/design.toml:1: sources names"),
    "odd pattern": (settings('sources = ["a**b/***"]'), "", reasons.MALFORMED, "HERE/design.toml:1: sources names"),
    "text outside": (settings('spec = "/etc/passwd"'), "", reasons.MALFORMED, "HERE/design.toml:1: spec names"),
    "name with a line break": (settings('name = "a\\nb"'), "", reasons.MALFORMED, "no name for a design; rename it"),
}  # fmt: skip


@pytest.mark.parametrize("case", FILES)
def test_a_malformed_folder_or_file_is_one_rejection(tmp_path: Path, home: Path, case: str) -> None:
    make, name, reason, said = FILES[case]
    folder = tmp_path / "f"
    folder.mkdir()
    make(folder)
    assert said in refused(folder, home, name, "directory", reason)


# cores


CORE = "CAPI=2:\nname: ::leaf:1.0\nfilesets: {rtl: {files: [leaf.v], file_type: verilogSource}}\n" \
       "targets: {default: {filesets: [rtl], toplevel: leaf}}\n"  # fmt: skip

CORES: dict[str, tuple[str | bytes | Make, str, str]] = {
    "empty": ("", reasons.MALFORMED, "HERE/a.core:1: not a FuseSoC core file; its first line must be CAPI=2:"),
    "CAPI1": ("CAPI=1\n[main]\n", reasons.MALFORMED, "HERE/a.core:1: CAPI1, which FuseSoC reads no more"),
    "core dump": (b"\x7fELF\0", reasons.UNREADABLE, "HERE/a.core: a binary file, not text"),
    "UTF-16": (CORE.encode("utf-16"), reasons.UNREADABLE, "HERE/a.core: UTF-16 text; save it as UTF-8"),
    "Latin-1": (CORE.encode() + b"# \xe4", reasons.UNREADABLE, "HERE/a.core:5: not UTF-8 text; save it"),
    "enormous": (CORE + "# x\n" * 300_000, reasons.TOO_LARGE, "HERE/a.core: more than 1 MiB"),
    "pipe": (lambda f: os.mkfifo(f / "a.core"), USER, "HERE/a.core: no such file or folder"),
    "cut off": (CORE[:70], reasons.MALFORMED, "HERE/a.core:3: not a core file that FuseSoC reads: "),
    "nested YAML": (CORE + "description: " + "[" * 200_000, reasons.MALFORMED, "HERE/a.core:5: not a core file"),
    "pipe as RTL": (lambda f: [write(f / "a.core", CORE), (f / "leaf.v").unlink(), os.mkfifo(f / "leaf.v")],
                    reasons.UNREADABLE, "HERE/leaf.v' is no ordinary file"),
}  # fmt: skip


@pytest.mark.parametrize("case", CORES)
def test_a_malformed_core_is_one_rejection(tmp_path: Path, home: Path, case: str) -> None:
    content, reason, said = CORES[case]
    folder = write(tmp_path / "c" / "leaf.v").parent
    if callable(content):
        content(folder)
    else:
        write(folder / "a.core", content)
    assert said in refused(folder, home, "a.core", "fusesoc", reason)


# archives


def zipped(*files: tuple[str, str | bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return packed.getvalue()


def linked(kind: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo("leaf.v")
        member.type, member.linkname = kind, "/etc/passwd"
        archive.addfile(member)
    return packed.getvalue()


def with_password() -> bytes:
    content = bytearray(zipped(("leaf.v", LEAF)))
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    return bytes(content)


ARCHIVES: dict[str, tuple[str, bytes, str, str]] = {
    "nothing in it": ("a.zip", zipped(), reasons.NO_RTL, "HERE/a.zip: the archive is empty"),
    "no archive": ("a.zip", b"module leaf; endmodule", reasons.UNREADABLE, "HERE/a.zip: cannot be unpacked"),
    "no bytes": ("a.tar.gz", b"", reasons.UNREADABLE, "HERE/a.tar.gz: cannot be unpacked"),
    "cut off": ("a.zip", zipped(("leaf.v", LEAF))[:-30], reasons.UNREADABLE, "HERE/a.zip: cannot be unpacked"),
    "password": ("a.zip", with_password(), reasons.ENCRYPTED, "HERE/a.zip: leaf.v: encrypted; pack it without"),
    "bomb": ("a.zip", zipped(("a.v", bytes(60 << 20))), reasons.UNSAFE_ARCHIVE, "more than 200 times its size"),
    "outside": ("a.zip", zipped(("../../x.v", LEAF)), reasons.UNSAFE_ARCHIVE, "HERE/a.zip: ../../x.v: the path leads"),
    "absolute": ("a.zip", zipped(("/tmp/x.v", LEAF)), reasons.UNSAFE_ARCHIVE, "HERE/a.zip: /tmp/x.v: an absolute path"),
    "two spellings": ("a.zip", zipped(("a.v", ""), ("A.v", "")), reasons.UNSAFE_ARCHIVE, "A.v: differs from a.v in"),
    "link": ("a.tgz", linked(tarfile.SYMTYPE), reasons.UNSAFE_ARCHIVE, "HERE/a.tgz: leaf.v: a link, device or pipe"),
    "device": ("a.tgz", linked(tarfile.CHRTYPE), reasons.UNSAFE_ARCHIVE, "HERE/a.tgz: leaf.v: a link, device or pipe"),
    "archive in it": ("a.zip", zipped(("b.zip", b"PK")), reasons.NO_RTL, "holds nothing but an archive (b.zip)"),
    "other kind": ("a.7z", b"7z\xbc\xaf\x27\x1c", reasons.UNREADABLE, "HERE/a.7z: this kind of archive is not read"),
    "bad RTL in it": ("a.zip", zipped(("d/a.v", "module")), reasons.DOES_NOT_PARSE, "HERE/a.zip/d/a.v:1: "),
    "bad list in it": ("a.zip", zipped(("a.f", "\nb.v")), reasons.UNREADABLE, "HERE/a.zip/a.f:2: there is no file"),
    "list that leads out": ("a.zip", zipped(("a.f", "/etc/passwd")), reasons.UNSAFE_ARCHIVE, "HERE/a.zip/a.f:1: "),
    "no RTL in it": ("a.zip", zipped(("d/a.txt", "x")), reasons.NO_RTL, "HERE/a.zip/d/a.txt: not RTL"),
}  # fmt: skip


@pytest.mark.parametrize("case", ARCHIVES)
def test_a_malformed_archive_is_one_rejection(tmp_path: Path, home: Path, case: str) -> None:
    name, content, reason, said = ARCHIVES[case]
    folder = write(tmp_path / "a" / name, content).parent
    assert said in refused(folder, home, name, "auto", reason)
    assert [p.name for p in folder.iterdir()] == [name]


def test_what_may_not_be_entered_is_no_smaller_design(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "f" / "leaf.v")
    write(tmp_path / "f" / "closed" / "other.v")
    scandir = os.scandir

    def guarded(path: os.PathLike[str] | str) -> object:  # root, who may run the tests, enters everything
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    said = refused(tmp_path / "f", home, "", "directory", reasons.UNREADABLE)
    assert said == "HERE/closed: cannot be read (Permission denied); check its permissions"
