"""Which format a source has."""

from __future__ import annotations

from pathlib import Path

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest.formats.listed import LIST_SUFFIXES
from llm4cov_assets.ingest.formats.rows import FILE_SUFFIXES, HUB, record_files
from sim.assembly import HEADER_SUFFIXES, SOURCE_SUFFIXES
from sim.load import OTHER_SUFFIXES, SETTINGS_FILE

RTL_SUFFIXES = (*SOURCE_SUFFIXES, *HEADER_SUFFIXES, *OTHER_SUFFIXES)


def detected(source: str) -> str:
    """The format of `source`, by its kind and suffix. UserError when there is nothing at it."""
    path = Path(source).expanduser()
    if source.startswith(HUB) or _is_data_set(path):
        from llm4cov_assets.ingest.formats.records import record_format

        return record_format(source)
    if not path.exists():
        raise UserError(f"{source}: no such file or folder")
    if path.is_file() and path.suffix in LIST_SUFFIXES:
        return "filelist"
    if path.is_file() and path.suffix == ".core":
        return "fusesoc"
    return "directory"


def _is_data_set(path: Path) -> bool:
    """Whether a file has records in it, or a folder files of records, and no RTL beside them."""
    if path.is_file():
        return path.name.endswith(FILE_SUFFIXES)
    if not path.is_dir() or not record_files(path):
        return False
    beside = [p for pattern in ("*", "*/*") for p in path.glob(pattern)]
    return not any(p.suffix in RTL_SUFFIXES or p.name == SETTINGS_FILE for p in beside)
