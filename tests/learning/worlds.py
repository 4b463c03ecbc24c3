"""A world small enough to reason about: a testbench says itself what simulating it gives."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from llm4cov_assets.policy.base import Generation, State
from sim.design import Design, SourceFile
from sim.identity import content_id
from sim.simulation import METRICS, Coverage, Simulation, Testbench


def design(name: str) -> Design:
    return Design(name, (SourceFile(f"{name}.sv", f"module {name}; endmodule".encode()),), top=name)


def testbench(status: str, overall: float | None = None, **more: Any) -> Testbench:
    """A testbench whose simulation has this status and coverage; all metrics are equal unless given."""
    return Testbench(json.dumps({"status": status, "overall": overall, **more}))


testbench.__test__ = False  # type: ignore[attr-defined]  # not a test


def simulation(design: Design, testbench: Testbench, cached: bool = False) -> Simulation:
    said = json.loads(testbench.text)
    overall = said["overall"]
    coverage = Coverage() if overall is None else Coverage(overall, **{m: said.get(m, overall) for m in METRICS})
    return Simulation(
        simulation_id=content_id("simulation", design.rtl_id, testbench.testbench_id),
        design_id=design.design_id,
        rtl_id=design.rtl_id,
        testbench_id=testbench.testbench_id,
        build_id=content_id("build", design.rtl_id),
        language="cocotb",
        status=said["status"],
        coverage=coverage,
        cached=cached,
    )


def state(design: Design, testbench: Testbench | None = None) -> State:
    return State(design, testbench, simulation(design, testbench) if testbench else None)


class World:
    """Simulates, in an order of its own, and remembers what it was asked."""

    def __init__(self) -> None:
        self.jobs: list[list[tuple[Design, Sequence[Testbench]]]] = []
        self.seen: set[str] = set()

    def simulate(self, jobs: Sequence[tuple[Design, Sequence[Testbench]]]) -> Iterator[tuple[int, list[Simulation]]]:
        self.jobs.append(list(jobs))
        for number, (design, testbenches) in reversed(list(enumerate(jobs))):
            results = [simulation(design, t) for t in testbenches]
            yield number, [s.with_cached(s.simulation_id in self.seen) for s in results]
            self.seen |= {s.simulation_id for s in results}


class Author:
    """A policy whose answers are a function of state, sample and seed; None is an unusable answer."""

    engine = "scripted"
    checkpoint_id = None

    def __init__(self, answer: Callable[[State, int, int], Testbench | None], name: str = "author") -> None:
        self.answer, self.name = answer, name
        self.policy_id = content_id("policy", name)
        self.calls: list[tuple[int, int, int]] = []

    def propose(self, states: Sequence[State], n: int, seed: int) -> list[Generation]:
        self.calls.append((len(states), n, seed))
        return [self._generation(state, sample, seed) for state in states for sample in range(n)]

    def _generation(self, state: State, sample: int, seed: int) -> Generation:
        testbench = self.answer(state, sample, seed)
        return Generation(
            generation_id=content_id("generation", self.policy_id, state.state_id, sample, seed),
            policy_id=self.policy_id,
            state_id=state.state_id,
            sample=sample,
            seed=seed,
            prompt=f"improve {state.state_id}",
            answer=testbench.text if testbench else "?",
            testbench=testbench,
            error="" if testbench else "no testbench",
            completion_tokens=10,
        )
