"""What passes on its way to the files: what is left out, counts, duplicates, and the hash that training has."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from llm4cov_assets.export.datasets import Row, Source
from sim.identity import canonical

TOO_LONG, DUPLICATE = "longer than --max-chars", "same text as an earlier row"
"""Why a row is left out."""


@dataclass(frozen=True)
class Limits:
    """What is done with rows that fit the filters. Rows with more than `max_characters` of text are left out, and with
    `unique` those whose text a row had before. `validation` is the share of the rows that whole clusters of designs
    are held out for."""

    max_characters: int | None = None
    unique: bool = False
    validation: float = 0.0


NO_LIMITS = Limits()

_TEXTS = ("prompt", "completion", "chosen", "rejected")


class Tally:
    """Counts the rows of a source. What it keeps of a row is the hash of its text: about 100 bytes."""

    def __init__(self, source: Source) -> None:
        self.rows = 0
        self._source = source
        self._gain = "margin" if source.kind == "preferences" else "gain"
        self._counts: dict[tuple[Any, ...], list[Any]] = defaultdict(lambda: [0, set(), 0.0])
        self._characters: list[int] = [0, 0]  # in all, and of the longest row
        self._left_out: dict[str, int] = defaultdict(int)
        self._duplicates = 0
        self._seen: set[bytes] = set()
        self._digests: dict[tuple[str, int], Any] = {}
        self._as_trained = "example_id" in source.shapes[0].columns

    def taken(self, rows: Iterator[Row], limits: Limits) -> Iterator[Row]:
        """The rows that stay, prepared and counted."""
        for raw in rows:
            row = self._source.prepare(raw)
            texts = [row[name] for name in _TEXTS if name in row] if self._source.kind != "trajectories" else []
            length = sum(map(len, texts))
            if limits.max_characters is not None and length > limits.max_characters:
                self._left_out[TOO_LONG] += 1
                continue
            if texts and not self._is_new(texts):
                self._duplicates += 1
                if limits.unique:
                    self._left_out[DUPLICATE] += 1
                    continue
            self._count(row, length)
            yield row

    @property
    def hashes(self) -> dict[tuple[str, int], str]:
        """For rows of `sft_examples`: hashes over prompts and completions by configuration and stage, as checkpoints
        have them (`data_hash`)."""
        found = {}
        for key, digest in self._digests.items():
            whole = digest.copy()
            whole.update(b"]")
            found[key] = whole.hexdigest()
        return found

    def as_json(self) -> dict[str, Any]:
        """The counts."""
        groups = sorted(self._counts.items(), key=lambda item: [(v is not None, v) for v in item[0]])
        return {
            "rows": self.rows,
            "counts": [
                {
                    **dict(zip(self._source.group, group, strict=True)),
                    "rows": n,
                    "designs": len(designs),
                    f"mean_{self._gain}": gain / n,
                }
                for group, (n, designs, gain) in groups
            ],
            "characters": {"all": self._characters[0], "longest": self._characters[1]},
            "left_out": dict(self._left_out),
            "duplicates": self._duplicates,
        }

    def _is_new(self, texts: list[str]) -> bool:
        digest = hashlib.blake2b(canonical(texts), digest_size=16).digest()
        new = digest not in self._seen
        self._seen.add(digest)
        return new

    def _count(self, row: Row, length: int) -> None:
        self.rows += 1
        group = self._counts[tuple(row[name] for name in self._source.group)]
        group[0] += 1
        group[1].add(row["design_id"])
        group[2] += row[self._gain]
        self._characters = [self._characters[0] + length, max(self._characters[1], length)]
        if self._as_trained:
            key = (row["config_hash"], row["stage"])
            first = key not in self._digests
            digest = self._digests.setdefault(key, hashlib.sha256(b"["))
            digest.update((b"" if first else b",") + canonical([row["prompt"], row["completion"]]))
