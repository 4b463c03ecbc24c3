"""The build check of designs that come in: each is built, and takes one run of reset and clocks alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from llm4cov_assets import rows
from llm4cov_assets.ingest.importing import Rejection
from llm4cov_assets.ingest.kept import KeptDesign
from llm4cov_assets.policy.base import State
from llm4cov_assets.policy.scripted import ScriptedReset
from llm4cov_assets.progress import Progress
from sim import reasons
from sim.simulation import Limits, Simulation, Testbench

if TYPE_CHECKING:
    from sim.design import Design
    from sim.simulator import Simulator

CHUNK = 32
"""Designs that are tried out in one go: enough for all processors, few enough to be held in memory."""

_NOT_BUILT = ("design_error", "tool_error")


def build_check(
    designs: Sequence[KeptDesign],
    progress: Progress,
    simulator: Simulator,
    found: Callable[[dict[str, pl.DataFrame]], None] = lambda tables: None,
) -> Iterator[tuple[KeptDesign, Rejection | None]]:
    """Try the designs out; yields each in order with what is now known of it, or with why it is refused.

    `found` gets the rows of what ran, by table, chunk by chunk.
    """
    for start in range(0, len(designs), CHUNK):
        chunk = [(kept, kept.load().design) for kept in designs[start : start + CHUNK]]
        runs = _run([design for _, design in chunk], simulator, lambda n, at=start: progress(
            "building", at + n, len(designs), ""))  # fmt: skip
        checks: list[dict[str, Any]] = []
        passed: list[Simulation] = []
        testbenches: list[Testbench] = []
        for (kept, design), run in zip(chunk, runs, strict=True):
            refused = _refusal(kept, design, run)
            if refused or run is None:
                yield kept, refused
                continue
            testbench, simulation = run
            build = simulator.finished_build(simulation.build_id)
            checks.append(rows.build_check_row(design, simulation, build))
            passed.append(simulation)
            testbenches.append(testbench)
            yield replace(kept, deterministic=build.deterministic), None
        if checks:
            found(
                {
                    "testbenches": rows.testbench_rows(testbenches),
                    **rows.observation_tables(passed, simulator.points),
                    "build_checks": rows.table_frame("build_checks", checks),
                }
            )


def _run(
    designs: Sequence[Design], simulator: Simulator, progress: Callable[[int], None]
) -> list[tuple[Testbench, Simulation] | None]:
    """The run of each design; None where no testbench could be written for it."""
    drafts = [ScriptedReset().propose([State(design)], 1, 0)[0].testbench for design in designs]
    found: list[tuple[Testbench, Simulation] | None] = [None] * len(designs)
    jobs = [(i, draft) for i, draft in enumerate(drafts) if draft is not None]
    finished = simulator.run_batches([(designs[i], [draft]) for i, draft in jobs], limits=Limits(), seed=0)
    for n, (job, [simulation]) in enumerate(finished):
        i, draft = jobs[job]
        found[i] = (draft, simulation)
        progress(n)
    return found


def _refusal(kept: KeptDesign, design: Design, run: tuple[Testbench, Simulation] | None) -> Rejection | None:
    if run is None:
        detail = f"{kept.source}: {design.top} cannot be elaborated; no testbench can be written for it"
        return Rejection(kept.name, kept.source, reasons.DOES_NOT_ELABORATE, detail)
    simulation = run[1]
    if simulation.status == "passed":
        return None
    built = simulation.status not in _NOT_BUILT
    reason = reasons.DOES_NOT_RUN if built else reasons.DOES_NOT_BUILD
    if not built and "port " in simulation.feedback and "testbench cannot" in simulation.feedback:
        reason = reasons.UNUSABLE_PORT
    said = _first_line(simulation.feedback if built else simulation.log or simulation.feedback)
    what = f"ends with {simulation.status} under reset and clocks alone: {said}" if built else said
    return Rejection(kept.name, kept.source, reason, f"{kept.source}: {what}")


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no message")
