"""Coverage for other tools: LCOV tracefiles and Verilator's own data files.

A simulation keeps which points were reached, not how often, so counts in both are 0 or 1.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby

from sim.coverage import CoverageData, indices
from sim.simulation import CoveragePoint

_COUNT = re.compile(rb" [0-9]+$")
_INSTANCE = re.compile(rb"\x01h\x02(?=[^\x01]*'$)")


def lcov(points: Sequence[CoveragePoint], hits: bytes, test_name: str = "") -> str:
    """A tracefile as geninfo(1) describes it; `genhtml` reads it in the folder that file names are relative to.

    A line (`DA`) has the points of `line` and `branch` that begin on it, and is reached when one of them is, in any
    instance. Branches (`BRDA`) are the points of `branch`, one block a line; those of a line that was never reached
    have `-` instead of a count. There are no functions. The format has no place for expressions and toggles.
    """
    hit = set(indices(hits))
    lines: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    sides: dict[str, dict[tuple[int, int, str], int]] = defaultdict(lambda: defaultdict(int))
    for i, p in enumerate(points):
        if p.metric in ("line", "branch"):
            lines[p.file][p.line] |= i in hit
        if p.metric == "branch":
            sides[p.file][p.line, p.column, p.what] |= i in hit
    records = (_record(file, lines[file], sides[file], test_name) for file in sorted(lines))
    return "".join(f"{line}\n" for record in records for line in record)


def _record(file: str, lines: dict[int, int], sides: dict[tuple[int, int, str], int], test_name: str) -> Iterator[str]:
    yield f"TN:{re.sub(r'[^A-Za-z0-9_]', '_', test_name)}"
    yield f"SF:{file}"
    for line, on_line in groupby(sorted(sides, key=_line), key=_line):
        for number, key in enumerate(on_line):
            yield f"BRDA:{line},0,{number},{int(sides[key]) if lines[line] else '-'}"
    if sides:
        yield f"BRF:{len(sides)}"
        yield f"BRH:{sum(sides.values())}"
    for line in sorted(lines):
        yield f"DA:{line},{int(lines[line])}"
    yield f"LF:{len(lines)}"
    yield f"LH:{sum(lines.values())}"
    yield "end_of_record"


def _line(key: tuple[int, int, str]) -> int:
    return key[0]


def verilator_data(raw: bytes, data: CoverageData, hits: bytes) -> bytes:
    """A data file that `verilator_coverage` reads, with `hits` as the counts.

    `raw` is the data file of the build and `data` what `parse_coverage` made of it: the points keep Verilator's keys,
    so that the file merges with those of plain Verilator runs with coverage per instance. Points outside the design
    are left out. File names are relative to the folder of the design, where `--annotate` is to be run.
    """
    hit = set(indices(hits))
    out = [b"# SystemC::Coverage-3"]
    rows = iter(data.rows)
    for line in raw.split(b"\n"):
        if not line.startswith(b"C "):
            continue
        number = next(rows)
        if number >= 0:
            key = _COUNT.sub(b"", line)
            # the harness loads the model without the scope that Verilator puts around it
            out.append(_INSTANCE.sub(b"\x01h\x02TOP.", key) + b" %d" % (number in hit))
    return b"\n".join([*out, b""])
