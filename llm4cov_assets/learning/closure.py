"""Coverage closure of one design: policies take turns at repairing the best testbench; nothing that helped is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from llm4cov_assets.learning.rollout import Simulate, Step, simulated
from llm4cov_assets.policy.base import Generation, Policy, State
from llm4cov_assets.policy.stimulus import combine
from sim.coverage import Points as PointTable
from sim.coverage import difference, popcount, summarise, uncovered_items, uncovered_numbers, union
from sim.design import Design
from sim.exclusions import Excluded
from sim.identity import content_id
from sim.simulation import Coverage, CoveragePoint, ExcludedItem, Simulation, Testbench, UncoveredItem

Points = Callable[[str], Sequence[CoveragePoint]]
"""As `Simulator.points`: the points of a build, in the order of the bitsets."""

MERGE = "closure/merge"
"""Name under which the loop's own proposals appear: all accepted testbenches in one file."""

MERGE_POLICY = {
    "policy_id": content_id("policy", MERGE, 1),
    "name": MERGE,
    "engine": "scripted",
    "checkpoint_id": None,
    "settings": "the accepted testbenches of a closure in one file",
}
"""Row of `policies` that those proposals refer to."""


@dataclass(frozen=True)
class ClosureStep:
    """One proposal of `policy` (its name) and what came of it.

    `round` is 0 for a draft; `new_points` no earlier step had hit; `merged` is the overall coverage of everything
    accepted up to and including this step. `logical` tells whether a cold cache would have run the simulation.
    """

    round: int
    policy: str
    step: Step
    logical: bool
    new_points: int
    accepted: bool
    merged: float

    @property
    def generation(self) -> Generation:
        return self.step.generation

    @property
    def simulation(self) -> Simulation | None:
        """None when the answer was unusable."""
        return self.step.simulation


@dataclass(frozen=True)
class Closure:
    """The result of `close_coverage`.

    `accepted` are the steps whose testbench hit points that nothing before it had hit, in order; `best` is the state
    with the highest coverage of a single testbench (None when nothing ran); `merged` is the coverage of all accepted
    testbenches together, `uncovered` what they leave open and `excluded` what of it nobody wants. `simulations` are
    logical ones (as with a cold cache). `stopped` says why the loop ended: `target`, `budget`, `rounds`,
    `no progress`, `failing` or `interrupted`.
    """

    design: Design
    steps: tuple[ClosureStep, ...]
    best: State | None
    merged: Coverage
    merged_points: dict[str, tuple[int, int]]
    uncovered: tuple[UncoveredItem, ...]
    simulations: int
    cached_simulations: int
    stopped: str
    excluded: tuple[ExcludedItem, ...] = ()

    @property
    def accepted(self) -> tuple[ClosureStep, ...]:
        return tuple(step for step in self.steps if step.accepted)

    @property
    def testbenches(self) -> tuple[Testbench, ...]:
        """The smallest set that greedy choice finds with the merged coverage of all accepted testbenches, the most
        useful first."""
        left = [(s.generation.testbench, s.simulation.hits) for s in self.accepted if s.simulation]
        chosen: list[Testbench] = []
        covered = b""
        while left:
            testbench, hits = max(left, key=lambda pair: popcount(difference(pair[1], covered)))
            if not popcount(difference(hits, covered)):
                break
            covered = union(covered, hits)
            if testbench is not None:
                chosen.append(testbench)
            left.remove((testbench, hits))
        return tuple(chosen)


def close_coverage(
    design: Design,
    policies: Sequence[Policy],
    simulate: Simulate,
    *,
    points: Points,
    rounds: int = 8,
    budget_sims: int = 64,
    seed: int = 0,
    target: float = 1.0,
    samples: int = 4,
    patience: int = 3,
    progress: Callable[[ClosureStep], None] = lambda step: None,
) -> Closure:
    """Run the agentic loop on `design` with a portfolio of policies.

    Round 0 drafts; every later round repairs the best state so far, `samples` proposals from each policy. After each
    round the accepted testbenches that are stimulus programs are put into one file, which is simulated too and is
    mostly the next round's state. The loop ends at `target` (merged overall coverage), after `rounds` rounds of
    repair, `budget_sims` logical simulations, `patience` rounds without a new point, when no draft and no first
    repair runs at all, or at Ctrl-C, which keeps everything simulated so far. `progress` hears of every step.
    """
    campaign = _Campaign(design, simulate, points, budget_sims, seed, target, progress)
    stopped, idle = "rounds", 0
    try:
        for number in range(rounds + 1):
            before = popcount(campaign.hits)
            for policy in policies:
                campaign.propose(policy, number, samples)
            campaign.merge(number)
            idle = 0 if popcount(campaign.hits) > before else idle + 1
            if campaign.reached:
                stopped = "target"
                break
            if campaign.left <= 0:
                stopped = "budget"
                break
            if campaign.best is None and number >= 1:
                stopped = "failing"
                break
            if idle >= patience:
                stopped = "no progress"
                break
    except KeyboardInterrupt:
        stopped = "interrupted"
    return campaign.result(stopped)


