"""Checked reading of the fields of a record: what has the wrong type or cannot be a file makes it no design."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NoReturn

from sim import reasons
from sim.assembly import HEADER_SUFFIXES, SOURCE_SUFFIXES, Gathered, refuse_missing_rtl
from sim.design import DesignError, SourceFile
from sim.load import OTHER_SUFFIXES

MOST_OF_A_NAME = 200
"""Characters of an id, and of a part of a path: file systems take 255 bytes."""

MOST_OF_A_PATH = 1_000
"""Bytes of a path: Linux takes 4,096, of which the folder that designs are kept in needs some."""

_KINDS = {dict: "an object", list: "a list", str: "text", bool: "a boolean", int: "a number", float: "a number",
          bytes: "binary", type(None): "null"}  # fmt: skip


def kind(value: object) -> str:
    """What a value is, as messages say it."""
    return _KINDS.get(type(value), f"a {type(value).__name__}")


def refuse(place: str, what: str, reason: str = reasons.MALFORMED) -> NoReturn:
    """Raise the DesignError of a record."""
    raise DesignError(f"{place}: {what}", reason)


def text(value: object, field: str, place: str) -> str:
    """The text of a field. Raises DesignError when it is none, or holds what no source file may."""
    if not isinstance(value, str):
        refuse(place, f"{field} is {kind(value)}, not text; write it as text")
    if "\0" in value:
        refuse(place, f"{field} holds a NUL character (at {value.index(chr(0))}); remove it")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        refuse(place, f"{field} holds half of a surrogate pair (at {error.start}); write the whole character")
    return value


def optional_text(value: object, field: str, place: str) -> str:
    """The same; empty when the field is missing or null."""
    return "" if value is None else text(value, field, place)


def unpacked(value: object, field: str, place: str) -> Any:
    """A list or object; one that a column of text holds as JSON is read first."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        refuse(place, f"{field} is text that is not JSON; write it as a list or an object")


def listed(value: object, field: str, place: str) -> list[Any]:
    """The list of a field, which may also be JSON text."""
    found = unpacked(value, field, place)
    if not isinstance(found, list):
        refuse(place, f"{field} is {kind(found)}, not a list; write it as a list")
    return found


def mapped(value: object, field: str, place: str) -> dict[str, Any]:
    """The object of a field, which may also be JSON text; empty when it is missing or null."""
    if value is None:
        return {}
    found = unpacked(value, field, place)
    if not isinstance(found, dict):
        refuse(place, f"{field} is {kind(found)}, not an object; write it as an object")
    return found


def identifier(value: object, field: str, place: str) -> str:
    """The name of a module or instance; empty when the field is missing, null or empty."""
    found = optional_text(value, field, place).strip()
    if found and not re.fullmatch(r"[A-Za-z_][\w$]*", found):
        refuse(place, f"{field} is {shortened(found)}, which is no identifier; write the plain name")
    return found


def record_id(value: object, field: str, place: str) -> str | None:
    """The id of a record as a name; None when there is none."""
    if value is None:
        return None
    whole = isinstance(value, int) and not isinstance(value, bool)
    found = str(value) if whole else text(value, field, place).strip()
    if not found:
        return None
    if not found.isprintable():
        refuse(place, f"{field} is {shortened(found)}, which cannot be printed; write it without control characters")
    if len(found) > MOST_OF_A_NAME:
        refuse(place, f"{field} has {len(found):,} characters; write at most {MOST_OF_A_NAME}")
    return found


def named_files(value: object, field: str, place: str) -> dict[str, str]:
    """The files of a list of `{name, content}`, by path."""
    pairs = []
    for i, entry in enumerate(listed(value, field, place)):
        where = f"{field}[{i}]"
        if not isinstance(entry, Mapping):
            refuse(place, f"{where} is {kind(entry)}, not an object with name and content")
        pairs.append(
            (
                file_path(entry.get("name"), f"{where}.name", place),
                text(entry.get("content"), f"{where}.content", place),
            )
        )
    return _once(pairs, field, place)


def mapped_files(value: object, field: str, place: str) -> dict[str, str]:
    """The files of an object `{path: text}`, by path. What is null is not there: tables made of such records have the
    paths of all of them in every row."""
    found = mapped(value, field, place)
    return _once(
        [
            (file_path(path, f"a path of {field}", place), text(content, f"{field}[{shortened(path)}]", place))
            for path, content in found.items()
            if content is not None
        ],
        field,
        place,
    )


def file_path(value: object, field: str, place: str) -> str:
    """A path below the design's root, with forward slashes. Raises DesignError for any other."""
    found = text(value, field, place).replace("\\", "/")
    path = PurePosixPath(found)
    if path.is_absolute() or re.match(r"[A-Za-z]:", found):
        refuse(place, f"{field} is {shortened(found)}, an absolute path; write it relative to the design")
    if ".." in path.parts:
        refuse(place, f"{field} is {shortened(found)}, which leads out of the design; write it without `..`")
    if not path.parts or found.endswith("/"):
        refuse(place, f"{field} is {shortened(found)}, which names no file; write the name of the file")
    if not found.isprintable():
        refuse(place, f"{field} is {shortened(found)}, which cannot be printed; rename the file")
    sizes = [len(part.encode()) for part in path.parts]
    if max(sizes) > MOST_OF_A_NAME or len(sizes) > 50 or sum(sizes) + len(sizes) - 1 > MOST_OF_A_PATH:
        refuse(place, f"{field} is {shortened(found)}, too long for a file system; rename the file")
    return path.as_posix()


def shortened(value: object, most: int = 60) -> str:
    """A value as messages quote it: printable and short."""
    if not isinstance(value, str):
        return ascii(value)[:most] if isinstance(value, int | float) else kind(value)
    cut = value[:most]
    found = repr(cut) if cut.isprintable() else ascii(cut)
    return found if len(value) <= most else f"{found[:-1]}...{found[0]}"


def with_rtl(found: Gathered, files: Mapping[str, str]) -> Gathered:
    """Put the files of a record where they belong: sources, headers with their folders, and what only hints at why
    there is no RTL. Raises DesignError without any source, and for paths that exclude each other."""
    for path, content in files.items():
        suffix = PurePosixPath(path).suffix.lower()
        if suffix in SOURCE_SUFFIXES:
            found.sources.append(SourceFile(path, content.encode()))
        elif suffix in HEADER_SUFFIXES:
            found.includes.append(SourceFile(path, content.encode()))
        elif suffix in OTHER_SUFFIXES:
            found.others.append(path)
    kept = {f.path for f in (*found.sources, *found.includes)}
    for path in kept:
        above = next((str(p) for p in PurePosixPath(path).parents if str(p) in kept), None)
        if above:
            refuse(found.place, f"{shortened(above)} is both a file and the folder of {shortened(path)}; rename one")
    if not found.sources:
        refuse_missing_rtl(found.place, found.others)
    found.include_dirs = sorted({PurePosixPath(f.path).parent.as_posix() for f in found.includes})
    return found


def joined(texts: Iterable[str]) -> str:
    """Parts of a specification as one text."""
    return "\n\n".join(t.strip() for t in texts if t.strip())


def _once(pairs: Sequence[tuple[str, str]], field: str, place: str) -> dict[str, str]:
    files: dict[str, str] = {}
    for path, content in pairs:
        if path in files:
            refuse(place, f"{field} has two files called {shortened(path)}; keep one")
        files[path] = content
    return files
