"""The inbox: a folder into which people drop designs, or source files that point at designs elsewhere.

An entry is a folder (of one design or several), an RTL file, a file list, a core file, an archive, a data set, or what
a source file (`NAME.toml`, see ingest/pointers.py) points at: one entry, or one for each design of a git repository.
Here entries are only found and hashed; what they hold is read when they are imported (ingest/taking.py).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest import archives, git_source
from llm4cov_assets.ingest.formats.rows import FILE_SUFFIXES as RECORD_SUFFIXES
from llm4cov_assets.ingest.git_source import GitError, GitSlow
from llm4cov_assets.ingest.looking import Memory, Moment, NotYet, content_hash, fingerprint, look, spelt
from llm4cov_assets.ingest.pointers import Pointer, read_pointer
from sim.design import DesignError
from sim.identity import content_id, sha256

LIST_SUFFIXES = (".f", ".core")
POINTER_SUFFIX = ".toml"
RTL_SUFFIXES = (".v", ".sv")
SLOW_S = 600.0
"""Seconds until a repository is tried again that ran into the time limit of git and did not change."""

MOST_ENTRIES = 5_000
"""Entries of the inbox, those of source files included; more are left out."""

_NO_ENTRY = (
    "no RTL, list, archive or data set (.v, .sv, .f, .core, .zip, .tar.gz, .jsonl, .parquet, ...), nor a source (.toml)"
)


@dataclass(frozen=True)
class Entry:
    """One entry of the inbox. `name` is what its batches are called after; `label` is how a person finds it: its file,
    or the source file and the folder that it comes from. A git entry has the repository as `path`, the commit, the
    folder in its tree, and in `note` the commit in words; others have no commit."""

    name: str
    content_hash: str
    path: Path
    label: str
    commit: str = ""
    folder: str = ""
    note: str = ""

    @property
    def source(self) -> str:
        """Where its content comes from, in words."""
        return f"{self.path}@{self.commit[:9]}:{self.folder}" if self.commit else str(self.path)


@dataclass(frozen=True)
class LeftOut:
    """An entry that is not taken, and why; `waits` when that may pass by itself."""

    why: str
    waits: bool = False


@dataclass(frozen=True)
class Scan:
    """What lies in the inbox: entries, and by label what is left out for now or for good. `waiting` are the names of
    entries that are left out for now, so not gone; one that ends with a dot stands for all that begin with it."""

    entries: list[Entry] = field(default_factory=lambda: [])
    left_out: dict[str, LeftOut] = field(default_factory=lambda: {})
    waiting: set[str] = field(default_factory=lambda: set())


def scan_inbox(
    folder: Path, *, memory: Memory | None = None, now: float | None = None, settle_s: float = 2.0,
    only: Callable[[str], bool] = lambda name: True, wanted: Callable[[str], bool] = lambda name: True,
) -> Scan:  # fmt: skip
    """Look at the inbox; hidden entries are nobody's concern. What `memory` knows is not read again. Entries with a
    file younger than `settle_s` seconds, or with one that a copy or download has not finished, are left out for now.
    With `only` nothing is looked at but files and folders whose names, as entries, it takes; with `wanted` no entries
    but those, also of what source files point at."""
    moment = Moment(time.time() if now is None else now, settle_s)
    memory = memory or Memory()
    result = Scan()
    try:
        with os.scandir(folder) as listed:
            paths = sorted(
                Path(e.path) for e in islice((e for e in listed if not e.name.startswith(".")), MOST_ENTRIES)
            )
    except OSError as error:
        if not isinstance(error, FileNotFoundError):
            result.left_out["the inbox"] = LeftOut(f"cannot be read ({error.strerror})", waits=True)
        return result
    taken: dict[str, str] = {}
    for path in (p for p in paths if only(entry_name(p.name))):
        _add(result, taken, path, memory, moment, wanted)
    memory.save()
    return result


def _add(
    result: Scan, taken: dict[str, str], path: Path, memory: Memory, moment: Moment, wanted: Callable[[str], bool]
) -> None:
    """Add what `path` is: entries, or why it is none."""
    label, name = spelt(path.name), entry_name(path.name)
    try:
        if label != path.name:
            raise NotYet("its name is not UTF-8; rename it")
        if path.suffix == POINTER_SUFFIX and path.is_file():
            _add_pointed(result, taken, path, memory, moment, wanted)
        elif wanted(name):
            _refuse_inbox(path, path.parent)
            _put(result, taken, _entry(path, name, label, memory, moment))
    except NotYet as why:
        _leave_out(result, label, name, why)
    except (UserError, GitError, OSError) as error:
        why = f"cannot be read ({error.strerror})" if isinstance(error, OSError) else str(error)
        _leave_out(result, label, name, NotYet(why))
        # what a source pointed at before is not gone for that
        result.waiting.update((name, f"{name}."))


def _leave_out(result: Scan, label: str, name: str, why: NotYet) -> None:
    result.left_out[label] = LeftOut(str(why), why.waits)
    if why.waits:
        result.waiting.add(name)


def _put(result: Scan, taken: dict[str, str], entry: Entry) -> None:
    if entry.name in taken:
        why = f"{taken[entry.name]} has the name {entry.name!r} already; rename one of them"
        result.left_out[entry.label] = LeftOut(why)
        return
    if len(taken) >= MOST_ENTRIES:
        result.left_out[entry.label] = LeftOut(f"more than {MOST_ENTRIES:,} entries: use llm4cov designs import")
        return
    taken[entry.name] = entry.label
    result.entries.append(entry)


def entry_name(file_name: str) -> str:
    """What an entry is called: its file name without the suffix that says what it is."""
    known = (*archives.SUFFIXES, *RTL_SUFFIXES, *LIST_SUFFIXES, *RECORD_SUFFIXES, POINTER_SUFFIX)
    for suffix in sorted(known, key=len, reverse=True):
        if file_name.lower().endswith(suffix) and len(file_name) > len(suffix):
            return file_name[: -len(suffix)]
    return file_name


def _entry(path: Path, name: str, label: str, memory: Memory, moment: Moment) -> Entry:
    """The entry at a path, in the inbox or elsewhere. Raises NotYet."""
    suffixes = path.name.lower()
    if path.is_dir() or suffixes.endswith((*RTL_SUFFIXES, *RECORD_SUFFIXES, *archives.SUFFIXES)):
        return Entry(name, _hashed(path, label, memory, moment), path, label)
    if suffixes.endswith(LIST_SUFFIXES):
        return Entry(name, _hashed_list(path, label, memory, moment), path, label)
    raise NotYet(_NO_ENTRY if path.exists() else "nothing is there")


def _hashed(path: Path, label: str, memory: Memory, moment: Moment) -> str:
    files = look(path, moment)
    mark = fingerprint(files)
    known = memory.get(label, mark)
    found = known["hash"] if known else content_hash(files, moment)
    memory.put(label, mark, hash=found)
    return str(found)


def _hashed_list(path: Path, label: str, memory: Memory, moment: Moment) -> str:
    """Hash of a file list or core file and of the files that it names, as far as it can be read."""
    from llm4cov_assets.ingest.formats import reader

    own = look(path, moment)
    known = memory.entries.get(label, {})
    named = known.get("files") if isinstance(known, dict) else None
    if named and (mark := _mark([path, *map(Path, named)], moment)) and (same := memory.get(label, mark)):
        return str(same["hash"])
    parts: list[object] = [["", content_hash(own, moment)]]
    files: list[str] = []
    try:
        for candidate in reader(str(path))[0]():
            found = candidate.gather()
            members = [*found.sources, *found.includes]
            moment.take(sum(len(f.content) for f in members))
            parts += [[f.path, sha256(f.content)] for f in members]
            files += [str(found.folder / f.path) for f in members if found.folder]
    except NotYet:
        raise
    except (DesignError, UserError) as error:
        # the import says the same; until then it is looked at again each time
        return content_id("inbox list", parts, str(error))
    except Exception as error:
        # whatever a reader stumbles over: one entry must not stop the others
        raise NotYet(f"cannot be read ({type(error).__name__}: {error})") from error
    found_hash = content_id("inbox list", parts)
    if mark := _mark([path, *map(Path, files)], moment):
        memory.put(label, mark, hash=found_hash, files=files)
    return found_hash


def _mark(files: Sequence[Path], moment: Moment) -> str | None:
    """Fingerprint of single files; None when one of them cannot be seen. Raises NotYet while one changes."""
    try:
        return fingerprint([seen for file in files for seen in look(file, moment)])
    except NotYet as why:
        if why.waits:
            raise
        return None


def _refuse_inbox(place: Path, inbox: Path) -> None:
    """UserError for a place that holds the inbox: an entry with all that is imported from it would never settle."""
    real, own = Path(os.path.realpath(place)), Path(os.path.realpath(inbox))
    if real == own or real in own.parents:
        raise UserError(f"{place} holds the inbox {inbox} itself; point at a folder with designs only")


def _add_pointed(
    result: Scan, taken: dict[str, str], file: Path, memory: Memory, moment: Moment, wanted: Callable[[str], bool]
) -> None:
    """Add the entries that a source file points at."""
    look(file, moment)
    name, pointed = entry_name(file.name), read_pointer(file)
    if pointed.git:
        _refuse_inbox(pointed.path, file.parent)
        _add_repository(result, taken, file, pointed, memory, moment, wanted)
        return
    base = pointed.path / pointed.subfolder if pointed.subfolder else pointed.path
    _refuse_inbox(base, file.parent)
    if not base.exists():
        raise UserError(f"{base}: nothing is there; correct {file.name}")
    if not pointed.designs:
        if wanted(name):
            _put(result, taken, _entry(base, name, file.name, memory, moment))
        return
    matches = [p for glob in pointed.designs for p in islice(_matching(base, glob.strip("/").split("/")), MOST_ENTRIES)]
    if not matches:
        raise UserError(f"nothing fits designs = {list(pointed.designs)} below {base}")
    for path in sorted(set(matches)):
        folder = path.relative_to(base).as_posix()
        label, part = f"{file.name}: {folder}", f"{name}.{folder.replace('/', '.')}"
        if not wanted(part):
            continue
        try:
            _refuse_inbox(path, file.parent)
            _put(result, taken, _entry(path, part, label, memory, moment))
        except NotYet as why:
            _leave_out(result, label, part, why)
        except UserError as error:
            _leave_out(result, label, part, NotYet(str(error)))


def _matching(folder: Path, parts: Sequence[str]) -> Iterator[Path]:
    """What fits a glob, part by part; hidden entries never do."""
    try:
        names = sorted(islice(os.listdir(folder), 10 * MOST_ENTRIES))
    except OSError:
        return
    for found in names:
        if found.startswith(".") or not fnmatchcase(found, parts[0]):
            continue
        if len(parts) == 1:
            yield folder / found
        elif (folder / found).is_dir():
            yield from _matching(folder / found, parts[1:])


def _add_repository(
    result: Scan, taken: dict[str, str], file: Path, pointed: Pointer, memory: Memory, moment: Moment,
    wanted: Callable[[str], bool],
) -> None:  # fmt: skip
    """Add the designs of a commit, unless git ran into its time limit a moment ago. Raises GitError."""
    # no file name holds a slash, so nothing else is remembered under this key
    key, mark = f"{file.name}/slow", content_id(git_source.state(pointed.path, pointed.branch), pointed.subfolder)
    slow = memory.get(key, mark)
    if slow and 0 <= moment.now - slow["at"] < SLOW_S:
        raise GitError(slow["why"])
    try:
        _add_commit(result, taken, file, pointed, memory, wanted)
    except GitSlow as error:
        memory.put(key, mark, at=moment.now, why=str(error))
        raise


def _add_commit(
    result: Scan, taken: dict[str, str], file: Path, pointed: Pointer, memory: Memory, wanted: Callable[[str], bool]
) -> None:
    """Add the designs of the commit that a branch is at. Raises GitError."""
    name, repository = entry_name(file.name), pointed.path
    commit = git_source.commit_id(repository, pointed.branch)
    mark = content_id(commit, pointed.subfolder, pointed.designs, str(repository))
    known = memory.get(file.name, mark)
    if known is None:
        files = git_source.tree_files(repository, commit, pointed.subfolder)
        designs = git_source.design_folders(files, pointed.designs)
        known = {
            "subject": git_source.read_commit(repository, commit).subject,
            "designs": {f: git_source.content_hash(d, f) for f, d in designs.items() if not git_source.too_large(d)},
            "too_large": {f: why for f, d in designs.items() if (why := git_source.too_large(d))},
        }
        memory.put(file.name, mark, **known)
    note = f"commit {commit[:9]} {known['subject']!r}"
    if not known["designs"] and not known["too_large"]:
        raise GitError(f"{repository}: no RTL in {note}" + (" that fits designs" if pointed.designs else ""))
    for folder, found in known["designs"].items():
        label = f"{file.name}: {folder}" if folder else file.name
        part = f"{name}.{folder.replace('/', '.')}" if folder else name
        if not wanted(part):
            continue
        whole = "/".join(p for p in (pointed.subfolder, folder) if p)
        _put(result, taken, Entry(part, found, repository, label, commit, whole, note))
    for folder, why in known["too_large"].items():
        result.left_out[f"{file.name}: {folder or 'the tree'}"] = LeftOut(why)
