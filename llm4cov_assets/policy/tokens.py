"""The vocabulary of the small student: every token is one symbol of the compact text.

Words are separated by blanks; a run of hex digits is one word and one token per digit. So `p3 a5` is three tokens,
and a value of a given width always has the same number of tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

ALIASES = tuple(f"p{i}" for i in range(64))
"""Stand-ins for the ports that conditions name."""

TAGS = ("g0", "g1", "g2")
"""Names of the goals of a prompt, repeated in the answer."""

MAX_DIGITS = 8
"""Hex digits of the widest value; wider ports have no alias."""

DIGITS = tuple("0123456789abcdef")
PAD, EOS, NEW, MORE, DO, THEN, HOLD, BURST = "<pad>", "<eos>", "new", "more", "do", ";", "x", "r"
RELATIONS = ("!=", "<=", ">=")

VOCABULARY = (PAD, EOS, NEW, MORE, DO, THEN, HOLD, BURST, *RELATIONS, *DIGITS, *TAGS, *ALIASES)
TOKEN_ID = {token: number for number, token in enumerate(VOCABULARY)}
PAD_ID, EOS_ID = TOKEN_ID[PAD], TOKEN_ID[EOS]

# a symbol with a letter beyond f, a relation, or else one character (a digit or `;`)
_SYMBOL = r"<pad>|<eos>|[a-f]*[g-z][a-z]*[0-9]*|[!<>]=|\S"


def encode(text: str) -> list[int]:
    """Token ids of compact text. ValueError names a word that is not in the vocabulary."""
    ids = []
    for symbol in re.findall(_SYMBOL, text):
        if symbol not in TOKEN_ID:
            raise ValueError(f"{symbol!r} is not a token of the compact text")
        ids.append(TOKEN_ID[symbol])
    return ids


def decode(ids: Iterable[int]) -> str:
    """Compact text of token ids, digits joined to words; padding and the end token are left out."""
    return join(VOCABULARY[i] for i in ids if i not in (PAD_ID, EOS_ID))


def join(symbols: Iterable[str]) -> str:
    """Write symbols as compact text: `p3 a5 ;` for `p3`, `a`, `5`, `;`."""
    words: list[str] = []
    in_value = False
    for symbol in symbols:
        digit = symbol in _DIGIT_SET
        if digit and in_value:
            words[-1] += symbol
        else:
            words.append(symbol)
        in_value = digit
    return " ".join(words)


_DIGIT_SET = frozenset(DIGITS)


def value_symbols(value: int, digits: int) -> list[str]:
    """The `digits` hex digits of an unsigned value, most significant first."""
    return list(f"{value:0{digits}x}")


def digits_of(width: int) -> int:
    """Hex digits of a value of `width` bits."""
    return (width + 3) // 4


def fast_tokenizer() -> PreTrainedTokenizerFast:
    """The same vocabulary as a Hugging Face tokenizer, for the checkpoint folder."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.WordLevel(dict(TOKEN_ID), unk_token=PAD))
    inner.pre_tokenizer = pre_tokenizers.Sequence(  # type: ignore[assignment]
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(Regex(_SYMBOL), "isolated")]
    )
    # a decoded answer reads like `decode`: blanks between symbols, none between the digits of a value
    inner.decoder = decoders.Sequence(  # type: ignore[assignment]
        [
            decoders.Replace(Regex("^"), " "),
            decoders.Fuse(),
            decoders.Replace(Regex("(?<= [0-9a-f]) (?=[0-9a-f]( |$))"), ""),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token=PAD,
        eos_token=EOS,
        unk_token=PAD,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=1024,
    )


def save_tokenizer(folder: Path) -> None:
    """Write the tokenizer's files into a checkpoint folder."""
    fast_tokenizer().save_pretrained(folder)
