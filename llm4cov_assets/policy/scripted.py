"""Scripted policies: no weights, only the interface and, for the directed one, the uncovered conditions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from random import Random
from typing import Any, ClassVar

from llm4cov_assets.errors import UserError
from llm4cov_assets.policy.base import Generation, State
from llm4cov_assets.policy.handshake import traffic
from llm4cov_assets.policy.stimulus import (
    RENDER_VERSION,
    Action,
    Burst,
    Drive,
    Program,
    Segment,
    from_goal,
    parse,
    render,
)
from llm4cov_assets.policy.traffic import Transfers
from sim.design import DesignError
from sim.elaborate import Analysis, Interface, analyse
from sim.goals import Goal, goals
from sim.identity import content_id
from sim.simulation import Testbench

SCRIPTED_VERSION = 2
"""Bumped by hand when a scripted policy proposes something else for the same state and seed."""


Segments = tuple[Segment, ...]


@dataclass(frozen=True)
class _Scripted:
    """What the scripted policies share: identity, seeds and rendering. Fields are settings and enter `policy_id`."""

    name: ClassVar[str]
    engine: ClassVar[str] = "scripted"
    checkpoint_id: ClassVar[str | None] = None

    @cached_property
    def policy_id(self) -> str:
        return content_id("policy", self.name, asdict(self), SCRIPTED_VERSION, RENDER_VERSION)

    @property
    def settings(self) -> str:
        """The settings in one line, for people."""
        return " ".join(f"{name}={value}" for name, value in asdict(self).items())

    def segments(self, state: State, analysis: Analysis, rng: Random) -> tuple[Segments, Segments]:
        """The segments kept from the state's testbench and the new ones after them, drawn with `rng` alone."""
        raise NotImplementedError

    def propose(self, states: Sequence[State], n: int, seed: int) -> list[Generation]:
        """See `Policy`. The seed of a sample depends on the state, not on the batch it comes in."""
        return [self._answer(state, sample, seed) for state in states for sample in range(n)]

    def _answer(self, state: State, sample: int, seed: int) -> Generation:
        key = content_id("generation", self.policy_id, state.state_id, sample, seed)
        new, text, error = (), "", ""
        try:
            analysis = analyse(state.design)
            kept, new = self.segments(state, analysis, Random(int(key, 16)))
            text = render(Program((*kept, *new)), state.design, analysis.interface)
        except DesignError as failure:
            error = str(failure)
        prompt = _prompt(self.name, state, new)
        return Generation(
            generation_id=content_id("generation", self.policy_id, content_id("prompt", prompt), key),
            policy_id=self.policy_id,
            state_id=state.state_id,
            sample=sample,
            seed=seed,
            prompt=prompt,
            answer=text,
            testbench=None if error else Testbench(text),
            finish_reason="error" if error else "stop",
            error=error,
        )


def _prompt(name: str, state: State, new: Segments) -> str:
    """A scripted policy reads no prompt; this is the summary that people see in its place."""
    before = f"coverage {state.score:.3f} ({state.simulation.status})" if state.simulation else "no testbench yet"
    aims = [f"  {segment.goal}" for segment in new]
    return "\n".join([f"{name} on {state.design.name}, state {state.state_id}: {before}", "new segments:", *aims])


@dataclass(frozen=True)
class ScriptedReset(_Scripted):
    """Reset and idle clocks: what a testbench gets for nothing."""

    name: ClassVar[str] = "scripted/reset"
    cycles: int = 20

    def segments(self, state: State, analysis: Analysis, rng: Random) -> tuple[Segments, Segments]:
        return (), (Segment("reset and idle", (Drive((), self.cycles),)),)


@dataclass(frozen=True)
class ScriptedRandom(_Scripted):
    """Constrained-random stimulus with correct clocks and resets; reads the interface and nothing else."""

    name: ClassVar[str] = "scripted/random"
    bursts: int = 4
    cycles: int = 255

    def segments(self, state: State, analysis: Analysis, rng: Random) -> tuple[Segments, Segments]:
        return (), tuple(_burst(rng, self.cycles) for _ in range(self.bursts))


