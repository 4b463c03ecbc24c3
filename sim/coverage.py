"""Coverage data files of Verilator, bitsets over their points, and what they add up to.

The format is that of `include/verilated_cov.cpp`: a line `C '<key>' <count>` per point, where the key is a sequence
of `\\x01name\\x02value`. Values hold no control character, `%` or `"` (they are `%XX`-quoted) but may hold single
quotes. Names: `f` file, `l` line, `n` column, `page` (`v_<kind>/<module>`), `o` comment, `h` instance path,
`S` lines of the block, `Fv` state variable of an FSM point.

What Verilator counts as what: case arms and the arms of an `if` chain with an `elsif` are points of kind `line`, so
they enter the `line` metric here; `branch` holds plain `if`/`else` pairs and the two sides of `?:`. A toggle point is
one edge of one bit (`data[3]:0->1`). Functions of packages have no points. An FSM point names its instance in the
state variable, a cover property lies below its label.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sim.simulation import METRICS, SIDE_METRICS, Coverage, CoveragePoint, UncoveredItem

ALL_METRICS = (*METRICS, *SIDE_METRICS)

Indices = npt.NDArray[np.intp]

_METRIC_OF_KIND = {
    "line": "line",
    "branch": "branch",
    "expr": "expression",
    "toggle": "toggle",
    "fsm_state": "fsm",
    "fsm_arc": "fsm",
    "user": "functional",
    "covergroup": "functional",
}
# the fields before the comment are told apart one by one: a lazy `.*?` there takes a day for some lines of 300 kB
_POINT = re.compile(
    r"^C '((?:\x01(?!o\x02)[^\x01\n]*)+)\x01o\x02([^\x01\n]*)((?:\x01[^\x01\n]*)*)' ([0-9]{1,20})$", re.MULTILINE
)
# a char above 127 is negative where char is signed: Verilator then prints all eight digits of the int
_QUOTED = re.compile(r"(?:%(?:FFFFFF[89A-F][0-9A-F]|[0-9A-F]{2}))+")


class CoverageError(Exception):
    """A coverage data file that does not follow the format. The message names the line."""


class Points(tuple[CoveragePoint, ...]):
    """The points of a build in their fixed order, with the indices that make summing them up cheap."""

    @cached_property
    def by_metric(self) -> dict[str, Indices]:
        """Indices of the points of each metric that has any."""
        return _by_metric(range(len(self)), self)

    @cached_property
    def by_instance(self) -> dict[str, dict[str, Indices]]:
        """The same for each instance by its path, an instance before those below it."""
        groups: dict[str, list[int]] = {}
        for i, p in enumerate(self):
            groups.setdefault(p.instance, []).append(i)
        paths = sorted(groups, key=lambda path: path.split("."))
        return {path: _by_metric(groups[path], self) for path in paths}

    @cached_property
    def by_file(self) -> dict[str, dict[str, Indices]]:
        """The same for each source file, by its path."""
        groups: dict[str, list[int]] = {}
        for i, p in enumerate(self):
            groups.setdefault(p.file, []).append(i)
        return {file: _by_metric(groups[file], self) for file in sorted(groups)}


@dataclass(frozen=True)
class CoverageData:
    """The points of one file and how often each was reached, in the same order. `rows` is the number of the point
    of each line of the file, -1 for a line outside the design."""

    points: Points
    counts: tuple[int, ...]
    rows: tuple[int, ...]

    @property
    def hits(self) -> bytes:
        """Bitset of the points reached at least once."""
        return bitset(self.counts)


def parse_coverage(
    data: bytes,
    *,
    top: str,
    dut: str | None = None,
    root: str = "",
    sources: Mapping[str, str] | None = None,
) -> CoverageData:
    """Read a coverage data file.

    Points keep the order of the file, which Verilator sorts by key: it is the same in every run of one build. Points
    outside the subtree of `dut` (path in the simulator's naming, `TOP.<top>` when omitted) are left out; paths inside
    begin with `top`. `root` is cut from the head of file names. `sources` maps file names below the root to their
    text, from which the source lines come. Counts of equal points are added.

    Raises CoverageError for anything that is not a whole file of this format.
    """
    text = data.decode("utf-8", errors="replace")
    found = _POINT.findall(text)
    n_comments = text.count("\n#") + text.startswith("#")
    if not text.endswith("\n") or len(found) + n_comments != text.count("\n"):
        raise CoverageError(_first_bad_line(text))
    names = _Names(dut or f"TOP.{top}", top, f"{root.rstrip('/')}/" if root else "", sources or {})
    places: dict[str, tuple[str, str, int, int, str]] = {}
    paths: dict[str, str | None] = {}
    index: dict[tuple[str, str, str], int] = {}
    points: list[CoveragePoint] = []
    counts: list[int] = []
    rows: list[int] = []
    for head, comment, tail, count in found:
        place = places.get(head) or places.setdefault(head, names.place(head))
        if tail not in paths:
            paths[tail] = names.instance(tail)
        instance = paths[tail]
        if instance is None:
            rows.append(-1)
            continue
        at = index.setdefault((head, comment, tail), len(points))
        rows.append(at)
        if at < len(points):
            counts[at] += int(count)
            continue
        counts.append(int(count))
        if "%" in comment:
            comment = _unquote(comment)
        if place[0] == "functional":
            instance = instance.removesuffix(f".{comment}")
        metric, file, line, column, source = place
        points.append(CoveragePoint(metric, file, line, column, instance, comment, source))
    return CoverageData(Points(points), tuple(counts), tuple(rows))


def bitset(counts: Iterable[int]) -> bytes:
    """Bitset of the positions whose count is not zero: position i is bit i % 8 of byte i // 8."""
    return np.packbits(np.fromiter((c > 0 for c in counts), dtype=bool), bitorder="little").tobytes()


def indices(bits: bytes) -> list[int]:
    """The positions set in a bitset, ascending."""
    return np.flatnonzero(np.unpackbits(np.frombuffer(bits, dtype=np.uint8), bitorder="little")).tolist()


def popcount(bits: bytes) -> int:
    """How many positions of a bitset are set."""
    return int.from_bytes(bits, "little").bit_count()


def union(a: bytes, b: bytes) -> bytes:
    """Merge: positions set in either bitset; as long as the longer one (an empty bitset is one without hits)."""
    return (int.from_bytes(a, "little") | int.from_bytes(b, "little")).to_bytes(max(len(a), len(b)), "little")


def difference(a: bytes, b: bytes) -> bytes:
    """Positions set in `a` but not in `b`; as long as `a`."""
    return (int.from_bytes(a, "little") & ~int.from_bytes(b, "little")).to_bytes(len(a), "little")


def summarise(
    points: Sequence[CoveragePoint], hits: bytes
) -> tuple[Coverage, dict[str, tuple[int, int]], tuple[dict[str, Any], ...]]:
    """Return coverage, `{metric: (hit, total)}` for the metrics that have points, and one row per instance.

    `overall` is the unweighted mean of line, branch, expression and toggle, of those that have points. A row is
    `{path, overall, line, branch, expression, toggle, fsm, functional}` over the instance's own points, without those
    of the instances below it. Pass a Points when calling often: it keeps its indices.
    """
    table = _table(points)
    hit = _mask(hits, len(table))
    totals = _totals(table.by_metric, hit)
    instances = tuple(
        {"path": path, **_coverage(_totals(groups, hit)).as_dict()} for path, groups in table.by_instance.items()
    )
    return _coverage(totals), totals, instances


def files(points: Sequence[CoveragePoint], hits: bytes) -> tuple[dict[str, Any], ...]:
    """One row per source file, over its points in all instances:
    `{path, overall, line, branch, expression, toggle, fsm, functional, points: {metric: (hit, total)}}`."""
    table = _table(points)
    hit = _mask(hits, len(table))
    found = ((path, _totals(groups, hit)) for path, groups in table.by_file.items())
    return tuple({"path": path, **_coverage(totals).as_dict(), "points": totals} for path, totals in found)


def without(
    points: Sequence[CoveragePoint], hits: bytes, left_out: bytes
) -> tuple[Coverage, dict[str, tuple[int, int]]]:
    """Coverage and `{metric: (hit, total)}` over the points that are not set in `left_out`; a metric that loses all
    its points is None, and not in the mean."""
    table = _table(points)
    hit, kept = _mask(hits, len(table)), ~_mask(left_out, len(table))
    groups = {metric: numbers[kept[numbers]] for metric, numbers in table.by_metric.items()}
    totals = _totals({metric: numbers for metric, numbers in groups.items() if numbers.size}, hit)
    return _coverage(totals), totals


def gain(points: Sequence[CoveragePoint], before: bytes, after: bytes) -> dict[str, tuple[int, int]]:
    """`{metric: (points newly hit, points no longer hit)}` from `before` to `after`, for metrics that have points."""
    table = _table(points)
    old, new = _mask(before, len(table)), _mask(after, len(table))
    return {
        metric: (int(np.count_nonzero(new[i] & ~old[i])), int(np.count_nonzero(old[i] & ~new[i])))
        for metric, i in table.by_metric.items()
    }


def uncovered_numbers(points: Sequence[CoveragePoint], hits: bytes) -> list[int]:
    """The numbers of the points that are not set in `hits`, ascending."""
    return np.flatnonzero(~_mask(hits, len(points))).tolist()


def uncovered(points: Sequence[CoveragePoint], hits: bytes) -> tuple[UncoveredItem, ...]:
    """The points that are not set in `hits`, in the order of the points."""
    return uncovered_items(points, uncovered_numbers(points, hits))


def uncovered_items(points: Sequence[CoveragePoint], numbers: Iterable[int]) -> tuple[UncoveredItem, ...]:
    """The points of these numbers as people and policies are shown them."""
    chosen = (points[i] for i in numbers)
    return tuple(UncoveredItem(p.metric, p.file, p.line, p.instance, p.what, p.source) for p in chosen)


def _table(points: Sequence[CoveragePoint]) -> Points:
    return points if isinstance(points, Points) else Points(points)


def _totals(groups: Mapping[str, Indices], hit: npt.NDArray[np.bool_]) -> dict[str, tuple[int, int]]:
    return {metric: (int(np.count_nonzero(hit[i])), int(i.size)) for metric, i in groups.items()}


def _coverage(totals: Mapping[str, tuple[int, int]]) -> Coverage:
    fractions = {m: hit / total for m, (hit, total) in totals.items()}
    main = [fractions[m] for m in METRICS if m in fractions]
    return Coverage(overall=sum(main) / len(main) if main else None, **fractions)


def _mask(hits: bytes, n: int) -> npt.NDArray[np.bool_]:
    """`hits` as n booleans; positions beyond the bitset are not set."""
    mask = np.zeros(n, dtype=bool)
    bits = np.unpackbits(np.frombuffer(hits, dtype=np.uint8), bitorder="little", count=min(n, 8 * len(hits)))
    mask[: bits.size] = bits
    return mask


def _by_metric(numbers: Iterable[int], points: Sequence[CoveragePoint]) -> dict[str, Indices]:
    groups: dict[str, list[int]] = {}
    for i in numbers:
        groups.setdefault(points[i].metric, []).append(i)
    return {m: np.array(groups[m], dtype=np.intp) for m in ALL_METRICS if m in groups}


def _first_bad_line(text: str) -> str:
    lines = text.split("\n")
    for number, line in enumerate(lines[:-1], 1):
        if not line.startswith("#") and not _POINT.fullmatch(line):
            return f"line {number} is not a coverage point: {line[:80]!r}"
    return f"line {len(lines)} is cut off: {lines[-1][:80]!r}" if text else "the file is empty"


def _unquote(text: str) -> str:
    def decode(match: re.Match[str]) -> str:
        octets = re.findall(r"%(?:FFFFFF)?(?=[0-9A-F]{2})([0-9A-F]{2})", match.group())
        return bytes.fromhex("".join(octets)).decode("utf-8", errors="replace")

    return _QUOTED.sub(decode, text)


class _Names:
    """Turns the fields of a key into the names that people use."""

    def __init__(self, dut: str, top: str, prefix: str, sources: Mapping[str, str]) -> None:
        self._dut, self._top, self._prefix = dut, top, prefix
        self._lines = {file: text.split("\n") for file, text in sources.items()}

    def place(self, head: str) -> tuple[str, str, int, int, str]:
        """(metric, file, line, column, source) of the fields before the comment."""
        fields = _fields(head)
        kind = fields.get("page", "").removeprefix("v_").partition("/")[0]
        line, column = fields.get("l", ""), fields.get("n", "0")
        if kind not in _METRIC_OF_KIND or "f" not in fields or not _is_number(line) or not _is_number(column):
            raise CoverageError(f"a point without file, line or known kind: {head[:80]!r}")
        file, number = _unquote(fields["f"]).removeprefix(self._prefix), int(line)
        lines = self._lines.get(file, [])
        source = lines[number - 1].strip() if 0 < number <= len(lines) else ""
        return _METRIC_OF_KIND[kind], file, number, int(column), source

    def instance(self, tail: str) -> str | None:
        """Path below the top of the fields after the comment; None outside the design."""
        fields = _fields(tail)
        path, dut = _unquote(fields.get("h", "")), self._dut
        if "Fv" in fields:  # FSM points of all instances lie in one scope; the state variable has the path below TOP
            path, dut = _unquote(fields["Fv"]).rpartition(".")[0], dut.removeprefix("TOP.")
        if path != dut and not path.startswith(dut + "."):
            return None
        return self._top + path.removeprefix(dut)


def _fields(text: str) -> dict[str, str]:
    pairs = (field.partition("\x02") for field in text.split("\x01") if field)
    return {name: value for name, _, value in pairs}


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10
