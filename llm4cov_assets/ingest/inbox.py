"""The inbox: a folder into which people drop designs. Pure functions; the sensor that calls them decides nothing."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sim.assembly import SOURCE_SUFFIXES
from sim.identity import content_id, sha256

NAME_BYTES = 64  # of a design's name in that of its batch, which becomes a folder name with up to three for each
UNFINISHED_SUFFIXES = (".part", ".tmp", ".crdownload", ".swp", ".filepart")


class InboxEntry(NamedTuple):
    """A design folder or RTL file in the inbox; `content_hash` covers the paths and bytes of all its files."""

    name: str
    content_hash: str
    path: Path


@dataclass(frozen=True)
class PartitionChanges:
    """`add` holds new batches by name. `inactive` names batches whose design is no longer in the inbox, or changed;
    their partitions stay, since results hang on them."""

    add: dict[str, InboxEntry]
    inactive: list[str]

    def reason(self, batch: str) -> str:
        """Why `batch` is to be added, for people."""
        design, _, _ = batch.rsplit("-", 2)
        known = any(old.rsplit("-", 2)[0] == design for old in self.inactive)
        return f"{self.add[batch].path.name} {'changed' if known else 'is new'} in the inbox"


def scan_inbox(folder: Path, *, now: float | None = None, settle_s: float = 2.0) -> list[InboxEntry]:
    """Designs in `folder`, by name. Left out: hidden entries, other files than RTL, empty folders, and entries still
    changing, that is with a file younger than `settle_s` seconds or one that a copy or download has not finished."""
    return [entry for entry in _look(folder, now, settle_s).values() if isinstance(entry, InboxEntry)]


def left_out(folder: Path, *, now: float | None = None, settle_s: float = 2.0) -> dict[str, str]:
    """Entries that `scan_inbox` leaves out for now or for good, and why; hidden ones are nobody's concern."""
    return {name: why for name, why in _look(folder, now, settle_s).items() if isinstance(why, str)}


def _look(folder: Path, now: float | None, settle_s: float) -> dict[str, InboxEntry | str]:
    """Each entry that is not hidden, or why it is no design."""
    if not folder.is_dir():
        return {}
    moment = time.time() if now is None else now
    paths = sorted(p for p in folder.iterdir() if not p.name.startswith("."))
    return {_spelt(p.name): _entry(p, folder, moment, settle_s) for p in paths}


def _entry(path: Path, folder: Path, moment: float, settle_s: float) -> InboxEntry | str:
    if not (path.is_dir() or path.suffix in SOURCE_SUFFIXES):
        return f"not RTL ({', '.join(SOURCE_SUFFIXES)}) and no folder"
    if _spelt(path.name) != path.name:
        return "its name is not UTF-8; rename it"
    try:
        files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
        if not files:
            return "no file in it"
        ages = [moment - p.stat().st_mtime for p in (path, *files)]
        # a time far in the future is that of another clock, not of a copy that goes on
        if any(-settle_s < age < settle_s for age in ages) or any(p.suffix in UNFINISHED_SUFFIXES for p in files):
            return "still being copied"
        parts = [
            [_spelt(p.relative_to(folder).as_posix()), sha256(p.read_bytes())] for p in files if not _hidden(p, path)
        ]
    except OSError as error:
        # it went away or may not be read yet: the next scan sees it
        return f"cannot be read ({error.strerror})"
    return InboxEntry(path.stem if path.is_file() else path.name, content_id("inbox", parts), path)


def _spelt(name: str) -> str:
    """A file name as text: names of other systems may hold bytes that are no UTF-8."""
    return name.encode("utf-8", errors="backslashreplace").decode()


def _hidden(path: Path, root: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(root.parent).parts[1:])


def batch_name(name: str, content_hash: str, version: str) -> str:
    """Name of the batch (and partition) of one dropped design; new content or a new version is a new batch. Dagster
    refuses three dots in a row, file systems long names."""
    safe = "".join(c if c.isalnum() or c in "_-." else "-" for c in name).replace("..", "--")
    safe = safe.encode()[:NAME_BYTES].decode(errors="ignore")
    return f"inbox-{safe}-{content_hash[:8]}-v{version}"


def partition_changes(found: Sequence[InboxEntry], existing: Iterable[str], version: str = "1") -> PartitionChanges:
    """What must be added to the partitions `existing` so that every entry of `found` has its batch.

    Partitions that do not belong to the inbox are left alone. Nothing is ever deleted.
    """
    wanted = {batch_name(e.name, e.content_hash, version): e for e in found}
    known = set(existing)
    return PartitionChanges(
        add={name: entry for name, entry in wanted.items() if name not in known},
        inactive=sorted(n for n in known if n.startswith("inbox-") and n not in wanted),
    )
