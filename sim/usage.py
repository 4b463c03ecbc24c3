"""How often the caches of a home had what was asked for: `<folder>/usage.json`, added to by every process."""

from __future__ import annotations

import contextlib
import fcntl
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sim.files import replace_file


@dataclass(frozen=True)
class Usage:
    """Answers that a cache gave and did not have, since a time (ISO 8601, UTC)."""

    since: str
    hits: int
    misses: int


def add(folder: Path, amounts: dict[str, tuple[int, int]]) -> None:
    """Add (hits, misses) by the name of the cache. What cannot be written is not counted: it is only for people."""
    counted = {cache: amount for cache, amount in amounts.items() if any(amount)}
    if not counted:
        return
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "usage.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = read(folder)
            now = datetime.now(UTC).isoformat(timespec="seconds")
            for cache, (hits, misses) in counted.items():
                before = known.get(cache, Usage(now, 0, 0))
                known[cache] = Usage(before.since, before.hits + hits, before.misses + misses)
            replace_file(folder / "usage.json", json.dumps({k: vars(v) for k, v in known.items()}, indent=1).encode())


def read(folder: Path) -> dict[str, Usage]:
    """What was counted, by cache; a file that is missing or damaged counts as nothing."""
    try:
        stored: dict[str, Any] = json.loads((folder / "usage.json").read_bytes())
        return {name: Usage(str(u["since"]), int(u["hits"]), int(u["misses"])) for name, u in stored.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
