"""Unpack archives that nobody vouches for: zip, and tar as it is or compressed with gzip, bzip2 or xz.

Nothing but ordinary files and folders comes out, below the target, within limits that are measured while unpacking
instead of believed. Files are written here rather than by `extractall`, as its filters allow links and know no limits.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import shutil
import stat
import tarfile
import tempfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from sim import reasons
from sim.design import DesignError
from sim.files import open_ordinary

SUFFIXES = (
    ".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz", ".tbz2", ".tar.xz", ".txz",
    ".tar.zst", ".tzst", ".7z", ".rar",
)  # fmt: skip
"""Of files that are taken for archives; the last four are refused with a message that says so."""

MARKER = ".unpacked"
"""Hidden file at the top of an unpacked archive: what lies below it may not name files outside (`unpacked_root`)."""

_CHUNK = 1 << 20
_FREE_BYTES = 32 << 20  # before the ratio counts: small texts that repeat themselves compress well
_DIRECTORY_BYTES = 24 << 20  # of a zip, which is read at once: some 200,000 members
_END_BYTES = (1 << 16) + 22  # of a zip: its end record with the longest comment
_HEADER_BYTES = 1 << 20  # of a tar's extended header, which is read at once
_DAMAGE = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError, OverflowError,
    IndexError, KeyError, NotImplementedError, RuntimeError, MemoryError, UnicodeError,
)  # fmt: skip
"""What the libraries raise for damaged archives, as trials with changed bytes show."""


@dataclass(frozen=True)
class Limits:
    """What an archive may hold: bytes of all files together as unpacked, files and folders, bytes unpacked for each
    byte of the archive, and folders in folders."""

    bytes: int = 1 << 30
    files: int = 200_000
    ratio: int = 200
    depth: int = 32


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True)
class Unpacked:
    """An archive that is unpacked for a while: `path` is what to read, `root` the folder that its members lie in."""

    path: Path
    root: Path
    archive: str

    def shown(self, text: str) -> str:
        """`text` with paths of members as people know them: `designs.zip/uart/uart.v`."""
        return text.replace(str(self.root), self.archive)


def is_archive(path: Path) -> bool:
    """Whether `path` is called like an archive."""
    return path.name.lower().endswith(SUFFIXES)


def archive_stem(path: Path) -> str:
    """The name of an archive without what says that it is one."""
    suffix = max((s for s in SUFFIXES if path.name.lower().endswith(s)), key=len, default="")
    return path.name[: -len(suffix)] if suffix else path.stem


@contextlib.contextmanager
def unpacked(archive: Path, limits: Limits = DEFAULT_LIMITS) -> Iterator[Unpacked]:
    """The archive, unpacked into a temporary folder until the block ends. Raises DesignError as `unpack` does."""
    with tempfile.TemporaryDirectory(prefix="llm4cov-archive-", ignore_cleanup_errors=True) as folder:
        root = Path(folder).resolve() / (archive_stem(archive) or "archive")
        yield Unpacked(_only_file(unpack(archive, root, limits)), root, str(archive))


def unpacked_root(path: Path) -> Path | None:
    """The folder of the unpacked archive that `path` lies in, None when it comes from no archive."""
    return next((p for p in path.resolve().parents if (p / MARKER).is_file()), None)


def unpack(archive: Path, target: Path, limits: Limits = DEFAULT_LIMITS) -> Path:
    """Unpack `archive` to the folder `target`, which must not exist yet, whole or not at all.

    Returns `target`, or the folder in it when the archive holds nothing else at its top. Files get mode 0644, folders
    0755; archives in the archive stay as they are, and what macOS adds (`__MACOSX`) is left out.

    Raises DesignError, one line that names archive, member and mend: `unsafe archive` for paths that lead out, links,
    devices, names that are taken twice (also but for case) and exceeded limits; `encrypted`; `unreadable` for what is
    damaged, cut off or in a format that is not read; `no RTL` when nothing is in it, or other archives alone.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
    except OSError as error:
        raise _damaged(archive, f"{target.parent}: {error.strerror}") from None
    try:
        partial.chmod(0o755)
        with _opened(archive) as file:
            writer = _Writer(archive, partial, limits, os.fstat(file.fileno()).st_size)
            _unpacker(archive, file)(file, writer)
        _refuse_what_holds_nothing(archive, writer)
        (partial / MARKER).write_text(f"{archive.name}\n")
        partial.rename(target)
    except OSError as error:
        raise _damaged(archive, f"{target}: {error.strerror}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target / writer.tops.pop() if len(writer.tops) == 1 and writer.only_folder_at_top else target


def _only_file(path: Path) -> Path:
    """What an archive of one file holds."""
    entries = [p for p in path.iterdir() if not p.name.startswith(".")] if path.is_dir() else []
    return entries[0] if len(entries) == 1 and entries[0].is_file() else path


@contextlib.contextmanager
def _opened(archive: Path) -> Iterator[BinaryIO]:
    try:
        with open_ordinary(archive, follow=True) as file:
            yield file
    except OSError as error:
        raise _damaged(archive, error.strerror or str(error)) from None


def _damaged(archive: Path, why: str) -> DesignError:
    said = " ".join(why.split())[:200]
    return DesignError(f"{archive}: cannot be unpacked ({said}); pack it again, or check its permissions and the disk",
                       reasons.UNREADABLE)  # fmt: skip


def _unpacker(archive: Path, file: BinaryIO) -> Callable[[BinaryIO, _Writer], None]:
    """How to unpack the file, by what it begins with: names lie."""
    start = file.read(512)
    file.seek(0)
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _unpack_zip
    if start.startswith((b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf\x27\x1c", b"Rar!")):
        raise DesignError(f"{archive}: this kind of archive is not read; pack it as .zip or .tar.gz",
                          reasons.UNREADABLE)  # fmt: skip
    if start.startswith(b"\x1f\x8b"):
        return lambda file, writer: _unpack_tar(gzip.GzipFile(fileobj=file), writer)
    if start.startswith(b"BZh"):
        return lambda file, writer: _unpack_tar(bz2.BZ2File(file), writer)
    if start.startswith(b"\xfd7zXZ\0"):
        return lambda file, writer: _unpack_tar(lzma.LZMAFile(file), writer)
    return _unpack_tar


def _refuse_what_holds_nothing(archive: Path, writer: _Writer) -> None:
    if not writer.files:
        raise DesignError(f"{archive}: the archive is empty; pack the folder of the design", reasons.NO_RTL)
    inner = [name for name in writer.files if is_archive(Path(name))]
    if len(inner) == len(writer.files):
        more = f" and {len(inner) - 1} more" if len(inner) > 1 else ""
        raise DesignError(f"{archive}: holds nothing but an archive ({inner[0]}{more}); unpack it and name what is "
                          "in it", reasons.NO_RTL)  # fmt: skip


class _Writer:
    """Writes members below a folder, within limits. `tops` are the names at the top, `files` those of all files."""

    def __init__(self, archive: Path, folder: Path, limits: Limits, packed_bytes: int) -> None:
        self.files: list[str] = []
        self.tops: set[str] = set()
        self.only_folder_at_top = True
        self.archive = archive
        self._folder = folder
        self._limits = limits
        self._packed_bytes = packed_bytes
        self._bytes = 0
        self._entries = 0
        self._spelling: dict[str, str] = {}
        self._kinds: dict[str, str] = {}

    def unsafe(self, member: str, why: str, mend: str = "pack it again without that") -> DesignError:
        shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in member[:200])
        return DesignError(f"{self.archive}: {shown}: {why}; {mend}", reasons.UNSAFE_ARCHIVE)

    def folder(self, name: str) -> None:
        """Make a folder."""
        path = self._path(name, "folder")
        if path:
            path.mkdir(parents=True, exist_ok=True)

    def file(self, name: str, content: BinaryIO, *, counted: bool = False) -> None:
        """Write a file; with `counted` its bytes are counted already."""
        path = self._path(name, "file")
        if not path:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "xb") as out:
            while chunk := content.read(_CHUNK):
                if not counted:
                    self.count(len(chunk), name)
                out.write(chunk)
        path.chmod(0o644)

    def count(self, unpacked: int, member: str) -> None:
        """Count bytes that were unpacked. Raises DesignError at the limit."""
        self._bytes += unpacked
        if self._bytes > self._limits.bytes:
            raise self.unsafe(member, f"more than {self._limits.bytes >> 20:,} MiB when unpacked",
                              "pack fewer designs in one archive")  # fmt: skip
        if self._bytes > max(_FREE_BYTES, self._limits.ratio * self._packed_bytes):
            raise self.unsafe(member, f"the archive unpacks to more than {self._limits.ratio} times its size",
                              "pack ordinary files")  # fmt: skip

    def _path(self, name: str, kind: str) -> Path | None:
        """Where a member belongs; None for what is left out. Raises DesignError for names that are not safe."""
        self._entries += 1
        if self._entries > self._limits.files:
            raise self.unsafe(name, f"more than {self._limits.files:,} files and folders",
                              "pack fewer designs in one archive")  # fmt: skip
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if name.startswith("/") or (len(name) > 1 and name[1] == ":"):
            raise self.unsafe(name, "an absolute path")
        if ".." in parts:
            raise self.unsafe(name, "the path leads out of the archive")
        if not all(part.isprintable() for part in parts):
            raise self.unsafe(name, "the name holds control characters or is not UTF-8", "rename it")
        if len(parts) > self._limits.depth or any(len(part.encode()) > 255 for part in parts):
            raise self.unsafe(name, f"the path is too long (at most {self._limits.depth} folders, 255 bytes a name)",
                              "rename it")  # fmt: skip
        if not parts or parts[0] == "__MACOSX":
            return None
        if parts[0] == MARKER:
            raise self.unsafe(name, "the name is taken", "rename it")
        self._take(name, parts, kind)
        return self._folder.joinpath(*parts)

    def _take(self, name: str, parts: list[str], kind: str) -> None:
        """Take the names of a member and the folders above it: each has one spelling and is one thing."""
        for i in range(1, len(parts) + 1):
            path = "/".join(parts[:i])
            key = unicodedata.normalize("NFC", path).casefold()
            is_kind = kind if i == len(parts) else "folder"
            if self._spelling.setdefault(key, path) != path:
                raise self.unsafe(name, f"differs from {self._spelling[key]} in upper and lower case alone",
                                  "rename one of them")  # fmt: skip
            known = self._kinds.get(path)
            if known and (known != is_kind or known == "file"):
                raise self.unsafe(name, "is in the archive twice", "pack it again with one of them")
            self._kinds[path] = is_kind
        if kind == "file":
            self.files.append("/".join(parts))
        self.tops.add(parts[0])
        self.only_folder_at_top &= len(parts) > 1 or kind == "folder"


def _unpack_zip(file: BinaryIO, writer: _Writer) -> None:
    try:
        with zipfile.ZipFile(_ReadInPieces(file, writer)) as archive:  # type: ignore[arg-type]
            if _members_said(file) != min(len(archive.infolist()), 0xFFFF):
                raise _damaged(writer.archive, "its directory lacks members")
            for member in archive.infolist():
                name = member.filename.replace("\\", "/")  # some tools of Windows write them
                mode = member.external_attr >> 16
                if member.flag_bits & 1:
                    raise DesignError(f"{writer.archive}: {name}: encrypted; pack it without a password",
                                      reasons.ENCRYPTED)  # fmt: skip
                if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                    raise writer.unsafe(name, *_NO_LINKS)
                if name.endswith("/"):
                    writer.folder(name)
                    continue
                with archive.open(member) as content:
                    writer.file(name, content)  # type: ignore[arg-type]
    except _DAMAGE as error:
        raise _damaged(writer.archive, str(error) or type(error).__name__) from None


_NO_LINKS = ("a link, device or pipe", "pack ordinary files instead (tar -h, zip without -y)")


def _members_said(file: BinaryIO) -> int:
    """The number of members, 65535 for more, that the end of a zip file tells and its library does not look at."""
    file.seek(0, io.SEEK_END)
    file.seek(max(0, file.tell() - _END_BYTES))
    end = file.read(_END_BYTES)
    at = end.rfind(b"PK\x05\x06")
    return int.from_bytes(end[at + 10 : at + 12], "little")


class _ReadInPieces(io.RawIOBase):
    """A zip file that refuses to be read at once in large pieces: only a directory of members asks for that, and it is
    turned into objects of many times its size."""

    def __init__(self, file: BinaryIO, writer: _Writer) -> None:
        self._file = file
        self._writer = writer

    def read(self, size: int = -1) -> bytes:
        if size > _DIRECTORY_BYTES:
            raise self._writer.unsafe("its directory", "too many members", "pack fewer designs in one archive")
        return self._file.read(size)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True


def _unpack_tar(file: BinaryIO | io.BufferedIOBase, writer: _Writer) -> None:
    ended: list[bool] = []

    class Header(tarfile.TarInfo):
        """Sees what the library passes over in silence: that the end of the archive is missing."""

        @classmethod
        def frombuf(cls, buf: bytes, encoding: str, errors: str) -> Header:
            if len(buf) == tarfile.BLOCKSIZE and not buf.strip(b"\0"):
                ended.append(True)
            header = super().frombuf(buf, encoding, errors)
            if header.type in _EXTENDED and header.size > _HEADER_BYTES:
                raise writer.unsafe(header.name, "a header of more than 1 MiB")
            return header

    counted = _Counted(file, writer)
    try:
        with tarfile.open(fileobj=counted, mode="r|", tarinfo=Header) as archive:  # type: ignore[call-overload]
            for member in archive:
                _unpack_member(archive, member, writer)
            archive.members.clear()
            while counted.read(_CHUNK):  # for the checksum at the end
                pass
        if not ended:
            raise _damaged(writer.archive, "it is cut off, or a header is damaged")
    except _DAMAGE as error:
        raise _damaged(writer.archive, str(error) or type(error).__name__) from None


_EXTENDED = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME,
             tarfile.GNUTYPE_LONGLINK)  # fmt: skip


def _unpack_member(archive: tarfile.TarFile, member: tarfile.TarInfo, writer: _Writer) -> None:
    if member.isdir():
        writer.folder(member.name)
    elif not member.isreg() or member.issparse():
        raise writer.unsafe(member.name, *_NO_LINKS)
    else:
        content = archive.extractfile(member)
        assert content is not None
        writer.file(member.name, content, counted=True)  # type: ignore[arg-type]


class _Counted:
    """An unpacked tar, read to its end, every byte counted: headers and what is skipped are unpacked too."""

    def __init__(self, file: BinaryIO | io.BufferedIOBase, writer: _Writer) -> None:
        self._file = file
        self._writer = writer

    def read(self, size: int) -> bytes:
        data = self._file.read(min(size, _CHUNK))
        self._writer.count(len(data), "its members")
        return data
