"""A design with its place in the experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from sim.design import Design

HAND_WRITTEN = "hand_written"
HAND_WRITTEN_FRESH = "hand_written_fresh"
"""Hand-written designs that no setting was chosen by: for confirming what was found on the others."""
SEEN_FAMILIES = "seen_families"
HELD_OUT_FAMILIES = "held_out_families"


@dataclass(frozen=True)
class DesignRecord:
    """`split` is train, eval, inbox or adhoc; `kind` hand_written, generated or imported; `cluster` the unit of the
    bootstrap (a hand-written or imported design by itself, or a generator family); `benchmark` the kind of evaluation
    design, empty for the others; `source` where the design came from; `deterministic` whether two replays of the same
    inputs agreed when it was built, None when it was not built; `difficulty` is what the source says of it;
    `origin` the file or folder on this machine that it was imported from: newer versions come from the same."""

    design: Design
    split: str
    kind: str
    cluster: str
    benchmark: str = ""
    source: str = ""
    deterministic: bool | None = None
    difficulty: str = ""
    origin: str = ""

    @property
    def name(self) -> str:
        return self.design.name


_Record = TypeVar("_Record")

MOST_BATCHES = 200
"""Partitions that one import makes at most, unless a size is asked for: what Dagster's pages show quickly."""

BATCH_SIZE = 80
"""Designs in a batch, up to MOST_BATCHES batches: minutes of work each, so that a failed one costs little."""


def fitting_size(count: int) -> int:
    """Designs per batch for `count` designs."""
    return max(BATCH_SIZE, -(-count // MOST_BATCHES))


def batches(records: Sequence[_Record], batch_size: int, prefix: str) -> dict[str, list[_Record]]:
    """Cut `records` into batches of at most `batch_size`, named `prefix-000`, `prefix-001`, ... in order."""
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, not {batch_size}")
    digits = max(3, len(str(len(records) // batch_size)))
    return {
        f"{prefix}-{i // batch_size:0{digits}d}": list(records[i : i + batch_size])
        for i in range(0, len(records), batch_size)
    }
