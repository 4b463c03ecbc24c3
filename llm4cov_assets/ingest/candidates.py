"""What importers make of a source: candidates, one for each record or folder that may be a design."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sim.assembly import Gathered


@dataclass(frozen=True)
class Candidate:
    """One record of a source, before anybody knows whether it is a design.

    `name` is what the design would be called: the record's id, or the name of the folder or file. `place` is what
    messages begin with: a path, or `file:line` of a record. `gather` reads it; it raises DesignError, with its reason,
    for what is no design, and never anything else. `difficulty` is what the source says of it, if anything.
    """

    name: str
    place: str
    gather: Callable[[], Gathered]
    difficulty: str = ""
