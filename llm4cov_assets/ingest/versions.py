"""Versions of what lies in the inbox, told from the names of its batches alone. Pure functions.

The batch of a version is called `inbox-NAME-v003-1a2b3c4d`: the entry, the number of the version, and the first digits
of the hash of its content. A version with more designs than fit into one batch has further ones, `…-000`, `…-001`.
Homes of an earlier program hold `inbox-NAME-1a2b3c4d-v1`, which are read as versions too: of these only the content is
known, not the order. Nothing is ever deleted: results hang on the batches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from sim.identity import sha256

PREFIX = "inbox-"
HASH_DIGITS = 8
NAME_BYTES = 64
"""Bytes of an entry's name in that of its batches, which become names of folders."""

_BATCH = re.compile(r"inbox-(?P<key>.+)-v(?P<number>[0-9]{3,9})-(?P<hash>[0-9a-f]{8})(?:-(?P<part>[0-9]{3,9}))?")
_EARLIER_BATCH = re.compile(r"inbox-(?P<key>.+)-(?P<hash>[0-9a-f]{8})-v[0-9]+")

Kind = Literal["added", "changed", "changed back"]


class Found(Protocol):
    """An entry of the inbox as far as its versions go."""

    @property
    def name(self) -> str: ...
    @property
    def content_hash(self) -> str: ...


@dataclass(frozen=True)
class Version:
    """One version of an entry. `number` is 0 for those of an earlier program, whose order is not known; `parts` are
    the further batches, when one does not hold all its designs."""

    number: int
    short_hash: str
    batch: str
    parts: tuple[str, ...] = ()

    @property
    def batches(self) -> tuple[str, ...]:
        """All batches of this version, sorted."""
        return (self.batch, *self.parts)


@dataclass(frozen=True)
class NewVersion:
    """A version that has to be made. `like` is the number of the last earlier version with the same content."""

    name: str
    number: int
    content_hash: str
    kind: Kind
    like: int | None = None

    @property
    def batch(self) -> str:
        """Name of its batch."""
        return batch_name(self.name, self.number, self.content_hash)

    @property
    def run_key(self) -> str:
        """What Dagster starts once at most."""
        return f"{self.name}:{self.content_hash}:{self.number}"


@dataclass(frozen=True)
class History:
    """The versions of one entry, oldest first."""

    versions: tuple[Version, ...] = ()

    def current(self, content_hash: str) -> Version | None:
        """The version that holds this content and is not followed by another one; None when a new one is needed."""
        short = content_hash[:HASH_DIGITS]
        if self.versions and self.versions[-1].number:
            return self.versions[-1] if self.versions[-1].short_hash == short else None
        return next((v for v in self.versions if v.short_hash == short), None)

    def next(self, name: str, content_hash: str) -> NewVersion:
        """The version that this content makes."""
        last = self.versions[-1].number if self.versions else 0
        alike = [i for i, v in enumerate(self.versions, start=1) if v.short_hash == content_hash[:HASH_DIGITS]]
        kind: Kind = "added" if not self.versions else "changed back" if alike else "changed"
        number = (last or len(self.versions)) + 1
        return NewVersion(name, number, content_hash, kind, (self.versions[alike[-1] - 1].number or None) if alike
                          else None)  # fmt: skip


@dataclass(frozen=True)
class Standing:
    """How the entries of the inbox stand to the batches there are. `current` holds the version of each known entry by
    name, `new` what has to be made, `gone` the histories (by the key in their batches' names) of what is no longer
    there."""

    current: dict[str, Version] = field(default_factory=lambda: {})
    new: list[NewVersion] = field(default_factory=lambda: [])
    gone: dict[str, History] = field(default_factory=lambda: {})

    @property
    def active(self) -> list[str]:
        """Batches of the current versions; all others of the inbox are inactive."""
        return sorted(b for version in self.current.values() for b in version.batches)


def entry_key(name: str) -> str:
    """The name of an entry as it stands in the names of its batches: Dagster refuses three dots in a row, folders
    other characters and long names. What is altered gets a hash, so that no two names become one."""
    plain = re.sub(r"[^A-Za-z0-9_.-]", "-", name).replace("..", "--")
    if plain == name and len(plain) <= NAME_BYTES:
        return name
    return f"{plain[: NAME_BYTES - 9]}-{sha256(name.encode(errors='surrogateescape'))[:8]}"


