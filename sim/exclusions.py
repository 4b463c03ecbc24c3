"""Exclusions (waivers): points that an engineer leaves out of sign-off, with the reason.

They stand beside the design, in `design.toml` or in a file `exclusions.toml` of its own:

    [[exclude]]
    file = "rtl/fifo.sv"       # path below the design's root; * and ? are wildcards
    lines = "40-52"            # or one number
    instance = "top.u_*"       # hierarchical path; * and ? are wildcards, brackets are themselves
    metric = "branch"
    reason = "debug port, tied off in this product"

A point is excluded when all that is given fits. Exclusions change what is shown: they never enter coverage, points or
score, so nobody is paid for writing them, and nothing is simulated again when they change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import translate
from functools import lru_cache
from pathlib import Path
from typing import Any

from sim.coverage import ALL_METRICS, Points, bitset, uncovered_numbers, without
from sim.design import DesignError, Exclusion
from sim.simulation import CoveragePoint, ExcludedItem, Simulation

EXCLUSIONS_FILE = "exclusions.toml"
_KEYS = ("file", "lines", "instance", "metric", "reason")
_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*exclude[ \t]*\]\]", re.MULTILINE)
_LINES = re.compile(r"([0-9]{1,9})\s*-\s*([0-9]{1,9})")


def read_exclusions(tables: object, path: Path, text: str) -> tuple[Exclusion, ...]:
    """The checked `exclude` tables of the TOML file `path`, whose content is `text`.

    Raises DesignError, one line with file, line (where that can be told) and mend.
    """
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise DesignError(f"{path}: exclude must be a list of tables; write [[exclude]] above each")
    lines = [text.count("\n", 0, match.start()) + 1 for match in _HEADER.finditer(text)]
    return tuple(
        _read(table, f"{path}:{lines[i]}" if len(lines) == len(tables) else f"{path}: exclude number {i + 1}")
        for i, table in enumerate(tables)
    )


def _read(table: Mapping[str, Any], where: str) -> Exclusion:
    for key, value in table.items():
        if key not in _KEYS:
            raise DesignError(f"{where}: unknown key {key!r} in an exclusion; known: {', '.join(_KEYS)}")
        if key != "lines" and not isinstance(value, str):
            raise DesignError(f"{where}: {key} of an exclusion must be text in quotation marks")
    reason = " ".join(table.get("reason", "").split())
    if not reason.isprintable() or not reason:
        raise DesignError(f'{where}: an exclusion needs a reason; add reason = "why nobody has to reach it"')
    metric = table.get("metric", "")
    if metric not in ("", *ALL_METRICS):
        raise DesignError(f"{where}: no metric {metric!r}; choose one of {', '.join(ALL_METRICS)}")
    first, last = _line_range(table["lines"], where) if "lines" in table else (None, None)
    found = Exclusion(reason, table.get("file", ""), first, last, table.get("instance", ""), metric)
    if first is not None and not found.file:
        raise DesignError(f"{where}: lines of which file? add file = ...")
    if not (found.file or found.instance or metric):
        raise DesignError(f"{where}: this would exclude every point; add file, lines, instance or metric")
    return found


def _line_range(value: object, where: str) -> tuple[int, int]:
    match = _LINES.fullmatch(value.strip()) if isinstance(value, str) else None
    one = str(value).strip() if isinstance(value, int | str) and not isinstance(value, bool) else ""
    first, last = (int(match[1]), int(match[2])) if match else (int(one), int(one)) if _is_line(one) else (0, 0)
    if not 0 < first <= last:
        raise DesignError(f'{where}: lines must be a number or a range like "10-20", not {str(value)[:40]!r}')
    return first, last


def _is_line(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10


class Excluded:
    """Which points of one build the exclusions of a design leave out.

    `bits` is a bitset over the build's points; `stale` are the exclusions that no point fits. Where several exclusions
    fit a point, the first one says why.
    """

    def __init__(self, points: Points, exclusions: Sequence[Exclusion]) -> None:
        self.points = points
        self._reasons: dict[int, str] = {}
        stale: list[Exclusion] = []
        for exclusion in exclusions:
            fits = _test(exclusion)
            found = [i for i, point in enumerate(points) if fits(point)]
            for i in found:
                self._reasons.setdefault(i, exclusion.reason)
            if not found:
                stale.append(exclusion)
        self.stale = tuple(stale)
        self.bits = bitset(int(i in self._reasons) for i in range(len(points)))

    def __contains__(self, number: int) -> bool:
        """Whether the point of this number is excluded."""
        return number in self._reasons

    def items(self, numbers: Iterable[int]) -> tuple[ExcludedItem, ...]:
        """The excluded ones among the points of these numbers, with the reason."""
        chosen = ((self.points[i], self._reasons[i]) for i in numbers if i in self._reasons)
        return tuple(ExcludedItem(p.metric, p.file, p.line, p.instance, p.what, p.source, why) for p, why in chosen)


def without_excluded(simulation: Simulation, excluded: Excluded) -> Simulation:
    """The simulation as it is shown for a design with exclusions; its feedback is left to the caller.

    Excluded points leave `uncovered` for `excluded`, and beside `coverage` there is `coverage_without_excluded`.
    Coverage, points, hits and score stay.
    """
    numbers = uncovered_numbers(excluded.points, simulation.hits)
    pairs = zip(numbers, simulation.uncovered, strict=True)
    return replace(
        simulation,
        uncovered=tuple(item for i, item in pairs if i not in excluded),
        excluded=excluded.items(numbers),
        coverage_without_excluded=without(excluded.points, simulation.hits, excluded.bits)[0],
        stale_exclusions=tuple(describe(e) for e in excluded.stale),
    )


def as_table(exclusion: Exclusion) -> dict[str, str]:
    """The keys and values of the exclusion's table in a TOML file."""
    lines = "" if exclusion.first_line is None else f"{exclusion.first_line}-{exclusion.last_line}"
    found = {"file": exclusion.file, "lines": lines, "instance": exclusion.instance, "metric": exclusion.metric}
    return {key: value for key, value in found.items() if value} | {"reason": exclusion.reason}


