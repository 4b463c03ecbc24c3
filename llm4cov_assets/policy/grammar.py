"""The grammar of answers, as an automaton that runs for a whole batch at once.

    answer  = burst* (goal+ | nothing, if there was a burst) <eos>
    burst   = r digit digit                                  cycles of random stimulus, 01 to ff
    goal    = tag step (; step)* [burst]                     each tag of the prompt at most once
    step    = (alias value)* [x digit digit]                 not empty; each alias at most once; cycles 01 to ff
    value   = as many digits as the alias's port needs, the first within its width

Decoding under it makes every answer legal, even an untrained student's. It holds no knowledge of the goals beyond
their tags, so it gives no direction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llm4cov_assets.policy import tokens as t

MAX_BURSTS = 4
"""Random bursts before the goals, at most; one more may follow each goal. A burst has at most 255 cycles."""

MAX_STEPS = 64
"""Steps of one goal, at most."""

_CLOSING = 4 + t.MAX_DIGITS
"""An answer with fewer tokens left than this may only end: what opens now must still be finished."""

_SIZE = len(t.VOCABULARY)
_DIGITS = np.array([t.TOKEN_ID[d] for d in t.DIGITS])
_FIRST_DIGIT = _DIGITS[0]
_ALIASES = np.array([t.TOKEN_ID[a] for a in t.ALIASES])
_TAGS = np.array([t.TOKEN_ID[g] for g in t.TAGS])
_BURST, _HOLD, _THEN = t.TOKEN_ID[t.BURST], t.TOKEN_ID[t.HOLD], t.TOKEN_ID[t.THEN]

# modes of the automaton: what may come next
_OPEN, _OPENED, _COUNT, _COUNT_LAST, _COUNT_LAST_NONZERO, _STEP, _VALUE, _SET, _HELD, _ENDED, _DONE = range(11)
_FIRST = 11
"""Modes _FIRST + k: the first digit of a value, at most 2^(k+1) - 1."""


def _table() -> NDArray[np.bool_]:
    """What each mode allows before a row's own limits."""
    allowed = np.zeros((_FIRST + 4, _SIZE), dtype=bool)
    for mode in (_OPEN, _OPENED):
        allowed[mode, [_BURST, *_TAGS]] = True
    for mode in (_COUNT, _COUNT_LAST, _VALUE):
        allowed[mode, _DIGITS] = True
    allowed[_COUNT_LAST_NONZERO, _DIGITS[1:]] = True
    allowed[_STEP, [*_ALIASES, _HOLD]] = True
    allowed[_SET, [*_ALIASES, _HOLD, _THEN, _BURST, *_TAGS]] = True
    allowed[_HELD, [_THEN, _BURST, *_TAGS]] = True
    allowed[_ENDED, _TAGS] = True
    allowed[[_OPENED, _SET, _HELD, _ENDED], t.EOS_ID] = True
    allowed[_DONE, t.PAD_ID] = True
    for bits in range(4):
        allowed[_FIRST + bits, _DIGITS[: 2 ** (bits + 1)]] = True
    return allowed


_ALLOWED = _table()
_ENDING = np.zeros(_SIZE, dtype=bool)
_ENDING[t.EOS_ID] = True
_MAY_END = _ALLOWED[:, t.EOS_ID]


@dataclass(frozen=True)
class Shape:
    """What an answer may name: the width in bits of each alias, and how many tags (g0 to g<n-1>) there are."""

    widths: Mapping[str, int]
    tags: int


