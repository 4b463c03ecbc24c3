"""Which designs are copies of which, found exactly between splits and by an index inside one.

Two designs are as alike as the two files of theirs that are most alike by ROUGE-L of whitespace tokens (the measure of
LLM4Cov, arXiv 2602.16953). Comparing all pairs takes too long, but the tokens that two files have in common, whatever
their order, bound what ROUGE-L can be: only where the bound is high enough are files compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rapidfuzz.distance import LCSseq

from llm4cov_assets.ingest.similarity import f1, jaccard, least_common, shingles
from sim.design import Design

SIMILAR = 0.5
"""ROUGE-L from which a training design counts as a copy of an evaluation design."""

WORK = 2 * 10**11
"""Pairs of tokens that are compared for one design at most: about 10 s. Ordinary designs take 10**8."""

_CODE_POINTS = 0x110000


@dataclass(frozen=True)
class Overlap:
    """How much of `design` is also in `other`, from 0 to 1, by the most alike of their files. Where files are too long
    to compare, `exact` is false and `share` is what it can be at most."""

    design: str
    other: str
    share: float
    file: str = ""
    other_file: str = ""
    exact: bool = True


class EvaluationIndex:
    """Evaluation designs, to find those that a training design resembles: all of them and no others.

    Memory depends on the evaluation designs only."""

    def __init__(self, designs: Iterable[Design]) -> None:
        self._places: list[tuple[str, str]] = []
        self._ids: dict[str, int] = {}
        self._texts: list[str | list[int]] = []
        lengths: list[int] = []
        postings: list[tuple[int, int, int]] = []
        seen: set[tuple[int, ...]] = set()
        for design in designs:
            for path, tokens in _files(design):
                ids = tuple(self._ids.setdefault(token, len(self._ids)) for token in tokens)
                if ids in seen:
                    continue
                seen.add(ids)
                postings += [(token, len(lengths), count) for token, count in Counter(ids).items()]
                self._places.append((design.name, path))
                self._texts.append(_text(ids))
                lengths.append(len(ids))
        postings.sort()
        table = np.array(postings, dtype=np.int64).reshape(-1, 3)
        self._lengths = np.array(lengths, dtype=np.int64)
        self._files, self._counts = table[:, 1], table[:, 2]
        self._starts = np.searchsorted(table[:, 0], np.arange(len(self._ids) + 1))

    def nearest(self, design: Design, least: float = SIMILAR) -> Overlap | None:
        """The evaluation design that `design` resembles most, if by at least `least` (0 to 1). Where files are too
        long to compare, that they may be so much alike is enough."""
        best: Overlap | None = None
        unsure: Overlap | None = None
        work = WORK
        for path, tokens in _files(design):
            known = [i for i in map(self._ids.get, tokens) if i is not None]
            text = _text(known)
            for share, place in self._bounds(known, len(tokens), least):
                if best and share <= best.share:
                    break
                n = int(self._lengths[place])
                name, other_path = self._places[place]
                if len(known) * n > work:
                    found = Overlap(design.name, name, share, path, other_path, exact=False)
                    unsure = max(unsure or found, found, key=lambda o: o.share)
                    continue
                work -= len(known) * n
                need = least_common(max(least, best.share if best else 0), len(tokens), n)
                common = LCSseq.similarity(text, self._texts[place], score_cutoff=need)
                share = f1(common, len(tokens), n)
                if common >= need and (best is None or share > best.share):
                    best = Overlap(design.name, name, share, path, other_path)
        return best or unsure

    def _bounds(self, known: Sequence[int], n_tokens: int, least: float) -> Iterator[tuple[float, int]]:
        """The evaluation files that may reach `least`, with the F1 that they reach at most, highest first."""
        counted = Counter(known)
        tokens = np.fromiter(counted, np.int64, len(counted))
        counts = np.fromiter(counted.values(), np.int64, len(counted))
        starts = self._starts[tokens]
        lengths = self._starts[tokens + 1] - starts
        # the places of all postings of all tokens, one after the other
        at = np.repeat(starts - np.concatenate(([0], np.cumsum(lengths)[:-1])), lengths) + np.arange(lengths.sum())
        shared = np.minimum(self._counts[at], np.repeat(counts, lengths))
        common = np.bincount(self._files[at], shared, minlength=len(self._lengths))
        bounds = 2 * common / np.maximum(1, self._lengths + n_tokens)
        order = np.argsort(-bounds, kind="stable")
        return ((float(bounds[i]), int(i)) for i in order[: np.count_nonzero(bounds >= least)])


def _files(design: Design) -> Iterator[tuple[str, list[str]]]:
    """Paths and tokens of the files of a design, equal and empty ones once."""
    seen: set[bytes] = set()
    for file in (*design.sources, *design.includes):
        if file.content in seen:
            continue
        seen.add(file.content)
        tokens = file.text.split()
        if tokens:
            yield file.path, tokens


def _text(ids: Sequence[int]) -> str | list[int]:
    """Token numbers as what compares fast: a string with one character a token, where there are enough characters."""
    if max(ids, default=0) >= _CODE_POINTS:
        return list(ids)
    return np.array(ids, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")


class SplitIndex:
    """Placeholder until the index lands."""

    def __init__(self, least: float = SIMILAR) -> None:
        self._least = least

    def add(self, name: str, design: Design) -> Overlap | None:
        return None


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