def describe(exclusion: Exclusion) -> str:
    """An exclusion in one line, without its reason."""
    lines = ""
    if exclusion.first_line is not None:
        same = exclusion.first_line == exclusion.last_line
        lines = f":{exclusion.first_line}" if same else f":{exclusion.first_line}-{exclusion.last_line}"
    parts = [
        f"{exclusion.metric or 'every metric'}",
        f"of {exclusion.file}{lines}" if exclusion.file else "",
        f"in {exclusion.instance}" if exclusion.instance else "",
    ]
    return " ".join(part for part in parts if part)


def fits_file(exclusion: Exclusion, path: str) -> bool:
    """Whether the exclusion can concern the file of this path."""
    return not exclusion.file or _glob(exclusion.file).fullmatch(path) is not None


def _test(exclusion: Exclusion) -> Callable[[CoveragePoint], bool]:
    file = _glob(exclusion.file or "*")
    instance = _glob(exclusion.instance or "*")
    first, last = exclusion.first_line or 0, exclusion.last_line or 10**10
    known: dict[tuple[str, str], bool] = {}

    def fits(point: CoveragePoint) -> bool:
        if exclusion.metric not in ("", point.metric) or not first <= point.line <= last:
            return False
        key = (point.file, point.instance)
        if key not in known:
            known[key] = bool(file.fullmatch(point.file) and instance.fullmatch(point.instance))
        return known[key]

    return fits


@lru_cache(maxsize=1024)
def _glob(pattern: str) -> re.Pattern[str]:
    """`*` and `?` as in a shell; brackets are themselves, as paths of instances hold them (`top.g[0].u`)."""
    return re.compile(translate(pattern.replace("[", "[[]")))
