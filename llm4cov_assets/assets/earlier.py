"""What a design's last closure found, as the first proposals of its next one: closing again never loses coverage."""

from __future__ import annotations

from collections.abc import Sequence

from llm4cov_assets.policy.base import Generation, State
from sim.identity import content_id
from sim.simulation import Testbench

NAME = "closure/earlier"


class Earlier:
    """A policy that drafts the testbenches it was made with and repairs nothing.

    Unlike other policies it answers s0 with all it has, whatever `n`, and any other state with nothing.
    """

    name = NAME
    engine = "scripted"
    checkpoint_id = None

    def __init__(self, testbenches: Sequence[Testbench]) -> None:
        self._testbenches = tuple(testbenches)
        self.policy_id = content_id("policy", NAME, 1, [t.testbench_id for t in testbenches])
        self.settings = f"{len(testbenches)} testbenches of the closure before"

    def propose(self, states: Sequence[State], n: int, seed: int) -> list[Generation]:
        """The testbenches for each state that has none yet."""
        return [
            Generation(
                generation_id=content_id("generation", self.policy_id, state.state_id, number),
                policy_id=self.policy_id,
                state_id=state.state_id,
                sample=number,
                seed=seed,
                prompt=f"testbench {testbench.testbench_id} of the closure before",
                answer=testbench.text,
                testbench=testbench,
            )
            for state in states
            if state.testbench is None
            for number, testbench in enumerate(self._testbenches)
        ]
