"""Read a design from a file or a folder."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from sim import reasons
from sim.assembly import (
    HEADER_SUFFIXES,
    MOST_BYTES,
    MOST_FILES,
    SOURCE_SUFFIXES,
    Gathered,
    assemble,
    read_file,
    refuse_missing_rtl,
)
from sim.design import Design, DesignError, Exclusion
from sim.exclusions import EXCLUSIONS_FILE, fits_file, read_exclusions

SPECIFICATION_SUFFIXES = (".md", ".txt")
SETTINGS_FILE = "design.toml"
OTHER_SUFFIXES = (".vhd", ".vhdl")
"""Hardware in languages that are not read: they say why a folder is no design, or has black boxes."""
DEEPEST = 100
"""Folders in folders below a design's."""
MOST_TEXT_BYTES = 1 << 20
"""Of a text that counts as specification when design.toml names none; logs are larger."""

_KEYS: dict[str, type | tuple[type, ...]] = {
    "name": str, "top": str, "split": str, "sources": list, "include_dirs": list, "defines": (dict, list),
    "parameters": dict, "clock": str, "reset": str, "targets": dict, "spec": str, "exclude": list,
    "instance": str,
}  # fmt: skip

_KINDS: dict[type, str] = {str: "text in quotation marks", list: "a list", dict: "a table"}
_TOML_PLACE = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)")


def load_design(
    path: Path,
    *,
    name: str | None = None,
    top: str | None = None,
    defines: Mapping[str, str] = {},
    include_dirs: Sequence[Path] = (),
    parameters: Mapping[str, str] = {},
) -> Design:
    """Read the design at `path`: an RTL file, or a folder that is searched recursively.

    In a folder every folder that holds a header is an include folder, `*.md` and `*.txt` are the specification, and
    an optional `design.toml` may give `name, top, split, sources, include_dirs, defines, parameters, clock, reset,
    targets, spec, exclude, instance`; exclusions may also stand in `exclusions.toml` (see sim/exclusions.py). Of those
    beside a single file the ones count that may concern it. Arguments win over `design.toml`. For compile order, top
    and what is refused see `sim.assembly.assemble`.

    Raises DesignError, one line that names file, line and mend: nothing at `path`, no RTL there, RTL that does not
    parse, a module that nobody defines, no top or several, a design.toml that cannot be understood.
    """
    found = gather(Path(path))
    return assemble(found, name=name, top=top, defines=defines, include_dirs=include_dirs, parameters=parameters)


def gather(path: Path) -> Gathered:
    """The files of the design at `path` and what its settings say; nothing is compiled. Raises DesignError."""
    if not path.exists():
        raise DesignError(
            f"{path}: no such file or folder; name an RTL file (*.v, *.sv) or a folder with RTL", reasons.UNREADABLE
        )
    return _gather_file(path) if path.is_file() else _gather_folder(path)


def _gather_file(path: Path) -> Gathered:
    if path.suffix not in SOURCE_SUFFIXES:
        if path.suffix.lower() in OTHER_SUFFIXES:
            refuse_missing_rtl(str(path), [path.name])
        raise DesignError(f"{path}: not RTL; name a *.v or *.sv file, or the folder that holds the design",
                          reasons.NO_RTL)  # fmt: skip
    _refuse_size(path, [path])
    found = Gathered(str(path), path.resolve().stem, path.parent, [read_file(path, path.parent)])
    for suffix in SPECIFICATION_SUFFIXES:
        if path.with_suffix(suffix).is_file():
            found.specification = read_file(path.with_suffix(suffix), path.parent).text
            break
    waivers = _waivers(path.parent / EXCLUSIONS_FILE)
    found.exclusions = tuple(e for e in waivers if any(fits_file(e, f.path) for f in found.sources))
    return found


