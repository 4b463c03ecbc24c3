"""How alike two RTL files are: ROUGE-L of their words, and the runs of tokens that they share."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from math import ceil

from rapidfuzz.distance import LCSseq

from llm4cov_assets.ingest.canonical import without_comments
from sim.design import Design

RUN = 6
"""Tokens in a row that count as one shingle."""

_TOKEN = re.compile(r"\w+|[^\w\s]+")


def rouge_l(a: Sequence[Hashable], b: Sequence[Hashable]) -> float:
    """F1 of the longest common subsequence of two token lists (Lin 2004), from 0 to 1; 0 when either is empty."""
    return f1(LCSseq.similarity(a, b), len(a), len(b))


def f1(common: int, a: int, b: int) -> float:
    """F1 of `common` tokens out of `a` and `b`."""
    return 2 * common / (a + b) if common else 0.0


def least_common(least: float, a: int, b: int) -> int:
    """How many of `a` and `b` tokens must be common for an F1 of at least `least` (which is at most 1)."""
    need = ceil(least * (a + b) / 2)
    while need > 0 and f1(need - 1, a, b) >= least:
        need -= 1
    while f1(need, a, b) < least:
        need += 1
    return need


def shingles(design: Design) -> frozenset[int]:
    """Hashes of all runs of RUN tokens in the sources, comments and module names apart."""
    found: set[int] = set()
    for file in design.sources:
        tokens = _TOKEN.findall(without_comments(file.text).replace(design.top, "TOP"))
        found.update(hash(tuple(tokens[i : i + RUN])) for i in range(max(1, len(tokens) - RUN + 1)))
    return frozenset(found)


def jaccard(a: frozenset[int], b: frozenset[int]) -> float:
    """Share of common members in all members of two sets."""
    return len(a & b) / max(1, len(a | b))
