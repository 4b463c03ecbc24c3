"""Design batches: which there are for a profile, and the designs in each."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest.formats.directory import design_paths
from llm4cov_assets.ingest.importing import Rejection
from llm4cov_assets.ingest.inbox import batch_name, scan_inbox
from llm4cov_assets.ingest.kept import keep, kept_batch, kept_designs
from llm4cov_assets.ingest.records import DesignRecord, batches
from llm4cov_assets.ingest.registry import evaluation_set, training_set
from llm4cov_assets.profiles import Profile
from sim.design import DesignError
from sim.load import load_design

INBOX_VERSION = "1"
"""Raised by hand when every dropped design should be closed again."""


@dataclass(frozen=True)
class Batch:
    """The designs of a partition, and what could not be read."""

    records: list[DesignRecord]
    rejected: list[Rejection]


def profile_batches(profile: Profile) -> dict[str, list[DesignRecord]]:
    """The generated training designs of a profile, cut into batches that are named after it."""
    return _profile_batches(profile.model_dump_json())


@lru_cache(maxsize=4)
def _profile_batches(profile_json: str) -> dict[str, list[DesignRecord]]:
    profile = Profile.model_validate_json(profile_json)
    return batches(training_set(profile), profile.batch_size, profile.name)


def training_batches(profile: Profile, home: Path) -> list[str]:
    """Batches that a profile trains on: its generated ones, then what was imported for training."""
    imported = [
        batch
        for batch, designs in kept_designs(home).items()
        if any(d.split == "train" and fnmatchcase(d.name, profile.designs_glob) for d in designs)
    ]
    return [*profile_batches(profile), *imported]


def evaluation_records(profile: Profile, home: Path) -> list[DesignRecord]:
    """Designs that a profile evaluates on: its evaluation set, then what was imported for evaluation."""
    imported = [d for designs in kept_designs(home).values() for d in designs if d.split == "eval"]
    return [*evaluation_set(profile), *(d.load() for d in imported if fnmatchcase(d.name, profile.designs_glob))]


def open_batch(partition: str, profile: Profile, home: Path) -> Batch:
    """The designs of a partition: generated for the profile, imported, or dropped into the inbox.

    UserError when nothing has that name. A dropped design is copied on the way, so that later edits of the inbox do
    not matter.
    """
    if partition in (generated := profile_batches(profile)):
        return Batch(generated[partition], [])
    if kept := kept_batch(home, partition):
        wanted = [d for d in kept if d.split == "inbox" or fnmatchcase(d.name, profile.designs_glob)]
        return Batch([d.load() for d in wanted], [])
    for entry in scan_inbox(home / "inbox", settle_s=0):
        if batch_name(entry.name, entry.content_hash, INBOX_VERSION) == partition:
            return _taken_in(entry.path, partition, home)
    raise UserError(
        f"no design batch {partition!r} for profile {profile.name}: it is not in its training set, not imported, "
        f"and no longer in {home / 'inbox'}"
    )


def _taken_in(path: Path, partition: str, home: Path) -> Batch:
    batch = Batch([], [])
    for place in design_paths(path):
        try:
            design = load_design(place)
        except DesignError as error:
            batch.rejected.append(Rejection(place.stem, str(place), "unreadable", str(error)))
            continue
        record = DesignRecord(design, "inbox", "imported", design.name, "", f"inbox:{place.name}")
        keep(record, home, partition)
        batch.records.append(record)
    return batch
