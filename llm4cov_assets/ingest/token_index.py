"""An index of token lists that finds, for another one, the most similar by ROUGE-L: exactly, and without comparing all.

The tokens that two lists have in common in any order bound their longest common subsequence. Tokens are hashed into
buckets; a collision only makes a bound higher. Rare buckets have postings (which list has how many), common ones a
column of counts, so three steps leave one pair in several hundred to compare:

1. common tokens in rare buckets, and as many in common buckets as both lists have there at all;
2. for those left, common tokens in each common bucket;
3. for those left, highest bound first, ROUGE-L of the hashed lists; and where that is the highest so far, of the tokens
   themselves.
"""

from __future__ import annotations

import hashlib
import zlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import LCSseq

from llm4cov_assets.ingest.similarity import f1, least_common, rouge_l

BUCKETS = 1 << 16
COLUMNS = 128
"""Common buckets at most. Over 87,000 designs they take 45 MB."""

COMMON = 64
"""A bucket is common when more than one list in so many has it."""

_FEW = 256  # lists below which no bucket is worth a column
_PAIR = 50_000  # what a comparison costs at least, in pairs of tokens


_NONE = np.zeros(0, np.uint64)


@dataclass(frozen=True)
class Match:
    """The list at `place` (they are numbered as they were added) has ROUGE-L `share`; where it was too long to compare,
    `exact` is false and `share` is what it can be at most."""

    place: int
    share: float
    exact: bool = True


class TokenIndex:
    """Token lists that grow in number, one by one. A list of 350 tokens takes about 2 kB.

    `work` limits the pairs of tokens that one search compares (10**11 take about 4 s)."""

    def __init__(self, work: int) -> None:
        self._work = work
        self._hashed: list[str] = []
        self._packed: list[bytes] = []
        self._places: dict[bytes, int] = {}
        self._postings = [array("Q") for _ in range(BUCKETS)]
        self._column = np.full(BUCKETS, -1, np.int64)
        self._n_columns = 0
        self._counts = np.zeros((0, COLUMNS), np.int32)
        self._lengths = np.zeros(0, np.int64)
        self._common = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._hashed)

    def add(self, tokens: Sequence[str]) -> int:
        """Add a list, and return its place; equal lists have one place."""
        text = _joined(tokens)
        place = len(self)
        known = self._places.setdefault(_digest(text), place)
        if known < place:
            return known
        hashed, buckets, counts = _hashed(tokens)
        self._grow()
        self._hashed.append(hashed)
        self._packed.append(zlib.compress(text))
        self._lengths[place] = len(tokens)
        columns = self._column[buckets]
        common = columns >= 0
        self._counts[place, columns[common]] = counts[common]
        self._common[place] = counts[common].sum()
        limit = max(_FEW, place // COMMON)
        for bucket, count in zip(buckets[~common].tolist(), counts[~common].tolist(), strict=True):
            posting = self._postings[bucket]
            posting.append(place << 32 | count)
            if len(posting) > limit and self._n_columns < COLUMNS:
                self._move_to_column(bucket)
        return place

    def nearest(self, tokens: Sequence[str], least: float, above: float = 0.0) -> Match | None:
        """The first of the most similar lists, if its ROUGE-L is at least `least` (more than 0, at most 1) and more
        than `above`. When none is, but there are lists too long to compare that may be, one of them."""
        if not tokens or not len(self):
            return None
        known = self._places.get(_digest(_joined(tokens)))
        if known is not None:
            return Match(known, 1.0)
        hashed, buckets, counts = _hashed(tokens)
        best = above
        found: Match | None = None
        unsure: Match | None = None
        work = self._work
        for place, bound in self._bounds(len(tokens), buckets, counts, least):
            if bound <= best:
                break
            n = int(self._lengths[place])
            cost = len(tokens) * n + _PAIR
            if cost > work:
                unsure = unsure or Match(place, bound, exact=False)
                continue
            work -= cost
            need = least_common(max(least, best), len(tokens), n)
            common = LCSseq.similarity(hashed, self._hashed[place], score_cutoff=need)
            if common < need or f1(common, len(tokens), n) <= best:
                continue
            share = rouge_l(tokens, self._tokens(place))
            if share >= least and share > best:
                best, found = share, Match(place, share)
        return found or unsure

    def _tokens(self, place: int) -> list[str]:
        return zlib.decompress(self._packed[place]).decode(errors="surrogatepass").split()

    def _bounds(
        self, n_tokens: int, buckets: NDArray[np.int64], counts: NDArray[np.int64], least: float
    ) -> list[tuple[int, float]]:
        """Places of lists whose F1 with a list of so many tokens may reach `least`, with what it is at most; highest
        first."""
        n = len(self)
        total = self._lengths[:n] + n_tokens
        need = np.maximum(1, least * total / 2 - 1e-6)
        columns = self._column[buckets]
        common = columns >= 0
        rare = self._rare(buckets[~common], counts[~common])
        left = np.flatnonzero(rare + np.minimum(self._common[:n], counts[common].sum()) >= need)
        shared = np.minimum(self._counts[np.ix_(left, columns[common])], counts[common]).sum(axis=1) + rare[left]
        reached = shared >= need[left]
        left, shared = left[reached], shared[reached]
        bounds = 2 * shared / total[left]
        order = np.argsort(-bounds, kind="stable")
        return list(zip(left[order].tolist(), bounds[order].tolist(), strict=True))

    def _rare(self, buckets: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """How many tokens each list has in common with `counts` in `buckets`."""
        found = (self._postings[b] for b in buckets.tolist())
        postings = [np.frombuffer(p, np.uint64) if p else _NONE for p in found]
        if not postings:
            return np.zeros(len(self))
        joined = np.concatenate(postings)
        mine = np.repeat(counts, [len(p) for p in postings])
        theirs = (joined & np.uint64(0xFFFFFFFF)).astype(np.int64)
        return np.bincount((joined >> np.uint64(32)).astype(np.int64), np.minimum(mine, theirs), minlength=len(self))

    def _move_to_column(self, bucket: int) -> None:
        column = self._column[bucket] = self._n_columns
        self._n_columns += 1
        posting = np.frombuffer(self._postings[bucket], np.uint64)
        places, counts = (posting >> np.uint64(32)).astype(np.int64), posting & np.uint64(0xFFFFFFFF)
        self._counts[places, column] = counts
        self._common[places] += counts.astype(np.int64)
        self._postings[bucket] = array("Q")

    def _grow(self) -> None:
        if len(self) < len(self._lengths):
            return
        more = max(64, len(self) // 2)
        self._counts = np.concatenate([self._counts, np.zeros((more, COLUMNS), np.int32)])
        self._lengths = np.concatenate([self._lengths, np.zeros(more, np.int64)])
        self._common = np.concatenate([self._common, np.zeros(more, np.int64)])


def _joined(tokens: Sequence[str]) -> bytes:
    return " ".join(tokens).encode(errors="surrogatepass")


def _digest(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=16).digest()


def _hashed(tokens: Sequence[str]) -> tuple[str, NDArray[np.int64], NDArray[np.int64]]:
    """The tokens as a string with a character for each, and which buckets have how many."""
    codes = {token: zlib.crc32(token.encode(errors="surrogatepass")) & (BUCKETS - 1) for token in set(tokens)}
    listed = np.array([codes[token] for token in tokens], "<u4")
    buckets, counts = np.unique(listed, return_counts=True)
    return listed.tobytes().decode("utf-32-le", "surrogatepass"), buckets.astype(np.int64), counts
