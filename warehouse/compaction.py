"""Merging small parts into few, without stopping readers or writers.

The merged part and the list of what it absorbed are in place before anything is removed. A crash in between leaves
rows twice in the parts, which reading and folding see once, because they keep one row a key.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from warehouse import frames
from warehouse.parts import Part, absorbed_file, list_parts, read_part, sync_folder, write_part, writes_of
from warehouse.schema import TABLES

SMALL_BYTES = 8 << 20
LARGEST_BYTES = 64 << 20
"""A merged part holds parts of at most this size together."""


@dataclass(frozen=True)
class Compacted:
    """Parts that were merged, parts made of them, and parts left as they were."""

    merged: int
    made: int
    kept: int


@dataclass(frozen=True)
class Merge:
    """Parts of one table, partition and configuration that became one."""

    parts: tuple[Part, ...]
    result: Part


def merges(root: Path, smaller_than: int = SMALL_BYTES) -> Iterator[Merge]:
    """Write merged parts, one after the other. The caller removes the old ones with `remove` when it has taken note.

    Only one process at a time may do this (the publisher's lock).
    """
    for group in _groups(list_parts(root), smaller_than):
        table = TABLES[group[0].table]
        rows = pa.concat_tables([frames.to_arrow(table, frames.from_arrow(table, read_part(part))) for part in group])
        writes = {content: at for part in group for content, at in writes_of(part).items()}
        result, _ = write_part(root, table, group[0].partition, group[0].config_hash, rows, writes)
        yield Merge(tuple(part for part in group if part != result), result)


def remove(merge: Merge) -> None:
    """Remove the parts that were merged, and their lists of what they had absorbed."""
    for part in merge.parts:
        part.path.unlink(missing_ok=True)
        absorbed_file(part).unlink(missing_ok=True)
    sync_folder(merge.result.path.parent)


def _groups(parts: Sequence[Part], smaller_than: int) -> Iterator[list[Part]]:
    together: dict[tuple[str, str, str], list[tuple[Part, int]]] = defaultdict(list)
    for part in parts:
        size = os.stat(part.path).st_size
        if size < smaller_than:
            together[part.table, part.partition, part.config_hash].append((part, size))
    for small in together.values():
        group: list[Part] = []
        total = 0
        for part, size in small:
            if group and total + size > LARGEST_BYTES:
                if len(group) > 1:
                    yield group
                group, total = [], 0
            group.append(part)
            total += size
        if len(group) > 1:
            yield group
