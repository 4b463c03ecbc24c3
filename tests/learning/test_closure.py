"""Coverage closure: what the loop keeps, when it stops, and what it never does."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from llm4cov_assets.learning.closure import MERGE, close_coverage
from llm4cov_assets.policy.base import Generation, State
from llm4cov_assets.policy.stimulus import Burst, Program, Segment, parse, render
from sim.coverage import bitset, popcount, summarise, union
from sim.design import Design
from sim.elaborate import Interface
from sim.simulation import CoveragePoint, Simulation, Testbench

DESIGN = Design(name="fifo", sources=(), top="fifo")
PORTS = Interface(ports=(), clocks=(), resets=())
POINTS = tuple(CoveragePoint("line", "fifo.sv", n, 1, "fifo", "block", "") for n in range(10))


def bench(*lines: int, status: str = "passed") -> Testbench:
    """A testbench whose bursts say which points it hits."""
    return Testbench(render(Program(tuple(Segment(status, (Burst(n, 1),)) for n in lines)), DESIGN, PORTS))


@dataclass
class World:
    """Simulates what `bench` says, and counts."""

    simulated: list[str] = field(default_factory=list)
    interrupt_after: int = 10**9

    def simulate(self, jobs):
        for number, (design, testbenches) in enumerate(jobs):
            yield number, [self._run(design, testbench) for testbench in testbenches]

    def _run(self, design: Design, testbench: Testbench) -> Simulation:
        if len(self.simulated) >= self.interrupt_after:
            raise KeyboardInterrupt
        self.simulated.append(testbench.testbench_id)
        program = parse(testbench.text)
        segments = program.segments if program else ()
        status = "crashed" if any(s.goal == "crashed" for s in segments) else "passed"
        hit = {action.seed for s in segments for action in s.actions} if status == "passed" else set()
        hits = bitset(int(n in hit) for n in range(len(POINTS)))
        return Simulation(
            simulation_id=testbench.testbench_id, design_id=design.design_id, rtl_id=design.rtl_id,
            testbench_id=testbench.testbench_id, build_id="b", language="cocotb", status=status,
            coverage=summarise(POINTS, hits)[0], hits=hits,
        )  # fmt: skip


@dataclass
class Scripted:
    """Answers in turn with the given testbenches; the last one again and again; None is an unusable answer."""

    answers: list[Testbench | None]
    name: str = "listed"
    engine: str = "scripted"
    policy_id: str = "p"
    checkpoint_id: str | None = None
    asked: list[State] = field(default_factory=list)

    def propose(self, states, n, seed):
        self.asked += states
        found = []
        for sample in range(n):
            testbench = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            found.append(
                Generation(f"g{len(self.asked)}.{sample}", "p", states[0].state_id, sample, seed, "", "", testbench)
            )
        return found


def close(policy, world=None, **settings):
    world = world or World()
    settings = {"samples": 1, "rounds": 9, "budget_sims": 99, **settings}
    return close_coverage(DESIGN, [policy], world.simulate, points=lambda build_id: POINTS, **settings)


def test_the_best_state_is_what_is_repaired():
    policy = Scripted([bench(0, 1), bench(2, 3, 4), bench(5), bench(2)])
    close(policy, rounds=3)
    assert [state.testbench for state in policy.asked[:2]] == [None, bench(0, 1)]
    assert policy.asked[2].score == pytest.approx(0.5)  # all of both, merged into one file


def test_testbenches_that_add_something_are_merged_into_one_file():
    result = close(Scripted([bench(0, 1), bench(2), bench(0)]), rounds=2)
    assert result.best is not None
    assert result.best.score == result.merged.overall == pytest.approx(0.3)
    assert [s.policy for s in result.accepted] == ["listed", "listed", MERGE]


def test_it_never_returns_less_than_the_best_it_simulated():
    world = World()
    result = close(
        Scripted([bench(1, 2, 3, 4), bench(1), bench(5, status="crashed"), None, bench(9)]), world, patience=9
    )
    scores = [step.simulation.score for step in result.steps if step.simulation]
    assert result.best is not None
    assert result.best.score == max(scores)
    hits = b""
    for step in result.steps:
        if step.simulation:
            hits = union(hits, step.simulation.hits)
    assert result.merged.overall == pytest.approx(popcount(hits) / len(POINTS))
    assert {item.line for item in result.uncovered} == {0, 5, 6, 7, 8}


def test_the_smallest_set_of_testbenches_keeps_the_merged_coverage():
    result = close(Scripted([bench(0, 1), bench(0, 1, 2, 3), bench(4), bench(4)]), rounds=2)
    assert len(result.testbenches) == 1
    program = parse(result.testbenches[0].text)
    assert program is not None
    assert {action.seed for s in program.segments for action in s.actions} == {0, 1, 2, 3, 4}


@pytest.mark.parametrize(
    ("answers", "settings", "stopped"),
    [
        ([bench(*range(10))], {}, "target"),
        ([bench(0, 1, 2)], {"target": 0.3}, "target"),
        ([bench(n) for n in range(9)], {"budget_sims": 5}, "budget"),
        ([bench(0), bench(1), bench(2)], {"rounds": 2}, "rounds"),
        ([bench(0)], {"patience": 2}, "no progress"),
        ([None], {}, "failing"),
        ([bench(0, status="crashed")], {}, "failing"),
    ],
)
def test_it_says_why_it_stopped(answers, settings, stopped):
    assert close(Scripted(list(answers)), **settings).stopped == stopped


@pytest.mark.parametrize("budget", range(1, 8))
def test_the_budget_is_never_exceeded(budget):
    world = World()
    result = close(Scripted([bench(n) for n in range(10)]), world, budget_sims=budget, samples=3)
    assert len(world.simulated) == result.simulations <= budget


def test_the_same_testbench_costs_one_logical_simulation():
    result = close(Scripted([bench(0)]), samples=4, patience=2)
    assert result.simulations == 1
    assert [step.logical for step in result.steps].count(True) == 1


def test_an_interrupt_keeps_what_there_is():
    result = close(Scripted([bench(0), bench(1, 2), bench(3)]), World(interrupt_after=3))
    assert result.stopped == "interrupted"
    assert result.best is not None
    assert result.best.score > 0
    assert result.steps


def test_an_interrupt_before_anything_ran_is_an_empty_result():
    result = close(Scripted([bench(0)]), World(interrupt_after=0))
    assert (result.stopped, result.best, result.steps, result.testbenches) == ("interrupted", None, (), ())


def test_every_round_has_its_own_seed_and_the_same_arguments_the_same_steps():
    first, second = (close(Scripted([bench(n) for n in range(6)]), seed=3) for _ in range(2))
    assert first.steps == second.steps
    seeds = {step.round: step.generation.seed for step in first.steps if step.policy != MERGE}
    assert len(set(seeds.values())) == len(seeds)
