"""A folder of one design, a folder of folders, or one RTL file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest.candidates import Candidate
from llm4cov_assets.ingest.formats.listed import kind
from sim import reasons
from sim.assembly import HEADER_SUFFIXES, SOURCE_SUFFIXES, Gathered
from sim.design import DesignError, printable
from sim.load import SETTINGS_FILE, gather

SOURCE_FOLDERS = {"rtl", "src", "source", "sources", "hdl", "verilog", "systemverilog", "include", "inc", "includes"}
"""Folder names that hold parts of one design rather than designs of their own."""


def candidates(source: str, format: str) -> Iterator[Candidate]:
    """The designs at `source`: itself when it is a file or one design's folder, else its subfolders."""
    path = _existing(source)
    for place in design_paths(path):
        name = place.stem if place.is_file() else place.resolve().name
        yield Candidate(printable(name), printable(str(place)), partial(_gather, place, path))


def _gather(place: Path, source: Path) -> Gathered:
    if place.is_symlink() and place != source and source.resolve().is_relative_to(place.resolve()):
        raise DesignError(f"{place}: a link to a folder above it; remove it", reasons.UNREADABLE)
    found = gather(place)
    if found.name is None and not found.stem.isprintable():
        raise DesignError(f"{place}: the name is no text; rename it, or name the design in {SETTINGS_FILE}",
                          reasons.MALFORMED)  # fmt: skip
    return found


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
    folders: list[Path] = []
    suffixes = (*SOURCE_SUFFIXES, *HEADER_SUFFIXES)
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if kind(path / entry.name) == "folder":
                    folders.append(path / entry.name)
                elif entry.name == SETTINGS_FILE or entry.name.endswith(suffixes):
                    return [path]
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None
    if not folders or any(p.name.lower() in SOURCE_FOLDERS for p in folders):
        return [path]
    return sorted(folders)


def _existing(source: str) -> Path:
    path = Path(source).expanduser()
    if kind(path) in ("file", "folder"):
        return path
    if kind(path) == "":
        raise UserError(f"{printable(source)}: no such file or folder")
    raise UserError(f"{printable(source)}: neither a file nor a folder that can be read; name RTL, or its folder")
