"""Body of `closure`, and what is known about the closures there were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
import polars as pl

from llm4cov_assets import rows
from llm4cov_assets.assets.due import FIRST_BUDGET, Attempts, ClosedBatch, ClosedDesign, Decision, Targets, decide
from llm4cov_assets.assets.earlier import Earlier
from llm4cov_assets.assets.finished import Finished
from llm4cov_assets.assets.progress import Silent
from llm4cov_assets.assets.recall import designs_of, testbenches_of
from llm4cov_assets.assets.simulating import Counted, step_tables
from llm4cov_assets.assets.work import Outcome, Work, markdown_table
from llm4cov_assets.ingest.kept import batch_folder
from llm4cov_assets.ingest.registry import reference_targets
from llm4cov_assets.ingest.versions import PREFIX
from llm4cov_assets.learning.closure import MERGE_POLICY, Closure, close_coverage
from llm4cov_assets.policy.base import Policy
from llm4cov_assets.policy.portfolio import portfolio
from llm4cov_assets.profiles import PROFILES
from llm4cov_assets.report.closure import closure_summary, write_closure
from llm4cov_assets.report.plots import histogram, markdown
from sim.identity import content_id
from warehouse.store import Store

if TYPE_CHECKING:
    from sim.simulator import Simulator

DUE_KEY = "llm4cov/due_key"
"""Tag of a scheduled closure run: what it was due for."""

SIMULATIONS_PER_ROUND = 8
"""A closure may take a round for each so many simulations of its budget; mostly the budget ends first."""

PATIENCE = 3
"""Rounds without a new point that end a first closure; a larger budget buys as much more patience."""


def policies_hash(policies: Iterable[Policy]) -> str:
    """Hash of the policies of a closure: it changes when there is a new student."""
    return content_id([policy.policy_id for policy in policies])


def student_in_words(policies: Iterable[Policy]) -> str:
    """The student among the policies of a closure, as a person reads it."""
    found = [f"{p.name} (checkpoint {p.checkpoint_id[:8]})" for p in policies if p.checkpoint_id]
    return ", ".join(found) or "no student"


def decision(home: Path, instance: dg.DagsterInstance, batches: Sequence[str]) -> Decision:
    """What is due among `batches`, from the results of the default profile and the runs there were."""
    finished = Finished(home, PROFILES["demo"].config_hash)
    policies = portfolio((), home)
    return decide(
        {batch: _last_closure(finished, batch) for batch in batches},
        policies_hash(policies),
        student_in_words(policies),
        calibrated_targets(Store(home)),
        {batch: _attempts(instance, batch) for batch in batches},
        _simulator(home),
    )


def closed_imports(home: Path, batches: Sequence[str]) -> list[str]:
    """Those of `batches` that were imported, not from the inbox, and closed once: by hand, as nothing closes them by
    itself the first time."""
    closed = set(Finished(home, PROFILES["demo"].config_hash).partitions("closure"))
    return [b for b in batches if b in closed and not b.startswith(PREFIX) and batch_folder(home, b).is_dir()]


def _simulator(home: Path) -> str:
    """Name and version of the simulator that a closure would use now; empty when there is none."""
    from sim.toolchain import ToolError, find_toolchain

    try:
        return find_toolchain(home).simulator
    except ToolError:
        return ""


def calibrated_targets(store: Store) -> Targets:
    """The newest calibrated targets of each design and simulator; for a bundled design without any, those of its long
    reference campaign. Imported ones hold for another simulator."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in store.read("targets").filter(origin="calibrated").sort("created_at").iter_rows(named=True):
        found.setdefault((row["design_id"], row["simulator"]), {})[row["metric"]] = row["target"]
    return reference_targets() | found


def _last_closure(finished: Finished, batch: str) -> ClosedBatch | None:
    record = finished.get("closure", batch)
    # a record of an older version has no memo: its batch counts as not closed
    if record is None or not record.memo:
        return None
    designs = (ClosedDesign(**{**d, "testbenches": tuple(d["testbenches"])}) for d in record.memo["designs"])
    return ClosedBatch(**{**record.memo, "designs": tuple(designs)})


def _attempts(instance: dg.DagsterInstance, batch: str) -> Attempts:
    runs = instance.get_runs(dg.RunsFilter(job_name="close_new_designs", tags={"dagster/partition": batch}))
    ended_badly = (dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)
    return Attempts(
        unfinished=any(not run.is_finished for run in runs),
        failed=Counter(run.tags[DUE_KEY] for run in runs if run.status in ended_badly and DUE_KEY in run.tags),
    )


