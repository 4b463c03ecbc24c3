"""A folder of one design, a folder of folders, or one RTL file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest.candidates import Candidate
from sim.assembly import HEADER_SUFFIXES, SOURCE_SUFFIXES
from sim.load import SETTINGS_FILE, gather

SOURCE_FOLDERS = {"rtl", "src", "source", "sources", "hdl", "verilog", "systemverilog", "include", "inc", "includes"}
"""Folder names that hold parts of one design rather than designs of their own."""


def candidates(source: str, format: str) -> Iterator[Candidate]:
    """The designs at `source`: itself when it is a file or one design's folder, else its subfolders."""
    for place in design_paths(_existing(source)):
        yield Candidate(place.stem if place.is_file() else place.resolve().name, str(place), partial(gather, place))


def count(source: str, format: str) -> int | None:
    """How many there are."""
    return len(design_paths(_existing(source)))


def design_paths(path: Path) -> list[Path]:
    """The designs at `path`: itself when it is a file or one design's folder, else its subfolders.

    A folder is one design when it has RTL or a design.toml at its top, or keeps its parts in folders like `rtl` or
    `src`. Hidden folders are left out.
    """
    if path.is_file():
        return [path]
    try:
        entries = sorted(p for p in path.iterdir() if not p.name.startswith("."))
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None
    suffixes = {*SOURCE_SUFFIXES, *HEADER_SUFFIXES}
    if any(p.name == SETTINGS_FILE or (p.is_file() and p.suffix in suffixes) for p in entries):
        return [path]
    folders = [p for p in entries if p.is_dir()]
    if not folders or any(p.name.lower() in SOURCE_FOLDERS for p in folders):
        return [path]
    return folders


def _existing(source: str) -> Path:
    path = Path(source).expanduser()
    if not path.exists():
        raise UserError(f"{source}: no such file or folder")
    return path
