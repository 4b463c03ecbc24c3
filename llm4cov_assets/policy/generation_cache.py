"""What a model has answered before, so that no answer is paid for twice.

One file per answer, `<root>/ab/<sha256>.json`, named by the hash of everything that decides the answer; that preimage
lies beside the answer in the file. Only usable answers are kept: an error is tried again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sim.files import replace_file
from sim.identity import sha256


class GenerationCache:
    """Answers by key. Writers may race: a file appears whole or not at all, and equal keys hold equal answers."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def get(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answer stored for `key` (any JSON object), or None. A damaged entry counts as absent."""
        try:
            entry = json.loads(self._path(key).read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        usable = isinstance(entry, dict) and entry.get("key") == json.loads(json.dumps(key)) and "answer" in entry
        return entry["answer"] if usable else None

    def put(self, key: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Store a usable answer. ValueError for an answer that carries an error."""
        if answer.get("error"):
            raise ValueError("an answer with an error is not cached")
        replace_file(self._path(key), json.dumps({"key": key, "answer": answer}, sort_keys=True).encode())

    def _path(self, key: Mapping[str, Any]) -> Path:
        digest = sha256(dict(key))
        return self.root / digest[:2] / f"{digest}.json"
