"""Coverage targets from a seeded reference campaign, so that "enough" means the same for every policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from llm4cov_assets import rows
from llm4cov_assets.learning.rollout import Simulate, Step, rollout
from llm4cov_assets.policy.base import State
from llm4cov_assets.policy.scripted import scripted
from sim.coverage import summarise, union
from sim.design import Design
from sim.identity import content_id
from sim.simulation import METRICS, Coverage, CoveragePoint

SHARE = 0.95
"""Targets are this share of what the reference campaign reached."""

REPAIRS = 4
"""Proposals from the best state in each round of the campaign."""

RANDOM, DIRECTED = "scripted/random", "scripted/directed"

ROLE = "calibration"
"""Role of the campaign's transitions: they lead to targets, and are neither anybody's trajectory nor training data."""


@dataclass
class Reference:
    """What the campaign reached on one design: the merged coverage of all its simulations (all None when nothing
    ran), and the steps it took. `simulator` is the name and version that the targets hold for."""

    design: Design
    coverage: Coverage = field(default_factory=Coverage)
    simulator: str = ""
    steps: list[Step] = field(default_factory=list)
    hits: bytes = b""
    best: State | None = None

    @property
    def simulations(self) -> int:
        """Logical simulations, as with a cold cache."""
        return sum(step.logical for step in self.steps)

    def _learn(self, steps: Sequence[Step], points: Callable[[str], Sequence[CoveragePoint]]) -> None:
        self.steps += steps
        for step in steps:
            if step.simulation is None or not step.simulation.running:
                continue
            self.simulator = step.simulation.simulator
            self.hits = union(self.hits, step.simulation.hits) if self.hits else step.simulation.hits
            self.coverage = summarise(points(step.simulation.build_id), self.hits)[0]
            if self.best is None or step.simulation.score > self.best.score:
                self.best = step.next_state


def calibrate(
    designs: Sequence[Design],
    simulate: Simulate,
    points: Callable[[str], Sequence[CoveragePoint]],
    *,
    budget_sims: int = 24,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Reference]:
    """Run the reference campaign on every design, at most `budget_sims` simulations each; references in order.

    A quarter of the budget is constrained-random, a quarter directed drafts, the rest directed repairs of the best
    state so far. `simulate` and `points` are those of a Simulator. `progress` hears (simulations done, planned).
    """
    references = {d.design_id: Reference(d) for d in designs}
    quarter = max(1, budget_sims // 4)
    plan = [(RANDOM, quarter), (DIRECTED, min(quarter, budget_sims - quarter))]
    left = budget_sims - sum(n for _, n in plan)
    plan += [(DIRECTED, min(REPAIRS, left - i)) for i in range(0, left, REPAIRS)]
    total, done = budget_sims * len(references), 0
    for number, (policy, n) in enumerate(plan):
        if n < 1:
            continue
        repair = number >= 2
        states = [
            r.best if repair and r.best else State(r.design)
            for r in references.values()
            if not (repair and (r.coverage.overall or 0.0) >= 1.0)
        ]
        round_seed = int(content_id("calibration", seed, number)[:8], 16)
        taken: dict[str, list[Step]] = {}
        for step in rollout(scripted(policy), states, n, round_seed, simulate):
            taken.setdefault(step.state.design.design_id, []).append(step)
        for design_id, steps in taken.items():
            references[design_id]._learn(steps, points)
        done += n * len(references)
        progress(done, total)
    return [references[d.design_id] for d in designs]


def target_rows(references: Sequence[Reference], share: float = SHARE) -> pl.DataFrame:
    """`targets`: `share` of the reference coverage, overall and per metric, for the simulator that ran; beside them
    what a design brought along, which holds for another simulator and is never applied here."""
    found = []
    for reference in references:
        reached = {m: getattr(reference.coverage, m) for m in ("overall", *METRICS)}
        found += [
            {
                "design_id": reference.design.design_id,
                "simulator": reference.simulator,
                "metric": metric,
                "target": round(share * value, 6),
                "origin": "calibrated",
                "reference": value,
                "simulations": reference.simulations,
            }
            for metric, value in reached.items()
            if value is not None
        ]
    return pl.concat([rows.table_frame("targets", found), rows.imported_target_rows(r.design for r in references)])


def reference_rows(
    references: Sequence[Reference], points: Callable[[str], Sequence[CoveragePoint]], config_hash: str
) -> dict[str, pl.DataFrame]:
    """Rows of everything that the campaigns tried and of the targets that follow, by table.

    A draft and the repairs that go on from it are one trajectory of role `calibration`. `points` is that of the
    Simulator that ran them.
    """
    policies = [scripted(name) for name in (RANDOM, DIRECTED)]
    steps = [step for reference in references for step in reference.steps]
    return {
        "policies": rows.policy_rows(policies, {p.name: p.settings for p in policies}),
        **rows.answer_tables([s.generation for s in steps]),
        **rows.observation_tables([s.simulation for s in steps if s.simulation], points),
        "states": rows.state_rows(state for s in steps for state in (s.state, s.next_state)),
        "transitions": _transition_rows(steps, {p.policy_id: p.name for p in policies}, config_hash),
        "targets": target_rows(references),
    }


def _transition_rows(steps: Sequence[Step], names: Mapping[str, str], config_hash: str) -> pl.DataFrame:
    """`transitions` in the order of the steps, in which every state comes after the step that led to it."""
    trajectories: dict[str, str] = {}
    places: dict[str, int] = {}
    found = [rows.table_frame("transitions")]
    for step in steps:
        place = places.get(step.state.state_id, 0)
        found.append(
            rows.transition_rows(
                [step],
                config_hash=config_hash,
                stage=None,
                role=ROLE,
                policy=names[step.generation.policy_id],
                trajectories=trajectories,
                number=place,
            )
        )
        if step.next_state is not None:
            [begun] = found[-1]["trajectory_id"]
            trajectories.setdefault(step.next_state.state_id, begun)
            places.setdefault(step.next_state.state_id, place + 1)
    return pl.concat(found)
