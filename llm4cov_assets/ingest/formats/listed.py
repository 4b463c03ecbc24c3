"""Designs whose files are named one by one, in a file list or a core file, wherever they lie on disk."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from sim import reasons
from sim.assembly import MOST_BYTES, MOST_FILES, Gathered, read_file, refuse_missing_rtl
from sim.design import DesignError, SourceFile
from sim.files import open_ordinary

Kind = Literal["file", "folder", "other", "unreadable", ""]

LIST_SUFFIXES = (".f", ".vf", ".vc", ".flist", ".filelist")
"""Of file lists; edalize, and with it FuseSoC, writes `.vc` for Verilator."""

NOT_RTL_SUFFIXES = {
    ".vhd", ".vhdl", ".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".o", ".a", ".so", ".py", ".tcl", ".do", ".sh", ".mk",
    ".sdc", ".xdc", ".ucf", ".pcf", ".lpf", ".qsf", ".qip", ".xci", ".vlt", ".waiver", ".hex", ".mem", ".mif", ".dat",
    ".bin", ".elf", ".lib", ".lef", ".def", ".md", ".txt", ".json", ".yml", ".yaml", ".hjson", ".rdl", ".ipxact",
}  # fmt: skip
"""Of files that lists name beside Verilog; what has another suffix, or none, is taken for Verilog."""

_INCLUDE = re.compile(rb'^[ \t]*`include[ \t]+"([^"\r\n]+)"', re.MULTILINE)


@dataclass
class Listed:
    """What a list names: absolute paths in its order, folders in which included files are looked for, and settings."""

    sources: list[Path] = field(default_factory=lambda: [])
    include_dirs: list[Path] = field(default_factory=lambda: [])
    others: list[Path] = field(default_factory=lambda: [])
    defines: dict[str, str] = field(default_factory=lambda: {})
    parameters: dict[str, str] = field(default_factory=lambda: {})
    top: str | None = None


def kind(path: Path) -> Kind:
    """What there is at `path`, links followed; "unreadable" when a folder above it may not be entered."""
    try:
        mode = path.stat().st_mode
    except PermissionError:
        return "unreadable"
    except (OSError, ValueError):  # nothing there, a loop of links, a name that is too long or holds a null byte
        return ""
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "other"


def canonical(path: Path) -> Path:
    """The absolute path of a file by its own name: only the links to folders on the way are resolved."""
    return Path(os.path.realpath(path.parent), path.name) if path.name not in ("", "..") else path.resolve()


def is_below(path: Path, folder: Path | None) -> bool:
    """Whether `path`, all links followed, lies in `folder`; always when there is none."""
    return folder is None or Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def read_text(path: Path, most_bytes: int) -> str:
    """The text of a list. Raises DesignError for what is no text, in another encoding than UTF-8, or too large."""
    try:
        with open_ordinary(path, follow=True) as file:
            content = file.read(most_bytes + 1)
    except OSError as error:
        why = error.strerror or "no ordinary file"
        raise DesignError(f"{path}: cannot be read ({why}); check the file and its permissions",
                          reasons.UNREADABLE) from None  # fmt: skip
    if len(content) > most_bytes:
        raise DesignError(f"{path}: more than {most_bytes >> 20} MiB, which no list of a design has; is it the right "
                          "file?", reasons.TOO_LARGE)  # fmt: skip
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DesignError(f"{path}: UTF-16 text; save it as UTF-8", reasons.UNREADABLE)
    if b"\0" in content:
        raise DesignError(f"{path}: a binary file, not text; is it the right file?", reasons.UNREADABLE)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DesignError(f"{path}:{line}: not UTF-8 text; save it as UTF-8", reasons.UNREADABLE) from None


def gathered(place: str, stem: str, listed: Listed, confined_to: Path | None = None) -> Gathered:
    """Read the files that are `listed`, and what they include.

    The root of the design is the deepest folder that holds all of them, so that its identity stays when it is moved;
    folders of headers that nothing is included from do not count. With `confined_to` nothing outside that folder is
    read. Raises DesignError.
    """
    if not listed.sources:
        refuse_missing_rtl(place, [p.name for p in listed.others])
    reader = _Reader(place, listed.include_dirs, confined_to)
    reader.read(listed.sources)
    reader.read_includes()
    headers = [p for p in reader.contents if p not in set(listed.sources)]
    root = Path(os.path.commonpath([*(p.parent for p in reader.contents), *reader.used]))

    def file(path: Path) -> SourceFile:
        return SourceFile(path.relative_to(root).as_posix(), reader.contents[path])

    folders = [d for d in listed.include_dirs if d.is_relative_to(root)]
    return Gathered(
        place, stem, root,
        sources=[file(p) for p in listed.sources],
        includes=[file(p) for p in headers],
        include_dirs=list(dict.fromkeys(d.relative_to(root).as_posix() for d in folders)),
        defines=dict(listed.defines),
        parameters=dict(listed.parameters),
        top=listed.top,
        others=[p.name for p in listed.others],
    )  # fmt: skip


class _Reader:
    """Reads files once each, within the limits of a design. `used` are the folders that headers were found in."""

    def __init__(self, place: str, include_dirs: Sequence[Path], confined_to: Path | None) -> None:
        self.contents: dict[Path, bytes] = {}
        self.used: dict[Path, None] = {}
        self._place = place
        self._include_dirs = include_dirs
        self._confined_to = confined_to
        self._bytes = 0

    def read(self, paths: Sequence[Path]) -> None:
        """Read the files that are not read yet, after a look at how many and how large they are."""
        paths = [p for p in paths if p not in self.contents]
        amount, self._bytes = len(self.contents) + len(paths), self._bytes + sum(map(_size, paths))
        if amount > MOST_FILES or self._bytes > MOST_BYTES:
            raise DesignError(
                f"{self._place}: {amount:,} files, {self._bytes >> 20} MiB of RTL; a design has at most "
                f"{MOST_FILES:,} files and {MOST_BYTES >> 20} MiB: list fewer", reasons.TOO_LARGE,
            )  # fmt: skip
        for path in paths:
            self.contents[path] = read_file(path, path.parent).content

    def read_includes(self) -> None:
        """Read what the files read so far include, and what that includes."""
        waiting = list(self.contents)
        seen: set[tuple[Path, bytes]] = set()
        while waiting:
            path = waiting.pop()
            for name in dict.fromkeys(_INCLUDE.findall(self.contents[path])):
                if (path.parent, name) in seen:
                    continue
                seen.add((path.parent, name))
                for folder in dict.fromkeys((path.parent, *self._include_dirs)):
                    if self._is_header(folder, name):
                        target = canonical(folder / os.fsdecode(name))
                        if target not in self.contents:
                            self.read([target])
                            waiting.append(target)
                        if folder in self._include_dirs:
                            self.used[folder] = None
                        break
                # what is found nowhere the assembly names, unless a macro leaves the line out

    def _is_header(self, folder: Path, name: bytes) -> bool:
        relative = os.fsdecode(name)
        if os.path.isabs(relative) or ".." in relative.split("/"):
            return False  # refused by the assembly, which says how to write it
        return kind(folder / relative) == "file" and is_below(folder / relative, self._confined_to)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # read_file says why
        return 0
