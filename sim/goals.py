"""What a testbench may aim at: uncovered points whose conditions are known, most useful first.

A goal's steps start from reset. Where the steps of one goal begin with all steps of another, reaching the first
reaches both: the longer goal stands for the points of both, and the shorter one is left out. The most useful goal is
the one that stands for most points; among equals the one behind most guards, because random stimulus finds it last.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sim.conditions import BranchCondition, Step
from sim.elaborate import Analysis
from sim.simulation import UncoveredItem
from sim.toggles import toggling

SHALLOW_CYCLES = 2
"""Branches that this many idle cycles after reset reach are no goals of their own at the start."""

MAX_TOGGLE_SIGNALS = 32
"""Signals whose toggles are looked at for one state; those with most uncovered ones."""


@dataclass(frozen=True)
class Goal:
    """Something to reach from reset. `label` is the same for every simulation of a design (`alu.sv:33:if`,
    `toggle:data_q`); `items` are the points it stands for; `guards` the source conditions, outermost first."""

    label: str
    steps: tuple[Step, ...]
    items: tuple[UncoveredItem, ...]
    guards: tuple[str, ...]


def goals(analysis: Analysis, uncovered: Sequence[UncoveredItem] | None) -> list[Goal]:
    """Goals for the uncovered points of a state; for s0 (None) for all branches that do not come by themselves.

    Only goals with known steps. Branches come first, then toggles merged by signal. The same arguments give the same
    list.
    """
    if uncovered is None:
        wanted = [
            (b, UncoveredItem(_metric(b.what), b.file, b.line, b.instance, b.what, ""))
            for b in analysis.branches
            if b.steps is not None and not _shallow(analysis, b.steps)
        ]
        return _rank(_branch_goals(analysis, wanted))
    by_place: dict[tuple[str, int, str, str], list[BranchCondition]] = {}
    for branch in analysis.branches:
        by_place.setdefault((branch.file, branch.line, branch.what, branch.instance), []).append(branch)
    wanted = [
        (branch, item)
        for item in uncovered
        if item.metric in ("line", "branch")
        for branch in by_place.get((item.file, item.line, item.what, item.instance), ())
        if branch.steps
    ]
    return [*_rank(_branch_goals(analysis, wanted)), *_rank(_toggle_goals(analysis, uncovered))]


def _metric(what: str) -> str:
    return "line" if what in ("block", "case", "elsif") else "branch"


def _branch_goals(analysis: Analysis, wanted: Sequence[tuple[BranchCondition, UncoveredItem]]) -> list[Goal]:
    return [
        Goal(_label(analysis, branch), branch.steps or (), (item,), branch.guards)
        for branch, item in dict.fromkeys(wanted)
    ]


def _label(analysis: Analysis, branch: BranchCondition) -> str:
    top = analysis.hierarchy[0][0]
    below = branch.instance.removeprefix(top).lstrip(".")
    return f"{branch.file}:{branch.line}:{branch.what}" + (f"@{below}" if below else "")


def _shallow(analysis: Analysis, steps: tuple[Step, ...]) -> bool:
    """Whether a reset and a few cycles with all data inputs 0 do as much."""
    resets = {r.port for r in analysis.interface.resets}
    if any(c.port in resets for s in steps for c in s.constraints):
        return all(c.port in resets for s in steps for c in s.constraints)
    return all(_holds_at_zero(s) for s in steps) and _cycles(steps) <= SHALLOW_CYCLES


def _holds_at_zero(step: Step) -> bool:
    for c in step.constraints:
        holds = {"==": c.value == 0, "!=": c.value != 0, "<": c.value > 0, "<=": True, ">": False, ">=": c.value == 0}
        if not holds[c.op]:
            return False
    return True


def _rank(found: Sequence[Goal]) -> list[Goal]:
    """Merge goals that others reach on their way, the most useful first."""
    longest_first = sorted(found, key=lambda g: (-len(g.steps), -_cycles(g.steps), -len(g.guards), g.label))
    kept: list[Goal] = []
    for goal in longest_first:
        for i, longer in enumerate(kept):
            if _begins_with(longer.steps, goal.steps):
                items = tuple(dict.fromkeys([*longer.items, *goal.items]))
                guards = longer.guards if len(longer.guards) >= len(goal.guards) else goal.guards
                kept[i] = Goal(longer.label, longer.steps, items, guards)
                break
        else:
            kept.append(goal)
    return sorted(kept, key=lambda g: (-len(g.items), -len(g.guards), _cycles(g.steps), g.label))


def _begins_with(steps: tuple[Step, ...], start: tuple[Step, ...]) -> bool:
    """Whether performing `steps` performs `start` first."""
    if len(start) > len(steps) or not start:
        return not start
    last = len(start) - 1
    return steps[:last] == start[:last] and (
        steps[last].constraints == start[last].constraints and steps[last].cycles >= start[last].cycles
    )


def _cycles(steps: tuple[Step, ...]) -> int:
    return sum(s.cycles for s in steps)


_TOGGLE = re.compile(r"(?P<name>.+?)(?:\[(?P<bit>\d+)\])?(?::(?P<edge>0->1|1->0))?")


def _toggle_goals(analysis: Analysis, uncovered: Sequence[UncoveredItem]) -> list[Goal]:
    """One goal for each signal with uncovered toggles, those with most of them; bits that cannot be 1 together are
    left to the next state."""
    signals: dict[tuple[str, str], list[tuple[UncoveredItem, int, str | None]]] = {}
    for item in uncovered:
        match = _TOGGLE.fullmatch(item.what) if item.metric == "toggle" else None
        if match:
            signals.setdefault((item.instance, match["name"]), []).append((item, int(match["bit"] or 0), match["edge"]))
    most = sorted(signals.items(), key=lambda entry: -len(entry[1]))[:MAX_TOGGLE_SIGNALS]
    top = analysis.hierarchy[0][0]
    result: list[Goal] = []
    for (instance, name), found in most:
        way = toggling(analysis, f"{instance}.{name}", {bit for _, bit, _ in found})
        if way is None:
            continue
        items = tuple(
            item
            for item, bit, edge in found
            if (edge != "1->0" and bit in way.rising) or (edge != "0->1" and bit in way.falling)
        )
        if items:
            below = f"{instance}.{name}".removeprefix(f"{top}.")
            result.append(Goal(f"toggle:{below}", way.steps, items, (f"{name} toggles",)))
    return result
