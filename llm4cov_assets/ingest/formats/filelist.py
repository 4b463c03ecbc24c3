"""Verilog file lists (`.f`), as simulators and synthesis tools take them with -f.

    // rtl of the core          # this is a comment too, and /* this */
    +incdir+inc+$(IP)/inc       -I DIR, -incdir DIR and --include-directory DIR mean the same
    +define+WIDTH=8+FAST        -D NAME=VALUE and -define NAME=VALUE too
    -f common.f                 another list; -F too, see below
    rtl/fifo.sv \\
    "rtl/with space.sv"         $VAR, ${VAR} and $(VAR) are variables of the environment
    -v cells.v                  a file that is used if it defines a module that is missing otherwise
    -y lib +libext+.v+.sv       a folder with a file for each such module, named like it
    -top core -GDEPTH=4         top module and its parameters; --top-module, -pvalue+DEPTH=4 too

Relative paths are looked for below the folder of the list they stand in, then below the folder of the first list, then
below the current folder: lists written for a tool's working directory and lists that travel with their files both
work. In lists read with -F they are relative to the list's own folder alone. One list is one design, called like the
file; the order of the files is kept. Switches that do not concern a design (`-sverilog`, `-timescale=1ns/1ps`,
`+lint=all`) are passed over.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest.archives import unpacked_root
from llm4cov_assets.ingest.candidates import Candidate
from llm4cov_assets.ingest.formats.libraries import Libraries, add_library_modules
from llm4cov_assets.ingest.formats.listed import (
    LIST_SUFFIXES,
    NOT_RTL_SUFFIXES,
    Kind,
    Listed,
    canonical,
    gathered,
    is_below,
    kind,
    read_text,
)
from sim import reasons
from sim.assembly import MOST_FILES, Gathered
from sim.design import DesignError
from sim.load import SPECIFICATION_SUFFIXES

MOST_BYTES = 16 << 20
"""Of one list; 100,000 lines take 5 MiB."""
MOST_LISTS = 1_000
MOST_WORDS = 40 * MOST_FILES
"""Of a list and the lists in it, each folder of +incdir+A+B and the like counted."""
DEEPEST = 64
"""Lists in lists."""

INCLUDE_SWITCHES = {"-I", "-incdir", "--incdir", "--include-directory", "--isystem", "-isystem"}
DEFINE_SWITCHES = {"-D", "-define", "--define", "-d"}
TOP_SWITCHES = {"-top", "--top", "-top-module", "--top-module", "-topmodule"}
PARAMETER_SWITCHES = {"-G", "-pvalue", "-defparam"}
SWITCHES_WITH_VALUE = {
    "-timescale", "--timescale", "-override_timescale", "--timescale-override", "-work", "-lib", "-L", "-Lf", "-l",
    "-logfile", "-o", "--Mdir", "-Mdir", "--prefix", "-CFLAGS", "-LDFLAGS", "-cflags", "-ldflags", "-j", "--threads",
    "-U", "-makelib", "-nclibdirname", "-cdslib", "-hdlvar", "-access", "-xmlibdirname", "-seed", "-svseed", "-P",
    "-language", "--language", "--std", "-std", "-libmap", "--libmap", "-suppress", "-warn", "-error", "-modelsimini",
    "-ntb_opts", "-assert", "-cm", "-cm_dir", "-cm_name", "-uvmhome", "-input", "-snapshot", "-reflib",
    "--x-assign", "--x-initial", "--output-split", "--trace-depth", "-xlrm", "-pa_upf",
}  # fmt: skip
"""Switches of tools whose value is the word after them, and that do not change what a design is."""

_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\}|\((\w+)\))")
_LITERAL_DOLLAR = "\ue000"  # private use: \$ until variables are expanded
_BREAKS = re.compile(r"[\s\"'\\]")


def candidates(source: str, format: str) -> Iterator[Candidate]:
    """The design of the list at `source`; of a folder, one for each list at its top that no other one there reads."""
    for path in _lists(source):
        yield Candidate(path.stem, str(path), partial(gather, path))


def count(source: str, format: str) -> int | None:
    """How many there are."""
    return len(_lists(source))


def _lists(source: str) -> list[Path]:
    path = Path(source).expanduser()
    if kind(path) == "file":
        return [path]
    if kind(path) != "folder":
        raise UserError(f"{source}: no such file or folder; name a file list (*.f)")
    try:
        found = sorted(
            p for p in path.iterdir() if p.suffix in LIST_SUFFIXES and not p.name.startswith(".") and p.is_file()
        )
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None
    if not found:
        raise UserError(f"{path}: no file list (*.f) in there; name the list itself")
    inner = {name for p in found for name in _lists_read_by(p)}
    return [p for p in found if p.name not in inner] or found


def _lists_read_by(path: Path) -> set[str]:
    """Names of the lists that a list reads, as far as it can be read."""
    try:
        words = [word.text for word in _words(path, read_text(path, MOST_BYTES))]
    except DesignError:
        return set()
    return {Path(after).name for word, after in pairwise(words) if word in ("-f", "-F")}


def gather(path: Path) -> Gathered:
    """The files that the list at `path` names and what it says of them. Raises DesignError."""
    confined_to = unpacked_root(path)
    reader = _Reader(path, confined_to)
    reader.read(path)
    listed = reader.listed
    if not listed.sources and not listed.others and not reader.libraries.files:
        raise DesignError(f"{path}: the list names no files; add the RTL files, one a line", reasons.NO_RTL)
    if not reader.libraries:
        found = gathered(str(path), path.stem, listed, confined_to)
    else:
        found = add_library_modules(str(path), path.stem, listed, reader.libraries, confined_to)
    for suffix in SPECIFICATION_SUFFIXES:
        if kind(path.with_suffix(suffix)) == "file":
            found.specification = read_text(path.with_suffix(suffix), MOST_BYTES)
            break
    return found


@dataclass(frozen=True)
class _Word:
    """A word of a list, variables expanded, with the line that it begins in."""

    text: str
    line: int


class _Reader:
    """Reads a list and the lists in it into `listed` and `libraries`; `ignored` are the switches passed over."""

    def __init__(self, first: Path, confined_to: Path | None) -> None:
        self.listed = Listed()
        self.libraries = Libraries()
        self.ignored: list[str] = []
        self._first = first
        self._confined_to = confined_to
        self._open: list[Path] = []
        self._lists = 0
        self._n_words = 0
        self._named: set[tuple[str, tuple[Path, ...]]] = set()
        self._known: set[Path] = set()
        self._missing: list[tuple[str, str]] = []
        self._tops: dict[str, str] = {}

    def read(self, path: Path) -> None:
        """Read the first list. Raises DesignError."""
        self._read_list(path, str(path), own_folder_only=False)
        if self._missing:
            where, what = self._missing[0]
            more = f" (and {len(self._missing) - 1:,} more are missing)" if len(self._missing) > 1 else ""
            raise DesignError(f"{where}: {what}{more}", reasons.UNREADABLE)

    def _read_list(self, path: Path, where: str, own_folder_only: bool) -> None:
        real = path.resolve()
        if real in self._open:
            chain = " reads ".join(p.name for p in [*self._open[self._open.index(real) :], real])
            raise DesignError(f"{where}: the list reads itself ({chain}); take one -f out", reasons.MALFORMED)
        if len(self._open) >= DEEPEST:
            raise DesignError(f"{where}: more than {DEEPEST} lists in lists; write fewer levels", reasons.TOO_LARGE)
        self._lists += 1
        if self._lists > MOST_LISTS:
            raise DesignError(f"{where}: more than {MOST_LISTS:,} lists are read; name each list once",
                              reasons.TOO_LARGE)  # fmt: skip
        self._open.append(real)
        folders = [path.parent]
        if not own_folder_only:
            folders += [self._first.parent, *([] if self._confined_to else [Path()])]
        self._read_words(path, _words(path, read_text(path, MOST_BYTES)), folders)
        self._open.pop()

    def _read_words(self, path: Path, words: Iterator[_Word], bases: Sequence[Path]) -> None:
        folders = tuple(bases)
        for word in words:
            where = f"{path}:{word.line}"
            switch = word.text
            self._n_words += 1 + (switch.count("+") if switch[:1] == "+" else 0)
            if self._n_words > MOST_WORDS:
                raise DesignError(f"{where}: more than {MOST_WORDS:,} words, which no list of a design has; list each "
                                  "file and folder once", reasons.TOO_LARGE)  # fmt: skip
            if switch[:1] not in "-+" or switch in ("-", "+"):
                if (switch, folders) not in self._named:  # looking for a file takes far longer than this
                    self._named.add((switch, folders))
                    self._file(switch, where, bases)
                continue
            switch, value = self._split(switch)
            if value is None and (switch in ("-f", "-F", "-file", "-v", "-y") or switch in _TAKES_VALUE):
                following = next(words, None)
                if following is None:
                    raise DesignError(f"{where}: {switch} is the last word; write its value after it",
                                      reasons.MALFORMED)  # fmt: skip
                value = following.text
            self._switch(switch, value or "", where, bases)

    def _split(self, word: str) -> tuple[str, str | None]:
        """A switch and its value where both are one word."""
        if word.startswith("+"):
            name, _, value = word[1:].partition("+")
            return f"+{name}", value
        name, equals, value = word.partition("=")
        if equals and name in _TAKES_VALUE:
            return name, value
        plus, _, value = word.partition("+")
        if plus in PARAMETER_SWITCHES and value:
            return plus, value
        if word[:2] in ("-I", "-D", "-G") and len(word) > 2:
            return word[:2], word[2:]
        return word, None

    def _switch(self, switch: str, value: str, where: str, bases: Sequence[Path]) -> None:
        if switch in ("-f", "-F", "-file"):
            path = self._found(value, where, bases, "file")
            if path:
                self._read_list(path, where, own_folder_only=switch == "-F")
        elif switch == "+incdir" or switch in INCLUDE_SWITCHES:
            for name in value.split("+") if switch == "+incdir" else [value]:
                self._folder(name, where, bases, self.listed.include_dirs)
        elif switch == "+define" or switch in DEFINE_SWITCHES:
            for text in value.split("+") if switch == "+define" else [value]:
                self._define(text, where)
        elif switch == "-y":
            self._folder(value, where, bases, self.libraries.folders)
        elif switch == "-v":
            if path := self._found(value, where, bases, "file"):
                self.libraries.files.append(path)
        elif switch == "+libext":
            self.libraries.suffixes += [s for s in value.split("+") if s and s not in self.libraries.suffixes]
        elif switch in TOP_SWITCHES:
            self._top(value, where)
        elif switch in PARAMETER_SWITCHES:
            self._parameter(value, where)
        else:
            self.ignored.append(f"{where}: {switch}")

    def _file(self, name: str, where: str, bases: Sequence[Path]) -> None:
        path = self._found(name, where, bases, "file")
        if path is None or path in self._known:
            return
        if path.suffix in LIST_SUFFIXES:
            raise DesignError(f"{where}: {name!r} is a file list; write -f before it", reasons.MALFORMED)
        self._known.add(path)
        is_other = path.suffix.lower() in NOT_RTL_SUFFIXES
        (self.listed.others if is_other else self.listed.sources).append(path)
        if len(self.listed.sources) > MOST_FILES:
            raise DesignError(f"{where}: more than {MOST_FILES:,} files, which no design has; list fewer",
                              reasons.TOO_LARGE)  # fmt: skip

    def _found(self, name: str, where: str, bases: Sequence[Path], wanted: Kind) -> Path | None:
        """The file or folder that a list means by `name`; None, and noted as missing, when there is none."""
        kinds: list[tuple[Path, Kind]] = []
        for path in (base / name for base in bases):
            kinds.append((path, kind(path)))
            if kinds[-1][1] and not is_below(path, self._confined_to):
                raise DesignError(f"{where}: {name!r} leads out of the archive; put the file into it",
                                  reasons.UNSAFE_ARCHIVE)  # fmt: skip
            if kinds[-1][1] == wanted:
                return canonical(path)
        for path, is_kind in kinds:
            if is_kind == "folder":
                raise DesignError(f"{where}: {name!r} is a folder; list its files, or write -y before it if it is a "
                                  "library", reasons.MALFORMED)  # fmt: skip
            if is_kind == "other":
                raise DesignError(f"{where}: {name!r} is no ordinary file; list RTL files", reasons.UNREADABLE)
            if is_kind == "unreadable":
                raise DesignError(f"{where}: {path} cannot be read (Permission denied); check the permissions of its "
                                  "folder", reasons.UNREADABLE)  # fmt: skip
        if any(c in name for c in "*?["):
            mend = "wildcards are not expanded here; list the files"
        elif "\\" in name:
            mend = "write paths with /"
        elif self.ignored and self.ignored[-1].rpartition(":")[0] == where:
            mend = f"if it is the value of {self.ignored[-1].rpartition(' ')[2]}, leave both out"
        else:
            mend = f"it is looked for below {' and '.join(dict.fromkeys(str(b.absolute()) for b in bases))}"
        self._missing.append((where, f"there is no {wanted} {name[:200]!r}; {mend}"))
        return None

    def _folder(self, name: str, where: str, bases: Sequence[Path], into: list[Path]) -> None:
        """Add a folder; tools pass over those that do not exist, and lists are full of them."""
        if not name:
            return
        for base in bases:
            if kind(base / name) == "folder":
                if not is_below(base / name, self._confined_to):
                    raise DesignError(f"{where}: {name!r} leads out of the archive; put the folder into it",
                                      reasons.UNSAFE_ARCHIVE)  # fmt: skip
                path = (base / name).resolve()
                if path not in into:
                    into.append(path)
                return
        self.ignored.append(f"{where}: {name}")

    def _define(self, text: str, where: str) -> None:
        if not text:
            return
        name, _, value = text.partition("=")
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise DesignError(f"{where}: {name[:80]!r} is no name for a macro; write +define+NAME=VALUE",
                              reasons.MALFORMED)  # fmt: skip
        self.listed.defines[name] = value

    def _parameter(self, text: str, where: str) -> None:
        name, equals, value = text.partition("=")
        name = name.strip().rpartition(".")[2].rpartition("/")[2]
        if not equals or not value or not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise DesignError(f"{where}: {text[:80]!r} sets no parameter; write -GNAME=VALUE", reasons.MALFORMED)
        self.listed.parameters[name] = value

    def _top(self, name: str, where: str) -> None:
        name = name.rpartition(".")[2]
        if name == "glbl":  # FPGA vendors' global reset, listed beside the design
            return
        if self.listed.top not in (None, name):
            raise DesignError(f"{where}: a second top, {name!r} beside {self.listed.top!r}; keep one",
                              reasons.SEVERAL_TOPS)  # fmt: skip
        self.listed.top = name


_TAKES_VALUE = {
    *INCLUDE_SWITCHES, *DEFINE_SWITCHES, *TOP_SWITCHES, *PARAMETER_SWITCHES, *SWITCHES_WITH_VALUE,
}  # fmt: skip


def _words(path: Path, text: str) -> Iterator[_Word]:
    """The words of a list, comments left out. Raises DesignError for a quotation mark or comment without its end, and
    for a variable that the environment does not have."""
    position, line, length = 0, 1, len(text)
    while position < length:
        character = text[position]
        if character.isspace():
            line += character == "\n"
            position += 1
        elif text.startswith("//", position) or character == "#":
            end = text.find("\n", position)
            position = length if end < 0 else end
        elif text.startswith("/*", position):
            end = text.find("*/", position + 2)
            if end < 0:
                raise DesignError(f"{path}:{line}: the comment has no end; close it with */", reasons.MALFORMED)
            line += text.count("\n", position, end)
            position = end + 2
        elif character == "\\" and re.compile(r"\\[ \t]*\r?\n").match(text, position):
            position = text.index("\n", position)
        else:
            word, position, lines = _word(path, text, position, line)
            yield _Word(_expanded(path, word, line), line)
            line += lines


def _word(path: Path, text: str, position: int, line: int) -> tuple[str, int, int]:
    """The word at `position`, where it ends, and the line ends in it."""
    parts: list[str] = []
    start, length = position, len(text)
    while position < length:
        match = _BREAKS.search(text, position)
        end = match.start() if match else length
        parts.append(text[position:end])
        position = end
        if match is None or text[end].isspace():
            break
        if text[end] == "\\":
            if text[end + 1 : end + 2] in ("\n", "\r"):
                break
            escaped = text[end + 1 : end + 2]
            # elsewhere a backslash is itself, as in paths of Windows, which the message on missing files explains
            parts.append(_LITERAL_DOLLAR if escaped == "$" else escaped if escaped in " \t\"'\\" else f"\\{escaped}")
            position = end + 2
            continue
        close = text.find(text[end], end + 1)
        if close < 0 or "\n" in text[end:close]:
            raise DesignError(f"{path}:{line}: a quotation mark without its end; close it", reasons.MALFORMED)
        parts.append(text[end + 1 : close])
        position = close + 1
    return "".join(parts), position, text.count("\n", start, position)


def _expanded(path: Path, word: str, line: int) -> str:
    def value(match: re.Match[str]) -> str:
        name = next(g for g in match.groups() if g)
        if name not in os.environ:
            raise DesignError(f"{path}:{line}: the environment has no variable {name}; set it, or write the path out",
                              reasons.MALFORMED)  # fmt: skip
        return os.environ[name]

    return _VARIABLE.sub(value, word).replace(_LITERAL_DOLLAR, "$") if "$" in word or _LITERAL_DOLLAR in word else word