def closed(work: Work, simulator: Simulator, budget_sims: int, reason: str) -> Outcome:
    """Close every design of the partition; the best testbenches lie in `reports/closure/<batch>/<design>/`.

    Each design starts from what its last closure found, so that closing again never loses coverage.
    """
    policies = portfolio((), work.store.home)
    simulate = Counted(replace(work, reporter=Silent()), simulator)
    earlier = _earlier(work)
    found: list[Closure] = []
    for design in designs_of(work, work.partition):
        known = earlier.get(design.design_id)
        with work.task(f"closing {design.name}", budget_sims, "simulations") as task:
            found.append(
                close_coverage(
                    design, [*([known] if known else []), *policies], simulate, points=simulator.points,
                    rounds=budget_sims // SIMULATIONS_PER_ROUND, budget_sims=budget_sims,
                    patience=max(PATIENCE, PATIENCE * budget_sims // FIRST_BUDGET),
                    # with the seed of the first closure most proposals would be the same again
                    seed=work.seed(policies_hash(policies), budget_sims, known.policy_id) if known
                    else work.profile.seed,
                    progress=lambda step, task=task: task.advance(step.logical),
                )
            )  # fmt: skip
    folder = work.store.home / "reports" / "closure" / (work.partition or "")
    for closure in found:
        _report(closure, folder / closure.design.name)
    result = ClosedBatch(
        tuple(_closed_design(c) for c in found), policies_hash(policies), student_in_words(policies), budget_sims
    )
    tables = closure_tables(work, simulator, found, [*earlier.values(), *policies])
    metadata = {"reason": reason} | _metadata(result, found, calibrated_targets(work.store), folder)
    return Outcome(tables, metadata | simulate.costs, simulate.logical, asdict(result))


def _earlier(work: Work) -> dict[str, Earlier]:
    """What the last closure of this partition found, by design id."""
    last = _last_closure(work.finished, work.partition or "")
    if last is None:
        return {}
    texts = testbenches_of(work, ["closure"], work.partition)
    kept = {d.design_id: [texts[i] for i in d.testbenches if i in texts] for d in last.designs}
    return {design_id: Earlier(testbenches) for design_id, testbenches in kept.items() if testbenches}


def _closed_design(closure: Closure) -> ClosedDesign:
    best = [closure.best.testbench] if closure.best and closure.best.testbench else []
    simulators = [s.simulation.simulator for s in closure.steps if s.simulation]
    return ClosedDesign(
        name=closure.design.name,
        design_id=closure.design.design_id,
        simulator=simulators[0] if simulators else "",
        merged=closure.merged.as_dict(),
        uncovered=len(closure.uncovered) if closure.best else None,
        testbenches=tuple(dict.fromkeys(t.testbench_id for t in (*closure.testbenches, *best))),
    )


def _report(closure: Closure, folder: Path) -> None:
    """Write the report anew; the testbenches of the one before may be more than this one has."""
    for stale in folder.glob("testbench_*"):
        stale.unlink()
    write_closure(closure, closure_summary(closure), folder)


def _metadata(batch: ClosedBatch, closures: Sequence[Closure], targets: Targets, folder: Path) -> dict[str, Any]:
    shown = pl.DataFrame(
        {
            "design": [c.design.name for c in closures],
            "merged coverage": [c.merged.overall or 0.0 for c in closures],
            "best testbench": [c.best.score if c.best else 0.0 for c in closures],
            "points left": [d.uncovered for d in batch.designs],
            "target": [_verdict(d, targets) for d in batch.designs],
            "testbenches": [len(c.testbenches) for c in closures],
            "simulations": [c.simulations for c in closures],
            "stopped by": [c.stopped for c in closures],
        }
    )
    coverage = histogram(shown["merged coverage"].to_list(), "merged coverage")
    return {
        "student": batch.student,
        "designs": len(closures),
        "closure": {"markdown": markdown_table(shown)},
        "testbenches": str(folder),
        "coverage": {"markdown": markdown(coverage, "coverage")},
    }


def _verdict(design: ClosedDesign, targets: Targets) -> str:
    missed = design.missed(targets)
    return "none" if missed is None else f"below: {', '.join(missed)}" if missed else "met"


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
    settings = {p.name: str(getattr(p, "settings", "")) for p in policies}
    return {
        "policies": pl.concat([rows.policy_rows(policies, settings), rows.table_frame("policies", [MERGE_POLICY])]),
        **rows.answer_tables([step.generation for step in steps]),
        **step_tables(simulator, steps, pl.concat(transitions)),
    }
