"""One step of a policy on many states: propose, simulate what can be used, and say where it led."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from llm4cov_assets.policy.base import Generation, Policy, State
from sim.design import Design
from sim.simulation import Simulation, Testbench

Simulate = Callable[[Sequence[tuple[Design, Sequence[Testbench]]]], Iterable[tuple[int, list[Simulation]]]]
"""As `Simulator.run_batches` with its limits and seed bound: takes jobs (a design and its testbenches), yields
(job number, one simulation per testbench, in order) as jobs finish."""

UNPARSABLE = "unparsable"
"""Status of a step whose answer held no testbench."""


@dataclass(frozen=True)
class Step:
    """One answer and what came of it.

    `next_state` and `simulation` are None when the answer held no testbench. `logical` tells whether a cold cache
    would have run this simulation: of equal testbenches of a design in one rollout only the first counts.
    """

    state: State
    generation: Generation
    next_state: State | None
    simulation: Simulation | None
    logical: bool

    @property
    def status(self) -> str:
        return self.simulation.status if self.simulation else UNPARSABLE

    @property
    def score_after(self) -> float:
        """Coverage after the step, 0 when failing or unparsable."""
        return self.simulation.score if self.simulation else 0.0

    @property
    def gain(self) -> float:
        return self.score_after - self.state.score

    @property
    def cached(self) -> bool:
        """The result came from the simulation cache."""
        return self.simulation is not None and self.simulation.cached


def rollout(policy: Policy, states: Sequence[State], n: int, seed: int, simulate: Simulate) -> list[Step]:
    """Propose n testbenches for each state and simulate them; n steps for each state, state by state, in order."""
    generations = policy.propose(states, n, seed)
    if len(generations) != n * len(states):
        raise ValueError(f"{policy.name} returned {len(generations)} generations for {len(states)} states, n = {n}")
    return simulated([(states[i // n], g) for i, g in enumerate(generations)], simulate)


def simulated(answers: Sequence[tuple[State, Generation]], simulate: Simulate) -> list[Step]:
    """The steps of answers that are there already: one step for each, in order.

    Testbenches are grouped into one job per design; equal testbenches of a design are sent once.
    """
    jobs: dict[str, tuple[Design, dict[str, Testbench]]] = {}
    for state, generation in answers:
        if generation.testbench is not None:
            _, testbenches = jobs.setdefault(state.design.design_id, (state.design, {}))
            testbenches.setdefault(generation.testbench.testbench_id, generation.testbench)
    results = _run(jobs, simulate) if jobs else {}
    counted: set[tuple[str, str]] = set()
    steps: list[Step] = []
    for state, generation in answers:
        testbench = generation.testbench
        if testbench is None:
            steps.append(Step(state, generation, None, None, logical=False))
            continue
        key = (state.design.design_id, testbench.testbench_id)
        simulation = results[key]
        # designs with equal RTL share simulations, but each row says whose it is
        if simulation.design_id != state.design.design_id:
            simulation = replace(simulation, design_id=state.design.design_id)
        after = State(state.design, testbench, simulation)
        steps.append(Step(state, generation, after, simulation, logical=key not in counted))
        counted.add(key)
    return steps


def _run(jobs: dict[str, tuple[Design, dict[str, Testbench]]], simulate: Simulate) -> dict[tuple[str, str], Simulation]:
    order = list(jobs)
    found: dict[tuple[str, str], Simulation] = {}
    batches = [(design, list(testbenches.values())) for design, testbenches in jobs.values()]
    for number, simulations in simulate(batches):
        testbenches = batches[number][1]
        if len(simulations) != len(testbenches):
            raise ValueError(f"job {number} has {len(simulations)} simulations for {len(testbenches)} testbenches")
        for testbench, simulation in zip(testbenches, simulations, strict=True):
            found[order[number], testbench.testbench_id] = simulation
    missing = len(order) - len({design_id for design_id, _ in found})
    if missing:
        raise ValueError(f"{missing} of {len(order)} designs came back without simulations")
    return found
