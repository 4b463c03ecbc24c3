"""Rows of a data set, one at a time: JSON Lines, JSON, Parquet, and what the `datasets` library reads."""

from __future__ import annotations

import gzip
import json
import logging
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest.formats.fields import kind
from sim import reasons
from sim.assembly import MOST_BYTES
from sim.design import DesignError

HUB = "hf:"
"""Begins the name of a data set for the `datasets` library: `hf:NAME`, `hf:NAME:CONFIG`, `hf:NAME@SPLIT`; NAME is that
of one on the Hugging Face Hub, or a folder."""

LINES_SUFFIXES = (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")
FILE_SUFFIXES = (*LINES_SUFFIXES, ".json", ".json.gz", ".parquet")

MOST_OF_A_LINE = MOST_BYTES
"""Bytes of a row of JSON: no design is larger."""

MOST_OF_A_FILE = 512 << 20
"""Bytes of a JSON list, which is read as a whole."""

MOST_SKIPPED = 16 * MOST_OF_A_LINE
"""Bytes of one line that are read for its end: compressed, a line without an end is easily made."""

MOST_OF_A_ROW = 64 << 20
"""Bytes of the columns that are read of a row of a Parquet file."""

BATCH = 64
"""Rows of a Parquet file that are unpacked at a time, where they are small."""

MOST_OF_A_BATCH = 512 << 20
"""Bytes that a batch of several rows may have at worst, which is when every row repeats all that is stored."""

_SAVED = ("dataset_dict.json", "dataset_info.json")
"""What `save_to_disk` of that library leaves beside the data."""


@dataclass(frozen=True)
class Row:
    """One row. `place` is what messages begin with, `number` counts from 1 (lines, in a file of lines); `problem` says
    why there is no `value`."""

    place: str
    number: int
    value: Mapping[str, Any] | None = None
    problem: DesignError | None = None


def rows(source: str, fields: Sequence[str] = ()) -> Iterator[Row]:
    """The rows of `source`: a file, a folder with such files or of a `datasets` data set, or `hf:NAME`. A row that
    cannot be read is one with a problem. With `fields`, others may be left out.

    Raises UserError when the source as a whole cannot be read, or not to its end.
    """
    if source.startswith(HUB):
        return _hub_rows(source, source.removeprefix(HUB))
    path = Path(source).expanduser()
    if path.is_dir():
        files = record_files(path)
        if files and all(f.name.endswith(LINES_SUFFIXES) for f in files):
            return (row for file in files for row in _file_rows(file, fields))
        return _hub_rows(source, str(path))
    return _file_rows(path, fields)


def count(source: str) -> int | None:
    """How many rows there are, None if that is not known before they are read."""
    path = Path(source).expanduser()
    if source.startswith(HUB) or not path.is_file():
        return None
    try:
        if path.suffix == ".parquet":
            with _parquet(path) as file:
                return int(file.metadata.num_rows)
        if path.name.endswith(LINES_SUFFIXES) and path.suffix != ".gz":
            with path.open("rb") as lines:
                return sum(1 for _, line in _lines(lines, path) if line is None or line.strip())
    except (OSError, UserError):
        return None  # reading says why
    return None


def stem(source: str) -> str:
    """What records without an id are called after."""
    name = Path(source.removeprefix(HUB).partition("@")[0].rstrip("/")).name
    if source.startswith(HUB):
        return name.partition(":")[0]
    for suffix in sorted(FILE_SUFFIXES, key=len, reverse=True):
        name = name.removesuffix(suffix)
    return name


def record_files(folder: Path) -> list[Path]:
    """The files of a data set in a folder, or one folder below it; empty when there are none."""
    suffixes = (*LINES_SUFFIXES, ".parquet", ".arrow")
    try:
        places = [folder, *sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))]
        return [f for place in places for f in sorted(place.iterdir()) if f.is_file() and f.name.endswith(suffixes)]
    except OSError:
        return []


def _file_rows(path: Path, fields: Sequence[str]) -> Iterator[Row]:
    if not path.exists():
        raise UserError(f"{path}: no such file or folder")
    if not path.is_file():
        raise UserError(f"{path}: not an ordinary file; name a file or a folder")
    if path.suffix == ".parquet":
        return _parquet_rows(path, fields)
    return _json_rows(path)


def _parquet_rows(path: Path, fields: Sequence[str]) -> Iterator[Row]:
    number = 0
    with _parquet(path) as file:
        names = [n for n in file.schema_arrow.names if not fields or n in fields]
        if len(set(names)) < len(names):
            twice = Counter(names).most_common(1)[0][0]
            raise UserError(f"{path}: two columns called {ascii(twice)[:60]}; rename one")
        for group in range(file.num_row_groups):
            size = _batch_size(file.metadata.row_group(group), names)
            for batch in file.iter_batches(size, row_groups=[group], columns=names):
                yield from _batch_rows(path, number, batch, is_whole=bool(fields))
                number += batch.num_rows


