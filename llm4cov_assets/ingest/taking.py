"""Import one version of an inbox entry: its designs are kept in batches, and what was found is noted for good."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest import git_source
from llm4cov_assets.ingest.git_source import GitError, GitSlow
from llm4cov_assets.ingest.importing import Check, Options, Rejection, import_source
from llm4cov_assets.ingest.inbox import Entry, scan_inbox
from llm4cov_assets.ingest.kept import kept_batch
from llm4cov_assets.ingest.looking import Memory
from llm4cov_assets.ingest.versions import HASH_DIGITS, belongs_to, first_batch, may_belong_to, short_hash
from llm4cov_assets.progress import Progress, silent
from sim import reasons
from sim.design import DesignError
from sim.files import own_folder, remove_stale_folders, replace_file

_NOTES = ".imports"
_EXPORTED = "designs/.exported"
_OF_THE_MACHINE = (errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EIO)
"""Errors that say nothing of an entry, also when they come with one of its files."""


@dataclass(frozen=True)
class Taken:
    """What a version held: the number of accepted designs by batch, and what was not accepted."""

    batches: dict[str, int]
    rejected: list[Rejection]

    @property
    def designs(self) -> int:
        """Accepted designs."""
        return sum(self.batches.values())

    @property
    def verdict(self) -> str:
        """Why nothing was accepted, in a sentence; empty when something was."""
        if self.designs:
            return ""
        if not self.rejected:
            return "no design in it"
        first = self.rejected[0]
        more = f" (and {len(self.rejected) - 1} more)" if len(self.rejected) > 1 else ""
        return f"{first.reason}: {first.detail}{more}"


def memory_file(home: Path) -> Path:
    """Where the looks at the inbox remember what they read."""
    return home / "cache" / "inbox" / "read.json"


def taken(home: Path, batch: str) -> Taken | None:
    """What is noted of the version that `batch` was imported under; None before its import."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        return _read_note(_note(home, batch))
    return None


@lru_cache(maxsize=10_000)
def _read_note(path: Path) -> Taken:
    """What a note says; it is never written again."""
    note = json.loads(path.read_text())
    return Taken(note["batches"], [Rejection(**r) for r in note["rejected"]])


def take_in(
    home: Path,
    batch: str,
    *,
    check: Check | None = None,
    batch_size: int | None = None,
    progress: Progress = silent,
) -> Taken:
    """Import the version that `batch` is named after, unless that was done; later changes in the inbox do not matter.

    `check` may refuse designs, for example because they do not build. Raises UserError when the inbox does not hold
    that content any more, and OSError when the machine is at fault, for example its disk is full.
    """
    if known := taken(home, batch):
        return known
    if kept := kept_batch(home, batch):  # by an earlier program, which noted nothing
        return Taken({batch: len(kept)}, [])
    entry = _find(home, batch)
    places: tuple[str, ...] = (str(entry.path),)
    try:
        with _laid_out(entry, home) as place:
            places = (str(place), str(entry.path))
            # the files of a commit are named as a person finds them
            shown = Options(shown=lambda text: text.replace(str(place), entry.source) if entry.commit else text)
            report = import_source(
                place, home, split="inbox", batch=batch, batch_size=batch_size, options=shown, check=check,
                progress=progress,
            )  # fmt: skip
        found = Taken({name: len(designs) for name, designs in report.batches.items() if designs}, report.rejected)
    except GitSlow as error:
        # what is noted is noted for good, and a busy machine is not
        raise UserError(f"{batch} cannot be imported now: {error}") from None
    except OSError as error:
        if not _is_of_entry(error, places):
            raise
        found = Taken({}, [Rejection(entry.name, entry.source, reasons.UNREADABLE, _said(error, entry, places))])
    except (UserError, GitError, DesignError) as error:
        reason = str(getattr(error, "reason", reasons.UNREADABLE))
        found = Taken({}, [Rejection(entry.name, entry.source, reason, str(error))])
    note = {"source": entry.source, "batches": found.batches, "rejected": [vars(r) for r in found.rejected]}
    replace_file(_note(home, batch), json.dumps(note, indent=1).encode())
    return found


def _is_of_entry(error: OSError, places: tuple[str, ...]) -> bool:
    """Whether the files or names of an entry are at fault."""
    if error.errno in _OF_THE_MACHINE:
        return False
    named = str(error.filename or error)
    return error.errno in (errno.ENAMETOOLONG, errno.EILSEQ) or any(place in named for place in places)


def _said(error: OSError, entry: Entry, places: tuple[str, ...]) -> str:
    named = str(error.filename or entry.source).replace(places[0], entry.source)
    shown = named if len(named) <= 200 else f"{named[:120]}...{named[-60:]}"
    return f"{shown}: cannot be read ({error.strerror or 'no ordinary file'})"


def _note(home: Path, batch: str) -> Path:
    return home / "designs" / _NOTES / f"{first_batch(batch)}.json"


def _find(home: Path, batch: str) -> Entry:
    """The entry whose content `batch` was made for. UserError when it is not in the inbox any more."""
    memory = Memory.load(memory_file(home)).unsaved()
    found = scan_inbox(home / "inbox", memory=memory, settle_s=0, only=lambda name: may_belong_to(name, batch),
                       wanted=lambda name: belongs_to(name, batch))  # fmt: skip
    mine = [e for e in found.entries if belongs_to(e.name, batch)]
    if not mine and found.left_out:
        raise UserError(f"{batch} cannot be imported now: {next(iter(found.left_out.values())).why}")
    if not mine:
        raise UserError(f"{batch} was not imported before its entry left {home / 'inbox'}; put it back")
    if mine[0].content_hash[:HASH_DIGITS] != short_hash(batch):
        raise UserError(
            f"{mine[0].label} changed before {batch} was imported; what it holds now is a version of its own"
        )
    return mine[0]


@contextmanager
def _laid_out(entry: Entry, home: Path) -> Iterator[Path]:
    """The content of an entry as a path to read: where it is, or for a commit a folder until the block ends, called
    like the design's."""
    if not entry.commit:
        yield entry.path
        return
    remove_stale_folders(home / _EXPORTED)
    with own_folder(home / _EXPORTED) as folder:
        place = folder / (entry.folder.rpartition("/")[2] or entry.name)
        files = git_source.tree_files(entry.path, entry.commit, entry.folder)
        git_source.export(entry.path, git_source.useful_files(files), place)
        yield place