def _gather_folder(path: Path) -> Gathered:
    files = _files(path)
    found = Gathered(str(path), path.resolve().name, path)
    settings_text = _text(path / SETTINGS_FILE)
    settings = _settings(path, settings_text)
    headers = [p for p in files if p.suffix in HEADER_SUFFIXES]
    sources = [p for p in files if p.suffix in SOURCE_SUFFIXES]
    found.others = [p.relative_to(path).as_posix() for p in files if p.suffix.lower() in OTHER_SUFFIXES]
    if "sources" in settings:
        sources = _listed(path, settings["sources"], _at(path, settings_text, "sources"))
    if not sources:
        refuse_missing_rtl(str(path), found.others)
    texts = [p for p in files if p.suffix in SPECIFICATION_SUFFIXES and p.stat().st_size <= MOST_TEXT_BYTES]
    _refuse_links_out(path, [*sources, *headers, *texts])
    _refuse_size(path, [*sources, *headers])
    found.sources = [read_file(p, path) for p in sources]
    found.includes = [read_file(p, path) for p in headers if p not in sources]
    found.include_dirs = sorted({p.parent.relative_to(path).as_posix() for p in headers})
    for folder in settings.get("include_dirs", ()):
        if not isinstance(folder, str) or not _is_inside(folder) or not _is_folder(path / folder):
            raise DesignError(
                f"{_at(path, settings_text, 'include_dirs')}: include_dirs names {folder!r}, which is not a folder in "
                "there; name folders below the design's, others with --include", reasons.MALFORMED,
            )  # fmt: skip
        found.include_dirs.append(PurePosixPath(folder).as_posix())
    defines = settings.get("defines", {})
    pairs = defines.items() if isinstance(defines, dict) else (str(d).partition("=")[::2] for d in defines)
    found.defines = {str(key): _value(value) for key, value in pairs}
    found.parameters = {str(key): _value(value) for key, value in settings.get("parameters", {}).items()}
    found.name, found.top = settings.get("name"), settings.get("top")
    found.clock, found.reset = settings.get("clock"), settings.get("reset")
    found.instance = settings.get("instance", "")
    found.targets = tuple(sorted((str(k), float(v)) for k, v in settings.get("targets", {}).items()))
    found.exclusions = read_exclusions(settings.get("exclude", []), path / SETTINGS_FILE, settings_text)
    found.exclusions += _waivers(path / EXCLUSIONS_FILE)
    if "spec" in settings:
        spec = path / settings["spec"]
        if not _is_inside(settings["spec"]) or not spec.is_file():
            raise DesignError(f"{_at(path, settings_text, 'spec')}: spec names {settings['spec']!r}, which is not a "
                              "file in there; name a text below the design's folder", reasons.MALFORMED)  # fmt: skip
        _refuse_links_out(path, [spec])
        found.specification = read_file(spec, path).text
    else:
        found.specification = "\n\n".join(read_file(p, path).text.strip() for p in texts)
    return found


