"""What is known about a bundled design beyond its sources: `reference.toml` beside it, which no simulation reads.

    collection = "fresh"             # or "development": its results were looked at when settings were chosen

    [facts]
    clocks = ["clk"]                 # the one with most registers first

    [[facts.resets]]
    port = "rst_n"
    active = "low"
    synchronous = false

    [[unreachable]]                  # points that no stimulus can reach
    metric = "toggle"
    file = "cordic.sv"
    line = 30
    what = ["part[6]:*", "part[7]:*"]  # * and ? are wildcards, brackets are themselves; without it all of the line
    instance = "cordic.u_*"          # the same; without it every instance
    reason = "an arctangent is at most 32: neither the bit of 64 nor the sign is ever set"

    [[targets]]                      # per simulator, from a long reference campaign
    ...

`python -m llm4cov_assets.ingest.reference [NAME...] --simulations 512` runs the campaigns and writes the targets; what
people wrote above them stays as it is. A point that a campaign reaches although it is listed as unreachable ends it
with an error.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from llm4cov_assets.errors import UserError
from sim.coverage import ALL_METRICS
from sim.simulation import METRICS, CoveragePoint, UncoveredItem

if TYPE_CHECKING:
    from llm4cov_assets.ingest import calibration
    from sim.design import Design
    from sim.simulator import Simulator

CORPUS = Path(__file__).resolve().parent.parent / "corpus"
REFERENCE_FILE = "reference.toml"

Collection = Literal["development", "fresh"]
"""`development`: settings were chosen by looking at results on these designs. `fresh`: nothing was."""

TARGETS_BEGIN = "# Written by `python -m llm4cov_assets.ingest.reference`: what a long reference campaign reached."
BATCH = 8
"""Designs that are calibrated together: enough to keep the workers busy."""


@dataclass(frozen=True)
class ResetFact:
    """A reset input of the top module."""

    port: str
    active_low: bool
    synchronous: bool


@dataclass(frozen=True)
class Facts:
    """Clocks and resets as a person wrote them down; a test compares them with what elaboration infers."""

    clocks: tuple[str, ...]
    resets: tuple[ResetFact, ...]


@dataclass(frozen=True)
class Unreachable:
    """Points that no stimulus can reach, and why. `instance` and each of `what` are globs; `*` fits all."""

    metric: str
    file: str
    line: int
    reason: str
    what: tuple[str, ...] = ("*",)
    instance: str = "*"

    def fits(self, point: CoveragePoint | UncoveredItem) -> bool:
        """Whether it speaks of this point."""
        return (
            (self.metric, self.file, self.line) == (point.metric, point.file, point.line)
            and any(_glob(what).fullmatch(point.what) for what in self.what)
            and _glob(self.instance).fullmatch(point.instance) is not None
        )


@dataclass(frozen=True)
class Targets:
    """What a reference campaign reached with one simulator (name and version), and what follows.

    `reached` and `targets` are fractions by metric (`overall` and those that the design has); `left` are the points by
    metric that the campaign did not reach and that nobody has shown to be unreachable, `unreachable` is the number of
    those that the entries of the file speak of. They hold for the RTL of `rtl_id`.
    """

    simulator: str
    rtl_id: str
    simulations: int
    seed: int
    share: float
    reached: Mapping[str, float]
    targets: Mapping[str, float]
    left: Mapping[str, int]
    unreachable: int


@dataclass(frozen=True)
class Reference:
    """The content of one `reference.toml`."""

    name: str
    collection: Collection
    facts: Facts
    unreachable: tuple[Unreachable, ...] = ()
    targets: tuple[Targets, ...] = ()

    def why_unreachable(self, point: CoveragePoint | UncoveredItem) -> str | None:
        """The reason why no stimulus reaches the point; None when none is known."""
        return next((u.reason for u in self.unreachable if u.fits(point)), None)


@lru_cache(maxsize=256)
def reference(name: str) -> Reference:
    """What is known about the bundled design called `name`. Raises UserError: one line with file, line and mend."""
    path = CORPUS / name / REFERENCE_FILE
    if not path.is_file():
        raise UserError(f"{path}: no such file; describe the design as llm4cov_assets/ingest/reference.py says")
    return parse(name, path.read_text(), path)


def parse(name: str, text: str, path: Path) -> Reference:
    """Read the content of a `reference.toml`. Raises UserError: one line with file, line and mend."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: not valid TOML: {error}") from None
    top = _Table(tables, path, text, 1)
    top.known("collection", "facts", "unreachable", "targets")
    collection = top.one_of("collection", ("development", "fresh"))
    found = Reference(
        name,
        cast("Collection", collection),
        _facts(top.table("facts")),
        tuple(_unreachable(t) for t in top.tables("unreachable")),
        tuple(_targets(t) for t in top.tables("targets")),
    )
    simulators = [t.simulator for t in found.targets]
    if len(set(simulators)) < len(simulators):
        raise UserError(f"{path}: two [[targets]] of one simulator; remove the older one")
    return found


