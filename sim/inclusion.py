"""What `include directives name, told from the text alone: a compiler opens a file as soon as it sees the directive,
and a device or a FIFO never ends."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sim.design import SourceFile

_PLAIN = re.compile(rb'`include[ \t]*(?:"([^"`\n]*)"|<([^>`\n]*)>)')
_CODE = re.compile(rb"(?P<include>" + _PLAIN.pattern + rb')|"(?:[^"\\\n]|\\.)*"?|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_BARE_WORD = re.compile(rb"(?<![`\w])include\b")
_FUNCTION_MACRO = re.compile(rb"`define[ \t]+\w+\(")


@dataclass(frozen=True)
class Inclusion:
    """A place in a file (line counted from 1) that includes `named`, which is empty where a macro makes the name."""

    file: str
    line: int
    named: str


def foreign(files: Sequence[SourceFile], include_dirs: Iterable[str]) -> Inclusion | None:
    """The first directive, outside comments and strings, that names an absolute path, or something in the current
    folder, where the compiler looks, that is no ordinary file. What a macro makes is not seen."""
    folders, known = list(include_dirs), {f.path for f in files}
    for file in files:
        if b"`include" not in file.content:
            continue
        for match in _CODE.finditer(file.content):
            if match["include"] is None:
                continue
            named = os.fsdecode(match[2] if match[2] is not None else match[3])
            if os.path.isabs(named) or any(_is_special(p) for p in _stray(file, named, folders, known)):
                return Inclusion(file.path, _line(file, match.start()), named)
    return None


def doubtful(files: Sequence[SourceFile], include_dirs: Iterable[str]) -> Inclusion | None:
    """The first place that may include what is not among the files: a name that none of them has, that something in the
    current folder has too, or that a macro makes. Comments count."""
    folders, known = list(include_dirs), {f.path for f in files}
    for file in files:
        text = file.content
        for found in re.finditer(rb"`include", text):
            match = _PLAIN.match(text, found.start())
            named = os.fsdecode(match[1] if match[1] is not None else match[2]) if match else ""
            inside = any(p in known for p in _candidates(file, named, folders))
            if not inside or any(_stray(file, named, folders, known)):
                return Inclusion(file.path, _line(file, found.start()), named)
        pasted = text.find(b"``")
        bare = _BARE_WORD.search(text) if _FUNCTION_MACRO.search(text) else None
        if pasted >= 0 or bare:
            return Inclusion(file.path, _line(file, bare.start() if bare else pasted), "")
    return None


def _candidates(file: SourceFile, named: str, folders: Sequence[str]) -> Iterator[str]:
    """Where the compiler looks for it, relative to the design's root or else to the current folder."""
    if named and "\0" not in named:
        for folder in (os.path.dirname(file.path), *folders, ""):
            yield os.path.normpath(os.path.join(folder, named))


def _stray(file: SourceFile, named: str, folders: Sequence[str], known: set[str]) -> Iterator[str]:
    return (p for p in _candidates(file, named, folders) if p not in known and os.path.lexists(p))


def _is_special(path: str) -> bool:
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def _line(file: SourceFile, position: int) -> int:
    return file.content.count(b"\n", 0, position) + 1
