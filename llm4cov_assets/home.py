"""Where state lives."""

from __future__ import annotations

import os
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent


def home() -> Path:
    """`LLM4COV_HOME`, or `data/` at the project root; created when missing."""
    folder = Path(os.environ.get("LLM4COV_HOME") or PROJECT / "data").expanduser().resolve()
    for name in ("parts", "cache", "builds", "checkpoints", "dagster", "inbox", "reports"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return folder