class _Table:
    """A TOML table with the place where it stands, so that an error can say file and line."""

    def __init__(self, values: Mapping[str, Any], path: Path, text: str, line: int) -> None:
        self._values, self._path, self._text, self._line = values, path, text, line

    def fail(self, message: str, key: str = "") -> UserError:
        """An error at the line of `key` in this table, or of the table."""
        lines = self._text.splitlines()[self._line - 1 :]
        at = next((i for i, text in enumerate(lines) if re.match(rf"\s*\[*{re.escape(key)}\b", text)), 0) if key else 0
        return UserError(f"{self._path}:{self._line + at}: {message}")

    def known(self, *keys: str) -> None:
        """Refuse every other key."""
        for key in self._values:
            if key not in keys:
                raise self.fail(f"unknown key {key!r}; known: {', '.join(keys)}", key)

    def get(self, key: str, kind: type, default: Any = None) -> Any:
        """The value of `key`, which must be of this type; without a default it must be there."""
        value = self._values.get(key, default)
        if value is None:
            raise self.fail(f"{key} is missing; add it")
        whole = kind is float and type(value) is int
        if type(value) is not kind and not whole:
            raise self.fail(f"{key} must be of type {kind.__name__}, not {type(value).__name__}", key)
        return value

    def line(self, key: str, default: str | None = None) -> str:
        """The text of `key`: one printable line that says something."""
        text: str = self.get(key, str, default)
        if not text.strip() or not text.isprintable():
            raise self.fail(f"{key} must be one line of text", key)
        return text

    def one_of(self, key: str, allowed: Sequence[str]) -> str:
        """The text of `key`, one of those allowed."""
        value = self.line(key)
        if value not in allowed:
            raise self.fail(f"{key} is {value!r}; choose one of {', '.join(allowed)}", key)
        return value

    def table(self, key: str) -> _Table:
        """The table called `key`, which must be there."""
        values = self.get(key, dict)
        return _Table(values, self._path, self._text, self._headers(rf"\[\s*{key}\s*\]", 1)[0])

    def tables(self, key: str, name: str = "") -> list[_Table]:
        """The tables of the array called `key`, none when there is no such array."""
        values = self.get(key, list, [])
        if not all(isinstance(v, dict) for v in values):
            raise self.fail(f"{key} must be a list of tables; write [[{name or key}]] above each", key)
        lines = self._headers(rf"\[\[\s*{re.escape(name or key)}\s*\]\]", len(values))
        return [_Table(v, self._path, self._text, line) for v, line in zip(values, lines, strict=True)]

    def fractions(self, key: str) -> dict[str, float]:
        """The table of fractions by metric called `key`."""
        found = self.get(key, dict)
        for metric, value in found.items():
            if metric not in ("overall", *METRICS) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise self.fail(f"{key} must be fractions from 0 to 1 of overall, {', '.join(METRICS)}", key)
        return {metric: float(value) for metric, value in found.items()}

    def _headers(self, pattern: str, count: int) -> list[int]:
        """The lines of the first `count` headers of this form from this table on; its own where they are not found."""
        found = [
            number
            for number, text in enumerate(self._text.splitlines(), 1)
            if number >= self._line and re.match(rf"\s*{pattern}", text)
        ]
        return [*found, *[self._line] * count][:count]