@dataclass(frozen=True)
class ScriptedHandshake(_Scripted):
    """Constrained-random stimulus that keeps to the design's handshakes: what is offered holds until it is accepted,
    what the design offers is accepted more or less readily, and data are partly what the design compares them with.
    """

    name: ClassVar[str] = "scripted/handshake"
    runs: int = 4
    cycles: int = 255

    def segments(self, state: State, analysis: Analysis, rng: Random) -> tuple[Segments, Segments]:
        known = traffic(state.design, analysis)
        goal = f"{self.cycles} cycles of random transfers"
        return (), tuple(Segment(goal, (Transfers(rng.getrandbits(32), self.cycles, known),)) for _ in range(self.runs))


@dataclass(frozen=True)
class ScriptedDirected(_Scripted):
    """Coverage-directed stimulus: aims at uncovered conditions whose path from reset the analysis knows.

    An answer is random bursts and then goals; a repair is appended to the state's testbench (or starts a new file
    when that testbench was not rendered from a program, does not run, or has grown to `max_segments`). What has no
    known path is probed with the constants of its guards, or with bursts. Imperfect on purpose: with probability
    `corruption` a goal's values or hold lengths are spoilt, and it does not know how much random stimulus pays, so it
    draws that anew each time: up to `bursts` before the goals (a repair only in half of the answers), with probability
    `tail` one from where a goal led, each an eighth of `burst_cycles` at least and all of them at most. Each step of a
    goal beyond `reach` steps (0: no limit) it plans with probability `patience`; where it gives up, it goes on with a
    burst.
    """

    name: ClassVar[str] = "scripted/directed"
    goals: int = 3
    corruption: float = 0.2
    bursts: int = 2
    burst_cycles: int = 255
    tail: float = 0.3
    reach: int = 0
    patience: float = 0.0
    breadth: float = 0.6
    max_segments: int = 64

    def segments(self, state: State, analysis: Analysis, rng: Random) -> tuple[Segments, Segments]:
        kept = self._kept(state)
        simulation = state.simulation if kept is not None else None
        open_goals = goals(analysis, simulation.uncovered if simulation else None)
        aimed = [
            self._aimed(goal, analysis.interface, rng) for goal in _pick(open_goals, self.goals, self.breadth, rng)
        ]
        blind = self.goals - len(aimed)
        bursts = [_burst(rng, self._cycles(rng)) for _ in range(rng.randint(1, self.bursts))]
        if simulation is None:
            return (), (*bursts, *aimed)
        unknown = _unknown(analysis, simulation.uncovered)
        extra = [
            _probe(rng.choice(unknown), analysis.interface, rng)
            if unknown and rng.random() < 0.7
            else _burst(rng, self._cycles(rng))
            for _ in range(blind)
        ]
        return kept or (), (*(bursts if rng.random() < 0.5 else ()), *extra, *aimed)

    def _aimed(self, goal: Goal, interface: Interface, rng: Random) -> Segment:
        segment = self._spoil(from_goal(goal, interface, rng), interface, rng)
        explored = rng.random() < self.tail
        burst = Burst(rng.getrandbits(32), self._cycles(rng))
        planned = self.reach or len(segment.actions)
        while planned < len(segment.actions) and rng.random() < self.patience:
            planned += 1
        if planned < len(segment.actions):
            return Segment(f"the first steps to {segment.goal}", (*segment.actions[:planned], burst))
        return replace(segment, actions=(*segment.actions, burst)) if explored else segment

    def _cycles(self, rng: Random) -> int:
        return rng.randint(self.burst_cycles // 8, self.burst_cycles)

    def _kept(self, state: State) -> Segments | None:
        """The segments to build on; None when the answer must stand on its own."""
        if state.testbench is None or state.simulation is None or not state.simulation.running:
            return None
        program = parse(state.testbench.text)
        if program is None or len(program.segments) + self.goals > self.max_segments:
            return None
        return program.segments

    def _spoil(self, segment: Segment, interface: Interface, rng: Random) -> Segment:
        """Sometimes damage one action: a flipped bit, a lost step, or another hold length."""
        if not segment.actions or rng.random() >= self.corruption:
            return segment
        actions = list(segment.actions)
        at = rng.randrange(len(actions))
        action = actions[at]
        if not isinstance(action, Drive):
            return segment
        kind = rng.randrange(3)
        if kind == 0 and action.values:
            widths = {port.name: port.width for port in interface.data_inputs}
            which = rng.randrange(len(action.values))
            values = list(action.values)
            port, value = values[which]
            values[which] = (port, value ^ 1 << rng.randrange(widths.get(port, 1)))
            actions[at] = replace(action, values=tuple(values))
        elif kind == 1 and len(actions) > 1:
            del actions[at]
        else:
            actions[at] = replace(action, cycles=rng.choice((1, 2, max(1, action.cycles - 1), action.cycles + 1)))
        return replace(segment, actions=tuple(actions))


def _pick(ranked: Sequence[Goal], n: int, breadth: float, rng: Random) -> list[Goal]:
    """Up to n goals, the more useful the more likely: each is passed over with probability `breadth`."""
    left, picked = list(ranked), []
    while left and len(picked) < n:
        at = 0
        while at + 1 < len(left) and rng.random() < breadth:
            at += 1
        picked.append(left.pop(at))
    return picked


def _burst(rng: Random, cycles: int) -> Segment:
    return Segment(f"{cycles} random cycles", (Burst(rng.getrandbits(32), cycles),))


@dataclass(frozen=True)
class _Unknown:
    """An uncovered branch without a known path, and the constants of its guards."""

    label: str
    constants: tuple[int, ...]


def _unknown(analysis: Analysis, uncovered: Sequence[Any]) -> list[_Unknown]:
    """The uncovered branches that no goal stands for, outermost guards first."""
    missing = {(item.file, item.line) for item in uncovered}
    found = {}
    for branch in analysis.branches:
        if branch.steps is None and (branch.file, branch.line) in missing:
            label = f"{branch.file}:{branch.line}:{branch.what}"
            found[label] = _Unknown(label, tuple(dict.fromkeys(c for g in branch.guards for c in constants(g))))
    return list(found.values())


_LITERAL = re.compile(r"(?:\d+)?'[sS]?([bBoOdDhH])([0-9a-fA-F_]+)|(?<![\w'\[.])(\d[\d_]*)(?![\w'\].:])")
_BASES = {"b": 2, "o": 8, "d": 10, "h": 16}


def constants(guard: str) -> list[int]:
    """The integer literals of a source expression, in order; indices in brackets and literals with x or z excepted."""
    found = []
    for match in _LITERAL.finditer(guard):
        base, digits, plain = match.groups()
        try:
            found.append(int(digits.replace("_", ""), _BASES[base.lower()]) if base else int(plain.replace("_", "")))
        except ValueError:  # digits that the base does not have: not a literal after all
            continue
    return found


def _probe(target: _Unknown, interface: Interface, rng: Random) -> Segment:
    """Values near the constants of the target's guards on random ports, held for short and long."""
    actions: list[Action] = []
    ports = interface.data_inputs
    for _ in range(rng.randint(4, 8)):
        values = []
        for port in rng.sample(ports, rng.randint(1, min(4, len(ports)))) if ports else ():
            top = (1 << port.width) - 1
            near = [c + d for c in target.constants for d in (0, 1, -1) if 0 <= c + d <= top]
            values.append((port.name, rng.choice(near) if near and rng.random() < 0.6 else rng.randint(0, top)))
        holds = [1, 1, 1, 2, 4, 9, *(c for c in target.constants if 1 < c < 200)]
        actions.append(Drive(tuple(values), rng.choice(holds)))
    return Segment(f"probe {target.label}", tuple(actions))


_POLICIES: dict[str, Callable[..., _Scripted]] = {
    p.name: p for p in (ScriptedReset, ScriptedRandom, ScriptedDirected, ScriptedHandshake)
}

SCRIPTED = tuple(_POLICIES)
"""Names that `scripted` knows."""
BASELINES = (ScriptedReset.name, ScriptedRandom.name, ScriptedDirected.name)
"""Those that trained policies are measured against."""


def scripted(name: str, **settings: Any) -> _Scripted:
    """The scripted policy called `name`, with other settings than the default ones if given; UserError if there is none
    or it has no such setting."""
    if name not in _POLICIES:
        raise UserError(f"no scripted policy {name!r}; there are {', '.join(SCRIPTED)}")
    try:
        return _POLICIES[name](**settings)
    except TypeError as error:
        raise UserError(f"{name}: {error}") from error
