"""Opening the public file, read-only, whatever others do to it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from warehouse.errors import WarehouseError

READ_ONLY_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}


@contextmanager
def open_public(public: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a read-only connection to `public`, or to a private copy of it.

    A copy is taken when somebody holds the file open for writing, or when somebody's write-ahead log lies beside it
    (DuckDB would try to apply it). WarehouseError when not even a copy opens.
    """
    foreign_log = public.with_name(public.name + ".wal")
    connection = None if foreign_log.exists() else _connect(public)
    if connection is not None:
        with connection:
            yield connection
        return
    with tempfile.TemporaryDirectory(prefix="llm4cov-") as folder:
        copy = Path(folder) / public.name
        try:
            shutil.copyfile(public, copy)
            connection = duckdb.connect(copy, read_only=True, config=READ_ONLY_SETTINGS)
        except (OSError, duckdb.Error) as error:
            raise WarehouseError(
                f"cannot open {public} ({_first_line(error)}): `llm4cov warehouse publish` makes it anew"
            ) from error
        with connection:
            yield connection


def _connect(public: Path) -> duckdb.DuckDBPyConnection | None:
    try:
        return duckdb.connect(public, read_only=True, config=READ_ONLY_SETTINGS)
    except (duckdb.IOException, duckdb.ConnectionException, duckdb.SerializationException):
        return None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
