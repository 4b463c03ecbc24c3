"""Seeded generator of RTL designs: many families, each with random names, widths, constants, depth and reset style.

The generator writes RTL and nothing else. What must happen for a branch to be taken is found by elaboration, as for
any other design.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest.canonical import canonical_content
from llm4cov_assets.ingest.families import compares, counting, sequences, serial
from llm4cov_assets.ingest.rtl import Module
from sim.design import Design, SourceFile

FAMILIES: dict[str, Callable[[Module], None]] = {
    f.__name__: f
    for f in (
        sequences.lock,
        sequences.detector,
        sequences.fsm,
        sequences.packet,
        compares.magic,
        compares.window,
        compares.opcode,
        compares.priority,
        counting.counter,
        counting.level,
        counting.hold,
        counting.gearbox,
        counting.quota,
        counting.timeout,
        counting.register_map,
        serial.receiver,
        serial.pulse,
    )
}
"""Families by name, in a fixed order."""

HELD_OUT = ("packet", "timeout", "register_map")
"""Families that no training set contains: a parser, a time-out with retries, addressed registers."""

GENERATED_NAME = re.compile(r"(?P<family>[a-z_]+?)_(?P<stream>[a-z]*)(?P<seed>\d+)_(?P<index>\d{3,})")


@dataclass(frozen=True)
class GeneratedDesign:
    """A design with its place in the generator; the same (family, stream, seed, index) is the same design."""

    design: Design
    family: str
    stream: str
    seed: int
    index: int

    @property
    def source(self) -> str:
        return f"generator:{self.family}:{self.stream or 'train'}:{self.seed}:{self.index}"


def families(glob: str = "*") -> list[str]:
    """Names of the families that match `glob` (several separated by commas); UserError if none does."""
    patterns = [p.strip() for p in glob.split(",")]
    found = [f for f in FAMILIES if any(fnmatchcase(f, p) for p in patterns)]
    if not found:
        raise UserError(f"no generator family matches {glob!r}; there are {', '.join(FAMILIES)}")
    return found


def _draw(family: str, stream: str, seed: int, index: int, attempt: int) -> Design:
    rng = random.Random(f"{family}:{stream}:{seed}:{index}:{attempt}")
    name = f"{family}_{stream}{seed}_{index:03d}"
    make = FAMILIES[family]
    module = Module(rng, name, (make.__doc__ or family).strip().rstrip("."))
    make(module)
    return Design(name=name, sources=(SourceFile(f"{name}.sv", module.text().encode()),), top=name)


def _family(family: str, stream: str, seed: int) -> Iterator[GeneratedDesign]:
    """Endless distinct designs of one family. A draw whose content was there before is drawn again."""
    seen: set[str] = set()
    index = 0
    while True:
        for attempt in range(100):
            design = _draw(family, stream, seed, index, attempt)
            mark = canonical_content(design)
            if mark not in seen:
                break
        else:
            raise UserError(f"family {family} has no more than {index} distinct designs for seed {seed}")
        seen.add(mark)
        yield GeneratedDesign(design, family, stream, seed, index)
        index += 1


def generate(count: int, families_glob: str = "*", seed: int = 0, stream: str = "") -> list[GeneratedDesign]:
    """`count` distinct designs, the matching families in turn; a larger count only adds designs at the end.

    `stream` keeps sets of one seed apart: training designs have none, evaluation designs have `e`.
    """
    turns = [_family(f, stream, seed) for f in families(families_glob)]
    return [next(turns[i % len(turns)]) for i in range(count)]


def by_name(name: str) -> GeneratedDesign | None:
    """The generated design called `name`, or None if that is not the name of one."""
    match = GENERATED_NAME.fullmatch(name)
    if match is None or match["family"] not in FAMILIES:
        return None
    wanted = int(match["index"])
    designs = _family(match["family"], match["stream"], int(match["seed"]))
    return next(d for d in designs if d.index == wanted)
