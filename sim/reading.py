"""Read a testbench from a file, or a SystemVerilog one from a folder of files, which become one text.

A testbench is one complete text everywhere else: it is hashed, cached, stored and shown as one. Files of a folder are
put one after another, packages first, each under a `` `line`` directive, so that messages name the file and line that
a person knows; `` `include``s of files in the folder are replaced by their text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from sim.assembly import HEADER_SUFFIXES, SOURCE_SUFFIXES, compile_order
from sim.design import SourceFile
from sim.simulation import Language, Testbench

MOST_BYTES = 4 << 20
LANGUAGES: Mapping[str, Language] = {".py": "cocotb", ".sv": "systemverilog", ".v": "systemverilog"}
_INCLUDE = re.compile(rb'^([ \t]*)`include[ \t]+"([^"\r\n]+)"(.*)$', re.MULTILINE)
_DEEPEST = 20


class TestbenchError(Exception):
    """A testbench that cannot be read. The message names the file and the mend."""

    __test__ = False


def read_testbench(path: Path, language: Language | None = None) -> Testbench:
    """Read the testbench at `path`; without `language` the name of the file tells it. Raises TestbenchError."""
    if path.is_dir():
        if language == "cocotb":
            raise TestbenchError(f"{path}: a cocotb testbench is one file; name that")
        return Testbench(_joined(path), "systemverilog")
    chosen = language or LANGUAGES.get(path.suffix)
    if chosen is None:
        raise TestbenchError(f"{path}: cannot tell the language by the name; add --language cocotb or systemverilog")
    return Testbench(_decoded(path, _read(path)), chosen)


def _joined(folder: Path) -> str:
    paths = sorted(p for p in folder.rglob("*") if p.suffix in (*SOURCE_SUFFIXES, *HEADER_SUFFIXES) and p.is_file())
    files = {p.relative_to(folder).as_posix(): _read(p) for p in paths}
    sources = [SourceFile(name, text) for name, text in files.items() if PurePosixPath(name).suffix in SOURCE_SUFFIXES]
    if not sources:
        raise TestbenchError(f"{folder}: no testbench found (*.sv, *.v); name the file or the folder that holds it")
    headers = [SourceFile(name, text) for name, text in files.items() if PurePosixPath(name).suffix in HEADER_SUFFIXES]
    folders = sorted({PurePosixPath(name).parent.as_posix() for name in files})
    ordered = compile_order(sources, headers, folders, {})
    text = b"".join(_marked(folder.name, source.path, files, ()) for source in ordered)
    if len(text) > MOST_BYTES:
        raise TestbenchError(f"{folder}: {len(text)} bytes with all includes; at most {MOST_BYTES} are simulated")
    return _decoded(folder, text)


def _marked(folder: str, name: str, files: Mapping[str, bytes], above: tuple[str, ...]) -> bytes:
    """One file under its name, includes of files in the folder replaced; the others are for the check to refuse."""

    def replace(match: re.Match[bytes]) -> bytes:
        wanted = match[2].decode("utf-8", "replace")
        beside = (PurePosixPath(name).parent / wanted).as_posix()
        found = next((f for f in (beside, wanted) if f in files), None)
        found = found or next((f for f in files if PurePosixPath(f).name == wanted), None)
        if found is None:
            return match[0]
        if found in above or len(above) >= _DEEPEST:
            raise TestbenchError(f"{folder}/{name}: includes {wanted!r} in a circle; include it once")
        line = files[name].count(b"\n", 0, match.start()) + 1
        included = _marked(folder, found, files, (*above, name))
        return included + f'`line {line} "{folder}/{name}" 2\n'.encode() + match[3]

    text = files[name].removeprefix(b"\xef\xbb\xbf").rstrip(b"\n") + b"\n"
    return f'`line 1 "{folder}/{name}" 0\n'.encode() + _INCLUDE.sub(replace, text)


def _decoded(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TestbenchError(f"{path}: not UTF-8 text (byte {error.start}); a testbench is text") from None


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise TestbenchError(f"{path}: {path.stat().st_size} bytes; at most {MOST_BYTES} are simulated")
        return path.read_bytes()
    except OSError as error:
        raise TestbenchError(f"{path}: cannot be read ({error.strerror}); check the file and its permissions") from None
