"""Archives are unpacked whole or not at all, and nothing in them reaches outside."""

from __future__ import annotations

import io
import random
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from llm4cov_assets.ingest.archives import DEFAULT_LIMITS, Limits, archive_stem, is_archive, unpack, unpacked_root
from llm4cov_assets.ingest.formats import reader
from sim import reasons
from sim.assembly import assemble
from sim.design import Design, DesignError

LEAF = b"module leaf(input logic a, output logic y); assign y = ~a; endmodule\n"
FILES = {"leaf/leaf.v": LEAF, "leaf/doc/leaf.md": "Für Anfänger.\n".encode(), "leaf/empty.dat": b""}
KINDS = ("zip", "tar", "tar.gz", "tar.bz2", "tar.xz")


def pack(path: Path, files: dict[str, bytes]) -> Path:
    """An archive of the kind that its suffix says."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return path
    mode = "w" if path.suffix == ".tar" else f"w:{path.suffix[1:]}"
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o6777
            archive.addfile(member, io.BytesIO(content))
    return path


def pack_member(path: Path, member: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w") as archive:
        archive.addfile(member)
    return path


def refusal(archive: Path, limits: Limits = DEFAULT_LIMITS) -> DesignError:
    """How unpacking is refused; nothing is left of it."""
    target = archive.parent / "target" / "here"
    with pytest.raises(DesignError) as error:
        unpack(archive, target, limits)
    assert list(target.parent.iterdir()) == []
    message = str(error.value)
    assert message.startswith(f"{archive}: ") and "; " in message and message.isprintable()
    return error.value


def contents(folder: Path) -> dict[str, bytes]:
    found = [p for p in folder.rglob("*") if p.is_file() and not p.name.startswith(".")]
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in found}


def designs(source: Path, format: str = "auto") -> list[Design]:
    return [assemble(c.gather()) for c in reader(str(source), format)[0]()]


@pytest.mark.parametrize("kind", KINDS)
def test_an_archive_unpacks_to_its_files_with_plain_modes(tmp_path: Path, kind: str) -> None:
    found = unpack(pack(tmp_path / f"a.{kind}", FILES), tmp_path / "out")
    assert found == tmp_path / "out" / "leaf"  # the only thing at its top
    assert contents(tmp_path / "out") == FILES
    modes = {stat.S_IMODE(p.stat().st_mode) for p in found.rglob("*") if p.is_file()}
    assert modes == {0o644}


def test_what_an_archive_is_shows_in_its_bytes_not_in_its_name(tmp_path: Path) -> None:
    named = pack(tmp_path / "a.tar.gz", FILES).rename(tmp_path / "b.zip")
    assert contents(unpack(named, tmp_path / "out").parent) == FILES


def test_what_macos_and_windows_add_does_no_harm(tmp_path: Path) -> None:
    files = {"leaf\\leaf.v": LEAF, "__MACOSX/leaf/._leaf.v": b"\0", ".DS_Store": b"\0"}
    found = unpack(pack(tmp_path / "a.zip", files), tmp_path / "out")
    assert found == tmp_path / "out" and contents(found) == {"leaf/leaf.v": LEAF}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("../leaf.v", "the path leads out"),
        ("leaf/../../leaf.v", "the path leads out"),
        ("..\\leaf.v", "the path leads out"),
        ("/etc/leaf.v", "an absolute path"),
        ("C:\\leaf.v", "an absolute path"),
        ("leaf\n.v", "control characters"),
        ("\x1b[2J.v", "control characters"),
        ("d/" * 40 + "leaf.v", "the path is too long"),
        ("l" * 300 + ".v", "the path is too long"),
        (".unpacked", "the name is taken"),
    ],
)
def test_unsafe_names_are_refused(tmp_path: Path, name: str, said: str) -> None:
    error = refusal(pack(tmp_path / "a.zip", {"ok.v": LEAF, name: LEAF}))
    assert error.reason == reasons.UNSAFE_ARCHIVE and said in str(error)
    if "\\" not in name:
        assert said in str(refusal(pack(tmp_path / "a.tar", {"ok.v": LEAF, name: LEAF})))


def test_names_that_are_no_text_are_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.GNU_FORMAT) as archive:
        archive.addfile(tarfile.TarInfo("l\udce9.v"))
    assert "not UTF-8" in str(refusal(tmp_path / "a.tar"))


@pytest.mark.parametrize("kind", ("zip", "tar"))
@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("leaf.v", "leaf.v"), "is in the archive twice"),
        (("leaf.v", "./leaf.v"), "is in the archive twice"),
        (("leaf", "leaf/leaf.v"), "is in the archive twice"),
        (("leaf/leaf.v", "leaf"), "is in the archive twice"),
        (("leaf.v", "Leaf.v"), "differs from leaf.v in upper and lower case alone"),
        (("rtl/a.v", "RTL/b.v"), "differs from rtl in upper and lower case alone"),
        (("\u00e9.v", "e\u0301.v"), "differs from"),
    ],
)
def test_names_that_are_taken_are_refused(tmp_path: Path, kind: str, names: tuple[str, str], said: str) -> None:
    path = tmp_path / f"a.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as archive, pytest.warns() if names[0] == names[1] else _nothing():
            for name in names:
                archive.writestr(name, LEAF)
    else:
        with tarfile.open(path, "w") as tar:
            for name in names:
                tar.addfile(tarfile.TarInfo(name))
    error = refusal(path)
    assert error.reason == reasons.UNSAFE_ARCHIVE and said in str(error)


def _nothing() -> io.BytesIO:
    return io.BytesIO()


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE],
)
def test_links_devices_and_pipes_are_refused(tmp_path: Path, kind: bytes) -> None:
    member = tarfile.TarInfo("leaf.v")
    member.type, member.linkname = kind, "/etc/passwd"
    assert refusal(pack_member(tmp_path / "a.tar", member)).reason == reasons.UNSAFE_ARCHIVE


def test_links_in_zip_files_are_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("leaf.v")
    link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    error = refusal(tmp_path / "a.zip")
    assert error.reason == reasons.UNSAFE_ARCHIVE and "leaf.v: a link" in str(error)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (Limits(bytes=1 << 20), "more than 1 MiB when unpacked"),
        (Limits(files=20, ratio=1_000_000), "more than 20 files"),
        (Limits(), "more than 200 times its size"),
    ],
)
@pytest.mark.parametrize("kind", ("zip", "tar.gz", "tar.bz2", "tar.xz"))
def test_limits_hold_for_what_really_comes_out(tmp_path: Path, kind: str, limits: Limits, said: str) -> None:
    files = {f"f{i}.v": bytes(2 << 20) for i in range(25)}
    error = refusal(pack(tmp_path / f"a.{kind}", files), limits)
    assert error.reason == reasons.UNSAFE_ARCHIVE and said in str(error)


def test_a_header_that_needs_memory_is_refused(tmp_path: Path) -> None:
    member = tarfile.TarInfo("leaf.v")
    member.pax_headers = {"comment": "x" * (2 << 20)}
    assert "a header of more than 1 MiB" in str(refusal(pack_member(tmp_path / "a.tar", member)))


@pytest.mark.parametrize("kind", KINDS)
def test_every_cut_and_most_changes_of_an_archive_are_noticed(tmp_path: Path, kind: str) -> None:
    whole = pack(tmp_path / f"a.{kind}", FILES).read_bytes()
    rng = random.Random(kind)
    end = -(-len(whole.rstrip(b"\0")) // 512) * 512 if kind == "tar" else len(whole)  # a tar ends with zeros
    for cut in rng.sample(range(end), min(60, end)):
        (tmp_path / f"a.{kind}").write_bytes(whole[:cut])
        assert refusal(tmp_path / f"a.{kind}").reason in (reasons.UNREADABLE, reasons.NO_RTL)
    for _ in range(60):
        changed = bytearray(whole)
        for _ in range(rng.choice((1, 4, 30))):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        (tmp_path / f"a.{kind}").write_bytes(changed)
        out = tmp_path / f"out{rng.random()}"
        try:
            unpack(tmp_path / f"a.{kind}", out)
        except DesignError as error:
            assert str(error).isprintable() and not out.exists()
        else:
            assert len(contents(out)) == len(FILES)  # the bytes of a plain tar carry no checksum


def test_archives_that_cannot_be_read_say_why(tmp_path: Path) -> None:
    cases: list[tuple[str, bytes, str, str]] = [
        ("a.zip", b"", "cannot be unpacked", reasons.UNREADABLE),
        ("a.zip", b"not an archive" * 100, "cannot be unpacked", reasons.UNREADABLE),
        ("a.tar.zst", b"\x28\xb5\x2f\xfd\0\0", "pack it as .zip or .tar.gz", reasons.UNREADABLE),
        ("a.7z", b"7z\xbc\xaf\x27\x1c", "pack it as .zip or .tar.gz", reasons.UNREADABLE),
        ("a.zip", _encrypted(tmp_path), "encrypted; pack it without a password", reasons.ENCRYPTED),
        ("a.zip", pack(tmp_path / "e.zip", {}).read_bytes(), "the archive is empty", reasons.NO_RTL),
        ("a.tar", pack(tmp_path / "e.tar", {}).read_bytes(), "the archive is empty", reasons.NO_RTL),
        (
            "a.tar",
            pack(tmp_path / "n.tar", {"x/b.zip": b"PK"}).read_bytes(),
            "but an archive (x/b.zip)",
            reasons.NO_RTL,
        ),
    ]
    for name, content, said, reason in cases:
        (tmp_path / name).write_bytes(content)
        error = refusal(tmp_path / name)
        assert said in str(error) and error.reason == reason
    (tmp_path / "folder.zip").mkdir()
    assert refusal(tmp_path / "folder.zip").reason == reasons.UNREADABLE


def _encrypted(tmp_path: Path) -> bytes:
    """A zip file that says that its member is encrypted."""
    content = bytearray(pack(tmp_path / "c.zip", {"leaf.v": LEAF}).read_bytes())
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    return bytes(content)


def test_names_of_archives() -> None:
    assert [archive_stem(Path(n)) for n in ("a.b.tar.gz", "A.ZIP", "a.tgz")] == ["a.b", "A", "a"]
    assert not is_archive(Path("a.v")) and not is_archive(Path("zip"))


@pytest.mark.parametrize("kind", KINDS)
def test_an_archive_is_a_source_like_what_is_in_it(tmp_path: Path, kind: str) -> None:
    [leaf] = designs(pack(tmp_path / f"a.{kind}", FILES))
    assert (leaf.name, leaf.specification) == ("leaf", "Für Anfänger.")
    several = {f"{name}/{name}.v": LEAF.replace(b"leaf", name.encode()) for name in ("one", "two")}
    assert [d.name for d in designs(pack(tmp_path / f"b.{kind}", several))] == ["one", "two"]


@pytest.mark.parametrize(
    "files",
    [
        {"soc.f": b"rtl/leaf.v"},
        {"p/soc.f": b"+define+A\nrtl/leaf.v", "p/rtl/leaf.v": LEAF},
        {"p/leaf.v": LEAF, "p/soc.core": b"CAPI=2:\nname: ::soc:1.0\n"},
    ],
)
def test_file_lists_and_cores_in_archives(tmp_path: Path, files: dict[str, bytes]) -> None:
    files = {"rtl/leaf.v": LEAF, **files} if "soc.f" in files else files
    core = b"filesets: {rtl: {files: [leaf.v], file_type: verilogSource}}\ntargets: {default: {filesets: [rtl], " \
           b"toplevel: leaf}}\n"  # fmt: skip
    files = {n: c + core if n.endswith(".core") else c for n, c in files.items()}
    kind = "fusesoc" if "p/soc.core" in files else "filelist"
    [found] = designs(pack(tmp_path / "a.zip", files), kind)
    assert (found.name, found.top) == ("soc", "leaf")


def test_messages_show_members_of_the_archive(tmp_path: Path) -> None:
    broken = LEAF.replace(b"~a", b"")
    archive = pack(tmp_path / "a.zip", {"p/one/one.v": broken, "p/two/two.txt": b"", "p/three/design.toml": b"top = 3"})
    found: dict[str, tuple[str, str]] = {}
    for candidate in reader(str(archive))[0]():
        with pytest.raises(DesignError) as error:
            assemble(candidate.gather())
        found[candidate.name] = (candidate.place, str(error.value))
    assert found["one"][0] == f"{archive}/p/one"
    assert found["one"][1].startswith(f"{archive}/p/one/one.v:1: expected expression")
    assert found["two"][1].startswith(f"{archive}/p/two: no RTL found")
    assert found["three"][1].startswith(f"{archive}/p/three/design.toml:1: top has the wrong type")


def test_lists_in_archives_reach_nothing_outside(tmp_path: Path) -> None:
    secret = tmp_path / "secret.v"
    secret.write_bytes(LEAF)
    core = "CAPI=2:\nname: ::soc:1.0\nfilesets: {rtl: {files: [%s], file_type: verilogSource}}\n" \
           "targets: {default: {filesets: [rtl], toplevel: leaf}}\n"  # fmt: skip
    up = "../" * 20
    sources: list[tuple[str, str, str]] = [
        ("soc.f", f"{secret}", "filelist"),
        ("soc.f", f"{up}{secret}", "filelist"),
        ("soc.f", f"-f {secret}", "filelist"),
        ("soc.f", f"+incdir+{tmp_path} x.v", "filelist"),
        ("soc.core", core % f"{up}{secret}", "fusesoc"),
    ]
    for name, text, kind in sources:
        archive = pack(tmp_path / "a.zip", {name: text.encode(), "x.v": LEAF})
        candidate = next(candidates := reader(str(archive), kind)[0]())
        with pytest.raises(DesignError, match="leads out of the archive") as error:
            candidate.gather()
        assert error.value.reason == reasons.UNSAFE_ARCHIVE and list(candidates) == []


def test_what_was_unpacked_is_gone_when_all_candidates_were_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    read = reader(str(pack(tmp_path / "a.zip", FILES)))[0]()
    folder = next(read).gather().folder
    assert folder and unpacked_root(folder / "leaf.v") == folder.parent and folder.is_relative_to(tmp_path / "tmp")
    assert list(read) == [] and list((tmp_path / "tmp").iterdir()) == []
