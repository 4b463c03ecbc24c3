"""An index of token lists that finds, for another one, the most similar by ROUGE-L: exactly, and without comparing all.

The tokens that two lists have in common in any order bound their longest common subsequence. Tokens are hashed into
buckets; a collision only makes a bound higher. Rare buckets have postings (which list has how many), common ones a
column of counts, so three steps leave one pair in many hundreds to compare:

1. common tokens in rare buckets, and as many in common buckets as both lists have there at all;
2. for those left, common tokens in each common bucket;
3. for those left, highest bound first, ROUGE-L of the hashed lists; and where that is the highest so far, of the tokens
   themselves.
"""

from __future__ import annotations

import hashlib
import zlib
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import LCSseq

from llm4cov_assets.ingest.similarity import f1, least_common, rouge_l

BUCKETS = 1 << 16
COLUMNS = 128
"""Common buckets at most. For 87,000 lists they take 45 MB."""

COMMON = 64
"""A bucket is common when more than one list in so many has it."""

_FEW = 256  # lists below which no bucket is worth a column
_COMPARISON = 250_000  # pairs of tokens that could be compared in the time that any comparison takes at least
_COUNT = np.uint64(0xFFFFFFFF)
_PLACE = np.uint64(32)


class TokenList:
    """The whitespace tokens of a text as an index takes them."""

    def __init__(self, text: str) -> None:
        self.tokens = text.split()
        self.joined = " ".join(self.tokens).encode(errors="surrogatepass")
        self.digest = hashlib.blake2b(self.joined, digest_size=16).digest()
        codes = {t: zlib.crc32(t.encode(errors="surrogatepass")) & (BUCKETS - 1) for t in set(self.tokens)}
        listed = np.array([codes[token] for token in self.tokens], "<u4")
        self.hashed = listed.tobytes().decode("utf-32-le", "surrogatepass")
        """One character for each token."""
        found, self.counts = np.unique(listed, return_counts=True)
        self.buckets = found.astype(np.int64)

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass
class Work:
    """Pairs of tokens that may still be compared; 10**10 take about 2 s, twice that if the lists are alike."""

    left: int

    def take(self, a: int, b: int) -> bool:
        """Whether lists of `a` and `b` tokens may be compared; if so, that is taken off."""
        cost = a * b + _COMPARISON
        if cost > self.left:
            return False
        self.left -= cost
        return True


@dataclass(frozen=True)
class Match:
    """The list at `place` (they are numbered as they were added) has ROUGE-L `share`; where comparing it would take too
    long, `exact` is false and `share` is what it can be at most."""

    place: int
    share: float
    exact: bool = True