@dataclass
class _Campaign:
    """What the loop knows so far."""

    design: Design
    simulate: Simulate
    points_of: Points
    budget: int
    seed: int
    target: float
    progress: Callable[[ClosureStep], None]
    steps: list[ClosureStep] = field(default_factory=list)
    best: State | None = None
    hits: bytes = b""
    points: Sequence[CoveragePoint] = ()
    merged: float = 0.0
    cached: int = 0
    spent: int = 0
    seen: set[str] = field(default_factory=set)

    @property
    def left(self) -> int:
        return self.budget - self.spent

    @property
    def reached(self) -> bool:
        return self.best is not None and self.merged >= self.target

    def propose(self, policy: Policy, number: int, samples: int) -> None:
        """Ask one policy about the best state so far and simulate what is new."""
        if self.left <= 0 or self.reached:
            return
        state = self.best or State(self.design)
        seed = int(content_id("closure", self.seed, number)[:8], 16)
        generations = policy.propose([state], samples, seed)
        self._simulate(policy.name, state, number, generations[: self.left])

    def merge(self, number: int) -> None:
        """Put the accepted testbenches into one file and simulate it, if that can be better than the best one."""
        accepted = [step for step in self.steps if step.accepted]
        if self.best is None or self.best.testbench is None or self.left <= 0 or len(accepted) < 2:
            return
        assert self.best.simulation is not None
        if not popcount(difference(self.hits, self.best.simulation.hits)):
            return
        texts = [step.generation.testbench.text for step in accepted if step.generation.testbench]
        text = combine([self.best.testbench.text, *texts])
        if text is None:
            return
        ids = [step.generation.testbench.testbench_id for step in accepted if step.generation.testbench]
        prompt = "\n".join(["one file of these testbenches:", *(f"  {i}" for i in ids)])
        policy_id = str(MERGE_POLICY["policy_id"])
        generation = Generation(
            generation_id=content_id("generation", policy_id, self.best.state_id, ids),
            policy_id=policy_id,
            state_id=self.best.state_id,
            sample=0,
            seed=self.seed,
            prompt=prompt,
            answer=text,
            testbench=Testbench(text),
        )
        self._simulate(MERGE, self.best, number, [generation])

    def _simulate(self, policy: str, state: State, number: int, generations: Sequence[Generation]) -> None:
        for step in simulated([(state, generation) for generation in generations], self.simulate):
            testbench = step.generation.testbench
            logical = testbench is not None and testbench.testbench_id not in self.seen
            if logical and testbench is not None:
                self.seen.add(testbench.testbench_id)
                self.spent += 1
                self.cached += step.cached
            self._record(policy, number, step, logical)

    def _record(self, policy: str, number: int, step: Step, logical: bool) -> None:
        new, better, simulation = 0, False, step.simulation
        if simulation is not None and simulation.running:
            if not self.points:
                self.points = self.points_of(simulation.build_id)
            new = popcount(difference(simulation.hits, self.hits))
            if new:
                self.hits = union(self.hits, simulation.hits)
                self.merged = summarise(self.points, self.hits)[0].overall or 0.0
            # the best single testbench counts as accepted even when others together cover as much
            better = self.best is None or simulation.score > self.best.score
            if better:
                self.best = step.next_state
        found = ClosureStep(number, policy, step, logical, new, new > 0 or better, self.merged)
        self.steps.append(found)
        self.progress(found)

    def result(self, stopped: str) -> Closure:
        coverage, totals, _ = summarise(self.points, self.hits)
        excluded = Excluded(PointTable(self.points), self.design.exclusions)
        numbers = uncovered_numbers(self.points, self.hits) if self.best else []
        return Closure(
            design=self.design,
            steps=tuple(self.steps),
            best=self.best,
            merged=coverage if self.best else Coverage(),
            merged_points=totals if self.best else {},
            uncovered=uncovered_items(self.points, (n for n in numbers if n not in excluded)),
            excluded=excluded.items(numbers),
            simulations=self.spent,
            cached_simulations=self.cached,
            stopped=stopped,
        )
