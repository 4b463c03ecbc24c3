"""Near duplicates between sets of designs, measured in two ways that are cheap and symmetric."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sim.design import Design

RUN = 6
"""Tokens in a row that count as one shingle."""

SIMILAR = 0.5
"""ROUGE-L from which a training design counts as a copy of an evaluation design."""

_TOKEN = re.compile(r"\w+|[^\w\s]+")
_Read = TypeVar("_Read")


@dataclass(frozen=True)
class Overlap:
    """How much of `design` is also in `other`, from 0 to 1."""

    design: str
    other: str
    share: float
    file: str = ""
    other_file: str = ""


def shingles(design: Design) -> frozenset[int]:
    """Hashes of all runs of RUN tokens in the sources, comments and module names apart."""
    found: set[int] = set()
    for file in design.sources:
        text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", file.text, flags=re.DOTALL).replace(design.top, "TOP")
        tokens = _TOKEN.findall(text)
        found.update(hash(tuple(tokens[i : i + RUN])) for i in range(max(1, len(tokens) - RUN + 1)))
    return frozenset(found)


def overlaps(designs: Sequence[Design], others: Sequence[Design], least: float = SIMILAR) -> list[Overlap]:
    """For each of `designs` the one of `others` with which it shares most shingles (Jaccard index; blind to names of
    modules and to comments), if that is at least `least`; most similar first."""

    def jaccard(mine: frozenset[int], theirs: frozenset[int]) -> float:
        return len(mine & theirs) / max(1, len(mine | theirs))

    return _nearest(designs, others, shingles, jaccard, least)


def rouge_overlaps(designs: Sequence[Design], others: Sequence[Design], least: float = SIMILAR) -> list[Overlap]:
    """For each of `designs` the one of `others` with the highest ROUGE-L between any two of their files, if that is
    at least `least`; most similar first."""

    def files(design: Design) -> list[list[str]]:
        return [f.text.split() for f in design.sources]

    def closest(mine: list[list[str]], theirs: list[list[str]]) -> float:
        # a file cannot be alike one of quite another length: comparing long files takes long
        pairs = ((a, b) for a in mine for b in theirs if 2 * min(len(a), len(b)) >= least * (len(a) + len(b)))
        return max((rouge_l(a, b) for a, b in pairs), default=0.0)

    return _nearest(designs, others, files, closest, least)


def rouge_l(a: Sequence[str], b: Sequence[str]) -> float:
    """F1 of the longest common subsequence of two token lists (Lin 2004), 0 when either is empty.

    The subsequence is found bit-parallel (Hyyrö 2004): bit i of `row` is 0 where the length grows at token i of the
    shorter list.
    """
    a, b = sorted((a, b), key=len)
    if not a:
        return 0.0
    places: dict[str, int] = {}
    for i, token in enumerate(a):
        places[token] = places.get(token, 0) | 1 << i
    everywhere = row = (1 << len(a)) - 1
    for token in b:
        matched = row & places.get(token, 0)
        row = ((row + matched) | (row - matched)) & everywhere
    return 2 * (len(a) - row.bit_count()) / (len(a) + len(b))


def _nearest(
    designs: Sequence[Design],
    others: Sequence[Design],
    read: Callable[[Design], _Read],
    share: Callable[[_Read, _Read], float],
    least: float,
) -> list[Overlap]:
    marks = [(other.name, read(other)) for other in others]
    found = []
    for design in designs:
        mine = read(design)
        most, name = max(((share(mine, theirs), name) for name, theirs in marks), default=(0.0, ""))
        if most >= least:
            found.append(Overlap(design.name, name, most))
    return sorted(found, key=lambda o: (-o.share, o.design))


def canonical_content(design: Design) -> str:
    """Placeholder until the index lands."""
    from llm4cov_assets.ingest.generator import fingerprint

    return fingerprint(design)


class EvaluationIndex:
    """Placeholder until the index lands."""

    def __init__(self, designs: Iterable[Design]) -> None:
        self._designs = list(designs)

    def nearest(self, design: Design, least: float = SIMILAR) -> Overlap | None:
        found = rouge_overlaps([design], self._designs, least)
        return found[0] if found else None


class SplitIndex:
    """Placeholder until the index lands."""

    def add(self, name: str, design: Design) -> Overlap | None:
        return None