def _files(path: Path) -> list[Path]:
    """Ordinary files below a folder that are not hidden, sorted; links to folders are not followed."""
    found: list[Path] = []
    waiting, seen = [path], 0
    while waiting:
        folder = waiting.pop()
        if len(folder.parts) - len(path.parts) > DEEPEST:
            raise DesignError(f"{path}: more than {DEEPEST} folders in folders; name the folder of the design itself",
                              reasons.TOO_LARGE)  # fmt: skip
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    seen += 1
                    if seen > 20 * MOST_FILES:
                        raise DesignError(
                            f"{path}: more than {20 * MOST_FILES:,} files and folders; name the folder of the design "
                            "itself", reasons.TOO_LARGE,
                        )  # fmt: skip
                    if entry.name.startswith("."):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(folder / entry.name)
                    elif _is_file(entry):
                        found.append(folder / entry.name)
        except OSError as error:
            raise DesignError(f"{folder}: cannot be read ({error.strerror}); check its permissions",
                              reasons.UNREADABLE) from None  # fmt: skip
    return sorted(found)


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether there is an ordinary file. Raises DesignError for RTL that is a link to nothing."""
    try:
        if entry.is_file():
            return True
        nothing = entry.is_symlink() and not os.path.exists(entry.path)
    except OSError:  # a loop of links
        nothing = True
    if nothing and entry.name.endswith((*SOURCE_SUFFIXES, *HEADER_SUFFIXES)):
        raise DesignError(f"{entry.path}: a link that leads to nothing; remove it, or put the file there",
                          reasons.UNREADABLE)  # fmt: skip
    return False


def _refuse_links_out(path: Path, files: Sequence[Path]) -> None:
    """A design is its own files: a link could bring in any file of this machine."""
    root = path.resolve()
    for file in files:
        if file.is_symlink() and not file.resolve().is_relative_to(root):
            raise DesignError(f"{file}: a link that leads out of the folder; put a copy of the file there",
                              reasons.UNREADABLE)  # fmt: skip


def _refuse_size(path: Path, files: Sequence[Path]) -> None:
    """Before anything is read: a folder may hold more than fits into memory."""
    size = sum(p.stat().st_size for p in files)
    if size > MOST_BYTES or len(files) > MOST_FILES:
        raise DesignError(
            f"{path}: {len(files):,} files, {size >> 20} MiB of RTL; a design has at most {MOST_FILES:,} files and "
            f"{MOST_BYTES >> 20} MiB: name a folder with less in it, or list the sources in {SETTINGS_FILE}",
            reasons.TOO_LARGE,
        )


def _is_inside(pattern: str) -> bool:
    """Whether a path or glob of design.toml stays below the design's folder and can be one at all."""
    named = PurePosixPath(pattern)
    return bool(named.parts) and not named.is_absolute() and ".." not in named.parts and "\0" not in pattern


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _value(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _text(path: Path) -> str:
    """The text of a settings file; empty when there is none. Raises DesignError for what is no ordinary file."""
    if not os.path.lexists(path):
        return ""
    if not path.is_file():
        raise DesignError(f"{path}: not an ordinary file; put one there, or remove it", reasons.UNREADABLE)
    content = read_file(path, path.parent).content
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DesignError(f"{path}: not UTF-8 text (byte {error.start}); save it as UTF-8",
                          reasons.UNREADABLE) from None  # fmt: skip


def _toml(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise DesignError(f"{path}: values are nested too deeply; write them flat", reasons.MALFORMED) from None
    except ValueError as error:  # also for integers of thousands of digits
        match = _TOML_PLACE.search(str(error))
        said = _TOML_PLACE.sub("", str(error))
        line = f":{match[1]}" if match and match[1] else f":{text.rstrip().count(chr(10)) + 1}" if match else ""
        raise DesignError(f"{path}{line}: not valid TOML: {said}; mend it there", reasons.MALFORMED) from None


def _at(path: Path, text: str, key: str) -> str:
    """The settings file of the folder `path`, with the line of a key of it where that can be told."""
    match = re.search(rf"^[ \t]*(?:\[?\[?[ \t]*)?[\"']?{re.escape(key)}[\"']?[ \t]*[=\].]", text, re.MULTILINE)
    line = f":{text.count(chr(10), 0, match.end()) + 1}" if match else ""
    return f"{path / SETTINGS_FILE}{line}"


def _waivers(path: Path) -> tuple[Exclusion, ...]:
    """The exclusions of a file of their own; none when there is no such file."""
    text = _text(path)
    tables = _toml(path, text)
    if tables.keys() - {"exclude"}:
        raise DesignError(f"{path}: unknown key {min(tables.keys() - {'exclude'})!r}; write [[exclude]] tables only")
    return read_exclusions(tables.get("exclude", []), path, text)


def _settings(path: Path, text: str) -> dict[str, Any]:
    """The checked content of the design.toml in the folder `path`."""
    settings = _toml(path / SETTINGS_FILE, text)
    for key, value in settings.items():
        if key not in _KEYS:
            raise DesignError(f"{_at(path, text, key)}: unknown key {key!r}; known: {', '.join(_KEYS)}",
                              reasons.MALFORMED)  # fmt: skip
        if not isinstance(value, _KEYS[key]):
            wanted = " or ".join(name for kind, name in _KINDS.items() if issubclass(kind, _KEYS[key]))
            raise DesignError(f"{_at(path, text, key)}: {key} has the wrong type ({type(value).__name__}); it is "
                              f"{wanted}", reasons.MALFORMED)  # fmt: skip
    for key, value in settings.get("targets", {}).items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise DesignError(f"{_at(path, text, key)}: targets.{key} must be a number between 0 and 1",
                              reasons.MALFORMED)  # fmt: skip
    return settings


def _listed(path: Path, patterns: Sequence[Any], where: str) -> list[Path]:
    listed: dict[Path, None] = {}
    for pattern in patterns:
        if not isinstance(pattern, str) or not _is_inside(pattern):
            raise DesignError(f"{where}: sources names {pattern!r}; name files below the design's folder",
                              reasons.MALFORMED)  # fmt: skip
        try:
            matches = sorted(p for p in path.glob(pattern) if p.is_file())
        except (OSError, ValueError, NotImplementedError, RecursionError) as error:
            raise DesignError(f"{where}: sources names {pattern!r}, which is no pattern of paths ({error}); write "
                              "names with * and ?", reasons.MALFORMED) from None  # fmt: skip
        if not matches:
            raise DesignError(f"{where}: sources names {pattern!r}, but no such file is there; mend the name, or take "
                              "it out", reasons.MALFORMED)  # fmt: skip
        listed.update(dict.fromkeys(matches))
    return list(listed)
