"""Folding parts into a private DuckDB base and publishing a read-only copy of it.

Nobody opens the base (`warehouse-private/base.duckdb`) but a publisher that holds the lock, so nobody can block the
pipeline. People get `trajectories.duckdb`, a copy that is renamed into place: who has the old one open keeps it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from warehouse import folding
from warehouse.errors import WarehouseError
from warehouse.parts import Part, list_parts, sync_folder

INTERVAL_S = 10.0
"""At most one publication in this time, unless forced."""


@dataclass(frozen=True)
class Published:
    """What a publication did. `changed` is false when the public file was left as it is; `messages` are for people."""

    changed: bool
    new_parts: int = 0
    messages: tuple[str, ...] = ()


class Publisher:
    """Publishes the parts below `home`. One at a time a home: others wait for the lock."""

    def __init__(self, home: Path) -> None:
        self.parts = home / "parts"
        self.private = home / "warehouse-private"
        self.base = self.private / "base.duckdb"
        self.public = home / "trajectories.duckdb"

    def publish(self, force: bool = False) -> Published:
        """Fold the parts that the base lacks and replace the public file.

        Does nothing when the last publication is less than 10 s old and `force` is false, or when nothing is new.
        WarehouseError when a part is damaged or of a newer schema, or when the disk is full or read-only; the
        public file and the base then stay as they were.
        """
        if not force and 0 <= time.time() - self._published_at() < INTERVAL_S:
            return Published(False)
        with self._errors(), self._lock():
            return self._publish()

    def rebuild(self) -> Published:
        """Make base and public file anew from the parts alone."""
        with self._errors(), self._lock():
            self._fresh_base()
            return self._publish(always=True)

    def _publish(self, always: bool = False) -> Published:
        messages = self._move_foreign_log()
        new_parts, changed = self._fold()
        if changed or always or self._published_at() == 0 or not self._public_is_base():
            self._copy_out()
            return Published(True, new_parts, messages)
        return Published(False, 0, messages)

    def _fold(self) -> tuple[int, bool]:
        """Fold new parts in one transaction; (number of new parts, whether the base changed)."""
        for attempt in (1, 2):
            if not self.base.exists():
                self._fresh_base()
            try:
                with connected(self.base) as connection:
                    if folding.base_is_ours(connection):
                        return folding.fold(connection, self._all_parts())
            except duckdb.Error as error:
                if attempt == 2 or not _base_is_broken(error):
                    raise
            self._fresh_base()
        raise WarehouseError(f"{self.base} cannot be made: remove {self.private} and publish again")

    def _fresh_base(self) -> None:
        """Build a base from all parts beside the old one and put it in its place."""
        self.private.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = self.private / "fresh.duckdb"
        for leftover in (fresh, Path(f"{fresh}.wal")):
            leftover.unlink(missing_ok=True)
        try:
            with connected(fresh) as connection:
                folding.create(connection)
                folding.fold(connection, self._all_parts())
            Path(f"{self.base}.wal").unlink(missing_ok=True)
            fresh.rename(self.base)
        finally:
            fresh.unlink(missing_ok=True)
            Path(f"{fresh}.wal").unlink(missing_ok=True)

    def _all_parts(self) -> list[Part]:
        return list_parts(self.parts)

    def _copy_out(self) -> None:
        """Copy the base, sync it and rename it over the public file."""
        handle, name = tempfile.mkstemp(prefix=".trajectories-", suffix=".tmp", dir=self.public.parent)
        copy = Path(name)
        try:
            with os.fdopen(handle, "wb") as target, self.base.open("rb") as source:
                shutil.copyfileobj(source, target, 1 << 22)
                target.flush()
                os.fsync(target.fileno())
            copy.chmod(0o444)
            copy.rename(self.public)
            sync_folder(self.public.parent)
        finally:
            copy.unlink(missing_ok=True)

    def _move_foreign_log(self) -> tuple[str, ...]:
        """A write-ahead log beside the public file is somebody's who wrote into it: the new file could not open."""
        log = Path(f"{self.public}.wal")
        if not log.exists():
            return ()
        aside = log.with_name(f"{log.name}.foreign-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
        log.rename(aside)
        return (
            f"somebody wrote into {self.public.name}, which is made anew by every publication; what they wrote "
            f"is moved to {aside.name}. Open it with `duckdb -readonly`, or copy it.",
        )

    def _published_at(self) -> float:
        try:
            return self.public.stat().st_mtime
        except FileNotFoundError:
            return 0.0

    def _public_is_base(self) -> bool:
        """Whether the last publication got as far as the rename: the copy is then younger than the base."""
        public, base = self.public.stat(), self.base.stat()
        return public.st_size == base.st_size and public.st_mtime_ns >= base.st_mtime_ns

    @contextmanager
    def _lock(self) -> Iterator[None]:
        self.private.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self.private / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            where = error.filename or self.public.parent
            raise WarehouseError(
                f"cannot publish {self.public}: {error.strerror or error} ({where}); the published file stays as it was"
            ) from error
        except duckdb.Error as error:
            raise WarehouseError(
                f"cannot publish {self.public}: {str(error).splitlines()[0]}; the published file stays as it was"
            ) from error


@contextmanager
def connected(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A read-write connection to a private database file, checkpointed at the end so that no log stays beside it."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False})
    try:
        connection.execute(f"attach '{_escaped(path)}' as warehouse (storage_version 'v1.5.0')")
        connection.execute("use warehouse")
        connection.execute(f"set temp_directory = '{_escaped(path.with_suffix('.spill'))}'")
        connection.execute("set zstd_min_string_length = 64")
        yield connection
        connection.execute("use memory")
        connection.execute("detach warehouse")
    finally:
        connection.close()
    if Path(f"{path}.wal").exists():
        raise WarehouseError(f"{path} kept a log after its checkpoint")


def _escaped(path: Path) -> str:
    return str(path).replace("'", "''")


def _base_is_broken(error: duckdb.Error) -> bool:
    return isinstance(error, duckdb.SerializationException | duckdb.InternalException | duckdb.FatalException) or (
        isinstance(error, duckdb.IOException) and "base.duckdb" in str(error) and "No space" not in str(error)
    )
