"""Which format a source has."""

from __future__ import annotations

from pathlib import Path

from llm4cov_assets.errors import UserError

RECORD_SUFFIXES = (".jsonl", ".json", ".parquet")


def detected(source: str) -> str:
    """The format of `source`, by its kind and suffix. UserError when there is nothing at it."""
    path = Path(source).expanduser()
    if not path.exists():
        raise UserError(f"{source}: no such file or folder")
    if path.is_file() and path.suffix == ".f":
        return "filelist"
    if path.is_file() and path.suffix == ".core":
        return "fusesoc"
    if path.is_file() and path.suffix in RECORD_SUFFIXES:
        from llm4cov_assets.ingest.formats.records import record_format

        return record_format(source)
    return "directory"