def _facts(table: _Table) -> Facts:
    table.known("clocks", "resets")
    clocks = table.get("clocks", list)
    if not all(isinstance(c, str) and c for c in clocks):
        raise table.fail("clocks must be names of ports", "clocks")
    resets = []
    for reset in table.tables("resets", "facts.resets"):
        reset.known("port", "active", "synchronous")
        low = reset.one_of("active", ("low", "high")) == "low"
        resets.append(ResetFact(reset.line("port"), low, reset.get("synchronous", bool)))
    return Facts(tuple(clocks), tuple(resets))


def _unreachable(table: _Table) -> Unreachable:
    table.known("metric", "file", "line", "what", "instance", "reason")
    what = table.get("what", list, ["*"])
    if not what or not all(isinstance(text, str) and text for text in what):
        raise table.fail('what must be a list of texts such as ["count[7]:*"]', "what")
    return Unreachable(
        table.one_of("metric", ALL_METRICS),
        table.line("file"),
        table.get("line", int),
        table.line("reason"),
        tuple(what),
        table.line("instance", "*"),
    )


def _targets(table: _Table) -> Targets:
    table.known("simulator", "rtl_id", "simulations", "seed", "share", "reached", "target", "left", "unreachable")
    left = table.get("left", dict)
    if not all(metric in METRICS and type(n) is int and n >= 0 for metric, n in left.items()):
        raise table.fail("left must be numbers of points by metric", "left")
    return Targets(
        table.line("simulator"),
        table.line("rtl_id"),
        table.get("simulations", int),
        table.get("seed", int),
        table.get("share", float),
        table.fractions("reached"),
        table.fractions("target"),
        left,
        table.get("unreachable", int),
    )


@lru_cache(maxsize=1024)
def _glob(pattern: str) -> re.Pattern[str]:
    """`*` and `?` as in a shell; brackets are themselves, as names of bits hold them (`part[7]`)."""
    return re.compile(translate(pattern.replace("[", "[[]")))


def contradicted(known: Reference, points: Sequence[CoveragePoint], uncovered: Iterable[UncoveredItem]) -> list[str]:
    """What is wrong with the unreachable points of a design, one line each: points that were reached after all, and
    entries that fit no point of the build."""
    left = {(u.metric, u.file, u.line, u.instance, u.what) for u in uncovered}
    found = []
    for entry in known.unreachable:
        fitting = [p for p in points if entry.fits(p)]
        for what in entry.what:
            if not any(_glob(what).fullmatch(p.what) for p in fitting):
                found.append(f"{known.name}: no {entry.metric} point {what!r} in {entry.file}:{entry.line}")
        found += [
            f"{known.name}: {p.file}:{p.line}: {p.metric} {p.what} of {p.instance} was reached, but is listed as "
            f"unreachable ({entry.reason})"
            for p in fitting
            if (p.metric, p.file, p.line, p.instance, p.what) not in left
        ]
    return found


def written(text: str, targets: Sequence[Targets]) -> str:
    """The text of a `reference.toml` with these targets in place of those that it had."""
    kept = text.partition(TARGETS_BEGIN)[0].rstrip()
    return "\n".join([kept, "", TARGETS_BEGIN, *(_target_table(t) for t in targets), ""])


def _target_table(found: Targets) -> str:
    lines = [
        "[[targets]]",
        f'simulator = "{found.simulator}"',
        f'rtl_id = "{found.rtl_id}"',
        f"simulations = {found.simulations}",
        f"seed = {found.seed}",
        f"share = {found.share:g}",
    ]
    for key, values in (("reached", found.reached), ("target", found.targets), ("left", found.left)):
        pairs = ", ".join(f"{k} = {v:g}" if isinstance(v, int) else f"{k} = {v:.6f}" for k, v in values.items())
        lines.append(f"{key} = {{ {pairs} }}" if pairs else f"{key} = {{}}")
    lines.append(f"unreachable = {found.unreachable}")
    return "\n".join(lines)


