"""Near duplicates between sets of designs, by shared runs of tokens: cheap, symmetric, blind to names of modules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sim.design import Design

RUN = 6
"""Tokens in a row that count as one shingle."""

_TOKEN = re.compile(r"\w+|[^\w\s]+")


@dataclass(frozen=True)
class Overlap:
    """`share` is the Jaccard index of the two designs' shingles."""

    design: str
    other: str
    share: float


def shingles(design: Design) -> frozenset[int]:
    """Hashes of all runs of RUN tokens in the sources, comments and module names apart."""
    found: set[int] = set()
    for file in design.sources:
        text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", file.text, flags=re.DOTALL).replace(design.top, "TOP")
        tokens = _TOKEN.findall(text)
        found.update(hash(tuple(tokens[i : i + RUN])) for i in range(max(1, len(tokens) - RUN + 1)))
    return frozenset(found)


def overlaps(designs: Sequence[Design], others: Sequence[Design], least: float = 0.5) -> list[Overlap]:
    """For each of `designs` the most similar of `others`, if they share at least `least`; most similar first."""
    marks = [(other.name, shingles(other)) for other in others]
    found = []
    for design in designs:
        mine = shingles(design)
        shares = [(len(mine & theirs) / max(1, len(mine | theirs)), name) for name, theirs in marks]
        share, name = max(shares, default=(0.0, ""))
        if share >= least:
            found.append(Overlap(design.name, name, share))
    return sorted(found, key=lambda o: (-o.share, o.design))
