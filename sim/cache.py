"""Results of simulations, one file a key: `<home>/cache/simulations/ab/<sha256>.json.gz`.

A key is the canonical JSON of everything that decides a result. It is kept beside the result, so that a person can see
why another key missed. Entries are written whole or not at all; one that cannot be read counts as missing.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sim.files import open_ordinary, open_untouched, replace_file
from sim.identity import canonical, sha256

SCHEMA_VERSION = 1
"""Raise it when the meaning of a stored result changes."""


class SimulationCache:
    """A folder of results; safe to use from several threads and processes at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, key: Mapping[str, Any]) -> Path:
        digest = sha256(dict(key))
        return self.folder / digest[:2] / f"{digest}.json.gz"

    def get(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
        """The result stored under `key`, or None."""
        try:
            entry = json.loads(gzip.decompress(_content(self.path(key))))
            if entry["key"] != json.loads(canonical(dict(key))):
                return None
            result = entry["result"]
            return result if isinstance(result, dict) else None
        except (OSError, EOFError, ValueError, KeyError, TypeError, RecursionError, zlib.error):
            return None

    def keys(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Every entry that can be read, with its key; only the head of each file is read."""
        for folder in sorted(self.folder.glob("[0-9a-f][0-9a-f]")):
            for path in sorted(folder.glob("*.json.gz")):
                key = key_of(path)
                if key is not None:
                    yield path, key

    def put(self, key: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Store a result, replacing one that is there. Raises OSError (a full disk); nothing is torn then."""
        path = self.path(key)
        data = gzip.compress(canonical({"key": dict(key), "result": dict(result)}), compresslevel=1, mtime=0)
        replace_file(path, data)


def key_of(path: Path) -> dict[str, Any] | None:
    """The key of an entry, or None if it cannot be read. Looking at it does not count as use."""
    try:
        with open_untouched(path) as file:
            head = zlib.decompressobj(_GZIP).decompress(file.read(_HEAD), 8 * _HEAD).decode(errors="ignore")
        key, _ = json.JSONDecoder().raw_decode(head, len(_BEGIN)) if head.startswith(_BEGIN) else (None, 0)
    except (OSError, ValueError, zlib.error):
        return None
    return key if isinstance(key, dict) else None


_BEGIN = '{"key":'  # of every entry: canonical JSON sorts names
_HEAD = 4096  # compressed bytes that hold a key
_GZIP = 16 + zlib.MAX_WBITS


def _content(path: Path) -> bytes:
    with open_ordinary(path, follow=True) as file:
        return file.read()
