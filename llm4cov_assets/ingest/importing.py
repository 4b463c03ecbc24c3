"""Bring designs in: read a source, check every design, keep the good ones in batches, say why the others are not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest.generator import fingerprint
from llm4cov_assets.ingest.kept import keep, kept_designs
from llm4cov_assets.ingest.overlap import rouge_overlaps
from llm4cov_assets.ingest.records import DesignRecord, batches
from sim.assembly import HEADER_SUFFIXES, SOURCE_SUFFIXES
from sim.design import Design, DesignError
from sim.identity import content_id
from sim.load import SETTINGS_FILE, load_design

FORMATS = ("auto", "directory", "filelist", "cvdp", "cvdp-ecov", "codev-r1", "verithoughts", "fusesoc")
READABLE_FORMATS = ("auto", "directory")
SOURCE_FOLDERS = {"rtl", "src", "source", "sources", "hdl", "verilog", "systemverilog", "include", "inc", "includes"}
"""Folder names that hold parts of one design rather than designs of their own."""

Check = Callable[[Design], bool | None]
"""Refuses a design by raising DesignError; returns whether two replays of it agree, None when that is not known."""


@dataclass(frozen=True)
class Rejection:
    """A design that was not accepted; `reason` is short, `detail` the whole message with file and line."""

    name: str
    source: str
    reason: str
    detail: str


@dataclass(frozen=True)
class ImportReport:
    """What an import did. `batches` names the accepted designs batch by batch; nothing is kept in a dry run."""

    accepted: list[DesignRecord] = field(default_factory=list)
    rejected: list[Rejection] = field(default_factory=list)
    batches: dict[str, list[DesignRecord]] = field(default_factory=dict)


def design_paths(path: Path) -> list[Path]:
    """The designs at `path`: itself when it is a file or one design's folder, else its subfolders.

    A folder is one design when it has RTL or a design.toml at its top, or keeps its parts in folders like `rtl` or
    `src`. Hidden folders are left out.
    """
    if path.is_file():
        return [path]
    entries = sorted(p for p in path.iterdir() if not p.name.startswith("."))
    suffixes = {*SOURCE_SUFFIXES, *HEADER_SUFFIXES}
    if any(p.name == SETTINGS_FILE or (p.is_file() and p.suffix in suffixes) for p in entries):
        return [path]
    folders = [p for p in entries if p.is_dir()]
    if not folders or any(p.name.lower() in SOURCE_FOLDERS for p in folders):
        return [path]
    return folders


def import_source(
    path: Path,
    home: Path,
    *,
    format: str = "auto",
    split: str = "train",
    batch_size: int = 80,
    dry_run: bool = False,
    batch: str | None = None,
    check: Check | None = None,
    on_design: Callable[[Path, int, int], None] | None = None,
) -> ImportReport:
    """Import the design or designs at `path` and keep the accepted ones under `home`.

    `batch` is the prefix of the batches' names (by default the name of the source and a hash of what was accepted);
    a single batch carries it alone. `check` may refuse a design, for example because it does not build. `on_design` is
    told the path, its number and how many there are, before each one is read.

    Raises UserError when the source is missing or in a format that cannot be read.
    """
    path = Path(path).expanduser()
    if format not in FORMATS:
        raise UserError(f"no format {format!r}; there are {', '.join(FORMATS)}")
    if format not in READABLE_FORMATS:
        raise UserError(f"format {format!r} cannot be read; use `directory`: a folder of one design, or of folders")
    if split not in ("train", "eval", "inbox"):
        raise UserError(f"no split {split!r}; there are train and eval")
    if not path.exists():
        raise UserError(f"{path}: no such file or folder")
    report = _judge(_read(path, on_design), path, split, check, _taken(home))
    prefix = batch or f"{path.resolve().stem}-{content_id([r.design.design_id for r in report.accepted])[:8]}"
    cut = batches(report.accepted, batch_size, prefix)
    named = {prefix: report.accepted} if len(cut) == 1 else cut
    if not dry_run:
        for name, records in named.items():
            for record in records:
                keep(record, home, name)
    return ImportReport(report.accepted, report.rejected, named)


def _read(
    path: Path, on_design: Callable[[Path, int, int], None] | None
) -> Iterator[tuple[Path, Design | DesignError]]:
    places = design_paths(path)
    for i, place in enumerate(places):
        if on_design:
            on_design(place, i, len(places))
        try:
            yield place, load_design(place)
        except DesignError as error:
            yield place, error


def _taken(home: Path) -> dict[str, str]:
    """design_id by name, of the designs kept already; those that a person only simulated do not hold their names."""
    return {r.name: r.design.design_id for batch in kept_designs(home).values() for r in batch if r.split != "adhoc"}


def _judge(
    found: Iterable[tuple[Path, Design | DesignError]],
    source: Path,
    split: str,
    check: Check | None,
    taken: dict[str, str],
) -> ImportReport:
    report = ImportReport()
    evaluation = _untouchable() if split == "train" else []
    names: dict[str, Design] = {}
    for place, design in found:
        where = str(place)
        if isinstance(design, DesignError):
            report.rejected.append(Rejection(place.stem, where, "unreadable", str(design)))
            continue
        twin = next((d for d in names.values() if d.rtl_id == design.rtl_id), None)
        if twin is not None:
            detail = f"{place}: the same RTL as {twin.name} in this import"
            report.rejected.append(Rejection(design.name, where, "duplicate", detail))
            continue
        if design.name in names or taken.get(design.name, design.design_id) != design.design_id:
            detail = f"{place}: another design is called {design.name!r}; give it a name in {SETTINGS_FILE}"
            report.rejected.append(Rejection(design.name, where, "name taken", detail))
            continue
        if copied := _copied(design, evaluation):
            report.rejected.append(Rejection(design.name, where, "in evaluation set", f"{place}: {copied}"))
            continue
        try:
            deterministic = check(design) if check else None
        except DesignError as error:
            report.rejected.append(Rejection(design.name, where, "does not build", str(error)))
            continue
        names[design.name] = design
        benchmark = "imported" if split == "eval" else ""
        report.accepted.append(
            DesignRecord(design, split, "imported", design.name, benchmark, str(source), deterministic)
        )
    return report


def _untouchable() -> list[Design]:
    """Evaluation designs that nothing to train on may resemble: hand-written ones and those of held-out families."""
    from llm4cov_assets.ingest.records import HELD_OUT_FAMILIES
    from llm4cov_assets.ingest.registry import corpus_designs, evaluation_set
    from llm4cov_assets.profiles import profile

    held_out = [r.design for r in evaluation_set(profile("demo")) if r.benchmark == HELD_OUT_FAMILIES]
    return [*corpus_designs(), *held_out]


def _copied(design: Design, evaluation: Sequence[Design]) -> str:
    """Which of `evaluation` the design is a copy of, and how that shows; empty when it is none."""
    mark = fingerprint(design)
    twin = next((d.name for d in evaluation if fingerprint(d) == mark), None)
    if twin is not None:
        return f"the RTL of the evaluation design {twin}"
    alike = rouge_overlaps([design], evaluation)
    return f"a copy of the evaluation design {alike[0].other} (ROUGE-L {alike[0].share:.2f})" if alike else ""
