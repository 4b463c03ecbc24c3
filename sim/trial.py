"""A first reading of RTL that could break its parser, in a process of its own.

The parser (pyslang) is C++: some hundred thousand characters of nesting overflow its stack, and macros or includes that
double themselves never end. It also opens whatever a macro makes a source include, and a device or a FIFO never ends
either. Files that look as if they could do that are read in a child with limits first. Ordinary files do not pay for
it.
"""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sim import reasons
from sim.design import DesignError, SourceFile
from sim.inclusion import doubtful

CPU_S = 20
"""Seconds of CPU for the reading; picorv32 takes 0.1."""
WALL_S = 120.0
INCLUDE_WALL_S = 30.0
"""Of files that may include what is not theirs: waiting for a FIFO costs no CPU."""
MEMORY_BYTES = 2 << 30

_LONG_STATEMENT = 20_000  # characters; the parser dies of sums from 100,000 on
_DEEP = 1_000  # blocks in blocks; it dies from 15,000 on
_REFUSED = 3  # exit code of a child that raised DesignError
_FOREIGN = 4  # that raised ForeignInclude, whose message it wrote
_BLOCK = re.compile(rb"\b(?:begin|end)\b")
_GROWING_MACRO = re.compile(rb"`define[ \t]+\w+(?:\(|(?:[^\n\\]|\\.|\\\r?\n)*`(?:[^\n\\]|\\.|\\\r?\n)*`)")
_CHILD = """
import pickle, resource, sys
sys.path[:0] = {path!r}
resource.setrlimit(resource.RLIMIT_CPU, ({cpu}, {cpu}))
resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
from sim.assembly import ForeignInclude, assemble
from sim.design import DesignError
found, options = pickle.load(sys.stdin.buffer)
try:
    assemble(found, survived=True, **options)
except ForeignInclude as error:
    sys.stdout.buffer.write(str(error).encode("utf-8", "replace"))
    sys.stdout.flush()
    sys.exit({foreign})
except DesignError:
    sys.exit({refused})
"""


def is_suspicious(files: Sequence[SourceFile], include_dirs: Iterable[str] = (), values: Iterable[str] = ()) -> bool:
    """Whether reading these files could take the parser down, or lead it to others. Most that are suspicious are
    harmless. `values` are those of macros and parameters, which are read as Verilog, too."""
    if any("`" in value for value in values) or doubtful(files, include_dirs):
        return True
    nested_includes = 0
    for file in files:
        text = file.content
        includes = text.count(b"`include")
        nested_includes += includes if includes > 1 or not file.path.endswith((".v", ".sv")) else 0
        if nested_includes > 1 or _GROWING_MACRO.search(text) or _is_deep(text):
            return True
    return False


def _is_deep(text: bytes) -> bool:
    if len(text) > _LONG_STATEMENT and max(map(len, text.split(b";"))) > _LONG_STATEMENT:
        return True
    depth = deepest = 0
    if text.count(b"begin") > _DEEP:
        for match in _BLOCK.finditer(text):
            depth += 1 if match[0] == b"begin" else -1
            deepest = max(deepest, depth)
    return deepest > _DEEP


def refuse_what_breaks_the_parser(place: str, found: Any, options: Mapping[str, Any]) -> None:
    """Assemble what was `found` (see `sim.assembly.assemble`, which takes the options) in a child. Raises DesignError
    when that ends in a crash, at a limit, or with a file included that lies outside the design; a child that refuses
    the design for something else says nothing, as its parent will refuse it too."""
    root = str(Path(__file__).resolve().parent.parent)
    code = _CHILD.format(path=[root], cpu=CPU_S, memory=MEMORY_BYTES, refused=_REFUSED, foreign=_FOREIGN)
    command = [sys.executable, "-c", code]
    doubt = doubtful([*found.sources, *found.includes], found.include_dirs)
    written = b""
    try:
        request = pickle.dumps((found, dict(options)))
        done = subprocess.run(command, input=request, capture_output=True, check=False,
                              timeout=INCLUDE_WALL_S if doubt else WALL_S)  # fmt: skip
        code_of_end, written = done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        code_of_end = 1
    if code_of_end == _FOREIGN:
        raise DesignError(written.decode())
    if code_of_end not in (0, _REFUSED):
        if doubt:
            place = f"{found.at(doubt.file)}:{doubt.line}"
        raise DesignError(
            f"{place}: reading it takes the parser more than {CPU_S} s, {MEMORY_BYTES >> 30} GiB or all of its stack; "
            "break up long expressions, deeply nested blocks, and macros or includes that expand to more of themselves"
            + ("; include ordinary files of the design alone" if doubt else ""),
            reasons.TOO_LARGE,
        )
