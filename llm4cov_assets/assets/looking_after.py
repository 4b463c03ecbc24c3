"""One tick of the inbox sensor: what it asks Dagster for, and what it writes down itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg

from llm4cov_assets import rows
from llm4cov_assets.assets.partitions import design_batches
from llm4cov_assets.assets.watching import (
    MOST_NEW,
    PARTS_AT_ONCE,
    Event,
    Line,
    Look,
    Noted,
    dated,
    event_rows,
    events,
    in_words,
    lines,
    look_at_inbox,
    now,
    states,
    table,
)
from llm4cov_assets.ingest.versions import entry_key, reason
from llm4cov_assets.profiles import PROFILES
from sim.identity import content_id
from warehouse.store import Provenance, Store

CODE_VERSION = "1"


@dataclass(frozen=True)
class Request:
    """A run to start: its batch, why, and the key under which Dagster starts it once at most."""

    batch: str
    reason: str
    run_key: str


@dataclass(frozen=True)
class Done:
    """What a tick found: batches to add, runs to start; why there are none; the inbox in words, and (when it changed)
    as a table."""

    batches: list[str] = field(default_factory=lambda: [])
    requests: list[Request] = field(default_factory=lambda: [])
    words: str = ""
    stands: str = ""
    shown: str = ""
    counts: dict[str, int] = field(default_factory=lambda: {})


def noted_file(home: Path) -> Path:
    """Where a tick writes down what the next one should know."""
    return home / "cache" / "inbox" / "noted.json"


def look_after(home: Path, instance: dg.DagsterInstance) -> Done:
    """Look at the inbox and decide; the history is written, batches and runs are for Dagster to make."""
    look = look_at_inbox(home, instance.get_dynamic_partitions(design_batches.name), instance)
    noted = Noted.load(noted_file(home))
    was = noted.was if noted.known else _told_by_history(home)
    _write_down(home, events(look, was))
    added, requests = _new(look)
    parts, part_requests = _parts(look, noted)
    at = now()
    found = dated(lines(look), noted, at.strftime("%Y-%m-%d %H:%M:%S"))
    return _finish(look, noted, found, [*added, *parts], [*requests, *part_requests], home / "inbox")


def _finish(
    look: Look, noted: Noted, found: list[Line], batches: list[str], requests: list[Request], inbox: Path
) -> Done:
    shown = content_id("inbox table", [{**vars(line), "since": ""} for line in found])
    changed = shown != noted.shown
    noted.shown = shown
    noted.entries = {key: {"was": what} for key, what in states(look).items()}
    for line in found:
        noted.entries[f"line {line.name}"] = {"status": line.status, "version": line.version, "since": line.since}
    noted.save()
    counts = dict(Counter(line.status for line in found))
    stands = in_words(found)
    words = f"nothing new in {inbox}: {stands}" if found else f"nothing in {inbox}"
    return Done(batches, requests, words, stands, table(found) if changed and (found or noted.known) else "", counts)


def _new(look: Look) -> tuple[list[str], list[Request]]:
    """The batches of new versions, and their runs."""
    entries, chosen = look.entries, look.standing.new[:MOST_NEW]
    requests = [
        Request(new.batch, reason(new, entries[new.name].label, entries[new.name].note), new.run_key) for new in chosen
    ]
    return [new.batch for new in chosen], requests


def _parts(look: Look, noted: Noted) -> tuple[list[str], list[Request]]:
    """Further batches of versions that one does not hold: all that are missing, and the runs whose turn it is."""
    added: list[str] = []
    requests: list[Request] = []
    asked: dict[str, int] = {}
    free = PARTS_AT_ONCE - sum(b in look.work.running for v in look.standing.current.values() for b in v.parts)
    for name, version in look.standing.current.items():
        note = look.work.taken.get(version.batch)
        parts = sorted(set(note.batches) - {version.batch}) if note else []
        if not parts:
            continue
        added += [b for b in parts if b not in version.parts]
        begin = noted.asked.get(version.batch, 0)
        chosen = parts[begin : begin + max(0, free)]
        entry = look.entries[name]
        for number, batch in enumerate(chosen, start=begin + 1):
            why = f"{entry.label} holds {note.designs if note else 0:,} designs: batch {number} of {len(parts)}"
            requests.append(Request(batch, why, f"{name}:{entry.content_hash}:{version.number}:{number}"))
        free -= len(chosen)
        asked[version.batch] = begin + len(chosen)
    noted.asked = asked
    return added, requests


def _told_by_history(home: Path) -> Callable[[str], str]:
    """What each entry was, from the rows of its last event."""
    stored = Store(home).read("design_events").sort("seen_at").iter_rows(named=True)
    last = {(f"left out {r['name']}" if r["what"] == "left out" else entry_key(r["name"])): r for r in stored}

    def was(key: str) -> str:
        row = last.get(key)
        if row is None:
            return ""
        known = {"removed": "gone", "rejected": "rejected", "left out": row["reason"]}
        return str(known.get(row["what"], "present"))

    return was


def _write_down(home: Path, found: list[Event]) -> None:
    if not found:
        return
    frame = rows.table_frame("design_events", event_rows(found, now()))
    provenance = Provenance(None, PROFILES["demo"].config_hash, None, "inbox", None, CODE_VERSION)
    Store(home).write("design_events", frame, provenance)
