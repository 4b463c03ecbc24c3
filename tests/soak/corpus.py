"""Every bundled design is neither trivial nor out of reach, and what its reference.toml calls unreachable stays so.

Random stimulus of 200 cycles leaves line or branch points uncovered with each of five seeds. A reference campaign
and, where there is one, the testbench in tests/ingest/reaching reach every point of every metric for which
reference.toml does not say why nothing can. script/test checks that of fresh designs with these testbenches alone, and
of a third of the others with a shorter campaign, which may miss a few expression and toggle points.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from llm4cov_assets.ingest.calibration import calibrate
from llm4cov_assets.ingest.reference import contradicted, reference
from llm4cov_assets.ingest.registry import corpus_designs
from llm4cov_assets.policy.base import State
from llm4cov_assets.policy.scripted import ScriptedRandom
from sim.coverage import union
from sim.design import Design
from sim.simulation import Testbench, UncoveredItem
from sim.simulator import Simulator

REACHING = Path(__file__).parent.parent / "ingest" / "reaching"
ALL = {"line": 1.0, "branch": 1.0, "expression": 1.0, "toggle": 1.0}
"""Share of the reachable points of each metric that has to be reached."""
NEARLY = ALL | {"expression": 0.9, "toggle": 0.95}
"""The same for a short campaign."""


def too_easy(simulator: Simulator, designs: Sequence[Design]) -> list[str]:
    """Designs that 200 random cycles cover too well, or hardly at all, one line each."""
    policy = ScriptedRandom(bursts=2, cycles=100)
    jobs = [(d, [g.testbench for g in policy.propose([State(d)], 5, 0) if g.testbench]) for d in designs]
    wrong = []
    for number, results in simulator.run_batches(jobs, seed=0):
        name = jobs[number][0].name
        statuses, scores = [r.status for r in results], [r.score for r in results]
        if statuses != ["passed"] * 5 or not all(0.25 < score < 0.98 for score in scores):
            wrong.append(f"{name}: {statuses}, {scores}")
        if any(len(_open(r.uncovered)) < 2 for r in results):
            wrong.append(f"{name}: fewer than two line and branch points left")
    return wrong


def _open(found: Sequence[UncoveredItem]) -> set[tuple[str, int, str, str]]:
    """The line and branch points among uncovered ones."""
    return {(u.file, u.line, u.instance, u.what) for u in found if u.metric in ("line", "branch")}


def out_of_reach(
    simulator: Simulator, designs: Sequence[Design], budget_sims: int, least: Mapping[str, float] = ALL
) -> list[str]:
    """What is not reached, or was reached against what reference.toml says, one line each. There is no campaign when
    `budget_sims` is 0: then each design needs a testbench that covers all of it."""
    hits = {d.name: b"" for d in designs}
    if budget_sims:
        simulate = partial(simulator.run_batches, seed=0)
        for found in calibrate(designs, simulate, simulator.points, budget_sims=budget_sims):
            hits[found.design.name] = found.hits
    wrong = []
    for design in designs:
        witness = REACHING / f"{design.name}.py"
        if witness.exists():
            [result] = simulator.run_many(design, [Testbench(witness.read_text())])
            if result.status != "passed":
                wrong.append(f"{witness.name}: {result.status}\n{result.log[-500:]}")
                continue
            hits[design.name] = union(hits[design.name], result.hits) if hits[design.name] else result.hits
        wrong += _left(simulator, design, hits[design.name], least)
    return wrong


def _left(simulator: Simulator, design: Design, hits: bytes, least: Mapping[str, float]) -> list[str]:
    build, known = simulator.build(design), reference(design.name)
    left = build.uncovered(hits)
    wrong = contradicted(known, build.points, left)
    for metric, share in least.items():
        reachable = [p for p in build.points if p.metric == metric and known.why_unreachable(p) is None]
        missed = [u for u in left if u.metric == metric and known.why_unreachable(u) is None]
        if len(missed) > (1 - share) * len(reachable):
            places = ", ".join(f"{u.file}:{u.line} {u.what}" for u in missed[:5])
            wrong.append(f"{design.name}: {len(missed)} of {len(reachable)} {metric} points not reached: {places}")
    return wrong


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", type=int, default=256, help="simulations of a campaign (default: 256)")


def run(options: argparse.Namespace) -> bool:
    designs = corpus_designs()
    with tempfile.TemporaryDirectory(prefix="soak-") as home, Simulator(Path(home)) as simulator:
        wrong = [*too_easy(simulator, designs), *out_of_reach(simulator, designs, options.n)]
    print("\n".join([f"{len(designs)} designs, {options.n} simulations each", *wrong]))
    return not wrong
