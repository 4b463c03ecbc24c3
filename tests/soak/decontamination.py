"""Of 87,000 texts exactly those are found that resemble one of 83 evaluation designs, or each other.

The texts are those of tests/soak/population.py. Every hundredth is a planted copy of an evaluation design: renamed in
part, laid out anew, with blocks moved, or with exactly half of its tokens kept, or fewer. All planted copies and a
sample of the others are compared with everything, and what the indexes say of them must be equal.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from rapidfuzz.distance import LCSseq

from llm4cov_assets.ingest.canonical import canonical_content
from llm4cov_assets.ingest.generator import HELD_OUT, generate
from llm4cov_assets.ingest.overlap import SIMILAR, EvaluationIndex, Overlap, SplitIndex
from llm4cov_assets.ingest.registry import EVALUATION_SEED, EVALUATION_STREAM, corpus_designs
from llm4cov_assets.ingest.similarity import f1
from sim.design import Design, SourceFile
from tests.soak.population import Population, moved, renamed, respaced

EVERY = 100
"""One text in so many is planted."""


@dataclass
class Count:
    """What one index did."""

    cpu_s: float = 0.0
    found: int = 0
    identical: int = 0
    checked: int = 0
    alike: int = 0
    wrong: list[str] = field(default_factory=lambda: [])

    @contextmanager
    def time(self) -> Iterator[None]:
        began = time.process_time()
        yield
        self.cpu_s += time.process_time() - began

    def count(self, found: Overlap | None) -> Overlap | None:
        self.found += found is not None
        self.identical += bool(found and found.identical)
        return found

    def check(self, name: str, found: Overlap | None, truth: float) -> None:
        """Compare an answer with the highest ROUGE-L that there is."""
        if found and found.identical:
            return
        self.checked += 1
        self.alike += truth >= SIMILAR
        said = found.share if found else 0.0
        if said != (truth if truth >= SIMILAR else 0.0) or (found and not found.exact):
            self.wrong.append(f"{name}: {found}, ROUGE-L is {truth:.4f}")

    def line(self, what: str, compared: int) -> str:
        return (
            f"{what}: {self.cpu_s:,.0f} CPU s, {compared:,} pairs compared, {self.found:,} alike"
            f" ({self.identical:,} of them identical); {self.checked:,} checked against comparing all,"
            f" {self.alike:,} of them alike, {len(self.wrong)} wrong"
        )


class Truth:
    """The highest ROUGE-L of a text with others, each compared that is not too long or too short."""

    def __init__(self, text: str) -> None:
        self._ids: dict[str, int] = {}
        self._tokens = [self._ids.setdefault(t, len(self._ids)) for t in text.split()]
        self.share = 0.0

    def compare(self, tokens: Sequence[str]) -> None:
        a, b = len(self._tokens), len(tokens)
        if 2 * min(a, b) < SIMILAR * (a + b):
            return
        other = [self._ids.get(t, -1) for t in tokens]
        self.share = max(self.share, f1(LCSseq.similarity(self._tokens, other), a, b))


def evaluation_designs(count: int) -> list[Design]:
    """Hand-written designs, then those of held-out families."""
    written = list(corpus_designs())
    generated = generate(max(0, count - len(written)), ",".join(HELD_OUT), EVALUATION_SEED, EVALUATION_STREAM)
    return [*written, *(g.design for g in generated)][:count]


def planted(i: int, evaluation: Sequence[Design]) -> Design:
    """Copy number `i`."""
    rng = Random(f"planted:{i}")
    original = rng.choice(evaluation)
    text = max((f.text for f in original.sources), key=len)
    words = text.split()
    kept = {3: -(-len(words) // 2), 4: len(words) // 2 - 1, 5: len(words) // 3}.get(i % 6)
    if kept is not None:
        places = set(rng.sample(range(len(words)), kept))
        text = " ".join(word if at in places else f"w{i}_{at}" for at, word in enumerate(words))
    else:
        text = (renamed, respaced, moved)[i % 6](text, rng, rng.random())
    return Design(f"planted{i}", (SourceFile(f"planted{i}.v", text.encode()),), f"planted{i}")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", type=int, default=87_000, help="texts (default: 87,000)")
    parser.add_argument("--evaluation", type=int, default=83, help="evaluation designs (default: 83)")
    parser.add_argument("--sample", type=int, default=120, help="texts that are compared with all (default: 120)")
    parser.add_argument("--seed", type=int, default=0, help="another population")


def run(options: argparse.Namespace) -> bool:
    population = Population(options.seed)
    evaluation = evaluation_designs(options.evaluation)
    references = [f.text.split() for d in evaluation for f in (*d.sources, *d.includes)]
    contents = {canonical_content(d) for d in evaluation}

    def text(i: int) -> Design:
        return planted(i // EVERY, evaluation) if i % EVERY == EVERY - 1 else population.design(i)

    places = sorted(Random(options.seed).sample(range(options.n), min(options.sample, options.n)))
    sample = {i: Truth(text(i).sources[0].text) for i in places}
    memory = _memory()
    between, inside = Count(), Count()
    against, split = EvaluationIndex(evaluation), SplitIndex()
    for i in range(options.n):
        design = text(i)
        with between.time():
            contaminated = between.count(against.nearest(design))
        with inside.time():
            near = inside.count(split.add(design.name, design))
        tokens = design.sources[0].text.split()
        if i in sample or i % EVERY == EVERY - 1:
            truth = Truth(design.sources[0].text)
            for reference in references:
                truth.compare(reference)
            between.check(design.name, contaminated, truth.share)
            if canonical_content(design) in contents and contaminated is None:
                between.wrong.append(f"{design.name}: identical to an evaluation design")
        if i in sample:
            inside.check(design.name, near, sample.pop(i).share)
        for waiting in sample.values():
            waiting.compare(tokens)
        if (i + 1) % 10_000 == 0:
            spent = f"{between.cpu_s:,.0f} CPU s between splits, {inside.cpu_s:,.0f} inside"
            print(f"{i + 1:,} texts, {spent}, {_memory() - memory:,} MB more", flush=True)
    print(between.line(f"between {options.n:,} texts and {len(evaluation)} evaluation designs", against.compared))
    print(inside.line(f"inside {options.n:,} texts", split.compared))
    print(f"{_memory() - memory:,} MB of memory for {len(split):,} different files; {_memory():,} MB in all")
    print("\n".join([*between.wrong, *inside.wrong][:20]), end="")
    return not between.wrong and not inside.wrong


def _memory() -> int:
    """Highest so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