class AnswerGrammar:
    """The automaton for a batch of answers. `budget`: tokens of the longest answer, its end token included."""

    def __init__(self, shapes: Sequence[Shape], budget: int) -> None:
        rows = len(shapes)
        self._mode = np.full(rows, _OPEN)
        self._left = np.full(rows, budget)
        self._bursts = np.zeros(rows, dtype=int)
        self._steps = np.zeros(rows, dtype=int)
        self._digits_left = np.zeros(rows, dtype=int)
        self._in_burst = np.zeros(rows, dtype=bool)
        # per row and token: digits of the alias's value, and how large the first one may be
        self._digits = np.zeros((rows, _SIZE), dtype=int)
        self._first = np.zeros((rows, _SIZE), dtype=int)
        self._free = np.ones((rows, _SIZE), dtype=bool)
        self._free[:, _ALIASES] = False
        self._free[:, _TAGS] = False
        for row, shape in enumerate(shapes):
            for alias, width in shape.widths.items():
                token = t.TOKEN_ID[alias]
                self._digits[row, token] = t.digits_of(width)
                self._first[row, token] = (width - 1) % 4
                self._free[row, token] = True
            self._free[row, _TAGS[: shape.tags]] = True
        self._known = self._free.copy()

    @property
    def done(self) -> NDArray[np.bool_]:
        """Which rows have ended, shape (rows,)."""
        return self._mode == _DONE

    def mask(self) -> NDArray[np.bool_]:
        """Which tokens may come next, shape (rows, vocabulary); at least one in every row."""
        mask = _ALLOWED[self._mode] & self._free
        closing = (self._left < _CLOSING) & _MAY_END[self._mode]
        return np.where(closing[:, None], _ENDING, mask)

    def advance(self, chosen: NDArray[np.integer]) -> None:
        """Take one allowed token per row, shape (rows,)."""
        rows = np.arange(len(chosen))
        mode, self._left = self._mode, self._left - 1
        is_burst, is_hold, is_then = chosen == _BURST, chosen == _HOLD, chosen == _THEN
        is_alias = (chosen >= _ALIASES[0]) & (chosen <= _ALIASES[-1])
        is_tag = (chosen >= _TAGS[0]) & (chosen <= _TAGS[-1])
        in_value = (mode >= _FIRST) | (mode == _VALUE)
        count_last = (mode == _COUNT_LAST) | (mode == _COUNT_LAST_NONZERO)

        in_goal = self._steps > 0
        self._bursts += is_burst & ~in_goal
        self._in_burst = np.where(is_burst, True, np.where(is_hold, False, self._in_burst))
        self._steps = np.where(is_tag, 1, self._steps + is_then)
        self._digits_left = np.where(is_alias, self._digits[rows, chosen], self._digits_left - in_value)

        # a new step may name every alias of the row again; a named tag or alias is used up
        fresh = is_then | is_tag
        if fresh.any():
            self._free[np.ix_(fresh, _ALIASES)] = self._known[np.ix_(fresh, _ALIASES)]
        used = is_alias | is_tag
        self._free[rows[used], chosen[used]] = False
        # before the goals so many bursts; the one after a goal is its last action
        self._free[:, _BURST] = (self._bursts < MAX_BURSTS) | (self._steps > 0)
        self._free[:, _THEN] = self._steps < MAX_STEPS

        self._mode = np.select(
            [
                chosen == t.EOS_ID, mode == _DONE, is_burst | is_hold, fresh, is_alias,
                (mode == _COUNT) & (chosen == _FIRST_DIGIT), mode == _COUNT, count_last & self._in_burst & in_goal,
                count_last & self._in_burst, count_last,
                in_value & (self._digits_left == 0), in_value,
            ],
            [
                _DONE, _DONE, _COUNT, _STEP, _FIRST + self._first[rows, chosen],
                _COUNT_LAST_NONZERO, _COUNT_LAST, _ENDED,
                _OPENED, _HELD,
                _SET, _VALUE,
            ],
        )  # fmt: skip

    def keep(self, rows: NDArray[np.integer]) -> None:
        """Go on with these rows only, in this order."""
        for name, value in vars(self).items():
            setattr(self, name, value[rows])


def first_error(ids: Sequence[int], shape: Shape, budget: int) -> int | None:
    """Index of the first token that the grammar forbids, len(ids) if the answer does not end, None if it is legal."""
    grammar = AnswerGrammar([shape], budget)
    for index, token in enumerate(ids):
        if not grammar.mask()[0, token]:
            return index
        grammar.advance(np.array([token]))
    return None if grammar.done[0] else len(ids)
