"""What the rows of the warehouse refer to outside it: which of some ids occur in the parts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warehouse.errors import WarehouseError
from warehouse.parts import Part, damaged, list_parts
from warehouse.schema import TABLES

_ATTEMPTS = 10


def parts_with(root: Path, column: str) -> list[Part]:
    """The parts of all tables that have a column of this name."""
    return list_parts(root, [t.name for t in TABLES.values() if column in {c.name for c in t.all_columns}])


def referred(root: Path, column: str, ids: Collection[str]) -> set[str]:
    """Those of `ids` (32 hex digits) that occur in an id column of this name in any table, of any configuration.

    Read from the parts, so that rows count that are not published yet. WarehouseError when a part cannot be read: then
    nobody knows.
    """
    if not ids:
        return set()
    for _ in range(_ATTEMPTS):  # compaction may remove a part between listing and reading
        try:
            return in_parts(parts_with(root, column), column, ids)
        except FileNotFoundError:
            continue
    raise WarehouseError(f"parts vanish while they are read: what deletes files in {root}?")


def in_parts(parts: Sequence[Part], column: str, ids: Iterable[str]) -> set[str]:
    """The same of some parts. FileNotFoundError passes."""
    wanted = pa.array([bytes.fromhex(i) for i in ids], pa.binary(16))
    found: set[str] = set()
    for part in parts:
        try:
            with pq.ParquetFile(part.path, page_checksum_verification=True) as file:
                if column not in file.schema_arrow.names:  # of an older schema
                    continue
                values = file.read([column]).column(column).cast(pa.binary(16))
        except FileNotFoundError:
            raise
        except (OSError, pa.ArrowException) as error:
            raise damaged(part, error) from error
        for chunk in pc.unique(values.filter(pc.is_in(values, value_set=wanted))).to_pylist():
            if chunk is not None:
                found.add(chunk.hex())
    return found
