"""What the inbox sensor finds out and decides: new versions, events for the history, and how each entry stands.

Decisions are pure functions of what is seen: the scan of the folder, the names of the batches, the runs, and the
records of what was imported and closed. `Noted` only remembers since when something is so; without it history says it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import dagster as dg

from llm4cov_assets.assets.finished import Finished
from llm4cov_assets.ingest.inbox import Entry, Scan, scan_inbox
from llm4cov_assets.ingest.looking import Memory
from llm4cov_assets.ingest.taking import Taken, memory_file, taken
from llm4cov_assets.ingest.versions import NewVersion, Standing, Version, entry_key, reason, standing
from llm4cov_assets.profiles import PROFILES
from sim.files import replace_file
from sim.identity import content_id

MOST_NEW = 50
"""Versions that one look makes; the others wait for the next one."""

PARTS_AT_ONCE = 4
"""Unfinished runs of further batches of large entries, so that what is dropped meanwhile need not wait for them."""

MOST_SHOWN = 100
"""Entries in the table; those that rest are left out first."""

JOB = "close_new_designs"
PARTITION = "dagster/partition"

UNFINISHED = [
    dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING,
]  # fmt: skip
_ENDED_BADLY = [dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
_LOOKED_UP = 20


@dataclass(frozen=True)
class Line:
    """How one entry stands: a status word, what there is to say about it, and since when (UTC) it is so."""

    name: str
    status: str
    detail: str = ""
    version: str = ""
    batch: str = ""
    source: str = ""
    since: str = ""


@dataclass(frozen=True)
class Work:
    """Runs of the batches of the inbox, and what they left: batches with an unfinished run, batches whose closure is
    finished, batches whose last run failed, and what the imports noted."""

    running: frozenset[str] = frozenset()
    closed: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()
    taken: Mapping[str, Taken] = field(default_factory=lambda: {})


@dataclass(frozen=True)
class Event:
    """A row of `design_events`, but for its id."""

    name: str
    what: str
    version: int | None
    batch: str | None
    content_hash: str
    source: str
    reason: str


@dataclass
class Noted:
    """What the last look left behind, in a file that may be lost: how each entry stood and since when, whether it was
    there, and how many of a version's further batches were asked for."""

    path: Path
    entries: dict[str, dict[str, Any]] = field(default_factory=lambda: {})
    asked: dict[str, int] = field(default_factory=lambda: {})
    shown: str = ""
    known: bool = False
    _before: str = ""

    @classmethod
    def load(cls, path: Path) -> Noted:
        """Read the file; one that cannot be read counts as none."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            text = path.read_text()
            found = json.loads(text)
            return cls(path, dict(found["entries"]), dict(found["asked"]), str(found["shown"]), True, text)
        return cls(path)

    def save(self) -> None:
        """Write the file, if there is something new."""
        text = json.dumps({"entries": self.entries, "asked": self.asked, "shown": self.shown})
        if text != self._before:
            replace_file(self.path, text.encode())

    def was(self, key: str) -> str:
        """What an entry was last: present, gone, or nothing when that is not known."""
        return str(self.entries.get(key, {}).get("was", ""))


@dataclass(frozen=True)
class Look:
    """The inbox at one moment."""

    scan: Scan
    standing: Standing
    work: Work

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """Entries by name."""
        return {entry.name: entry for entry in self.scan.entries}

    @property
    def gone(self) -> list[str]:
        """Keys of the entries that are no longer there; one that is left out for now is not gone."""
        waiting = {entry_key(name) for name in self.scan.waiting if not name.endswith(".")}
        prefixes = tuple(name for name in self.scan.waiting if name.endswith("."))
        return [k for k in self.standing.gone if k not in waiting and not k.startswith(prefixes or ("\0",))]


def look_at_inbox(home: Path, batches: Iterable[str], instance: dg.DagsterInstance, *, remember: bool = True) -> Look:
    """Look at the inbox, its runs and their results. With `remember` the next look is faster."""
    memory = Memory.load(memory_file(home))
    scan = scan_inbox(home / "inbox", memory=memory if remember else memory.unsaved())
    stands = standing(scan.entries, batches)
    return Look(scan, stands, _work(home, instance, stands))


def _work(home: Path, instance: dg.DagsterInstance, stands: Standing) -> Work:
    active = stands.active
    if not active:
        return Work()
    runs = instance.get_runs(dg.RunsFilter(job_name=JOB, statuses=UNFINISHED))
    running = frozenset(run.tags[PARTITION] for run in runs if PARTITION in run.tags)
    closed = frozenset(Finished(home, PROFILES["demo"].config_hash).partitions("closure"))
    notes = {v.batch: note for v in stands.current.values() if (note := taken(home, v.batch))}
    open_ones = [b for b in active if b not in running and b not in closed]
    failed = frozenset(b for b in open_ones[:_LOOKED_UP] if _ended_badly(instance, b))
    return Work(running, closed, failed, notes)


def _ended_badly(instance: dg.DagsterInstance, batch: str) -> bool:
    last = instance.get_runs(dg.RunsFilter(job_name=JOB, tags={PARTITION: batch}), limit=1)
    return bool(last) and last[0].status in _ENDED_BADLY


def events(look: Look, was: Callable[[str], str]) -> list[Event]:
    """What happened since the last look: `was` tells what an entry (by its key) was then."""
    found = []
    entries = look.entries
    for new in look.standing.new[:MOST_NEW]:
        entry = entries[new.name]
        why = reason(new, entry.label, entry.note)
        found.append(_event(entry, new.kind, new.number, new.batch, why))
    for name, version in look.standing.current.items():
        entry, before = entries[name], was(entry_key(name))
        if before == "gone":
            why = f"{entry.label} is in the inbox again, with the content that it had"
            found.append(_event(entry, "returned", version.number or None, version.batch, why))
        note = look.work.taken.get(version.batch)
        if note and not note.designs and before != "rejected":
            found.append(_event(entry, "rejected", version.number or None, version.batch, note.verdict))
    for key in look.gone:
        if was(key) != "gone":
            last = look.standing.gone[key].versions[-1]
            why = f"{key} is no longer in the inbox"
            found.append(Event(key, "removed", last.number or None, last.batch, last.short_hash, "", why))
    for label, left in look.scan.left_out.items():
        if not left.waits and was(f"left out {label}") != left.why:
            found.append(Event(label, "left out", None, None, "", "", left.why))
    return found


def _event(entry: Entry, what: str, version: int | None, batch: str, why: str) -> Event:
    return Event(entry.name, what, version, batch, entry.content_hash, entry.source, why)


def states(look: Look) -> dict[str, str]:
    """What each entry is now, for the next look."""
    found = {entry_key(new.name): "present" for new in look.standing.new[:MOST_NEW]}
    for name, version in look.standing.current.items():
        note = look.work.taken.get(version.batch)
        found[entry_key(name)] = "rejected" if note and not note.designs else "present"
    found |= dict.fromkeys(look.gone, "gone")
    return found | {f"left out {label}": left.why for label, left in look.scan.left_out.items() if not left.waits}


def lines(look: Look) -> list[Line]:
    """How each entry stands, by name; what is gone last."""
    found = [_new_line(new, look.entries[new.name]) for new in look.standing.new[:MOST_NEW]]
    found += [_turn_line(new, look.entries[new.name]) for new in look.standing.new[MOST_NEW:]]
    found += [_line(look.entries[name], version, look.work) for name, version in look.standing.current.items()]
    for label, left in look.scan.left_out.items():
        found.append(Line(label, "waiting" if left.waits else "left out", left.why))
    found.sort(key=lambda line: line.name)
    for key in look.gone:
        last = look.standing.gone[key].versions[-1]
        found.append(Line(key, "removed", "inactive; its results stay", _number(last.number), last.batch))
    return found


def _new_line(new: NewVersion, entry: Entry) -> Line:
    why = reason(new, entry.label, entry.note)
    return Line(new.name, "new", why, _number(new.number), new.batch, entry.source)


def _turn_line(new: NewVersion, entry: Entry) -> Line:
    return Line(new.name, "waiting", "its turn comes with one of the next looks", _number(new.number), "", entry.source)


def _line(entry: Entry, version: Version, work: Work) -> Line:
    status, detail = _status(version, work)
    note = f"{detail}; {entry.note}" if detail and entry.note else detail or entry.note
    return Line(entry.name, status, note, _number(version.number), version.batch, entry.source)


def _status(version: Version, work: Work) -> tuple[str, str]:
    note = work.taken.get(version.batch)
    held = [b for b in version.batches if b in note.batches] if note else list(version.batches)
    done = [b for b in held if b in work.closed]
    designs = _counted(note.designs, "design") if note else ""
    refused = f", {len(note.rejected):,} rejected ({_reasons(note)})" if note and note.rejected else ""
    if any(b in work.running for b in version.batches):
        return "closing", f"{len(done)} of {len(held)} batches closed" if len(held) > 1 else designs + refused
    if note and not note.designs:
        return "rejected", note.verdict
    if held and len(done) == len(held):
        return "closed", designs + (f" in {len(held)} batches" if len(held) > 1 else "") + refused
    if any(b in work.failed for b in version.batches):
        return "failed", "its last run failed; due_closures, or Materialize in the UI, tries it again"
    if note and set(note.batches) - set(version.batches):
        return "closing", "further batches are added"
    return "unchanged", "not closed yet" if not done else f"{len(done)} of {len(held)} batches closed"


def _reasons(note: Taken) -> str:
    counts = Counter(r.reason for r in note.rejected).most_common(3)
    return ", ".join(f"{n:,} {why}" if len(note.rejected) > 1 else why for why, n in counts)


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _number(number: int) -> str:
    return str(number) if number else "earlier"


def dated(found: Sequence[Line], noted: Noted, now: str) -> list[Line]:
    """The lines with the time since when each is so: what is noted, or `now`."""
    dates = []
    for line in found:
        known = noted.entries.get(f"line {line.name}", {})
        same = [known.get("status"), known.get("version")] == [line.status, line.version]
        dates.append(Line(**{**vars(line), "since": str(known.get("since")) if same else now}))
    return dates


def in_words(found: Sequence[Line]) -> str:
    """The inbox in a sentence: how many entries stand how, and why some wait or are left out."""
    counts = Counter(line.status for line in found)
    order = ("new", "closing", "closed", "unchanged", "failed", "rejected", "waiting", "left out", "removed")
    total = ", ".join(f"{counts[s]} {s}" for s in order if counts[s])
    named = [line for line in found if line.status in ("waiting", "left out", "rejected", "failed")]
    more = "".join(f"; {line.name!r} {line.status}: {line.detail}" for line in named[:10])
    return total + more + (f"; and {len(named) - 10} more" if len(named) > 10 else "")


def table(found: Sequence[Line]) -> str:
    """The lines as a markdown table; of very many those that rest are left out first."""
    resting = ("closed", "unchanged", "removed")
    shown = sorted(found, key=lambda line: line.status in resting)[:MOST_SHOWN]
    shown.sort(key=lambda line: (line.status == "removed", line.name))
    rows = ["| entry | status | version | batch | since (UTC) | what there is to say |", "| --- " * 6 + "|"]
    for line in shown:
        cells = (line.name, line.status, line.version, line.batch, line.since, line.detail)
        rows.append("| " + " | ".join(_cell(c) for c in cells) + " |")
    if len(found) > len(shown):
        rows.append(f"\n{len(found) - len(shown):,} more: `llm4cov inbox list`")
    return "\n".join(rows)


def _cell(text: str) -> str:
    """Text as it may stand in a cell of a markdown table."""
    plain = " ".join(text.split())[:300]
    return "".join(f"\\{c}" if c in "\\|`*_<>[]" else c for c in plain)


def event_rows(found: Sequence[Event], at: datetime) -> list[dict[str, Any]]:
    """Rows of `design_events`. What comes once for a version has the same id however often it is recorded."""
    rows = []
    for event in found:
        again = event.what in ("removed", "returned", "left out")
        key = (event.name, event.what, event.version, event.content_hash, at.isoformat() if again else "")
        rows.append({"event_id": content_id("design event", *key), "seen_at": at, **vars(event)})
    return rows


def now() -> datetime:
    """The time as tables hold it."""
    return datetime.now(UTC).replace(tzinfo=None)
