"""Which write of an asset counts.

Parts are never replaced, but an asset that is materialised again for the same configuration may have other rows than
before. A small file beside the parts, `<config_hash>-<asset>.current`, then names the write that counts by its time;
what the asset wrote earlier for this configuration and partition stays on disk and is no longer seen.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from warehouse.errors import WarehouseError
from warehouse.parts import entries, list_parts, partition_folder, sync_folder, writes_of

NOTHING = datetime(1970, 1, 1)
"""The time of a write without rows."""


@dataclass(frozen=True)
class Standing:
    """Rows of `table` with this configuration, asset and partition count only if they were made at `created_at`."""

    table: str
    config_hash: str
    asset_key: str | None
    partition_key: str | None
    created_at: datetime

    @property
    def name(self) -> str:
        """Path of its file below `parts/`, with forward slashes."""
        file = f"{self.config_hash}-{partition_folder(self.asset_key)}.current"
        return f"{self.table}/{partition_folder(self.partition_key)}/{file}"


def put(root: Path, standing: Standing) -> None:
    """Let one write count; atomic. WarehouseError when it cannot be written."""
    path = root / standing.name
    folder = path.parent
    content = {
        "asset_key": standing.asset_key,
        "partition_key": standing.partition_key,
        "created_at": standing.created_at.isoformat(),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=folder)
        with os.fdopen(handle, "w") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.rename(temporary, path)
        sync_folder(folder)
    except OSError as error:
        raise WarehouseError(f"cannot write {path}: {error.strerror}") from error


def load(
    root: Path, tables: Iterable[str], partition: str | None = None, config_hash: str | None = None
) -> list[Standing]:
    """The writes that count; `partition` is a folder name. WarehouseError for a damaged file."""
    found: list[Standing] = []
    for table in tables:
        for folder in [partition] if partition is not None else entries(root / table):
            for name in entries(root / table / folder):
                config = name.partition("-")[0]
                if name.endswith(".current") and config_hash in (None, config):
                    found.append(_read(root / table / folder / name, table, config))
    return sorted(found, key=lambda s: (s.table, s.config_hash, s.asset_key or "", s.partition_key or ""))


def lost(root: Path, standings: Iterable[Standing]) -> list[Standing]:
    """Those whose rows no part holds any more: somebody removed it."""
    held: dict[tuple[str, str | None, str], set[datetime]] = {}
    found: list[Standing] = []
    for standing in standings:
        place = (standing.table, standing.partition_key, standing.config_hash)
        if standing.created_at != NOTHING and place not in held:
            folder = partition_folder(standing.partition_key)
            parts = list_parts(root, [standing.table], folder, standing.config_hash)
            held[place] = {at for part in parts for at in writes_of(part).values()}
        if standing.created_at != NOTHING and standing.created_at not in held[place]:
            found.append(standing)
    return found


def _read(path: Path, table: str, config_hash: str) -> Standing:
    try:
        content = json.loads(path.read_text())
        created_at = datetime.fromisoformat(content["created_at"])
        return Standing(table, config_hash, content["asset_key"], content["partition_key"], created_at)
    except (ValueError, KeyError, TypeError) as error:
        raise WarehouseError(f"{path} is damaged ({error}): materialise the asset again, or remove the file") from error
