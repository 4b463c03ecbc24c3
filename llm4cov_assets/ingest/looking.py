"""Look at files and folders that anybody may change at any moment, without ever reading without bound.

What was read is remembered with the size, times and inode of each file: only what changed is read again.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sim.files import open_ordinary, replace_file
from sim.identity import content_id

MOST_FILES = 20_000
"""Files and folders of an entry; a folder with more is one with something else in it."""

MOST_BYTES = 1 << 30
"""Of an entry: more is read by `llm4cov designs import`, not by a sensor."""

BYTES_A_LOOK = 256 << 20
"""Read in one look at the inbox, one entry at least; what is left waits for the next look."""

UNFINISHED_SUFFIXES = (".part", ".tmp", ".crdownload", ".swp", ".filepart")
_BLOCK = 1 << 20


class NotYet(Exception):
    """An entry cannot be taken as it is now; `waits` when it may be in a moment. The message says why."""

    def __init__(self, why: str, *, waits: bool = False) -> None:
        super().__init__(why)
        self.waits = waits


@dataclass
class Moment:
    """One look at the inbox: the time (Unix, seconds), how long a file must have rested, and what may be read."""

    now: float
    settle_s: float = 2.0
    bytes_left: int = BYTES_A_LOOK
    untouched: bool = True

    def take(self, size: int) -> None:
        """Account for `size` bytes that are about to be read. NotYet when that is too much for this look."""
        if not self.untouched and size > self.bytes_left:
            raise NotYet("its turn comes with one of the next looks", waits=True)
        self.untouched = False
        self.bytes_left -= size

    def refuse_unsettled(self, path: str, times: Iterable[float]) -> None:
        """NotYet for a file that a copy or download has not finished."""
        # a time far in the future is that of another clock, not of a copy that goes on
        if path.endswith(UNFINISHED_SUFFIXES) or any(-self.settle_s < self.now - t < self.settle_s for t in times):
            raise NotYet("still being copied", waits=True)


@dataclass
class Memory:
    """What was read at earlier looks, in a file that may be lost: then everything is read again."""

    path: Path | None = None
    entries: dict[str, dict[str, Any]] = field(default_factory=lambda: {})
    _seen: dict[str, dict[str, Any]] = field(default_factory=lambda: {})

    @classmethod
    def load(cls, path: Path) -> Memory:
        """Read the file; one that cannot be read counts as empty."""
        with suppress(OSError, ValueError):
            found = json.loads(path.read_text())
            if isinstance(found, dict):
                return cls(path, found)
        return cls(path)

    def get(self, key: str, fingerprint: str) -> dict[str, Any] | None:
        """What was remembered of `key` when it had this fingerprint."""
        known = self.entries.get(key)
        if not isinstance(known, dict) or known.get("fingerprint") != fingerprint:
            return None
        self._seen[key] = known
        return known

    def put(self, key: str, fingerprint: str, **what: Any) -> None:
        """Remember something of `key`."""
        self._seen[key] = {"fingerprint": fingerprint, **what}

    def unsaved(self) -> Memory:
        """The same for a look whose findings nobody else needs."""
        return Memory(None, self.entries)

    def save(self) -> None:
        """Write what was used or put since it was loaded, and forget the rest."""
        if self.path and self._seen != self.entries:
            replace_file(self.path, json.dumps(self._seen).encode())
        self.entries = dict(self._seen)


@dataclass(frozen=True)
class Seen:
    """A file below what is looked at: its path there, where it is, and its state."""

    relative: str
    path: str
    state: os.stat_result


def look(root: Path, moment: Moment) -> list[Seen]:
    """The ordinary files that are not hidden, of a folder or of one file, by path. Links to files are followed, those
    to folders only at the root: so no circle of links is ever walked.

    Raises NotYet for what is no file or folder, is empty, too large, or still changing.
    """
    try:
        state = root.stat()
        files = list(_walk(root, state, moment))
    except OSError as error:
        # it went away or may not be read yet: the next look sees it
        raise NotYet(f"cannot be read ({error.strerror})") from None
    if not files:
        raise NotYet("no file in it")
    size = sum(f.state.st_size for f in files)
    if size > MOST_BYTES:
        raise NotYet(f"too large ({size >> 20:,} MiB; at most {MOST_BYTES >> 20:,}): use llm4cov designs import")
    return sorted(files, key=lambda f: f.relative.split("/"))


def _walk(root: Path, state: os.stat_result, moment: Moment) -> Iterable[Seen]:
    if stat.S_ISREG(state.st_mode):
        moment.refuse_unsettled(root.name, (state.st_mtime,))
        yield Seen(root.name, str(root), state)
        return
    if not stat.S_ISDIR(state.st_mode):
        raise NotYet("neither an ordinary file nor a folder")
    moment.refuse_unsettled(root.name, (state.st_mtime,))
    count = 0
    folders = [(str(root), root.name)]
    while folders:
        folder, relative = folders.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                count += 1
                if count > MOST_FILES:
                    raise NotYet(f"too large (more than {MOST_FILES:,} files): use llm4cov designs import")
                if entry.name.startswith("."):
                    moment.refuse_unsettled(entry.name, ())
                    continue
                path = f"{relative}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    # files that keep their old time (cp -a, tar) show in that of the folder they were just put into
                    moment.refuse_unsettled(entry.name, (entry.stat(follow_symlinks=False).st_mtime,))
                    folders.append((entry.path, path))
                    continue
                found = _state(entry)
                if found and stat.S_ISREG(found.st_mode):
                    moment.refuse_unsettled(entry.name, (found.st_mtime,))
                    yield Seen(path, entry.path, found)


def _state(entry: os.DirEntry[str]) -> os.stat_result | None:
    """The state of what an entry of a folder is or links to; None for a link to nowhere, or to itself."""
    try:
        return entry.stat()
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP):
            return None
        raise


def fingerprint(files: Iterable[Seen]) -> str:
    """Changes when a file does, as far as its size, times and inode tell."""
    digest = hashlib.sha256()
    for f in files:
        s = f.state
        digest.update(f"{f.relative!r} {s.st_size} {s.st_mtime_ns} {s.st_ctime_ns} {s.st_ino}\n".encode())
    return digest.hexdigest()[:32]


def content_hash(files: Iterable[Seen], moment: Moment) -> str:
    """Hash of paths and bytes of the files. Raises NotYet."""
    found = list(files)
    moment.take(sum(f.state.st_size for f in found))
    try:
        return content_id("inbox", [[spelt(f.relative), file_hash(Path(f.path))] for f in found])
    except OSError as error:
        raise NotYet(f"cannot be read ({error.strerror or error})") from None


def file_hash(path: Path) -> str:
    """SHA-256 of a file. OSError for what is no ordinary file, and for one that does not end."""
    digest = hashlib.sha256()
    left = MOST_BYTES
    with open_ordinary(path, follow=True) as file:
        while block := file.read(_BLOCK):
            left -= len(block)
            if left < 0:
                raise OSError(f"{path} has more than {MOST_BYTES} bytes")
            digest.update(block)
    return digest.hexdigest()


def spelt(name: str) -> str:
    """A file name as text: names of other systems may hold bytes that are no UTF-8."""
    return name.encode("utf-8", errors="backslashreplace").decode()
