"""Body of `closure`, and which batches are due for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from llm4cov_assets import rows
from llm4cov_assets.assets.recall import designs_of
from llm4cov_assets.assets.simulating import Counted, step_tables
from llm4cov_assets.assets.work import Outcome, Work, markdown_table
from llm4cov_assets.learning.closure import Closure, close_coverage
from llm4cov_assets.policy.base import Policy
from llm4cov_assets.policy.portfolio import portfolio
from llm4cov_assets.report.closure import closure_summary, write_closure
from llm4cov_assets.report.plots import histogram, markdown
from sim.identity import content_id

if TYPE_CHECKING:
    from sim.simulator import Simulator

BUDGET = 64
"""Logical simulations spent on one design."""


def newest_policies(home: Path) -> str:
    """Hash of the policies that a closure would use now: it changes when a new student is there."""
    return content_id([policy.policy_id for policy in portfolio((), home)])


def due_batches(home: Path, partitions: Sequence[str]) -> dict[str, str]:
    """Inbox batches whose closure has not met the policies of now, with the hash of these policies."""
    from llm4cov_assets.assets.finished import Finished
    from llm4cov_assets.profiles import PROFILES

    now = newest_policies(home)
    finished = Finished(home, PROFILES["demo"].config_hash)
    records = {batch: finished.get("closure", batch) for batch in partitions if batch.startswith("inbox-")}
    return {batch: now for batch, r in records.items() if r is None or r.metadata.get("policies_hash") != now}


def closed(work: Work, simulator: Simulator) -> Outcome:
    """Close every design of the partition; the best testbenches lie in `reports/closure/<batch>/<design>/`."""
    policies = portfolio((), work.store.home)
    simulate = Counted(work, simulator)
    found: list[Closure] = []
    designs = designs_of(work, work.partition)
    with work.task("closing coverage", len(designs), "designs") as task:
        for design in designs:
            found.append(
                close_coverage(
                    design, policies, simulate, points=simulator.points, budget_sims=BUDGET, seed=work.profile.seed
                )
            )
            task.advance()
    folder = work.store.home / "reports" / "closure" / (work.partition or "")
    summaries = [closure_summary(closure) for closure in found]
    for closure, summary in zip(found, summaries, strict=True):
        write_closure(closure, summary, folder / closure.design.name)
    shown = pl.DataFrame(
        {
            "design": [c.design.name for c in found],
            "merged": [c.merged.overall or 0.0 for c in found],
            "best": [c.best.score if c.best else 0.0 for c in found],
            "testbenches": [len(c.testbenches) for c in found],
            "simulations": [c.simulations for c in found],
            "stopped": [c.stopped for c in found],
        }
    )
    coverage = histogram(shown["merged"].to_list(), "merged coverage")
    metadata = {
        "designs": len(found),
        "policies": ", ".join(p.name for p in policies),
        "policies_hash": newest_policies(work.store.home),
        "closure": {"markdown": markdown_table(shown)},
        "coverage": {"markdown": markdown(coverage, "coverage")},
        "testbenches": str(folder),
    }
    return Outcome(closure_tables(work, simulator, found, policies), metadata | simulate.costs, simulate.logical)


def closure_tables(
    work: Work, simulator: Simulator, closures: Sequence[Closure], policies: Sequence[Policy]
) -> dict[str, pl.DataFrame]:
    """Rows of everything that closures leave behind. The steps of one closure are one trajectory."""
    config_hash = work.profile.config_hash
    transitions = [rows.table_frame("transitions")]
    for closure in closures:
        states = {s.step.state.state_id for s in closure.steps}
        for s in closure.steps:
            begins = rows.trajectory_id(config_hash, None, "closure", closure.steps[0].generation.generation_id)
            transitions.append(
                rows.transition_rows(
                    [s.step],
                    config_hash=config_hash,
                    stage=None,
                    role="repair" if s.step.state.testbench else "draft",
                    policy=s.policy,
                    trajectories=dict.fromkeys(states, begins),
                ).with_columns(accepted=pl.lit(s.accepted))
            )
    steps = [s.step for closure in closures for s in closure.steps]
    generations = [step.generation for step in steps]
    settings = {p.name: str(getattr(p, "settings", "")) for p in policies}
    return {
        "policies": rows.policy_rows(policies, settings),
        "prompts": rows.prompt_rows(generations),
        "generations": rows.generation_rows(generations),
        "testbenches": rows.testbench_rows(g.testbench for g in generations),
    } | step_tables(simulator, steps, pl.concat(transitions))
