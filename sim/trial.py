"""A first reading of RTL that could break its parser, in a process of its own.

The parser (pyslang) is C++: some hundred thousand characters of nesting overflow its stack, and macros or includes that
double themselves never end. Files that look as if they could do that are read in a child with limits first. Ordinary
files do not pay for it.
"""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sim import reasons
from sim.design import DesignError, SourceFile

CPU_S = 20
"""Seconds of CPU for the reading; picorv32 takes 0.1."""
WALL_S = 120.0
MEMORY_BYTES = 2 << 30

_LONG_STATEMENT = 20_000  # characters; the parser dies of sums from 100,000 on
_DEEP = 1_000  # blocks in blocks; it dies from 15,000 on
_REFUSED = 3  # exit code of a child that raised DesignError
_BLOCK = re.compile(rb"\b(?:begin|end)\b")
_GROWING_MACRO = re.compile(rb"`define[ \t]+\w+(?:\(|(?:[^\n\\]|\\.|\\\r?\n)*`(?:[^\n\\]|\\.|\\\r?\n)*`)")
_CHILD = """
import pickle, resource, sys
sys.path[:0] = {path!r}
resource.setrlimit(resource.RLIMIT_CPU, ({cpu}, {cpu}))
resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
from sim.assembly import assemble
from sim.design import DesignError
found, options = pickle.load(sys.stdin.buffer)
try:
    assemble(found, survived=True, **options)
except DesignError:
    sys.exit({refused})
"""


def is_suspicious(files: Iterable[SourceFile]) -> bool:
    """Whether reading these files could take the parser down. Most that are suspicious are harmless."""
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
    when that ends in a crash or at a limit; a child that refuses the design says nothing, as its parent will refuse it
    too."""
    root = str(Path(__file__).resolve().parent.parent)
    code = _CHILD.format(path=[root], cpu=CPU_S, memory=MEMORY_BYTES, refused=_REFUSED)
    command = [sys.executable, "-c", code]
    try:
        request = pickle.dumps((found, dict(options)))
        done = subprocess.run(command, input=request, capture_output=True, timeout=WALL_S, check=False)
        code_of_end = done.returncode
    except subprocess.TimeoutExpired:
        code_of_end = 1
    if code_of_end not in (0, _REFUSED):
        raise DesignError(
            f"{place}: reading it takes the parser more than {CPU_S} s, {MEMORY_BYTES >> 30} GiB or all of its stack; "
            "break up long expressions, deeply nested blocks, and macros or includes that expand to more of themselves",
            reasons.TOO_LARGE,
        )