class TokenIndex:
    """Token lists that grow in number, one by one. A list of 350 tokens takes about 4 kB. `compared` counts the pairs
    that bounds did not decide."""

    def __init__(self) -> None:
        self.compared = 0
        self._hashed: list[str] = []
        self._packed: list[bytes] = []
        self._places: dict[bytes, int] = {}
        self._postings: dict[int, array[int]] = {}
        self._column = np.full(BUCKETS, -1, np.int64)
        self._n_columns = 0
        self._counts = np.zeros((0, COLUMNS), np.int32)
        self._lengths = np.zeros(0, np.int64)
        self._common = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._hashed)

    def add(self, added: TokenList) -> int:
        """Add a list, and return its place; equal lists have one place."""
        place = len(self)
        known = self._places.setdefault(added.digest, place)
        if known < place:
            return known
        self._grow()
        self._hashed.append(added.hashed)
        self._packed.append(zlib.compress(added.joined))
        self._lengths[place] = len(added)
        columns = self._column[added.buckets]
        common = columns >= 0
        self._counts[place, columns[common]] = added.counts[common]
        self._common[place] = added.counts[common].sum()
        limit = max(_FEW, place // COMMON)
        for bucket, count in zip(added.buckets[~common].tolist(), added.counts[~common].tolist(), strict=True):
            posting = self._postings.get(bucket) or self._postings.setdefault(bucket, array("Q"))
            posting.append(place << 32 | count)
            if len(posting) > limit and self._n_columns < COLUMNS:
                self._move_to_column(bucket)
        return place

    def nearest(self, wanted: TokenList, least: float, work: Work, above: float = 0.0) -> Match | None:
        """The first of the most similar lists, if its ROUGE-L is at least `least` (at most 1) and more than `above`.

        When there is none, but `work` was not enough to compare all that may be, one of those. `work` is used up.
        """
        if not len(wanted) or not len(self):
            return None
        known = self._places.get(wanted.digest)
        if known is not None:
            return Match(known, 1.0)
        found: Match | None = None
        unsure: Match | None = None
        for place, bound in self._bounds(wanted, least):
            if bound <= above:
                break
            n = int(self._lengths[place])
            if not work.take(len(wanted), n):
                unsure = unsure or self._unsure(wanted, place, max(least, above))
                continue
            self.compared += 1
            need = least_common(max(least, above), len(wanted), n)
            common = LCSseq.similarity(wanted.hashed, self._hashed[place], score_cutoff=need)
            if common < need or f1(common, len(wanted), n) <= above:
                continue
            share = rouge_l(wanted.tokens, self._tokens(place))
            if share >= least and share > above:
                above, found = share, Match(place, share)
        return found or unsure

    def _unsure(self, wanted: TokenList, place: int, least: float) -> Match | None:
        """A list that is not compared, unless it has too few tokens in common. (Very long lists fill all buckets.)"""
        theirs = self._tokens(place)
        share = f1((Counter(wanted.tokens) & Counter(theirs)).total(), len(wanted), len(theirs))
        return Match(place, share, exact=False) if share >= least else None

    def _tokens(self, place: int) -> list[str]:
        return zlib.decompress(self._packed[place]).decode(errors="surrogatepass").split()

    def _bounds(self, wanted: TokenList, least: float) -> Iterator[tuple[int, float]]:
        """Places of the lists whose F1 with the wanted one may reach `least`, and what it is at most; highest first."""
        total = self._lengths[: len(self)] + len(wanted)
        need = np.maximum(1, least * total / 2 - 1e-6)
        columns = self._column[wanted.buckets]
        common = columns >= 0
        counts = wanted.counts[common]
        shared = self._rare(wanted.buckets[~common], wanted.counts[~common])
        left = np.flatnonzero(shared + np.minimum(self._common[: len(self)], counts.sum()) >= need)
        shared = shared[left] + np.minimum(self._counts[np.ix_(left, columns[common])], counts).sum(axis=1)
        reached = shared >= need[left]
        left, shared = left[reached], shared[reached]
        bounds = 2 * shared / total[left]
        order = np.argsort(-bounds, kind="stable")
        return zip(left[order].tolist(), bounds[order].tolist(), strict=True)

    def _rare(self, buckets: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """How many tokens each list has in common with `counts` in `buckets`."""
        found = map(self._postings.get, buckets.tolist())
        postings = [np.frombuffer(posting, np.uint64) for posting in found if posting]
        if not postings:
            return np.zeros(len(self))
        joined = np.concatenate(postings)
        lengths = [len(self._postings.get(b, ())) for b in buckets.tolist()]
        shared = np.minimum(np.repeat(counts, lengths), (joined & _COUNT).astype(np.int64))
        return np.bincount((joined >> _PLACE).astype(np.int64), shared, minlength=len(self))

    def _move_to_column(self, bucket: int) -> None:
        column = self._column[bucket] = self._n_columns
        self._n_columns += 1
        posting = np.frombuffer(self._postings.pop(bucket), np.uint64)
        places, counts = (posting >> _PLACE).astype(np.int64), (posting & _COUNT).astype(np.int64)
        self._counts[places, column] = counts
        self._common[places] += counts

    def _grow(self) -> None:
        if len(self) < len(self._lengths):
            return
        more = max(64, len(self) // 2)
        self._counts = np.concatenate([self._counts, np.zeros((more, COLUMNS), np.int32)])
        self._lengths = np.concatenate([self._lengths, np.zeros(more, np.int64)])
        self._common = np.concatenate([self._common, np.zeros(more, np.int64)])
