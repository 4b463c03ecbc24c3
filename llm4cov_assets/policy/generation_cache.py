"""What a model has answered before, so that no answer is paid for twice.

One file per answer, `<root>/ab/<sha256>.json`, named by the hash of everything that decides the answer; that preimage
lies beside the answer in the file. Only usable answers are kept: an error is tried again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sim import usage
from sim.files import open_untouched, replace_file
from sim.identity import content_id, sha256


class GenerationCache:
    """Answers by key. Writers may race: a file appears whole or not at all, and equal keys hold equal answers."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._hits = self._misses = 0

    def get(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answer stored for `key` (any JSON object), or None. A damaged entry counts as absent."""
        answer = self._get(key)
        if answer is None:
            self._misses += 1
        else:
            self._hits += 1
        return answer

    def count(self) -> None:
        """Add the hits and misses since the last call to what `llm4cov cache` shows."""
        usage.add(self.root.parent, {"generations": (self._hits, self._misses)})
        self._hits = self._misses = 0

    def _get(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
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


def generation_id(key: Mapping[str, Any]) -> str:
    """The id of the generation that a key of this cache stands for. KeyError if it is no key of the small student."""
    return content_id("generation", key["policy_id"], key["prompt"], key["state_id"], key["sample"], key["seed"])


def key_of(path: Path) -> dict[str, Any] | None:
    """The key of an entry, or None if it cannot be read. Looking at it does not count as use."""
    try:
        with open_untouched(path) as file:
            key = json.load(file)["key"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return key if isinstance(key, dict) else None
