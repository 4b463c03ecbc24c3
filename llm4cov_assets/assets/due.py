"""Which closed designs are worth closing again, and why. Pure functions; the schedule that calls them decides nothing.

A batch is due when its closure never finished, when the policies changed since (mostly: there is a newer student), when
the simulator has another version, or when a design of it is below a calibrated target and was given only the budget of
a first closure. What stays below its target after the larger budget rests until something changes, as does what two
failed runs could not close. A design with nothing left to cover is due again only with another simulator, whose points
are others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from sim.identity import content_id

REASON = "llm4cov/reason"
"""Tag of the closure runs that the sensor and the schedule start: why."""

FIRST_BUDGET = 64
"""Logical simulations spent on each design of a batch when it is closed."""

SECOND_BUDGET = 256
"""The same for a batch with a design below its target."""

TRIES = 2
"""Failed runs after which a batch is left alone until its reason changes."""

Targets = Mapping[tuple[str, str], Mapping[str, float]]
"""Calibrated targets ({metric: fraction}) by design id and simulator."""


@dataclass(frozen=True)
class ClosedDesign:
    """What a closure reached on one design. `merged` are the coverages of all its testbenches together, null where
    there are no such points; `uncovered` counts points that are left, None when no testbench ran. `testbenches` are
    the ids of those worth keeping."""

    name: str
    design_id: str
    simulator: str
    merged: Mapping[str, float | None]
    uncovered: int | None
    testbenches: tuple[str, ...]

    @property
    def finished(self) -> bool:
        """Nothing is left to cover."""
        return self.uncovered == 0

    def missed(self, targets: Targets) -> dict[str, tuple[float, float]] | None:
        """Metrics below target as (reached, target); None without targets for this design and simulator."""
        wanted = targets.get((self.design_id, self.simulator))
        if not wanted:
            return None
        # like evaluation: a metric without points has nothing left to cover
        reached = {m: 0.0 if self.uncovered is None else self.merged.get(m) for m in wanted}
        return {m: (r, wanted[m]) for m, r in reached.items() if r is not None and r < wanted[m] - 1e-9}


@dataclass(frozen=True)
class ClosedBatch:
    """The last closure of a batch: what it reached, with which policies (their hash, and the student in words), and
    the logical simulations it was given for each design."""

    designs: tuple[ClosedDesign, ...]
    policies_hash: str
    student: str
    budget_sims: int


@dataclass(frozen=True)
class Attempts:
    """Runs of a batch: is one queued or running, and how many failed for each due key."""

    unfinished: bool = False
    failed: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Due:
    """A batch to close: why, in a sentence, and with how many simulations a design. `key` stays the same while the
    reason does."""

    batch: str
    reason: str
    budget_sims: int
    key: str


@dataclass(frozen=True)
class Decision:
    """What to close; how many designs are left alone and why, in words (empty when there are none)."""

    due: list[Due]
    rest: str


def decide(
    batches: Mapping[str, ClosedBatch | None],
    policies_hash: str,
    student: str,
    targets: Targets,
    attempts: Mapping[str, Attempts],
    simulator: str = "",
) -> Decision:
    """Decide on every batch. `batches` maps each to its last closure, None when none finished; `policies_hash`,
    `student` and `simulator` (name and version, empty when it is not known) are what a closure would use now."""
    due: list[Due] = []
    resting: Counter[str] = Counter()
    for batch, closed in batches.items():
        found = _reason(closed, policies_hash, student, targets, simulator)
        if found is None:
            assert closed is not None
            resting.update(_standing(design, targets, student) for design in closed.designs)
            resting["could not be read"] += not closed.designs
            continue
        reason, budget_sims = found
        key = content_id("due", batch, policies_hash, budget_sims, closed is None, simulator)
        tried = attempts.get(batch, Attempts())
        if tried.unfinished:
            resting["being closed now"] += 1
        elif tried.failed.get(key, 0) >= TRIES:
            resting[f"given up after {TRIES} failed runs"] += 1
        else:
            due.append(Due(batch, reason, budget_sims, key))
    return Decision(due, _rest(resting))


def _reason(
    closed: ClosedBatch | None, policies_hash: str, student: str, targets: Targets, simulator: str
) -> tuple[str, int] | None:
    """Why a batch is due, and its budget; None when it is not."""
    if closed is None:
        return "its first closure has not finished", FIRST_BUDGET
    opened = [d for d in closed.designs if not d.finished]
    below = [f"{d.name} {_misses(missed)}" for d in opened if (missed := d.missed(targets))]
    budget = SECOND_BUDGET if below else FIRST_BUDGET
    if opened and closed.policies_hash != policies_hash:
        what = "the scripted policies changed" if student == closed.student else f"now there is {student}"
        left = ", ".join(f"{d.name} {_left(d)}" for d in opened)
        return f"closed with {closed.student}, {what}; not covered: {left}", budget
    others = sorted({d.simulator for d in closed.designs if d.simulator} - {simulator}) if simulator else []
    if others:
        return f"closed with {', '.join(others)}, now there is {simulator}, which may have other points", budget
    if below and closed.budget_sims < SECOND_BUDGET:
        more = f"{SECOND_BUDGET} simulations instead of {closed.budget_sims}"
        return f"below target: {'; '.join(below)}; {more}", SECOND_BUDGET
    return None


def _left(design: ClosedDesign) -> str:
    return "everything" if design.uncovered is None else f"{design.uncovered} points"


def _misses(missed: Mapping[str, tuple[float, float]]) -> str:
    return ", ".join(f"{metric} {reached:.3f} of {target:.3f}" for metric, (reached, target) in missed.items())


def _standing(design: ClosedDesign, targets: Targets, student: str) -> str:
    """Why a design that is not due may rest."""
    if design.finished:
        return "covered in full"
    missed = design.missed(targets)
    if missed is None:
        return f"closed with {student}, without a target (`llm4cov designs calibrate NAME` sets one)"
    if missed:
        return f"closed with {student}, still below target with a budget of {SECOND_BUDGET} simulations"
    return f"closed with {student} and at target"


def _rest(resting: Mapping[str, int]) -> str:
    return "; ".join(f"{n} {what}" for what, n in sorted(resting.items()) if n)
