"""Objects made again from rows: states and generations as the policies and the learning functions know them.

Simulations come back through the simulation cache, which holds the whole result; an entry that was evicted is
simulated again and gives the same result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import polars as pl

from llm4cov_assets.assets.batches import open_batch
from llm4cov_assets.assets.work import Work
from llm4cov_assets.errors import UserError
from llm4cov_assets.policy.base import Generation, State
from sim.design import Design
from sim.simulation import Simulation, Testbench

if TYPE_CHECKING:
    from sim.simulator import Simulator


def designs_of(work: Work, partition: str | None) -> list[Design]:
    """The designs of a partition that the asset `designs` accepted for this configuration."""
    accepted = set(work.read("designs", "designs", partition)["design_id"])
    if not accepted and work.finished.get("designs", partition) is None:
        raise UserError(f"batch {partition} has no designs for this configuration: materialise `designs` first")
    records = open_batch(partition or "", work.profile, work.store.home).records
    return [r.design for r in records if r.design.design_id in accepted]


def testbenches_of(work: Work, assets: Iterable[str], partition: str | None) -> dict[str, Testbench]:
    """Testbenches that `assets` wrote, by id."""
    frames = [work.read("testbenches", asset, partition) for asset in assets]
    rows = pl.concat([f.select("testbench_id", "language", "text") for f in frames])
    return {i: Testbench(text, language) for i, language, text in rows.iter_rows()}


def generations_of(work: Work, asset: str, partition: str | None) -> list[Generation]:
    """Generations that `asset` wrote, in the order in which they were proposed."""
    testbenches = testbenches_of(work, [asset], partition)
    prompts = dict(work.read("prompts", asset, partition).select("prompt_id", "text").iter_rows())
    return [
        Generation(
            generation_id=row["generation_id"],
            policy_id=row["policy_id"],
            state_id=row["state_id"],
            sample=row["sample"],
            seed=row["seed"],
            prompt=prompts[row["prompt_id"]],
            answer=row["text"],
            testbench=testbenches[row["testbench_id"]] if row["testbench_id"] else None,
            finish_reason=row["finish_reason"],
            error=row["error"],
            prompt_tokens=row["prompt_tokens"],
            completion_tokens=row["completion_tokens"],
            latency_s=row["latency_s"],
            retries=row["retries"],
            cost_usd=row["cost_usd"],
        )
        for row in work.read("generations", asset, partition).iter_rows(named=True)
    ]


def states_of(
    work: Work,
    simulator: Simulator,
    rows: pl.DataFrame,
    designs: Mapping[str, Design],
    testbenches: Mapping[str, Testbench],
) -> dict[str, State]:
    """States by id, from `rows` with `state_id, design_id, testbench_id`; a null testbench is s0."""
    wanted: dict[str, dict[str, Testbench]] = {}
    for design_id, testbench_id in rows.select("design_id", "testbench_id").unique(maintain_order=True).iter_rows():
        if testbench_id:
            wanted.setdefault(design_id, {})[testbench_id] = testbenches[testbench_id]
    jobs = [(designs[design_id], list(found.values())) for design_id, found in wanted.items()]
    known: dict[tuple[str, str], Simulation] = {}
    for number, results in simulator.run_batches(jobs, limits=work.profile.limits, seed=0):
        design, benches = jobs[number]
        known |= {(design.design_id, b.testbench_id): s for b, s in zip(benches, results, strict=True)}
    return {
        state_id: State(designs[design_id], testbenches[testbench_id], known[design_id, testbench_id])
        if testbench_id
        else State(designs[design_id])
        for state_id, design_id, testbench_id in rows.select("state_id", "design_id", "testbench_id").iter_rows()
    }
