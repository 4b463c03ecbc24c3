"""The caches of a home: how large they are, and what may be removed from them.

Results of simulations, answers of models and builds are kept by content, so that nothing is done twice. Any entry may
go without making a result wrong; it is then made again when it is asked for. But what rows of the warehouse refer to
stays: the pipeline reads stored results and builds back when it goes on (`assets/recall.py`), and `sim` shows
coverage from them.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llm4cov_assets.policy import generation_cache
from llm4cov_assets.progress import Progress, silent
from sim import cache, usage
from sim.files import own_folder
from sim.occupancy import alone, users
from warehouse import references

GRACE_S = 3600.0
"""What was used less than this many seconds ago stays: rows that refer to it may be on their way."""

NAMES = ("simulations", "generations", "builds")
"""Caches that entries may be removed from."""

_FOLDERS = {
    "simulations": Path("cache/simulations"),
    "generations": Path("cache/generations"),
    "builds": Path("builds"),
}
_COLUMNS = {"simulations": "simulation_id", "generations": "generation_id", "builds": "build_id"}
_TELL = 500  # entries between two reports of progress
_ID = re.compile(r"[0-9a-f]{32}")
_DIGEST = re.compile(r"([0-9a-f]{64})\.json(\.gz)?")


class CachesInUse(Exception):
    """Somebody uses the caches. The message says who."""


@dataclass(frozen=True)
class Entry:
    """One entry. `used` is when it was last written or read, as far as the file system tells (Unix time); `n_bytes` is
    the space it takes on disk."""

    cache: str
    path: Path
    n_bytes: int
    used: float

    def row_id(self) -> str | None:
        """The id by which rows refer to it, or None if nobody can tell."""
        if self.cache != "generations":
            return self.path.name[:32]
        key = generation_cache.key_of(self.path)
        try:
            return generation_cache.generation_id(key) if key else None
        except KeyError:
            return None


@dataclass
class Size:
    """Entries of a cache, and the bytes they take on disk."""

    entries: int = 0
    n_bytes: int = 0

    def add(self, n_bytes: int) -> None:
        """One entry more."""
        self.entries += 1
        self.n_bytes += n_bytes


@dataclass
class Evicted:
    """What an eviction removed, or would remove, by cache; what stays because rows refer to it, because it was used
    a short while ago, or because a result that stays needs it (builds). `left` is all that is left, in bytes."""

    freed: dict[str, Size] = field(default_factory=lambda: {name: Size() for name in NAMES})
    referred: dict[str, int] = field(default_factory=lambda: dict.fromkeys(NAMES, 0))
    recent: dict[str, int] = field(default_factory=lambda: dict.fromkeys(NAMES, 0))
    needed: int = 0
    left: int = 0

    @property
    def n_bytes(self) -> int:
        """Bytes freed in all."""
        return sum(size.n_bytes for size in self.freed.values())

    def as_json(self) -> dict[str, Any]:
        """A JSON object."""
        return {
            "freed_bytes": self.n_bytes,
            "left_bytes": self.left,
            "builds_needed_by_results": self.needed,
            **{
                name: {
                    "entries": self.freed[name].entries,
                    "bytes": self.freed[name].n_bytes,
                    "kept_referred": self.referred[name],
                    "kept_recent": self.recent[name],
                }
                for name in NAMES
            },
        }


def sizes(home: Path) -> dict[str, dict[str, Any]]:
    """Each cache with `entries`, `bytes` (on disk), and `hits`, `misses`, `since` (null where nothing is counted).

    `checkpoints` and `tools` (the simulator's runtime, and what the compiler keeps) stand beside them for their size.
    """
    found = {name: Size() for name in (*NAMES, "checkpoints", "tools")}
    for entry in entries(home):
        found[entry.cache].add(entry.n_bytes)
    for name in _listed(home / "checkpoints"):
        found["checkpoints"].add(_on_disk(name))
    for path in (*_listed(home / "builds"), home / "cache" / "ccache"):
        if not _is_build(path) and path.suffix != ".lock" and path.is_dir():
            found["tools"].add(_on_disk(Path(path)))
    counted = usage.read(home / "cache")
    return {
        name: {"entries": size.entries, "bytes": size.n_bytes}
        | (vars(counted[name]) if name in counted else {"hits": None, "misses": None, "since": None})
        for name, size in found.items()
    }


def entries(home: Path) -> Iterator[Entry]:
    """All entries that could be removed, in no order."""
    for name in ("simulations", "generations"):
        for folder in _listed(home / _FOLDERS[name]):
            for path in _listed(folder):
                if _DIGEST.fullmatch(path.name):
                    with contextlib.suppress(FileNotFoundError):
                        at = path.stat()
                        yield Entry(name, path, at.st_blocks * 512, max(at.st_mtime, at.st_atime))
    for path in _listed(home / _FOLDERS["builds"]):
        if _is_build(path):
            with contextlib.suppress(FileNotFoundError):
                yield Entry("builds", path, _on_disk(path), _used(path))


def evict(
    home: Path,
    *,
    older_than_s: float | None = None,
    larger_than: int | None = None,
    names: Sequence[str] = NAMES,
    dry_run: bool = False,
    progress: Progress = silent,
) -> Evicted:
    """Remove entries that no row refers to and that were not used for GRACE_S seconds.

    With `older_than_s` all that were not used for so long go; with `larger_than` those used longest ago go, one by
    one, until the caches take no more than so many bytes. CachesInUse while a simulation or a run uses the caches;
    WarehouseError when a part of the warehouse cannot be read, since nobody knows then what rows refer to.
    """
    result = Evicted()
    found = []
    for entry in entries(home):
        found.append(entry)
        if len(found) % _TELL == 0:
            progress("looking at entries", len(found), None, "")
    result.left = sum(entry.n_bytes for entry in found)
    victims = _free(home, _old(found, names, older_than_s, larger_than, result), result, progress)
    victims = _until_small(victims, older_than_s, larger_than, result.left)
    victims = _without_needed(home, found, victims, result)
    if not dry_run and victims:
        victims = _remove(home, victims, progress)
    for entry in victims:
        result.freed[entry.cache].add(entry.n_bytes)
    result.left -= result.n_bytes
    return result


def _old(
    found: Sequence[Entry], names: Sequence[str], older_than_s: float | None, larger_than: int | None, result: Evicted
) -> list[Entry]:
    """Entries that are old enough, the longest unused first."""
    now = time.time()
    oldest = []
    for entry in sorted(found, key=lambda e: (e.used, str(e.path))):
        age = now - entry.used
        if entry.cache not in names or (larger_than is None and age < (older_than_s or 0)):
            continue
        if age < GRACE_S:
            result.recent[entry.cache] += 1
        else:
            oldest.append(entry)
    return oldest


def _free(home: Path, old: Sequence[Entry], result: Evicted, progress: Progress) -> list[Entry]:
    """Those that no row refers to."""
    kept: list[Entry] = []
    for name in NAMES:
        progress(f"reading what rows refer to: {name}", 0, None, "")
        ids = {entry: entry.row_id() for entry in old if entry.cache == name}
        referred = references.referred(home / "parts", _COLUMNS[name], {i for i in ids.values() if i})
        free = [entry for entry, row_id in ids.items() if row_id and row_id not in referred]
        result.referred[name] = len(ids) - len(free)
        kept += free
    return sorted(kept, key=lambda e: (e.used, str(e.path)))


def _until_small(free: Sequence[Entry], older_than_s: float | None, larger_than: int | None, total: int) -> list[Entry]:
    """Those that are too old, and as many more as it takes to be small."""
    now = time.time()
    victims = []
    for entry in free:
        too_old = older_than_s is not None and now - entry.used >= older_than_s
        if too_old or (larger_than is not None and total > larger_than):
            victims.append(entry)
            total -= entry.n_bytes
    return victims


def _without_needed(home: Path, found: Sequence[Entry], victims: Sequence[Entry], result: Evicted) -> list[Entry]:
    """Without the builds that coverage of results that stay refers to."""
    going = set(victims)
    if not any(entry.cache == "builds" for entry in victims):
        return list(victims)
    staying = {e.row_id() or "": e for e in found if e.cache == "simulations" and e not in going}
    known = references.referred(home / "parts", "simulation_id", staying)  # rows name the builds of these
    needed = {(cache.key_of(entry.path) or {}).get("build") for i, entry in staying.items() if i not in known}
    kept = [e for e in victims if e.cache != "builds" or e.path.name not in needed]
    result.needed = len(victims) - len(kept)
    return kept


def _remove(home: Path, victims: Sequence[Entry], progress: Progress) -> list[Entry]:
    """Remove them, if nobody uses the caches and if they are still as they were; returns what was removed."""
    with own_folder(home / _FOLDERS["builds"]) as bin_, alone(home) as nobody:
        if not nobody:
            who = ", ".join(map(str, users(home)))
            raise CachesInUse(
                f"a run or a simulation uses the caches of {home}{f' (process {who})' if who else ''}:"
                " nothing was removed; try again when it is done"
            )
        fresh = _free(home, [v for v in victims if _unused_since(v)], Evicted(), progress)
        for number, entry in enumerate(fresh, 1):
            if entry.cache == "builds":
                entry.path.rename(bin_ / entry.path.name)  # out of sight at once, whatever its size
                entry.path.with_suffix(".lock").unlink(missing_ok=True)
            else:
                entry.path.unlink(missing_ok=True)
            if number % _TELL == 0 or number == len(fresh):
                progress("removing", number, len(fresh), "")
    return fresh


def _unused_since(entry: Entry) -> bool:
    try:
        if entry.cache == "builds":
            return _used(entry.path) <= entry.used
        at = entry.path.stat()
    except FileNotFoundError:
        return False
    return max(at.st_mtime, at.st_atime) <= entry.used


def _is_build(path: Path) -> bool:
    return _ID.fullmatch(path.name) is not None and (path / "build.json").is_file()


def _used(build: Path) -> float:
    """When a build was last made or loaded."""
    times = []
    for name in ("build.json", "model.so"):
        with contextlib.suppress(FileNotFoundError):
            at = (build / name).stat()
            times += [at.st_mtime, at.st_atime]
    return max(times, default=0.0)


def _listed(folder: Path) -> list[Path]:
    try:
        return [folder / name for name in os.listdir(folder)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _on_disk(path: Path) -> int:
    """Bytes that a file or a folder with all below takes on disk."""
    total = 0
    with contextlib.suppress(FileNotFoundError):
        total += path.lstat().st_blocks * 512
    if path.is_dir() and not path.is_symlink():
        for folder, folders, files in os.walk(path):
            for name in (*folders, *files):
                with contextlib.suppress(FileNotFoundError):
                    total += os.lstat(os.path.join(folder, name)).st_blocks * 512
    return total