def _earlier_key(name: str) -> str:
    """The same in homes of an earlier program."""
    safe = "".join(c if c.isalnum() or c in "_-." else "-" for c in name).replace("..", "--")
    return safe.encode(errors="replace")[:NAME_BYTES].decode(errors="ignore")


def batch_name(name: str, number: int, content_hash: str) -> str:
    """Name of the batch of a version; versions of an entry sort by it."""
    return f"{PREFIX}{entry_key(name)}-v{number:03d}-{content_hash[:HASH_DIGITS]}"


def short_hash(batch: str) -> str | None:
    """The digits of the content hash in the name of a batch; None when it is not one of the inbox."""
    found = _BATCH.fullmatch(batch) or _EARLIER_BATCH.fullmatch(batch)
    return found["hash"] if found else None


def belongs_to(name: str, batch: str) -> bool:
    """Whether `batch` is one of the entry `name`."""
    found = _BATCH.fullmatch(batch)
    if found:
        return found["key"] == entry_key(name)
    earlier = _EARLIER_BATCH.fullmatch(batch)
    return earlier is not None and earlier["key"] == _earlier_key(name)


def may_belong_to(source: str, batch: str) -> bool:
    """Whether `batch` may be one of what a source file of that name points at, or one of the entry itself. Names that
    are altered in those of batches are not followed: they may belong to any."""
    found = _BATCH.fullmatch(batch)
    key = found["key"] if found else ""
    return belongs_to(source, batch) or key.startswith(f"{source}.") or entry_key(f"{source}.x") != f"{source}.x" or (
        len(key) > NAME_BYTES - 10)  # fmt: skip


def first_batch(batch: str) -> str:
    """The batch that the version of `batch` was imported under: itself, or without the number of a further one."""
    found = _BATCH.fullmatch(batch)
    return batch[: found.end("hash")] if found else batch


def standing(found: Sequence[Found], batches: Iterable[str]) -> Standing:
    """Compare what lies in the inbox with the batches there are; those of others are left alone."""
    numbered, earlier = _histories(batches)
    result = Standing()
    for entry in found:
        keys = entry_key(entry.name), _earlier_key(entry.name)
        history = History((*earlier.pop(keys[1], ()), *numbered.pop(keys[0], ())))
        version = history.current(entry.content_hash)
        if version:
            result.current[entry.name] = version
        else:
            result.new.append(history.next(entry.name, entry.content_hash))
    for key in sorted({*earlier, *numbered}):
        result.gone[key] = History((*earlier.get(key, ()), *numbered.get(key, ())))
    return result


def _histories(batches: Iterable[str]) -> tuple[dict[str, tuple[Version, ...]], dict[str, tuple[Version, ...]]]:
    """Versions by key, in order: numbered ones, and those of an earlier program."""
    numbered: dict[str, dict[str, Version]] = {}
    parts: dict[str, list[str]] = {}
    earlier: dict[str, list[Version]] = {}
    for batch in sorted(set(batches)):
        found = _BATCH.fullmatch(batch)
        if found:
            whole = batch[: found.end("hash")]
            if found["part"]:
                parts.setdefault(whole, []).append(batch)
            version = Version(int(found["number"]), found["hash"], whole)
            numbered.setdefault(found["key"], {})[whole] = version
        elif old := _EARLIER_BATCH.fullmatch(batch):
            earlier.setdefault(old["key"], []).append(Version(0, old["hash"], batch))
    ordered = {
        key: tuple(
            Version(v.number, v.short_hash, v.batch, tuple(parts.get(v.batch, ())))
            for v in sorted(versions.values(), key=lambda v: (v.number, v.batch))
        )
        for key, versions in numbered.items()
    }
    return ordered, {key: tuple(versions) for key, versions in earlier.items()}


def reason(new: NewVersion, label: str, note: str = "") -> str:
    """Why a version is made, in words. `label` is how its entry is called in the inbox, `note` says more of its
    content, such as the commit."""
    more = f": {note}" if note else ""
    if new.kind == "added":
        return f"{label} is new in the inbox{more}"
    if new.kind == "changed":
        return f"{label} changed in the inbox{more}"
    before = f"that of version {new.like}" if new.like else "one that it had before"
    return f"{label} changed back in the inbox, its content is {before}{more}"
