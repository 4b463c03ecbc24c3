"""Design batches: which there are for a profile, and the designs in each."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest.importing import Rejection
from llm4cov_assets.ingest.kept import kept_batch, kept_designs
from llm4cov_assets.ingest.records import DesignRecord, batches
from llm4cov_assets.ingest.registry import evaluation_set, training_set
from llm4cov_assets.ingest.taking import take_in
from llm4cov_assets.ingest.versions import first_batch, short_hash
from llm4cov_assets.profiles import Profile


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
    """The designs of a partition: generated for the profile, imported, or from the inbox (see ingest/taking.py).

    A version of the inbox that needs several batches has its designs in those, and in its first one only what was not
    accepted. UserError when nothing has that name.
    """
    if partition in (generated := profile_batches(profile)):
        return Batch(generated[partition], [])
    found = take_in(home, partition) if is_first_of_version(partition) else None
    kept = kept_batch(home, partition)
    if kept or found:
        wanted = [d for d in kept if d.split == "inbox" or fnmatchcase(d.name, profile.designs_glob)]
        return Batch([d.load() for d in wanted], found.rejected if found else [])
    raise UserError(
        f"no design batch {partition!r} for profile {profile.name}: it is not in its training set, not imported, "
        f"and not in {home / 'inbox'}"
    )


def is_first_of_version(partition: str) -> bool:
    """Whether a partition is the one that a version of an inbox entry is imported under."""
    return short_hash(partition) is not None and first_batch(partition) == partition