def targets_of(
    found: calibration.Reference, known: Reference, uncovered: Iterable[UncoveredItem], seed: int
) -> Targets:
    """The targets that follow from a campaign, which left these points uncovered."""
    from llm4cov_assets.ingest.calibration import SHARE

    reached = {m: v for m in ("overall", *METRICS) if (v := getattr(found.coverage, m)) is not None}
    counted = [u for u in uncovered if u.metric in METRICS]
    open_points = [u.metric for u in counted if known.why_unreachable(u) is None]
    return Targets(
        found.simulator,
        found.design.rtl_id,
        found.simulations,
        seed,
        SHARE,
        {m: round(v, 6) for m, v in reached.items()},
        {m: round(SHARE * v, 6) for m, v in reached.items()},
        {m: n for m in METRICS if (n := open_points.count(m))},
        len(counted) - len(open_points),
    )


def campaigns(
    designs: Sequence[Design],
    simulator: Simulator,
    simulations: int,
    seed: int,
    progress: Callable[[str, int, int], None],
) -> Iterable[tuple[calibration.Reference, tuple[UncoveredItem, ...]]]:
    """The campaign of each design, and what it left. `progress` hears (designs now, simulations done, of all)."""
    from functools import partial

    from llm4cov_assets.ingest.calibration import calibrate

    simulate = partial(simulator.run_batches, seed=0)
    whole = simulations * len(designs)
    for begin in range(0, len(designs), BATCH):
        some = designs[begin : begin + BATCH]
        names = ", ".join(d.name for d in some)
        for found in calibrate(
            some, simulate, simulator.points, budget_sims=simulations, seed=seed,
            progress=lambda done, _, names=names, begin=begin: progress(names, begin * simulations + done, whole),
        ):  # fmt: skip
            if found.coverage.overall is None:
                raise UserError(f"{found.design.name}: no testbench of the campaign ran; try `llm4cov sim` on it")
            yield found, tuple(simulator.build(found.design).uncovered(found.hits))


def write_targets(names: Sequence[str], simulations: int, seed: int = 0) -> list[str]:
    """Run the campaigns of the named designs (all without a name) and write their targets; returns the files written.

    Raises UserError for an unknown name, and for a point that was reached although it is listed as unreachable; the
    files of the other designs are written all the same.
    """
    from llm4cov_assets.commands.bars import progress
    from llm4cov_assets.home import home
    from llm4cov_assets.ingest.registry import corpus_designs
    from sim.simulator import Simulator

    known = {d.name: d for d in corpus_designs()}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UserError(f"no bundled design {unknown[0]!r}; see `llm4cov designs list --split eval`")
    paths, wrong = [], []
    with Simulator(home()) as simulator, progress() as tell:
        for found, left in campaigns(
            [known[n] for n in names or known], simulator, simulations, seed,
            lambda now, done, total: tell("reference campaigns", done, total, now),
        ):  # fmt: skip
            name = found.design.name
            path = CORPUS / name / REFERENCE_FILE
            said = reference(name)
            wrong += contradicted(said, simulator.build(found.design).points, left)
            new = targets_of(found, said, left, seed)
            others = [t for t in said.targets if t.simulator != new.simulator]
            path.write_text(written(path.read_text(), [*others, new]))
            paths.append(str(path))
    reference.cache_clear()
    if wrong:
        raise UserError("; ".join(wrong))
    return paths


def main(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="bundled designs; all if none")] = None,
    simulations: Annotated[int, typer.Option(min=1, help="simulations of the campaign of one design")] = 512,
    seed: Annotated[int, typer.Option(min=0, help="seed of the campaigns")] = 0,
) -> None:
    """Calibrate the targets in the reference.toml of bundled designs with a long reference campaign."""
    try:
        print("\n".join(write_targets(names or [], simulations, seed)))
    except UserError as error:
        typer.echo(f"reference: {error}", err=True)
        raise typer.Exit(2) from None


if __name__ == "__main__":
    typer.run(main)
