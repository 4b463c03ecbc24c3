"""The policy interface: anything that proposes testbenches for states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from sim.design import Design
from sim.identity import content_id
from sim.simulation import Simulation, Testbench


@dataclass(frozen=True)
class State:
    """s = (R, x, o), the only thing a policy sees. s0 has neither testbench nor simulation and coverage 0."""

    design: Design
    testbench: Testbench | None = None
    simulation: Simulation | None = None

    @cached_property
    def state_id(self) -> str:
        return content_id(
            "state",
            self.design.design_id,
            self.testbench.testbench_id if self.testbench else None,
            self.simulation.simulation_id if self.simulation else None,
        )

    @property
    def score(self) -> float:
        return self.simulation.score if self.simulation else 0.0


@dataclass(frozen=True)
class Generation:
    """One answer of a policy to one state. `testbench` is None when the answer cannot be used; `error` says why."""

    generation_id: str
    policy_id: str
    state_id: str
    sample: int
    seed: int
    prompt: str
    answer: str
    testbench: Testbench | None
    finish_reason: str = "stop"
    error: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    latency_s: float = 0.0
    retries: int = 0
    cost_usd: float = 0.0
    cached: bool = False

    @property
    def prompt_id(self) -> str:
        return content_id("prompt", self.prompt)


class Policy(Protocol):
    """Proposes testbenches. Memoryless: the proposal depends on the state, the seed and the policy alone.

    `name` is the public name (`untrained`, `stage_0`, `scripted/random`, ...), `engine` one of `scripted`,
    `transformers`, `vllm`, `openai`; `policy_id` is the content hash of everything that decides its proposals;
    `checkpoint_id` names the weights, if any.
    """

    name: str
    engine: str
    policy_id: str
    checkpoint_id: str | None

    def propose(self, states: Sequence[State], n: int, seed: int) -> list[Generation]:
        """Return n generations for each state, state by state (len(states) * n in all, in order).

        The same arguments give the same proposals. A failed or unusable answer is a Generation with an `error`,
        never an exception and never left out.
        """
        ...
