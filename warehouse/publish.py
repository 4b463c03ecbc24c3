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

from warehouse import compaction, folding, standing, verification
from warehouse.compaction import Compacted
from warehouse.errors import WarehouseError
from warehouse.parts import Part, list_parts, sync_folder
from warehouse.schema import TABLES
from warehouse.verification import Problem

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
            messages = self._move_foreign_log()
            new_parts = self._fresh_base()
            self._copy_out()
            return Published(True, new_parts, messages)

    def verify(self) -> list[Problem]:
        """Check every part, that none is gone, and the rows of a base that holds them all; [] when everything holds."""
        with self._errors(), self._lock():
            problems = [p for part in self._all_parts() if (p := verification.check_part(part))]
            if not problems:
                problems = [verification.gone(s) for s in standing.lost(self.parts, standing.load(self.parts, TABLES))]
            if not problems:
                self._fold()
                with connected(self.base, read_only=True) as connection:
                    problems = list(verification.check_rows(connection))
            return problems

    def compact(self, smaller_than: int = compaction.SMALL_BYTES) -> Compacted:
        """Merge parts smaller than `smaller_than` bytes, table by table, partition by partition, per configuration.

        Rows and the public file stay as they are. WarehouseError when a part is damaged; nothing of its group is
        removed then.
        """
        merged = made = 0
        with self._errors(), self._lock():
            self._fold()
            for merge in compaction.merges(self.parts, smaller_than):
                with connected(self.base) as connection:
                    folding.replace_parts(connection, merge.parts, merge.result)
                compaction.remove(merge)
                merged, made = merged + len(merge.parts), made + 1
            return Compacted(merged, made, len(self._all_parts()) - made)

    def _publish(self) -> Published:
        messages = self._move_foreign_log()
        new_parts, changed = self._fold()
        if changed or self._stamp() != self._recorded_stamp():
            self._copy_out()
            return Published(True, new_parts, messages)
        return Published(False, 0, messages)

    def _fold(self) -> tuple[int, bool]:
        """Fold new parts in one transaction; (number of new parts, whether the base changed)."""
        if not self.base.exists():
            return self._fresh_base(), True
        try:
            with connected(self.base) as connection:
                parts = self._all_parts()
                if folding.can_go_on(connection, parts):
                    return folding.fold(connection, parts, standing.load(self.parts, TABLES))
        except duckdb.Error as error:
            if not _base_is_broken(error):
                raise
        return self._fresh_base(), True

    def _fresh_base(self) -> int:
        """Build a base from all parts beside the old one and put it in its place; the number of parts."""
        self.private.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = self.private / "fresh.duckdb"
        for leftover in (fresh, Path(f"{fresh}.wal")):
            leftover.unlink(missing_ok=True)
        try:
            with connected(fresh) as connection:
                folding.create(connection)
                new_parts, _ = folding.fold(connection, self._all_parts(), standing.load(self.parts, TABLES))
            Path(f"{self.base}.wal").unlink(missing_ok=True)
            fresh.rename(self.base)
            return new_parts
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
            (self.private / "published").write_text(self._stamp())
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

    def _stamp(self) -> str:
        """Identity of the base and the public file; changes when a publication ended before its copy was in place,
        and when somebody else wrote or replaced the public file."""
        return f"{_identity(self.base)} {_identity(self.public)}"

    def _recorded_stamp(self) -> str:
        try:
            return (self.private / "published").read_text()
        except FileNotFoundError:
            return ""

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


def _identity(path: Path) -> str:
    try:
        stat = path.stat()
    except FileNotFoundError:
        return "none"
    return f"{stat.st_ino}/{stat.st_size}/{stat.st_mtime_ns}"


@contextmanager
def connected(path: Path, read_only: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to a private database file, checkpointed at the end so that no log stays beside it."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False})
    try:
        how = "read_only" if read_only else "storage_version 'v1.5.0'"
        connection.execute(f"attach '{_escaped(path)}' as warehouse ({how})")
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