def _batch_rows(path: Path, before: int, batch: Any, *, is_whole: bool) -> Iterator[Row]:
    """The rows of a batch, `before` which there are so many: unpacked at once if that is possible."""
    values = None
    if batch.nbytes <= MOST_OF_A_ROW:
        with suppress(Exception):  # which row it is shows when they are unpacked one by one
            values = batch.to_pylist()
    for i in range(batch.num_rows):
        number = before + i + 1
        place = f"{path}:row {number}"
        yield Row(place, number, values[i]) if values else _table_row(place, number, batch.slice(i, 1), is_whole)


def _batch_size(group: Any, names: Sequence[str]) -> int:
    """How many rows of a row group to unpack at a time. What it takes unpacked says little of a row's size: one value
    of a dictionary may be that of all rows."""
    columns = [group.column(i) for i in range(group.num_columns)]
    stored = sum(c.total_uncompressed_size for c in columns if c.path_in_schema.partition(".")[0] in names)
    return int(max(1, min(BATCH, MOST_OF_A_BATCH // max(1, stored))))


def _table_row(place: str, number: int, row: Any, is_whole: bool) -> Row:
    """The row of a batch of one. Unless it has to be whole, a column that cannot be read is null in it."""
    if row.nbytes > MOST_OF_A_ROW:
        message = f"{place}: a row of more than {MOST_OF_A_ROW >> 20} MiB; no design is that large, split the record"
        return Row(place, number, problem=DesignError(message, reasons.TOO_LARGE))
    value: dict[str, Any] = {}
    for name, column in zip(row.schema.names, row.columns, strict=True):
        try:
            [value[name]] = column.to_pylist()
        except Exception as error:  # that library lets through what Python's types and time zones raise
            if not is_whole and not isinstance(error, UnicodeDecodeError):
                value[name] = None
                continue
            what, mend = f"a value of type {' '.join(str(column.type).split())[:80]} that cannot be read", "text"
            if isinstance(error, UnicodeDecodeError):
                what, mend = "text that is not UTF-8", "UTF-8"
            message = f"{place}: {ascii(name)[1:-1][:60]} holds {what}; write the file again as {mend}"
            return Row(place, number, problem=DesignError(message, reasons.MALFORMED))
    return Row(place, number, value)


@contextmanager
def _parquet(path: Path) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except (pa.ArrowException, OSError, EOFError) as error:
        raise UserError(f"{path}: not a Parquet file that can be read ({_brief(error)}); get it again") from None


def _json_rows(path: Path) -> Iterator[Row]:
    try:
        with _opened(path) as file:
            head = file.read(4096)
        _refuse_what_is_not_json(path, head)
        if _is_one_document(path, head):
            yield from _document_rows(path)
            return
        with _opened(path) as file:
            for number, line in _lines(file, path):
                row = _parsed(f"{path}:{number}", number, line)
                if row:
                    yield row
    except (OSError, EOFError, zlib.error) as error:
        # a compressed file that was cut off says so only at its end
        raise UserError(f"{path}: cannot be read to its end ({_brief(error)}); get the file again") from None


def _opened(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if compressed else path.open("rb")  # type: ignore[return-value]


def _refuse_what_is_not_json(path: Path, head: bytes) -> None:
    if head.startswith(b"PAR1"):
        raise UserError(f"{path}: this is a Parquet file; give its name the suffix .parquet")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or head[:2] in (b"{\0", b"[\0", b"\0{", b"\0["):
        raise UserError(f"{path}: UTF-16 text; save it as UTF-8")
    if b"\0" in head and not head.lstrip().startswith((b"{", b"[", b"\xef\xbb\xbf")):
        raise UserError(f"{path}: a binary file; a data set is JSON Lines (.jsonl), JSON or Parquet")


def _is_one_document(path: Path, head: bytes) -> bool:
    """Whether a JSON file is one list, or one object over several lines; files of lines are often called .json too."""
    if path.name.endswith(LINES_SUFFIXES):
        return False
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return text.startswith(b"[") or (text.startswith(b"{") and text[1:].lstrip(b" \t\r").startswith(b"\n"))


def _document_rows(path: Path) -> Iterator[Row]:
    with _opened(path) as file:
        content = file.read(MOST_OF_A_FILE + 1)
    if len(content) > MOST_OF_A_FILE:
        raise UserError(f"{path}: more than {MOST_OF_A_FILE >> 20} MiB in one JSON document; write JSON Lines (.jsonl)")
    try:
        found = _load(content)
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
    for i, value in enumerate(found if isinstance(found, list) else [found]):
        place = f"{path}[{i}]" if isinstance(found, list) else str(path)
        yield _as_row(place, i + 1, value)


def _lines(file: IO[bytes], path: Path) -> Iterator[tuple[int, bytes | None]]:
    """Lines with their numbers; None for one that is too long. Nothing longer is ever in memory."""
    number = 0
    while line := file.readline(MOST_OF_A_LINE + 1):
        number += 1
        skipped = len(line)
        if skipped <= MOST_OF_A_LINE:
            yield number, line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(1 << 20)
            skipped += len(line)
            if skipped > MOST_SKIPPED:
                raise UserError(
                    f"{path}:{number}: a line of more than {MOST_SKIPPED >> 20} MiB; JSON Lines have a record a line"
                )
        yield number, None


def _parsed(place: str, number: int, line: bytes | None) -> Row | None:
    """The row of a line of JSON; None for an empty line."""
    if line is None:
        message = f"{place}: a line of more than {MOST_OF_A_LINE >> 20} MiB; no design is that large, split the record"
        return Row(place, number, problem=DesignError(message, reasons.TOO_LARGE))
    if number == 1:
        line = line.removeprefix(b"\xef\xbb\xbf")
    line = line.strip()
    if not line:
        return None
    try:
        return _as_row(place, number, _load(line))
    except ValueError as error:
        return Row(place, number, problem=DesignError(f"{place}: {error}", reasons.MALFORMED))


def _as_row(place: str, number: int, value: Any) -> Row:
    if isinstance(value, dict):
        return Row(place, number, value)
    message = f"{place}: {kind(value)}, not an object with the fields of a record"
    return Row(place, number, problem=DesignError(message, reasons.MALFORMED))


def _load(content: bytes) -> Any:
    """JSON as the standard has it. Raises ValueError, which says what is wrong, where, and how to mend it."""
    try:
        return json.loads(content.decode(), parse_constant=_no_constant, object_pairs_hook=_unique)
    except UnicodeDecodeError as error:
        begin = content.rfind(b"\n", 0, error.start) + 1
        line = content.count(b"\n", 0, begin) + 1
        at = f"byte {error.start - begin + 1}" + (f" of line {line}" if line > 1 else "")
        raise ValueError(f"not UTF-8 text (0x{content[error.start]:02x} at {at}); save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        at = f"column {error.colno}" + (f" of line {error.lineno}" if error.lineno > 1 else "")
        raise ValueError(f"not valid JSON: {error.msg.removesuffix(' at')} at {at}; mend it there") from None
    except RecursionError:
        raise ValueError("not valid JSON: values are nested too deeply; write them flat") from None
    except _Fault as error:
        raise ValueError(str(error)) from None
    except ValueError:  # Python reads no integers of thousands of digits
        raise ValueError("not valid JSON: a number of thousands of digits; write a shorter one") from None


class _Fault(ValueError):
    """What Python's parser takes and JSON does not."""


def _no_constant(name: str) -> NoReturn:
    raise _Fault(f"not valid JSON: {name}; write null")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, number in Counter(name for name, _ in pairs).items() if number > 1)
        raise _Fault(f"the key {ascii(twice)[:60]} occurs twice in one object; keep one")
    return found


def _hub_rows(source: str, wanted: str) -> Iterator[Row]:
    """Rows through the `datasets` library, streamed; code of a data set is never run."""
    name, _, split = wanted.partition("@") if not Path(wanted).exists() else (wanted, "", "")
    name, _, config = name.partition(":") if not Path(name).expanduser().exists() else (name, "", "")
    if not name:
        raise UserError(f"{source}: no name of a data set; write hf:NAME, hf:NAME:CONFIG or hf:NAME@SPLIT")
    number = 0
    try:
        for row in _streamed(source, name, config or None, split or None):
            number += 1
            place = f"{source}:row {number}"
            yield _as_row(place, number, row)
    except (UserError, GeneratorExit):
        raise
    except Exception as error:  # that library lets through whatever its readers and its network raise
        where = f" after row {number}" if number else ""
        mend = "check its name and the network, or download its files and name them or their folder"
        if Path(name).expanduser().exists():
            mend = "mend it, or name a file of it"
        raise UserError(f"{source}: the data set cannot be read{where} ({_brief(error)}); {mend}") from None


def _streamed(source: str, name: str, config: str | None, split: str | None) -> Iterator[Any]:
    import datasets

    datasets.disable_progress_bars()
    for library in ("datasets", "huggingface_hub"):  # what they would print is in the error, or nobody's business
        logging.getLogger(library).setLevel(logging.CRITICAL)
    folder = Path(name).expanduser()
    if folder.is_dir() and any((folder / f).is_file() for f in _SAVED) and any(folder.rglob("*.arrow")):
        found = datasets.load_from_disk(str(folder))
        return iter(found if isinstance(found, datasets.Dataset) else _split(source, found, split))
    path = str(folder) if folder.is_dir() else name
    if split:
        return iter(datasets.load_dataset(path, config, split=split, streaming=True))
    return iter(_split(source, datasets.load_dataset(path, config, streaming=True), None))


def _split(source: str, found: Mapping[str, Any], split: str | None) -> Any:
    if split in found:
        return found[split]
    if split is None and len(found) == 1:
        return next(iter(found.values()))
    name = source if source.startswith(HUB) else f"{HUB}{source}"
    choices = " or ".join(f"{name.partition('@')[0]}@{s}" for s in found)
    raise UserError(f"{source}: a data set of several parts; name one: {choices}")


def _brief(error: BaseException) -> str:
    words = " ".join(f"{error}".split())
    return (words or type(error).__name__)[:300]
