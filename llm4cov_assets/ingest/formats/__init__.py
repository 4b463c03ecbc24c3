"""Formats in which designs come. Each module reads one; `candidates` finds the one that fits a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest.candidates import Candidate

MODULES = {
    "directory": "directory",
    "filelist": "filelist",
    "cvdp": "records",
    "cvdp-ecov": "records",
    "codev-r1": "records",
    "verithoughts": "records",
    "fusesoc": "fusesoc",
}
"""Module of each format. All have `candidates(source, format) -> Iterator[Candidate]`, which raises UserError when the
source as a whole cannot be read, and `count(source, format) -> int | None`: how many there will be, None if finding out
takes as long as reading them."""

FORMATS = ("auto", *MODULES)


def reader(source: str, format: str = "auto") -> tuple[Callable[[], Iterator[Candidate]], int | None]:
    """How to read the candidates of `source` (a path, or the name of a data set), and how many there are if that is
    known. UserError for an unknown format, and for a source that cannot be read."""
    if format not in FORMATS:
        raise UserError(f"no format {format!r}; there are {', '.join(FORMATS)}")
    from llm4cov_assets.ingest.archives import is_archive
    from llm4cov_assets.ingest.formats import archive
    from llm4cov_assets.ingest.formats.detect import detected

    path = _path(source)
    if is_archive(path) and path.is_file():
        return lambda: archive.candidates(source, format), None
    chosen = detected(source) if format == "auto" else format
    module = import_module(f"{__name__}.{MODULES[chosen]}")
    return lambda: module.candidates(source, chosen), module.count(source, chosen)


def _path(source: str) -> Path:
    try:
        path = Path(source).expanduser()
        path.exists()
    except (OSError, RuntimeError) as error:  # a name too long, a folder that may not be entered, nobody's home
        shown = source if len(source) < 200 else f"{source[:100]}..."
        raise UserError(f"{shown!r}: cannot be read ({getattr(error, 'strerror', '') or error}); check it") from None
    return path
