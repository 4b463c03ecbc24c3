"""Files of an export: Parquet or JSON Lines in shards, in a folder that appears whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from llm4cov_assets.errors import UserError

SHARD_BYTES = 256 << 20
"""A file that has grown to this size is followed by another."""

_GROUP_ROWS, _GROUP_BYTES = 10_000, 16 << 20  # rows that are kept in memory before they are written, at most

_CHUNK = 1 << 20


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder to write to, which becomes `target` when the block ends well and vanishes when it does not.

    UserError if `target` is there and not an empty folder: an export never replaces anything.
    """
    refuse_taken(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{target.name}-", suffix=".tmp", dir=target.parent))
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror}; name a folder that can be written") from error
    try:
        work.chmod(0o755)
        yield work
        refuse_taken(target)
        os.rename(work, target)  # onto an empty folder, too
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror or error}; nothing was left there") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def refuse_taken(target: Path) -> None:
    """UserError unless `target` is free, or an empty folder."""
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise UserError(f"{target} is no folder: name one that is not there yet")
    if target.is_dir() and any(target.iterdir()):
        raise UserError(f"{target} is not empty, and an export replaces nothing: name another folder, or remove it")


class Shards:
    """Rows of one data set and split, written to `<folder>/<split>-00000.<ending>` and so on.

    Rows are dictionaries with the fields of `schema`. Memory is bounded by one group of rows.
    """

    def __init__(self, folder: Path, split: str, schema: pa.Schema, ending: str) -> None:
        self.folder, self.split, self.schema, self.ending = folder, split, schema, ending
        self.files: list[tuple[Path, int]] = []
        self._waiting: list[dict[str, Any]] = []
        self._bytes = 0
        self._writer: _Parquet | _Lines | None = None
        self._rows = 0

    def add(self, row: dict[str, Any], n_bytes: int) -> None:
        """Take a row of about `n_bytes`."""
        self._waiting.append(row)
        self._bytes += n_bytes
        if len(self._waiting) >= _GROUP_ROWS or self._bytes >= _GROUP_BYTES:
            self._flush()

    def close(self) -> None:
        """Write what is left."""
        self._flush()
        self._finish()

    def _flush(self) -> None:
        if not self._waiting:
            return
        if self._writer is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / f"{self.split}-{len(self.files):05d}.{self.ending}"
            self._writer = (_Parquet if self.ending == "parquet" else _Lines)(path, self.schema)
            self.files.append((path, 0))
        self._writer.write(self._waiting)
        self._rows += len(self._waiting)
        self._waiting, self._bytes = [], 0
        if self._writer.size >= SHARD_BYTES:
            self._finish()

    def _finish(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self.files[-1] = (self.files[-1][0], self._rows)
        self._writer, self._rows = None, 0


class _Parquet:
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._file = path.open("wb")
        self._schema = schema
        self._writer = pq.ParquetWriter(self._file, schema, compression="zstd")

    @property
    def size(self) -> int:
        return self._file.tell()

    def write(self, rows: list[dict[str, Any]]) -> None:
        self._writer.write_table(pa.Table.from_pylist(rows, schema=self._schema), row_group_size=len(rows))

    def close(self) -> None:
        self._writer.close()
        self._file.close()


class _Lines:
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._file = path.open("w", encoding="utf-8", newline="\n")
        self._names = schema.names

    @property
    def size(self) -> int:
        return self._file.tell()

    def write(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            self._file.write(json.dumps({n: row[n] for n in self._names}, ensure_ascii=False, default=_plain) + "\n")

    def close(self) -> None:
        self._file.close()


def _plain(value: Any) -> str:
    """What JSON has no type for: bitsets as hex digits, times in ISO 8601."""
    return value.hex() if isinstance(value, bytes) else value.isoformat()


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's content, as 64 hex digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
