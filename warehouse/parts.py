"""Immutable Parquet parts: `parts/<table>/<partition>/<config_hash>-<content_hash>.parquet`.

A part is written beside its place, synced and renamed, and never replaced. Equal content has an equal name, so
writing it again writes nothing.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.errors import WarehouseError
from warehouse.frames import content_hash
from warehouse.schema import SCHEMA_VERSION, TABLES, Table

UNPARTITIONED = "_"
"""Folder of the rows without partition key; no encoded key can be it."""


@dataclass(frozen=True, order=True)
class Part:
    """One part. `name` is its path below `parts/`, with forward slashes."""

    root: Path
    table: str
    partition: str
    file: str

    @property
    def path(self) -> Path:
        return self.root / self.table / self.partition / self.file

    @property
    def name(self) -> str:
        return f"{self.table}/{self.partition}/{self.file}"

    @property
    def config_hash(self) -> str:
        return self.file.removesuffix(".parquet").rpartition("-")[0]

    @property
    def content_hash(self) -> str:
        return self.file.removesuffix(".parquet").rpartition("-")[2]


def partition_folder(partition_key: str | None) -> str:
    """The folder name of a partition key: percent-encoded where a file system might object."""
    if partition_key is None:
        return UNPARTITIONED
    encoded = quote(partition_key, safe="").replace(".", "%2E")
    return "%5F" if encoded == UNPARTITIONED else encoded or "%00"


def partition_key(folder: str) -> str | None:
    """The inverse of `partition_folder`."""
    if folder == UNPARTITIONED:
        return None
    return "" if folder == "%00" else unquote(folder)


def list_parts(
    root: Path, tables: Iterable[str] = tuple(TABLES), partition: str | None = None, config_hash: str | None = None
) -> list[Part]:
    """The parts below `root`, in the order of their names; `partition` is a folder name."""
    return sorted(_walk(root, tables, partition, config_hash))


def _walk(root: Path, tables: Iterable[str], partition: str | None, config_hash: str | None) -> Iterator[Part]:
    for table in tables:
        folder = root / table
        for name in [partition] if partition is not None else entries(folder):
            for file in entries(folder / name):
                if file.endswith(".parquet") and not file.startswith("."):
                    part = Part(root, table, name, file)
                    if config_hash in (None, part.config_hash):
                        yield part


def entries(folder: Path) -> list[str]:
    """The names in a folder; none if there is no such folder."""
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def absorbed_file(part: Part) -> Path:
    """Beside a merged part: lines `content_hash time` of the writes it holds, so that they are not written again."""
    return part.path.with_suffix(".absorbed")


def write_part(
    root: Path, table: Table, partition: str, config_hash: str, rows: pa.Table, absorbed: Mapping[str, datetime] = {}
) -> tuple[Part, datetime]:
    """Write `rows` as a part unless the same content is there already; atomic and synced to disk.

    Returns the part and the time at which its content was written first. `absorbed` are the writes that `rows` hold,
    content hash and time; it is for compaction.
    """
    part = Part(root, table.name, partition, f"{config_hash}-{content_hash(rows)}.parquet")
    written_at = None if absorbed else _written_at(part)
    if written_at is not None:
        return part, written_at
    try:
        part.path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=part.path.parent)
    except OSError as error:
        raise WarehouseError(f"cannot write {part.path}: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            with pq.ParquetWriter(
                file, rows.schema, compression="zstd", write_page_checksum=True, store_schema=False
            ) as writer:
                writer.write_table(rows)
                writer.add_key_value_metadata({"schema_version": str(SCHEMA_VERSION), "table": table.name})
            file.flush()
            os.fsync(file.fileno())
        if absorbed:
            lines = (f"{content} {at.isoformat()}\n" for content, at in sorted(absorbed.items()))
            absorbed_file(part).write_text("".join(lines))
        os.chmod(temporary, 0o644)
        os.rename(temporary, part.path)
        sync_folder(part.path.parent)
    except OSError as error:
        raise WarehouseError(f"cannot write {part.path}: {error.strerror or error}") from error
    finally:
        Path(temporary).unlink(missing_ok=True)
    return part, rows["created_at"][0].as_py()


def _written_at(part: Part) -> datetime | None:
    """When the content of a part was written, by itself or as one of those that a merged part holds; None if never."""
    if part.path.exists():
        return writes_of(part)[part.content_hash]
    for file in entries(part.path.parent):
        if file.startswith(f"{part.config_hash}-") and file.endswith(".absorbed"):
            merged = Part(part.root, part.table, part.partition, file.replace(".absorbed", ".parquet"))
            if merged.path.exists() and (at := writes_of(merged).get(part.content_hash)):
                return at
    return None


def writes_of(part: Part) -> dict[str, datetime]:
    """The writes that a part holds: content hash and time.

    WarehouseError if it is damaged; FileNotFoundError passes.
    """
    try:
        lines = absorbed_file(part).read_text().splitlines()
        return {content: datetime.fromisoformat(at) for content, at in (line.split() for line in lines)}
    except FileNotFoundError:
        pass  # not a merged one
    try:
        with pq.ParquetFile(part.path) as file:
            return {part.content_hash: file.read_row_group(0, ["created_at"])["created_at"][0].as_py()}
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise damaged(part, error) from error


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` last through a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_part(part: Part) -> pa.Table:
    """The rows of a part; WarehouseError if it is damaged or of a newer schema. FileNotFoundError passes."""
    check_version(part)
    try:
        with pq.ParquetFile(part.path, page_checksum_verification=True) as file:
            return file.read()
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise damaged(part, error) from error


def check_version(part: Part) -> int:
    """The schema version of a part; WarehouseError if its footer is damaged or the version is newer than ours."""
    try:
        metadata = pq.read_metadata(part.path).metadata or {}
        version = int(metadata[b"schema_version"])
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException, KeyError, ValueError) as error:
        raise damaged(part, error) from error
    if version > SCHEMA_VERSION:
        raise WarehouseError(
            f"part {part.path} is of schema version {version}, this program knows {SCHEMA_VERSION}: "
            "use the newer program"
        )
    return version


def damaged(part: Part, error: Exception) -> WarehouseError:
    """The error for a part that cannot be read."""
    first_line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return WarehouseError(
        f"part {part.path} is damaged ({first_line}): "
        "restore it from a copy, or move it away and run again what made it"
    )
