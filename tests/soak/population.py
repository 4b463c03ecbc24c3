"""RTL texts by the ten thousand, as various as those of public data sets and made of real ones: fragments of picorv32,
serv, ibex, the bundled corpus and the generator families, under other names. Text `i` is the same on every machine.

They read like RTL and need not compile. Half of them are new, some come from the generator, and the others are earlier
ones that someone changed: a little, or until hardly anything is left.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from random import Random

from llm4cov_assets.ingest.generator import generate
from llm4cov_assets.ingest.registry import corpus_designs
from sim.design import Design, SourceFile

PACKAGES = ("pythondata_cpu_picorv32", "pythondata_cpu_serv", "pythondata_cpu_ibex")
MEDIAN_LINES, SPREAD, MOST_LINES = 60, 0.8, 6000
"""Lines of a new text are lognormal: a third have under 45, one in a hundred has over 380."""

_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_RESERVED = frozenset(
    _WORD.findall(
        "module endmodule input output inout wire reg logic assign always always_ff always_comb begin end if else case "
        "endcase default posedge negedge or and not parameter localparam integer genvar generate endgenerate for "
        "function endfunction signed typedef enum struct packed unique initial int bit import package endpackage"
    )
)


class Population:
    """The texts. `design(i)` costs the making of one or two texts, whatever `i` is."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def design(self, i: int) -> Design:
        return Design(f"d{i}", (SourceFile(f"d{i}.v", self.text(i).encode()),), f"d{i}")

    def text(self, i: int) -> str:
        rng = self._rng(i)
        kind = rng.random()
        if kind < 0.55 or i < 10:
            return _new(rng)
        if kind < 0.65:
            return _generated(rng)
        return changed(self.text(self._origin(i, rng)), rng, rng.random())

    def _origin(self, i: int, rng: Random) -> int:
        """An earlier text that is no changed one itself."""
        while True:
            j = rng.randrange(i)
            if j < 10 or self._rng(j).random() < 0.65:
                return j

    def _rng(self, i: int) -> Random:
        return Random(f"{self._seed}:{i}")


def changed(text: str, rng: Random, strength: float) -> str:
    """The text after two of: renaming, other constants, other spacing, blocks moved, dropped or added. `strength`
    from 0 (as it was) to 1 says how much of it is touched."""
    for change in rng.sample(CHANGES, 2):
        text = change(text, rng, strength)
    return text


def renamed(text: str, rng: Random, strength: float) -> str:
    """A share of the names replaced wherever they stand."""
    names = sorted({w for w in _WORD.findall(text) if w not in _RESERVED})
    names = rng.sample(names, round(strength * len(names)))
    new = {name: f"{name[: rng.randint(1, 4)]}_{rng.randrange(36**3):x}" for name in names}
    return _WORD.sub(lambda match: new.get(match[0], match[0]), text)


def recounted(text: str, rng: Random, strength: float) -> str:
    """A share of the constants replaced."""
    return re.sub(r"\b\d+\b", lambda m: str(rng.randrange(64)) if rng.random() < strength else m[0], text)


def respaced(text: str, rng: Random, strength: float) -> str:
    """Operators of a share of the lines set apart, or together: other tokens to who splits at white space."""

    def line(text: str) -> str:
        if rng.random() >= strength:
            return text
        if rng.random() < 0.5:
            return re.sub(r" *(<=|==|[-=+*&|?:,;()]) *", r"\1", text)
        return re.sub(r" *(<=|==|[=+*&|?:,;()]) *", r" \1 ", text)

    return "\n".join(map(line, text.split("\n")))


def moved(text: str, rng: Random, strength: float) -> str:
    """A share of the blocks in other places."""
    blocks = _blocks(text)
    places = rng.sample(range(len(blocks)), round(strength * len(blocks)))
    for a, b in zip(places, sorted(places), strict=True):
        blocks[a], blocks[b] = blocks[b], blocks[a]
    return "\n".join(blocks)


def dropped(text: str, rng: Random, strength: float) -> str:
    """A share of the blocks left out."""
    return "\n".join(block for block in _blocks(text) if rng.random() >= strength)


def extended(text: str, rng: Random, strength: float) -> str:
    """As many new lines as a share of the text has."""
    return f"{text}\n{_body(rng, round(2 * strength * text.count(chr(10))))}"


CHANGES: tuple[Callable[[str, Random, float], str], ...] = (renamed, recounted, respaced, moved, dropped, extended)


def _new(rng: Random) -> str:
    n = min(MOST_LINES, round(MEDIAN_LINES * 2.718281828 ** rng.gauss(0, SPREAD)))
    return f"module m{rng.randrange(36**4):x} (\n{_body(rng, n)}\nendmodule\n"


def _body(rng: Random, n_lines: int) -> str:
    """Passages of a few files, each under names of its own."""
    files = [rng.choice(_originals()) for _ in range(1 + n_lines // 150)]
    lines: list[str] = []
    while len(lines) < n_lines:
        original = rng.choice(files)
        n = min(n_lines - len(lines), 5 + round(rng.expovariate(1 / 25)))
        at = rng.randrange(max(1, len(original) - n))
        lines += renamed("\n".join(original[at : at + n]), rng, rng.random()).split("\n")
    return "\n".join(lines)


def _generated(rng: Random) -> str:
    made = _families()
    return made[rng.randrange(len(made))]


def _blocks(text: str) -> list[str]:
    lines = text.split("\n")
    return ["\n".join(lines[i : i + 5]) for i in range(0, len(lines), 5)]


@lru_cache(maxsize=1)
def _families() -> list[str]:
    return [g.design.sources[0].text for g in generate(600, seed=99)]


@lru_cache(maxsize=1)
def _originals() -> list[list[str]]:
    """The lines of the real files, licences apart."""
    texts = [f.text for d in corpus_designs() for f in d.sources]
    for package in PACKAGES:
        spec = find_spec(package)
        if spec and spec.origin:
            folder = Path(spec.origin).parent
            paths = sorted(p for p in folder.rglob("*") if p.suffix in (".v", ".sv"))
            texts += [p.read_text(errors="replace") for p in paths]
    lines = ([n for n in text.split("\n") if n.strip() and not n.startswith("//")] for text in texts)
    return [found for found in lines if len(found) >= 20]
