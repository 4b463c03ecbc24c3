"""A design: what simulation sees, and what a policy may read beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, field
from functools import cached_property
from pathlib import Path

from sim import reasons
from sim.identity import content_id, sha256


def printable(text: str) -> str:
    """`text` on one line: control characters and bytes of names that are no text are written as escapes."""
    return "".join(c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode() for c in text)


class DesignError(Exception):
    """A design that cannot be read or understood. The message names the file, the line and the mend; `reason` is the
    kind of fault, one of `sim/reasons.py`."""

    def __init__(self, message: str, reason: str = reasons.DOES_NOT_PARSE) -> None:
        super().__init__(printable(message))
        self.reason = reason


@dataclass(frozen=True)
class SourceFile:
    """One file of a design. `path` is relative to the design's root, with forward slashes."""

    path: str
    content: bytes

    @property
    def text(self) -> str:
        """The content as text; bytes that are not UTF-8 become replacement characters."""
        return self.content.decode("utf-8", errors="replace")


@dataclass(frozen=True)
class Exclusion:
    """Points that an engineer leaves out of sign-off, and why; see sim/exclusions.py.

    `file` and `instance` are globs. What is empty (None for a line) is not asked for; lines are inclusive.
    """

    reason: str
    file: str = ""
    first_line: int | None = None
    last_line: int | None = None
    instance: str = ""
    metric: str = ""


def macro_texts(defines: Iterable[tuple[str, str]]) -> list[str]:
    """Macros as command lines and preprocessors take them: `NAME`, or `NAME=VALUE` if there is a value."""
    return [f"{name}={value}" if value else name for name, value in defines]


def listed(names: Sequence[str], most: int = 12) -> str:
    """Names as messages list them: the first ones, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True)
class Design:
    """RTL sources, how to compile them, and an optional specification.

    `sources` are in compile order; `includes` are headers found through `include_dirs`
    (paths relative to the root). `clock` and `reset` are hints from `design.toml` (a reset hint may be
    `!name` for active low); without them they are inferred by elaboration. `exclusions` change what is shown of
    coverage, never coverage itself. `instance` is the name that testbenches are asked to give the design, if any.
    """

    name: str
    sources: tuple[SourceFile, ...]
    top: str
    includes: tuple[SourceFile, ...] = ()
    include_dirs: tuple[str, ...] = ()
    defines: tuple[tuple[str, str], ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    specification: str = ""
    clock: str | None = None
    reset: str | None = None
    targets: tuple[tuple[str, float], ...] = field(default=(), compare=False)
    exclusions: tuple[Exclusion, ...] = ()
    instance: str = ""

    @cached_property
    def rtl_id(self) -> str:
        """Identity of what simulation sees; builds and simulations are keyed by it."""
        files = [[f.path, sha256(f.content)] for f in (*self.sources, *self.includes)]
        return content_id("rtl", files, self.include_dirs, self.defines, self.parameters, self.top)

    @cached_property
    def design_id(self) -> str:
        """Identity of the design with all that decides what a policy reads of it: specification, hints, exclusions."""
        added: list[object] = [[astuple(e) for e in self.exclusions]] if self.exclusions else []
        added += [{"instance": self.instance}] if self.instance else []
        return content_id("design", self.rtl_id, self.name, self.specification, self.clock, self.reset, *added)

    def write_to(self, folder: Path) -> None:
        """Write every file below `folder`, with the design's relative paths."""
        for f in (*self.sources, *self.includes):
            path = folder / f.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(f.content)
