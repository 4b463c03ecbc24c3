"""What a testbench may aim at: uncovered points whose conditions are known, most useful first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sim.conditions import Step
from sim.elaborate import Analysis
from sim.simulation import UncoveredItem


@dataclass(frozen=True)
class Goal:
    """Something to reach from reset. `label` is the same for every simulation of a design (`alu.sv:33:if`,
    `toggle:data_q`); `items` are the uncovered points it stands for; `guards` the source conditions."""

    label: str
    steps: tuple[Step, ...]
    items: tuple[UncoveredItem, ...]
    guards: tuple[str, ...]


def goals(analysis: Analysis, uncovered: Sequence[UncoveredItem] | None) -> list[Goal]:
    """Goals for the uncovered points of a state, or (None) for all branches of the design."""
    return []
