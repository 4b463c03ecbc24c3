"""What a policy gets to read about a simulation: bounded, structured, and the same for the same result.

The text depends on the status, the coverage and the error messages alone. Folders, addresses and times, which differ
from run to run, are left out, so that prompts made from it can be cached.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sim.conditions import BranchCondition
from sim.simulation import METRICS, SIDE_METRICS, Coverage, UncoveredItem

MAX_ERRORS = 3
MAX_LINE = 240

MEANING = {
    "passed": "every test passed",
    "test_failed": "a test failed",
    "load_error": "no test started: the testbench could not be loaded",
    "compile_error": "the testbench does not compile",
    "design_error": "the design does not build",
    "tool_error": "the simulator itself failed",
    "timeout": "stopped at a limit on simulated time, evaluations or wall-clock time",
    "starved": "the testbench waits for something that will never happen",
    "nonconverged": "the design does not settle: combinational loop",
    "crashed": "the simulation crashed",
    "resource_limit": "stopped at a limit on memory, processor time or output",
    "early_exit": "the process ended before the tests did",
    "policy_violation": "the testbench does what testbenches must not do",
    "forged": "coverage or outputs do not follow from the inputs",
    "unsupported": "this kind of testbench is not supported",
}

_TOGGLE = re.compile(r"(.*?)((?:\[\d+\])*):(0->1|1->0)")
_FRAME = re.compile(r'(\s*)File "([^"]*)", line (\d{1,9})(?:, in .*)?$')
_TOOL = re.compile(r"(?:\[\d+\]\s*)?%(?:Error|Fatal)[^:]*: (?:([^\s:]+):(\d{1,9}):(?:\d+:)? ?)?(.*)")
_COMPILER = re.compile(r"([^\s:]+):(\d{1,9}):\d+: (?:fatal )?error: (.*)")
_FOLDERS = re.compile(r"(?<![\w.])/(?:[\w.+@-]+/)+")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")


def feedback(
    status: str,
    coverage: Coverage,
    points_by_metric: Mapping[str, tuple[int, int]],
    uncovered: Sequence[UncoveredItem],
    branches: Sequence[BranchCondition] = (),
    log: str = "",
    limit: int = 4000,
    testbench: str = "",
    excluded: int = 0,
) -> str:
    """Return at most `limit` characters.

    The status comes first. Unless it is `passed`, the first errors of `log` follow, each with file, line and source
    (a line of `testbench` where the log shows none). With coverage there is a table of `{metric: (hit, total)}` and
    the uncovered points grouped by source line, with the conditions under which `branches` says the line is reached.
    Lines that bring most coverage come first, with all that lies behind them counted in; toggles come last.
    `excluded` is the number of points that count as uncovered in the table but are not wanted, so not listed.
    """
    head = [f"status: {status} ({MEANING.get(status, 'unknown')})"]
    if status != "passed":
        head += [line for error in errors(log, testbench) for line in error.lines()]
    if coverage.overall is not None:
        head += _table(coverage, points_by_metric)
        if excluded:
            head.append(f"excluded by the engineer, not to be reached: {excluded} uncovered points")
    text = _cut("\n".join(line[:MAX_LINE] for line in head), limit)
    if coverage.overall is None or not uncovered:
        return text
    groups = _groups(uncovered, branches, points_by_metric)
    several = len({item.instance for item in uncovered}) > 1
    return _fill(text, [group.lines(several) for group in groups], [len(g.items) for g in groups], limit)


@dataclass(frozen=True)
class LogError:
    """One error message of a log; file and source may be empty, line 0."""

    file: str
    line: int
    source: str
    message: str

    def lines(self) -> Iterator[str]:
        where = f"{self.file}:{self.line}: " if self.file else ""
        yield f"error: {where}{self.message}"
        if self.source:
            yield f"    {self.source}"


def errors(log: str, testbench: str = "") -> list[LogError]:
    """The first errors of a log: Python exceptions, simulator and compiler messages; else its last lines."""
    found: dict[LogError, None] = {}
    lines = log.splitlines()
    frame: tuple[str, int, str] | None = None
    indent = 0
    for number, line in enumerate(lines):
        if match := _FRAME.match(line):
            indent = len(match[1])
            # frames of libraries explain nothing to the author of the testbench: keep the last of the file itself
            if frame is None or not re.search(r"/(site-packages|python3[.\d]*)/", match[2]):
                shown = lines[number + 1] if number + 1 < len(lines) and _indent(lines[number + 1]) > indent else ""
                frame = (_name(match[2]), int(match[3]), shown.strip() or _source(testbench, int(match[3])))
        elif frame and line.strip() and _indent(line) < indent:  # the exception ends its traceback
            found[LogError(*frame, _clean(line.strip()))] = None
            frame = None
        elif ((match := _TOOL.match(line)) or (match := _COMPILER.match(line))) and match[3]:
            source = _quoted_source(lines[number + 1 : number + 2])
            found[LogError(_name(match[1] or ""), int(match[2] or 0), source, _clean(match[3]))] = None
    if not found:
        told = [line.strip() for line in lines if line.strip() and "**" not in line]  # without the table of times
        tail = told[-MAX_ERRORS:]
        return [LogError("", 0, "", _clean(line)) for line in tail]
    return list(found)[:MAX_ERRORS]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _quoted_source(following: Sequence[str]) -> str:
    """Source that verilator shows below a message as `   12 | text`."""
    match = re.match(r"\s*\d+ \| ?(.*)", following[0]) if following else None
    return match[1].strip() if match else ""


def _source(text: str, line: int) -> str:
    lines = text.splitlines()
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _clean(text: str) -> str:
    """Without what differs from run to run."""
    return _ADDRESS.sub("0x...", _FOLDERS.sub("", text))


def _table(coverage: Coverage, points: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    yield f"coverage: {_percent(coverage.overall or 0.0)} overall"
    for metric in (*METRICS, *SIDE_METRICS):
        if metric in points:
            hit, total = points[metric]
            yield f"  {metric:<10} {hit:>6} of {total:>6}  {_percent(hit / total if total else 0.0):>7}"


def _percent(fraction: float) -> str:
    """Rounded down, so that only full coverage reads 100 %."""
    return f"{int(fraction * 1000 + 1e-9) / 10:.1f} %"


@dataclass
class _Group:
    """The uncovered points of one source line."""

    file: str
    line: int
    source: str
    items: list[UncoveredItem] = field(default_factory=list)
    guards: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)  # by (instance, what)
    value: float = 0.0

    @property
    def only_toggles(self) -> bool:
        return all(item.metric == "toggle" for item in self.items)

    def lines(self, several_instances: bool) -> list[str]:
        rows: dict[tuple[str, str], list[str]] = defaultdict(list)  # (text, guards) -> instances
        toggles: dict[str, list[str]] = defaultdict(list)
        for item in self.items:
            if item.metric == "toggle":
                toggles[item.instance].append(item.what)
            else:
                guards = _conjunction(self.guards.get((item.instance, item.what), ()))
                rows[f"{item.metric} {item.what}", guards].append(item.instance)
        for instance, whats in toggles.items():
            rows["toggle " + ", ".join(merge_toggles(whats)), ""].append(instance)
        text = [f"{self.file}:{self.line}  {self.source}".rstrip()]
        for (what, guards), instances in rows.items():
            where = f" in {_list(instances)}" if several_instances else ""
            text.append(f"  {what}{where}{f' when {guards}' if guards else ''}")
        return [line if len(line) <= MAX_LINE else line[: MAX_LINE - 3] + "..." for line in text]


def _groups(
    uncovered: Sequence[UncoveredItem],
    branches: Sequence[BranchCondition],
    points: Mapping[str, tuple[int, int]],
) -> list[_Group]:
    """Groups by file and line, most useful first."""
    guards_of = {(b.file, b.line, b.what, b.instance): b.guards for b in branches}
    groups: dict[tuple[str, int], _Group] = {}
    behind: dict[tuple[str, tuple[str, ...]], float] = defaultdict(float)
    for item in uncovered:
        group = groups.setdefault((item.file, item.line), _Group(item.file, item.line, item.source))
        group.items.append(item)
        worth = _worth(item.metric, points)
        guards = guards_of.get((item.file, item.line, item.what, item.instance))
        if guards is None:
            group.value += worth
            continue
        group.guards[item.instance, item.what] = guards
        for depth in range(1, len(guards) + 1):
            behind[item.instance, guards[:depth]] += worth
        if not guards:
            group.value += worth
    for group in groups.values():
        group.value += sum(behind[instance, g] for (instance, _), g in group.guards.items() if g)
    return sorted(groups.values(), key=lambda g: (g.only_toggles, -round(g.value, 9), g.file, g.line))


def _worth(metric: str, points: Mapping[str, tuple[int, int]]) -> float:
    """What one point adds to the mean of the metrics, up to a factor; nothing for metrics that are not in it."""
    total = points.get(metric, (0, 0))[1]
    return 1.0 / total if total and metric in METRICS else 0.0


def merge_toggles(whats: Iterable[str]) -> list[str]:
    """Merge bits into ranges: `q[0]:0->1`, `q[1]:0->1` become `q[1:0] 0->1`; both edges become `q[1:0] both edges`."""
    edges: dict[tuple[str, tuple[int, ...]], set[str]] = defaultdict(set)
    for what in whats:
        match = _TOGGLE.fullmatch(what)
        if match is None:
            edges[what, ()].add("")
        else:
            index = tuple(int(i) for i in re.findall(r"\d+", match[2]))
            edges[match[1], index].add(match[3])
    by_signal: dict[tuple[str, str, int], list[tuple[int, ...]]] = defaultdict(list)
    for (name, index), seen in edges.items():
        edge = " both edges" if len(seen) == 2 else f" {next(iter(seen))}".rstrip()
        by_signal[name, edge, len(index)].append(index)
    return [f"{name}{bits}{edge}" for (name, edge, _), index in by_signal.items() for bits in _ranges(index)]


def _ranges(indices: list[tuple[int, ...]]) -> list[str]:
    """Index tuples of one length as text, runs of the last dimension merged first, then runs of equal rest."""
    if not indices or not indices[0]:
        return [""]
    rest: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    for index in indices:
        rest[index[0]].append(index[1:])
    by_text: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for first, following in sorted(rest.items()):
        by_text[tuple(_ranges(following))].append(first)
    return [f"[{run}]{tail}" for tails, firsts in by_text.items() for tail in tails for run in _runs(firsts)]


def _runs(numbers: list[int]) -> list[str]:
    """Ascending numbers as `high:low` runs, lowest first."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and n == runs[-1][1] + 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return [str(low) if low == high else f"{high}:{low}" for low, high in runs]


def _conjunction(guards: Sequence[str]) -> str:
    return " && ".join(f"({g})" if re.search(r"\|\||\?", g) and len(guards) > 1 else g for g in guards)


def _list(names: Sequence[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _fill(text: str, blocks: Sequence[Sequence[str]], sizes: Sequence[int], limit: int) -> str:
    """Append whole blocks while they fit, and say how much is left out."""
    text += "\nuncovered, most useful first:"
    left = sum(sizes)
    for shown, (block, size) in enumerate(zip(blocks, sizes, strict=True)):
        longer = text + "\n" + "\n".join(block)
        note = f"\n... and {left - size} more uncovered points on {len(blocks) - shown - 1} lines"
        if len(longer) + (len(note) if left > size else 0) > limit:
            return _cut(text + f"\n... and {left} more uncovered points on {len(blocks) - shown} lines", limit)
        text, left = longer, left - size
    return text


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: max(0, limit - 4)] + "\n..."[: max(0, limit)]
