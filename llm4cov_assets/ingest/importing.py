"""Bring designs in: read a source, judge every record by itself, keep the good ones in batches, say why the others are
not."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Literal

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest.candidates import Candidate
from llm4cov_assets.ingest.canonical import canonical_content
from llm4cov_assets.ingest.formats import reader
from llm4cov_assets.ingest.kept import KeptDesign, Staging, batch_folder, kept_designs, retire, staging
from llm4cov_assets.ingest.overlap import EvaluationIndex, Overlap, SplitIndex
from llm4cov_assets.ingest.records import DesignRecord, batches, fitting_size
from llm4cov_assets.progress import Progress, silent
from sim import reasons
from sim.assembly import assemble
from sim.design import Design, DesignError
from sim.elaborate import analyse
from sim.identity import content_id
from sim.load import SETTINGS_FILE
from sim.ports import unusable_port
from sim.slang import elaborate
from sim.toolchain import locked

SPLITS = ("train", "eval", "inbox")

Near = Literal["mark", "drop"]
"""What becomes of a design that is nearly another one of its split: accepted and marked, or rejected."""


@dataclass(frozen=True)
class Rejection:
    """A record that is no design here; `reason` is one of `sim/reasons.py`, `detail` the whole message with file, line
    and mend."""

    name: str
    source: str
    reason: str
    detail: str


@dataclass(frozen=True)
class Options:
    """How designs are read: overrides for all of a source, a prefix for their names, and how places are shown, where
    the source was laid out in a folder that soon is gone."""

    prefix: str = ""
    top: str | None = None
    defines: dict[str, str] = field(default_factory=lambda: {})
    include_dirs: tuple[Path, ...] = ()
    parameters: dict[str, str] = field(default_factory=lambda: {})
    shown: Callable[[str], str] = str


@dataclass
class ImportReport:
    """What an import did, or would do. `batches` holds the accepted designs; `known` were imported before and are as
    they were; `replaced` are earlier versions of accepted designs; `contaminated` are training designs that an accepted
    evaluation design shows to be copies of it: neither is used any more."""

    accepted: list[KeptDesign] = field(default_factory=lambda: [])
    rejected: list[Rejection] = field(default_factory=lambda: [])
    known: list[KeptDesign] = field(default_factory=lambda: [])
    replaced: list[KeptDesign] = field(default_factory=lambda: [])
    contaminated: list[tuple[KeptDesign, Overlap]] = field(default_factory=lambda: [])
    overlaps: list[Overlap] = field(default_factory=lambda: [])
    batches: dict[str, list[KeptDesign]] = field(default_factory=lambda: {})


Check = Callable[[Sequence[KeptDesign], Progress], Iterator[tuple[KeptDesign, Rejection | None]]]
"""Tries designs out: yields each with what is now known of it, or with why it is refused."""


def import_source(
    source: str | Path,
    home: Path,
    *,
    format: str = "auto",
    split: str = "train",
    batch_size: int | None = None,
    dry_run: bool = False,
    batch: str | None = None,
    near: Near = "mark",
    options: Options | None = None,
    check: Check | None = None,
    progress: Progress = silent,
    before_commit: Callable[[dict[str, list[KeptDesign]]], None] = lambda batches: None,
) -> ImportReport:
    """Import the designs of `source`: a path, or the name of a data set. The accepted ones are kept under `home`, all
    batches at once at the end; an import that fails or is killed keeps nothing.

    `batch` is the prefix of the batches' names (by default the name of the source and a hash of what was accepted); a
    single batch carries it alone. Without `batch_size` batches are as large as is sensible. `check` may refuse designs
    that were read well, for example because they do not build. `before_commit` sees the batches before anybody else.

    Raises UserError when the source is missing or in a format that cannot be read.
    """
    if split not in SPLITS:
        raise UserError(f"no split {split!r}; there are train and eval")
    if near not in ("mark", "drop"):
        raise UserError(f"near duplicates are marked or dropped, not {near!r}")
    candidates, n_candidates = reader(str(source), format)
    with _alone(home, split, progress), staging(home) as stage:
        judge = _Judge(home, stage, str(source), split, near, options or Options(), progress)
        for i, candidate in enumerate(candidates()):
            progress("reading", i, n_candidates, candidate.name)
            judge.judge(candidate)
        report = judge.finish()
        if check:
            _tried(report, check, progress)
            _tried_late(report, check, progress, dry_run)
        prefix = batch or _batch_prefix(str(source), report.accepted, home)
        cut = batches(report.accepted, batch_size or fitting_size(len(report.accepted)), prefix)
        report.batches = {prefix: report.accepted} if len(cut) == 1 else cut
        if split == "eval":
            report.contaminated = _contaminated(home, report.accepted, progress)
        if not dry_run and report.accepted:
            before_commit(report.batches)
            report.batches = stage.commit(report.batches, _gone(report))
            report.accepted = [d for designs in report.batches.values() for d in designs]
    return report


@contextmanager
def _alone(home: Path, split: str, progress: Progress) -> Iterator[None]:
    """Imports for training and evaluation one after the other: each must see what the others kept."""
    if split == "inbox":
        yield
        return
    progress("waiting for another import", 0, None, "")
    with locked(home / "designs" / ".lock"):
        yield


def _batch_prefix(source: str, accepted: Sequence[KeptDesign], home: Path) -> str:
    """A prefix for the names of batches that no batch has yet: what changes back is a batch of its own again."""
    name = source.rstrip("/")
    with suppress(OSError):
        if Path(name).expanduser().exists():
            name = Path(name).expanduser().resolve().stem
    safe = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "designs"
    prefix = f"{safe[:40]}-{content_id([d.design_id for d in accepted])[:8]}"
    for n in count(1):
        found = prefix if n == 1 else f"{prefix}-v{n}"
        if not any(batch_folder(home, found).parent.glob(f"{batch_folder(home, found).name}*")):
            return found
    raise AssertionError


class _Judge:
    """Decides on the candidates of one import, one by one; what is accepted is staged."""

    def __init__(
        self, home: Path, stage: Staging, source: str, split: str, near: Near, options: Options, progress: Progress
    ) -> None:
        self.report = ImportReport()
        self._stage = stage
        self._split = split
        self._near = near
        self._options = options
        self._names: set[str] = set()
        kept = [d for designs in kept_designs(home).values() for d in designs if d.split != "adhoc"]
        mine = [d for d in kept if d.split == split] if split != "inbox" else []
        self._taken = {d.name: d for d in sorted(kept, key=lambda d: d.kept_at)}
        self._contents = {d.content: d.name for d in mine}
        self._claimed: dict[str, str] = {}
        self._below = _origin(source)
        self._tentative: list[tuple[str, str, Rejection]] = []
        self._evaluation = _evaluation_index(kept) if split == "train" else None
        self._clusters = {d.name: d.cluster for d in mine}
        self._similar = SplitIndex(keep_copies=near == "mark") if split != "inbox" else None
        for i, design in enumerate(mine):
            progress("reading what was imported before", i, len(mine), design.name)
            if self._similar is not None:
                self._similar.add(design.name, design.load().design)

    def judge(self, candidate: Candidate) -> None:
        """Accept the candidate, or say why it is rejected."""
        try:
            design = self._read(candidate)
            earlier = self._earlier(design, candidate)
            if earlier and earlier.design_id == design.design_id and earlier.split == self._split:
                self.report.known.append(earlier)
                self._names.add(design.name)
                self._claimed.setdefault(canonical_content(design), design.name)
                return
            _refuse_unusable(design, candidate)
            self._refuse_twins(design, candidate)
            self._refuse_contamination(design, candidate)
            self._refuse_reserved(design, candidate)
            near = self._nearest(design, candidate)
        except DesignError as error:
            shown = self._options.shown
            rejected = Rejection(candidate.name, shown(candidate.place), error.reason, shown(str(error)))
            self.report.rejected.append(rejected)
            return
        self._names.add(design.name)
        cluster = self._clusters[design.name] = self._clusters.get(near.other, near.other) if near else design.name
        record = DesignRecord(
            design, self._split, "imported", cluster, "imported" if self._split == "eval" else "",
            self._options.shown(candidate.place),
            difficulty=candidate.difficulty,
            origin=_origin(candidate.place),
        )  # fmt: skip
        try:
            self.report.accepted.append(self._stage.add(record))
        except OSError as error:
            if error.errno not in _OF_ITS_PATHS:
                raise
            detail = (
                f"{candidate.place}: its files cannot be kept ({error.strerror}); give them shorter, distinct paths"
            )
            shown = self._options.shown
            self.report.rejected.append(
                Rejection(candidate.name, shown(candidate.place), reasons.MALFORMED, shown(detail))
            )
            return
        if near:
            self.report.overlaps.append(near)
        if earlier:
            self.report.replaced.append(earlier)

    def _read(self, candidate: Candidate) -> Design:
        o = self._options
        found = candidate.gather()
        name = f"{o.prefix}{found.name or candidate.name}"
        if self._split != "inbox":  # commands take names for globs and options, and slashes for paths
            name = _AWKWARD.sub("_", name)
        return assemble(
            found, name=name, top=o.top, defines=o.defines, include_dirs=o.include_dirs, parameters=o.parameters
        )

    def _earlier(self, design: Design, candidate: Candidate) -> KeptDesign | None:
        """The kept design of that name: the same one, or an earlier version from the same place."""
        if design.name in self._names:
            raise DesignError(
                f"{candidate.place}: another design of this import is called {design.name!r}; {_RENAME}",
                reasons.NAME_TAKEN,
            )
        earlier = self._taken.get(design.name)
        if earlier is None or self._split == "inbox":
            return None
        if earlier.design_id != design.design_id and earlier.origin != _origin(candidate.place):
            raise DesignError(
                f"{candidate.place}: another design is called {design.name!r} (from {earlier.source}); {_RENAME}",
                reasons.NAME_TAKEN,
            )
        return earlier

    def _refuse_reserved(self, design: Design, candidate: Candidate) -> None:
        """Names that mean another design to every command, or none."""
        if self._split == "inbox":
            return
        from llm4cov_assets.ingest.registry import bundled

        meant = bundled(design.name)
        if meant and meant.design_id != design.design_id:
            raise DesignError(
                f"{candidate.place}: {design.name!r} is a design that comes with the project; {_RENAME}",
                reasons.NAME_TAKEN,
            )

    def _refuse_twins(self, design: Design, candidate: Candidate) -> None:
        content = canonical_content(design)
        twin = self._claimed.get(content) or self._contents.get(content, design.name)
        detail = f"{candidate.place}: the same RTL as {twin}, which is there already"
        owner = self._taken.get(twin)
        if content in self._claimed or (twin != design.name and not (owner and _is_below(owner.origin, self._below))):
            raise DesignError(detail, reasons.DUPLICATE)
        self._claimed[content] = design.name
        if twin != design.name:
            # this source holds its owner too, which may have other content by now
            shown = self._options.shown
            rejection = Rejection(candidate.name, shown(candidate.place), reasons.DUPLICATE, shown(detail))
            self._tentative.append((design.name, twin, rejection))

    def finish(self) -> ImportReport:
        """The report, once all candidates are judged."""
        unchanged = {d.name for d in self.report.known}
        for name, owner, rejection in self._tentative:
            if owner in unchanged:
                self.report.rejected.append(rejection)
                self.report.accepted = [d for d in self.report.accepted if d.name != name]
                self.report.replaced = [d for d in self.report.replaced if d.name != name]
                self.report.overlaps = [o for o in self.report.overlaps if name not in (o.design, o.other)]
        return self.report

    def _refuse_contamination(self, design: Design, candidate: Candidate) -> None:
        found = self._evaluation.nearest(design) if self._evaluation else None
        if found:
            raise DesignError(
                f"{candidate.place}: {found.file} {_alike(found)} of the evaluation design {found.other}; "
                "training on it would spoil the evaluation",
                reasons.CONTAMINATED,
            )

    def _nearest(self, design: Design, candidate: Candidate) -> Overlap | None:
        found = self._similar.add(design.name, design) if self._similar is not None else None
        if found and found.other == design.name:  # an earlier version of itself
            return None
        if found and self._near == "drop":
            raise DesignError(
                f"{candidate.place}: {found.file} {_alike(found)} of {found.other}; --near-duplicates mark keeps it",
                reasons.DUPLICATE,
            )
        return found


def _refuse_unusable(design: Design, candidate: Candidate) -> None:
    """What needs no build to be seen: ports that no testbench reaches, hints that name no input, RTL without sense."""
    port = unusable_port(elaborate(design))
    if port:
        raise DesignError(f"{candidate.place}: {port}", reasons.UNUSABLE_PORT)
    try:
        analyse(design)
    except DesignError as error:
        raise DesignError(f"{candidate.place}: {error}", reasons.DOES_NOT_ELABORATE) from None


def _origin(place: str) -> str:
    """The file or folder that a place is in, whatever folder a person is in now: records move to other lines."""
    path = Path(_RECORD.sub("", place)).expanduser()
    there = next((p for p in (path, *path.parents) if p.name and os.path.lexists(p)), None)
    return str(path) if there is None else str(there.resolve() / path.relative_to(there))


def _is_below(place: str, folder: str) -> bool:
    return place == folder or place.startswith(f"{folder}/")


_RECORD = re.compile(r":(?:row )?\d+$")
_OF_ITS_PATHS = (errno.ENAMETOOLONG, errno.EEXIST, errno.ENOTDIR, errno.EISDIR)
_AWKWARD = re.compile(r"^[-.]+|[/\\*?\[\]]")
_RENAME = f"give it a name in {SETTINGS_FILE}, or import with --prefix"


def _alike(overlap: Overlap) -> str:
    if not overlap.exact:
        return (
            f"is too long to compare, and by its tokens may be {overlap.other_file} (ROUGE-L up to {overlap.share:.2f})"
        )
    return f"resembles {overlap.other_file} (ROUGE-L {overlap.share:.2f})"


def contamination(design: KeptDesign, overlap: Overlap) -> str:
    """Why a training design is retired, in words."""
    return f"contaminated: its {overlap.file} {_alike(overlap)} of the evaluation design {overlap.other}"


def _evaluation_index(kept: Sequence[KeptDesign]) -> EvaluationIndex:
    """Everything that nothing to train on may resemble: hand-written designs, those of held-out families, and what was
    imported for evaluation."""
    from llm4cov_assets.ingest.records import HELD_OUT_FAMILIES
    from llm4cov_assets.ingest.registry import corpus_designs, evaluation_set
    from llm4cov_assets.profiles import profile

    held_out = [r.design for r in evaluation_set(profile("demo")) if r.benchmark == HELD_OUT_FAMILIES]
    imported = [d.load().design for d in kept if d.split == "eval"]
    return EvaluationIndex([*corpus_designs(), *held_out, *imported])


def _tried(report: ImportReport, check: Check, progress: Progress) -> None:
    """Drop from the report what the check refuses, and note what it found out about the others."""
    passed: list[KeptDesign] = []
    for design, refused in check(report.accepted, progress):
        if refused:
            report.rejected.append(refused)
        else:
            passed.append(design)
    names = {d.name for d in passed}
    report.replaced = [d for d in report.replaced if d.name in names]
    refused_names = {d.name for d in report.accepted} - names
    report.overlaps = [o for o in report.overlaps if not {o.design, o.other} & refused_names]
    report.accepted = [replace(d, cluster=d.name) if d.cluster in refused_names else d for d in passed]


def _tried_late(report: ImportReport, check: Check, progress: Progress, dry_run: bool) -> None:
    """Try out what came in without a check before; what is refused now is not used any more."""
    known = {d.name: d for d in report.known}
    for design, refused in check([d for d in report.known if d.deterministic is None], progress):
        if refused:
            del known[design.name]
            report.rejected.append(refused)
            if not dry_run:
                retire(design, refused.detail)
    report.known = list(known.values())


def _contaminated(home: Path, accepted: Sequence[KeptDesign], progress: Progress) -> list[tuple[KeptDesign, Overlap]]:
    """Training designs kept so far that resemble the evaluation designs that come in now."""
    training = [d for designs in kept_designs(home).values() for d in designs if d.split == "train"]
    if not training or not accepted:
        return []
    index = EvaluationIndex(d.load().design for d in accepted)
    found = []
    for i, design in enumerate(training):
        progress("comparing with training designs", i, len(training), design.name)
        overlap = index.nearest(design.load().design)
        if overlap:
            found.append((design, overlap))
    return found


def _gone(report: ImportReport) -> list[tuple[KeptDesign, str]]:
    """What is not used any more once the accepted designs are kept, and why."""
    replaced = [(d, f"replaced by what {d.source} holds now") for d in report.replaced]
    return [*replaced, *((d, contamination(d, overlap)) for d, overlap in report.contaminated)]
