"""`script/bench`: CPU seconds of the engine against cocotb's own runner, in one run.

One small cocotb testbench (400 cycles of random stimulus on a bundled design): with cocotb's runner on a finished
build, with build and test from scratch, and with `Simulator.run_many` on a finished build, sandboxed and checked by
replay. Then the same simulations from the cache, and a build with a warm compiler cache.
"""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from llm4cov_assets.ingest.registry import corpus_designs
from llm4cov_assets.policy.base import State
from llm4cov_assets.policy.scripted import scripted
from sim.simulator import Simulator
from tests.sim import plain

TESTBENCHES = 40
PLAIN_RUNS = 5


class Cost:
    """CPU seconds of a block, in this process and all that it started."""

    cpu_s = 0.0


@contextlib.contextmanager
def measured() -> Iterator[Cost]:
    cost, before = Cost(), _cpu()
    yield cost
    cost.cpu_s = _cpu() - before


def _cpu() -> float:
    """CPU seconds of this process and of all that it started: those it waited for, and those that still run with what
    they waited for (the harness is killed at the end, so nobody waits for its forks)."""
    me = psutil.Process()
    return sum(sum(p.cpu_times()[:4]) for p in (me, *me.children(recursive=True)))


def main() -> None:
    logging.disable(logging.CRITICAL)
    designs = {d.name: d for d in corpus_designs()}
    name = sys.argv[1] if len(sys.argv) > 1 else "timer"
    if name not in designs:
        sys.exit(f"script/bench: no bundled design {name!r}; usage: script/bench [{' | '.join(designs)}]")
    design = designs[name]
    answers = scripted("scripted/random", cycles=100).propose([State(design)], TESTBENCHES, 0)
    testbenches = [a.testbench for a in answers if a.testbench]
    with tempfile.TemporaryDirectory() as scratch_folder, contextlib.redirect_stdout(io.StringIO()):
        folder = Path(scratch_folder)
        with measured() as scratch:
            plain.build(design, folder)
            plain.run(design, testbenches[0], folder)
        with measured() as reused:
            for testbench in testbenches[:PLAIN_RUNS]:
                plain.run(design, testbench, folder)
        with Simulator(folder / "ours", workers=1) as simulator:
            simulator.build(design)
        with Simulator(folder / "ours", workers=1) as simulator:
            with measured() as ours:
                results = list(simulator.run_many(design, testbenches))
            with measured() as cached:
                list(simulator.run_many(design, testbenches * 25))
    assert all(r.status == "passed" and not r.cached for r in results)
    each, reference, from_cache = (
        ours.cpu_s / len(testbenches), reused.cpu_s / PLAIN_RUNS, cached.cpu_s / (25 * len(testbenches))
    )  # fmt: skip
    print(f"{design.name}: one testbench of 400 cycles, CPU ms (and as a multiple of ours)")
    for what, seconds in (
        ("cocotb's runner, build and test", scratch.cpu_s),
        ("cocotb's runner, build reused", reference),
        ("ours, sandboxed and replayed", each),
        (f"ours, from the cache, {25 * len(testbenches)} in a batch", from_cache),
    ):
        print(f"  {what:40} {1000 * seconds:9.2f} {seconds / each:8.2f}")


if __name__ == "__main__":
    main()
