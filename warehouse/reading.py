"""Opening the public file, read-only, whatever others do to it."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from warehouse.errors import WarehouseError

READ_ONLY_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "enable_external_access": False,  # a question neither writes files nor reads others
}


ATTEMPTS = 5


@contextmanager
def open_public(public: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a read-only connection to `public`, or to a private copy of it.

    A copy is taken when somebody holds the file open for writing, or when somebody's write-ahead log lies beside it
    (DuckDB would try to apply it). WarehouseError when not even a copy opens.
    """
    if not Path(f"{public}.wal").exists():
        connection = _open(public)
        if connection is not None:
            with connection:
                yield connection
            return
    with tempfile.TemporaryDirectory(prefix="llm4cov-") as folder, _open_copy(public, Path(folder)) as connection:
        yield connection


def _open(public: Path) -> duckdb.DuckDBPyConnection | None:
    """None when somebody holds the file, or their log appeared just now: a copy is the way then."""
    try:
        return duckdb.connect(public, read_only=True, config=READ_ONLY_SETTINGS)
    except duckdb.Error:
        return None


def _open_copy(public: Path, folder: Path) -> duckdb.DuckDBPyConnection:
    """Copy and open; again if somebody wrote into the file while it was copied."""
    problem: Exception | None = None
    for attempt in range(ATTEMPTS):
        copy = folder / str(attempt) / public.name
        copy.parent.mkdir()
        try:
            shutil.copyfile(public, copy)
            return duckdb.connect(copy, read_only=True, config=READ_ONLY_SETTINGS)
        except (OSError, duckdb.Error) as error:
            problem = error
            copy.unlink(missing_ok=True)
            time.sleep(0.1 * attempt)
    raise WarehouseError(
        f"cannot open {public} ({first_line(problem)}): `llm4cov warehouse publish` makes it anew"
    ) from problem


def first_line(error: Exception | None) -> str:
    """The first line of an error's message; DuckDB adds the statement in further lines."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
