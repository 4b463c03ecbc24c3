"""Where state lives."""

from __future__ import annotations

import os
from pathlib import Path

from llm4cov_assets.errors import UserError

PROJECT = Path(__file__).resolve().parent.parent


def home() -> Path:
    """`LLM4COV_HOME`, or `data/` at the project root; created when missing. UserError where that cannot be."""
    chosen = os.environ.get("LLM4COV_HOME") or str(PROJECT / "data")
    try:
        folder = Path(chosen).expanduser().resolve()
        for name in ("parts", "cache", "builds", "checkpoints", "dagster", "inbox", "reports"):
            (folder / name).mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise UserError(f"LLM4COV_HOME={chosen}: {error.filename} is a file; name a folder") from None
    except (RuntimeError, ValueError) as error:  # a user that is not known, a circle of links
        raise UserError(f"LLM4COV_HOME={chosen}: {error}; name a folder") from None
    return folder
