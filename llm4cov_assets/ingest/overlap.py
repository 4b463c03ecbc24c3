"""Which designs are copies of which, between splits and inside one: exactly, though not every pair is compared.

Two designs are as alike as the two files of theirs that are most alike by ROUGE-L of whitespace tokens (the measure of
LLM4Cov, arXiv 2602.16953). ingest/token_index.py says how such files are found. Files that are equal but for comments
and layout are as alike as can be, though ROUGE-L, which sees layout, may be small.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from llm4cov_assets.ingest.canonical import canonical_file
from llm4cov_assets.ingest.similarity import jaccard, shingles
from llm4cov_assets.ingest.token_index import Match, TokenIndex, TokenList, Work
from sim.design import Design, SourceFile

SIMILAR = 0.5
"""ROUGE-L from which a training design counts as a copy of an evaluation design."""

BETWEEN, INSIDE = 5 * 10**10, 10**10
"""Pairs of tokens that are compared for one design at most, between splits (about 10 s) and inside one (2 s). A design
of 300 tokens among 87,000 takes some 10**7."""


@dataclass(frozen=True)
class Overlap:
    """How much of `design` is also in `other`, from 0 to 1, by the most alike of their files. Where files are too long
    to compare, `exact` is false and `share` is what it can be at most. `identical` files differ in comments and layout
    only (see ingest/canonical.py); that is a `share` of 1."""

    design: str
    other: str
    share: float
    file: str = ""
    other_file: str = ""
    exact: bool = True
    identical: bool = False


class EvaluationIndex:
    """Evaluation designs, to find those that a training design resembles: all of them and no others. Headers count as
    files. Memory depends on the evaluation designs only."""

    def __init__(self, designs: Iterable[Design]) -> None:
        self._index = _FileIndex(BETWEEN)
        for design in designs:
            self._index.add(design.name, _files(design, (*design.sources, *design.includes)))

    @property
    def compared(self) -> int:
        """Pairs of files that had to be compared."""
        return self._index.tokens.compared

    def nearest(self, design: Design, least: float = SIMILAR) -> Overlap | None:
        """The evaluation design that `design` resembles most, if by at least `least` (from 0 to 1). Where files are too
        long to compare, that they may be so much alike is enough."""
        return self._index.nearest(design.name, _files(design, (*design.sources, *design.includes)), least)


class SplitIndex:
    """The designs of one split, as they come, to find those that resemble an earlier one by at least `least`. Headers,
    which designs rightly share, do not count. Without `keep_copies` what resembles an earlier one is not taken in.

    87,000 designs of 90 lines take about 400 MB."""

    def __init__(self, least: float = SIMILAR, keep_copies: bool = True) -> None:
        self._index = _FileIndex(INSIDE)
        self._least = least
        self._keep_copies = keep_copies

    def __len__(self) -> int:
        """Different files."""
        return len(self._index.tokens)

    @property
    def compared(self) -> int:
        """Pairs of files that had to be compared."""
        return self._index.tokens.compared

    def add(self, name: str, design: Design) -> Overlap | None:
        """Take `design` in under `name`; return the earlier design that it resembles most, if any."""
        files = _files(design, design.sources)
        found = self._index.nearest(name, files, self._least)
        if found is None or self._keep_copies:
            self._index.add(name, files)
        return found


@dataclass(frozen=True)
class _File:
    path: str
    tokens: TokenList
    content: str
    """Canonical content; empty if the file says nothing."""


class _FileIndex:
    """A token index that knows the design and the path of every file."""

    def __init__(self, work: int) -> None:
        self.tokens = TokenIndex()
        self._places: list[tuple[str, str]] = []
        self._contents: dict[str, tuple[str, str]] = {}
        self._work = work

    def add(self, name: str, files: Iterable[_File]) -> None:
        for file in files:
            place = (name, file.path)
            if file.content:
                self._contents.setdefault(file.content, place)
            if self.tokens.add(file.tokens) == len(self._places):
                self._places.append(place)

    def nearest(self, name: str, files: Sequence[_File], least: float) -> Overlap | None:
        for file in files:
            if file.content in self._contents:
                other, other_file = self._contents[file.content]
                return Overlap(name, other, 1.0, file.path, other_file, identical=True)
        best: Match | None = None
        best_file = ""
        work = Work(self._work)
        for file in files:
            found = self.tokens.nearest(file.tokens, least, work, best.share if best and best.exact else 0.0)
            if found and (best is None or (found.exact, found.share) > (best.exact, best.share)):
                best, best_file = found, file.path
        if best is None:
            return None
        other, other_file = self._places[best.place]
        return Overlap(name, other, best.share, best_file, other_file, best.exact)


def _files(design: Design, files: Iterable[SourceFile]) -> list[_File]:
    """The files that say something, equal ones once."""
    found = (
        _File(path, TokenList(text := content.decode(errors="replace")), canonical_file(text, design.top))
        for content, path in {file.content: file.path for file in files}.items()
    )
    return [file for file in found if len(file.tokens)]


def overlaps(designs: Sequence[Design], others: Sequence[Design], least: float = SIMILAR) -> list[Overlap]:
    """For each of `designs` the one of `others` with which it shares most shingles (Jaccard index; blind to names of
    modules and to comments), if that is at least `least`; most similar first."""
    marks = [(other.name, shingles(other)) for other in others]
    found = []
    for design in designs:
        mine = shingles(design)
        most, name = max(((jaccard(mine, theirs), name) for name, theirs in marks), default=(0.0, ""))
        if most >= least:
            found.append(Overlap(design.name, name, most))
    return sorted(found, key=lambda o: (-o.share, o.design))


def rouge_overlaps(designs: Iterable[Design], others: Iterable[Design], least: float = SIMILAR) -> list[Overlap]:
    """For each of `designs` the one of `others` with the highest ROUGE-L between any two of their files, if that is
    at least `least`; most similar first."""
    index = EvaluationIndex(others)
    found = [o for o in (index.nearest(design, least) for design in designs) if o]
    return sorted(found, key=lambda o: (-o.share, o.design))
