"""Bodies of `drafts` and `repairs`: what a policy proposes for states."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from llm4cov_assets import rows
from llm4cov_assets.assets.recall import designs_of, states_of, testbenches_of
from llm4cov_assets.assets.work import Outcome, Work
from llm4cov_assets.policy.base import Generation, Policy, State

if TYPE_CHECKING:
    from sim.simulator import Simulator

TOGETHER = 64
"""States that a policy sees in one call; a multiple of what students decode together."""


def design_states(work: Work) -> list[State]:
    """s0 of every design of the partition."""
    return [State(design) for design in designs_of(work, work.partition)]


def selected(work: Work, simulator: Simulator) -> list[State]:
    """The states that this stage selected for repair."""
    group = work.asset.split("/")[0]
    chosen = work.read("selections", f"{group}/worst_states", work.partition)
    reached = work.read("states", f"{group}/draft_coverage", work.partition)
    states = chosen.select("state_id").unique(maintain_order=True).join(reached, on="state_id", how="left")
    designs = {d.design_id: d for d in designs_of(work, work.partition)}
    testbenches = testbenches_of(work, [f"{group}/drafts"], work.partition)
    return list(states_of(work, simulator, states, designs, testbenches).values())


def propose(work: Work, policy: Policy, states: Sequence[State], n: int) -> Outcome:
    """`n` proposals of `policy` for each state, as rows."""
    before = time.process_time()
    generations: list[Generation] = []
    with work.task(f"{policy.name} proposes", len(states) * n, "testbenches") as task:
        for start in range(0, len(states), TOGETHER):
            generations += policy.propose(states[start : start + TOGETHER], n, work.seed())
            task.advance(len(states[start : start + TOGETHER]) * n)
    tables = {"states": rows.state_rows(states)} | proposal_tables(policy, generations)
    cpu_s = round(time.process_time() - before, 2)
    return Outcome(tables, proposal_metadata(generations, len(states)) | {"cpu_s": cpu_s})


def proposal_tables(policy: Policy, generations: Sequence[Generation]) -> dict[str, pl.DataFrame]:
    """Rows of everything that a proposal leaves behind."""
    original = getattr(policy, "original", policy)
    policies = rows.policy_rows([original], {original.name: str(getattr(original, "settings", ""))})
    return {"policies": policies} | rows.answer_tables(generations)


def proposal_metadata(generations: Sequence[Generation], n_states: int) -> dict[str, Any]:
    """Counts and tokens of proposals."""
    fresh = [g for g in generations if not g.cached]
    return {
        "states": n_states,
        "proposals": len(generations),
        "unusable": sum(g.testbench is None for g in generations),
        "distinct_testbenches": len({g.testbench.testbench_id for g in generations if g.testbench}),
        "prompt_tokens": sum(g.prompt_tokens for g in generations),
        "completion_tokens": sum(g.completion_tokens for g in generations),
        "generations_run": len(fresh),
        "generations_from_cache": len(generations) - len(fresh),
    }
