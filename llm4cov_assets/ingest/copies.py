"""Which of the designs that there are copy which: training designs evaluation ones, and designs of one split others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff

from llm4cov_assets.ingest.canonical import canonical_content
from llm4cov_assets.ingest.kept import KeptDesign
from llm4cov_assets.ingest.overlap import SIMILAR, EvaluationIndex, Overlap, SplitIndex
from llm4cov_assets.ingest.records import SEEN_FAMILIES, DesignRecord
from llm4cov_assets.progress import Progress
from sim.design import Design

KINDS = ("contaminated", "duplicate", "near duplicate")

Known = DesignRecord | KeptDesign
"""A design, or what is known of one that lies in the home; that is read when it is needed."""

_LONGEST = 3000  # tokens of files that are shown beside each other; it takes the product of both


@dataclass(frozen=True)
class Copy:
    """A design and the one that it resembles most. `kind` is one of KINDS: contaminated if the other one is there to
    evaluate training, else duplicate if both have the same canonical content."""

    kind: str
    record: Known
    other: Known
    overlap: Overlap


def copies(records: Sequence[Known], progress: Progress, split: str = "all", least: float = SIMILAR) -> list[Copy]:
    """The copies among `records`: contaminated ones first, then those most alike. `split` is train, eval, or all.

    Evaluation designs of families that are trained on resemble training designs by intent: that is no contamination.
    """
    different = list({id_of(r): r for r in records}.values())
    train, evaluation = ([r for r in different if r.split == name] for name in ("train", "eval"))
    found: list[Copy] = []
    if split != "eval":
        found += _contaminated(train, [r for r in evaluation if r.benchmark != SEEN_FAMILIES], progress, least)
        found += _inside(train, progress, least)
    if split != "train":
        found += _inside(evaluation, progress, least)
    return sorted(found, key=lambda c: (KINDS.index(c.kind), -c.overlap.share, c.record.name))


def _contaminated(
    train: Sequence[Known], evaluation: Sequence[Known], progress: Progress, least: float
) -> Iterator[Copy]:
    index = EvaluationIndex(design_of(r) for r in evaluation)
    by_name = {r.name: r for r in evaluation}
    for i, record in enumerate(train):
        progress("comparing with evaluation designs", i, len(train), record.name)
        overlap = index.nearest(design_of(record), least)
        if overlap:
            yield Copy("contaminated", record, by_name[overlap.other], overlap)


def _inside(records: Sequence[Known], progress: Progress, least: float) -> Iterator[Copy]:
    index = SplitIndex(least)
    by_name = {r.name: r for r in records}
    contents: dict[str, str] = {}
    for i, record in enumerate(records):
        progress(f"comparing {record.split} designs", i, len(records), record.name)
        design = design_of(record)
        overlap = index.add(record.name, design)
        twin = contents.setdefault(canonical_content(design), record.name)
        if twin != record.name:
            yield Copy("duplicate", record, by_name[twin], _of_twins(design, design_of(by_name[twin])))
        elif overlap:
            yield Copy("near duplicate", record, by_name[overlap.other], overlap)


def _of_twins(design: Design, twin: Design) -> Overlap:
    files = [(d.sources or d.includes)[0].path if (d.sources or d.includes) else "" for d in (design, twin)]
    return Overlap(design.name, twin.name, 1.0, *files, identical=True)


def design_of(record: Known) -> Design:
    """The design itself, read from the home if that is where it is."""
    return record.load().design if isinstance(record, KeptDesign) else record.design


def id_of(record: Known) -> str:
    """Its design_id."""
    return record.design_id if isinstance(record, KeptDesign) else record.design.design_id


def beside(copy: Copy) -> tuple[int, list[str]]:
    """How many tokens the longest run has that both files hold, and the lines of both: common ones begin with a blank,
    those of the first file only with -, those of the second with +. 0 and nothing for very long files."""
    first, second = (
        _text(design_of(copy.record), copy.overlap.file), _text(design_of(copy.other), copy.overlap.other_file)
    )  # fmt: skip
    mine, theirs = first.split(), second.split()
    if max(len(mine), len(theirs)) > _LONGEST:
        return 0, []
    run = SequenceMatcher(None, mine, theirs, autojunk=False).find_longest_match()
    lines = unified_diff(first.splitlines(), second.splitlines(), n=len(mine), lineterm="")
    return run.size, [line for line in lines if not line.startswith(("---", "+++", "@@"))]


def _text(design: Design, path: str) -> str:
    return next((f.text for f in (*design.sources, *design.includes) if f.path == path), "")
