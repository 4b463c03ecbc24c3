"""The compact text that the small student reads and writes.

Prompt:  `new g0 p0 1 p3 >= a5 ; p7 0 x 0c g1 p2 0f do`
         `new` for a draft or `more` for a repair, then up to three goals. Each goal has the steps that lead to it from
         reset: conditions on inputs (no relation means equal) and, after `x`, for how many cycles they hold.
Answer:  `r 64 g0 p0 1 p3 a5 ; p7 0 x 0c r 20 g1 p2 0f`
         bursts of random stimulus, then for each goal the values to drive, step by step, and perhaps a burst from
         where they lead. How long bursts should be, the prompt does not say: that is learnt from what they gain.

Every condition has an alias of its own, which stands for its port; so a port has as many aliases as conditions, and
what follows an alias in the prompt says what should follow it in the answer. Aliases count up from a start that is
drawn anew for every prompt: the next one is known without a search (loss after 200 steps 0.94, with aliases drawn
one by one 1.51).
Numbers are hexadecimal. Conditions that one relation on a whole port cannot say (bit selects, several conditions on
one port) are shown as a value that meets them; strict relations as inclusive ones. The names of the design's ports
and goals stay outside the text: a `Prompt` keeps them, and turns the answer into segments of a program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from llm4cov_assets.policy import tokens as t
from llm4cov_assets.policy.aim import satisfy
from llm4cov_assets.policy.grammar import MAX_BURSTS, MAX_STEPS, Shape
from llm4cov_assets.policy.stimulus import Action, Burst, Drive, Segment
from sim.conditions import Constraint

if TYPE_CHECKING:
    from sim.elaborate import Interface
    from sim.goals import Goal

FORMAT_VERSION = 2
"""Changes when the same state gives another prompt, or the same answer another program."""

GOAL_TOKENS = 216
"""Tokens of the steps of all goals of a prompt, and of an answer. Goals for which there is no room are left out."""

PROMPT_TOKENS = 2 + len(t.TAGS) + GOAL_TOKENS
ANSWER_TOKENS = 3 * MAX_BURSTS + len(t.TAGS) * (1 + 3) + GOAL_TOKENS + 1

MAX_CYCLES = 255
"""Cycles that one count of two digits can say."""


class NotExpressible(Exception):
    """A goal or a segment that the compact text cannot say. The message is a short reason, fit for counting."""


class Condition(NamedTuple):
    """One condition on a whole port: `relation` is empty for equality."""

    port: str
    relation: str
    value: int


class GoalStep(NamedTuple):
    conditions: tuple[Condition, ...]
    cycles: int


@dataclass(frozen=True)
class Prompt:
    """What is asked, and how to read the answer. `ports` maps aliases to (port, width in bits), in the order of the
    conditions; `goals` are those tagged g0, g1, ...; `steps` are theirs."""

    repair: bool
    ports: dict[str, tuple[str, int]]
    goals: tuple[Goal, ...]
    steps: tuple[tuple[GoalStep, ...], ...]

    @cached_property
    def symbols(self) -> list[str]:
        found = [t.MORE if self.repair else t.NEW]
        for tag, steps, aliases in zip(t.TAGS, self.steps, self._aliases, strict=False):
            found.append(tag)
            for number, (step, alias_of) in enumerate(zip(steps, aliases, strict=True)):
                found += [t.THEN] if number else []
                for port, relation, value in step.conditions:
                    alias = alias_of[port]
                    found += [alias, *([relation] if relation else []), *self._value(alias, value)]
                found += _hold(step.cycles, empty=not step.conditions)
        return [*found, t.DO]

    @cached_property
    def text(self) -> str:
        return t.join(self.symbols)

    @cached_property
    def ids(self) -> list[int]:
        return [t.TOKEN_ID[s] for s in self.symbols]

    @property
    def shape(self) -> Shape:
        """What the grammar needs to know."""
        return Shape({alias: width for alias, (_, width) in self.ports.items()}, len(self.goals))

    @cached_property
    def _aliases(self) -> list[list[dict[str, str]]]:
        """By goal and step: the alias of each port that the step's conditions name."""
        aliases = iter(self.ports)
        return [[{c.port: next(aliases) for c in step.conditions} for step in steps] for steps in self.steps]

    def _value(self, alias: str, value: int) -> list[str]:
        return t.value_symbols(value, t.digits_of(self.ports[alias][1]))

    def answer(self, bursts: Sequence[Burst], segments: Sequence[Segment]) -> str:
        """Write bursts, and one segment for each goal in order, as an answer without end token.

        Raises NotExpressible when a segment drives a port that its goal does not name, or is too long.
        """
        found: list[str] = []
        for burst in bursts[:MAX_BURSTS]:
            found += [t.BURST, *t.value_symbols(min(burst.cycles, MAX_CYCLES), 2)]
        left = GOAL_TOKENS
        for number, segment in enumerate(segments):
            tail = [action for action in segment.actions[1:][-1:] if isinstance(action, Burst)]
            steps = replace(segment, actions=segment.actions[: len(segment.actions) - len(tail)])
            symbols = self._segment_symbols(steps, self._aliases[number])
            left -= len(symbols)
            found += [t.TAGS[number], *symbols]
            for burst in tail:
                found += [t.BURST, *t.value_symbols(min(burst.cycles, MAX_CYCLES), 2)]
        if not found:
            raise NotExpressible("empty answer")
        if left < 0:
            raise NotExpressible("answer is too long")
        return t.join(found)

    def _segment_symbols(self, segment: Segment, aliases: Sequence[dict[str, str]]) -> list[str]:
        steps = [step for action in segment.actions for step in _split(action)]
        found: list[str] = []
        for number, (values, cycles) in enumerate(steps):
            found += [t.THEN] if number else []
            # the step's own aliases, in the prompt's order; where it names a port that only other steps name, theirs
            own = aliases[number] if number < len(aliases) else {}
            alias_of = own | {port: alias for step in aliases for port, alias in step.items() if port not in own}
            place = {port: i for i, port in enumerate(alias_of)}
            for port, _ in values:
                if port not in alias_of:
                    raise NotExpressible("segment drives a port that its goal does not name")
            for port, value in sorted(values, key=lambda v: place[v[0]]):
                found += [alias_of[port], *self._value(alias_of[port], value)]
            found += _hold(cycles, empty=not values)
        if not steps or len(found) > GOAL_TOKENS or len(steps) > MAX_STEPS:
            raise NotExpressible("segment is empty or too long")
        return found

    def segments(self, answer: str, rng: Random) -> tuple[Segment, ...]:
        """Read a legal answer. `rng` gives the seeds of the bursts."""
        found: list[Segment] = []
        words = iter(answer.split())
        label, actions = "", list[Action]()
        values, cycles = dict[str, int](), 1

        def close_step() -> None:
            if label:
                actions.append(Drive(tuple(values.items()), cycles))

        def close_segment() -> None:
            close_step()
            if label:
                found.append(Segment(label, tuple(actions)))

        for word in words:
            if word == t.BURST:
                burst = Burst(rng.getrandbits(32), int(next(words), 16))
                if label:
                    close_step()
                    found.append(Segment(label, (*actions, burst)))
                    label = ""
                else:
                    found.append(Segment(f"{burst.cycles} random cycles", (burst,)))
            elif word in t.TAGS:
                close_segment()
                label, actions, values, cycles = self.goals[t.TAGS.index(word)].label, [], {}, 1
            elif word == t.THEN:
                close_step()
                values, cycles = {}, 1
            elif word == t.HOLD:
                cycles = int(next(words), 16)
            else:
                values[self.ports[word][0]] = int(next(words), 16)
        close_segment()
        return tuple(found)


def _hold(cycles: int, empty: bool) -> list[str]:
    """`x 0c`; nothing for one cycle, unless the step would be empty."""
    return [t.HOLD, *t.value_symbols(cycles, 2)] if cycles != 1 or empty else []


def _split(action: Action) -> list[tuple[tuple[tuple[str, int], ...], int]]:
    """An action as steps of at most MAX_CYCLES."""
    if not isinstance(action, Drive):
        raise NotExpressible(f"segment has a {type(action).__name__.lower()} after its start")
    steps, values, left = [], action.values, action.cycles
    while True:
        steps.append((values, min(left, MAX_CYCLES)))
        values, left = (), left - MAX_CYCLES
        if left <= 0:
            return steps


def goal_steps(goal: Goal, interface: Interface) -> tuple[GoalStep, ...]:
    """The goal's steps as conditions on whole ports.

    Follows `stimulus.from_goal`: undriven ports are left out, and a reset that a step asserts is released by the next
    step that says nothing about it. Raises NotExpressible for wide ports and for goals that are too long.
    """
    widths = {port.name: port.width for port in interface.data_inputs}
    idle = {reset.port: 1 if reset.active_low else 0 for reset in interface.resets}
    widths |= dict.fromkeys(idle, 1)
    current = dict.fromkeys(widths, 0) | idle
    steps: list[GoalStep] = []
    for step in goal.steps:
        wanted: dict[str, list[Constraint]] = {}
        for constraint in step.constraints:
            if constraint.port in widths:
                wanted.setdefault(constraint.port, []).append(constraint)
        conditions: list[Condition] = []
        for port, found in wanted.items():
            if widths[port] > 4 * t.MAX_DIGITS:
                raise NotExpressible("goal needs a wide port")
            value = satisfy(found, widths[port], current[port])
            conditions.append(_condition(port, widths[port], found, value))
            current[port] = value
        for port, level in idle.items():
            if port not in wanted and current[port] != level:
                conditions.append(Condition(port, "", level))
                current[port] = level
        cycles = max(1, step.cycles)
        steps.append(GoalStep(tuple(conditions), min(cycles, MAX_CYCLES)))
        while (cycles := cycles - MAX_CYCLES) > 0:
            steps.append(GoalStep((), min(cycles, MAX_CYCLES)))
    n_conditions = sum(len(step.conditions) for step in steps)
    too_long = _n_tokens(steps, widths) > GOAL_TOKENS or len(steps) > MAX_STEPS or n_conditions > len(t.ALIASES)
    if not steps or too_long:
        raise NotExpressible("goal is empty or too long")
    return tuple(steps)


def _n_tokens(steps: Sequence[GoalStep], widths: Mapping[str, int]) -> int:
    values = sum(1 + bool(c.relation) + t.digits_of(widths[c.port]) for step in steps for c in step.conditions)
    holds = sum(len(_hold(step.cycles, empty=not step.conditions)) for step in steps)
    return values + holds + len(steps) - 1


def _condition(port: str, width: int, constraints: Sequence[Constraint], value: int) -> Condition:
    """One relation if one says it all, else the value that meets the constraints."""
    top = (1 << width) - 1
    if len(constraints) == 1 and constraints[0].high is None:
        op, bound = constraints[0].op, constraints[0].value
        match op:
            case "<" | "<=":
                bound -= op == "<"
                if 0 < bound < top:
                    return Condition(port, "<=", bound)
            case ">" | ">=":
                bound += op == ">"
                if 0 < bound < top:
                    return Condition(port, ">=", bound)
            case "!=" if width > 1 and 0 <= bound <= top:
                edge = {0: Condition(port, ">=", 1), top: Condition(port, "<=", top - 1)}
                return edge.get(bound, Condition(port, "!=", bound))
            case _:
                pass
    return Condition(port, "", value & top)


def build_prompt(interface: Interface, goals: Sequence[Goal], rng: Random, *, repair: bool) -> Prompt:
    """A prompt for the first goals that fit (at most len(TAGS)), with fresh aliases.

    Goals that cannot be said, and those for which no room or no aliases are left, are passed over.
    """
    widths = {port.name: port.width for port in interface.data_inputs}
    widths |= {reset.port: 1 for reset in interface.resets}
    chosen: list[tuple[Goal, tuple[GoalStep, ...]]] = []
    named: list[str] = []
    room = GOAL_TOKENS
    for goal in goals:
        if len(chosen) == len(t.TAGS):
            break
        try:
            steps = goal_steps(goal, interface)
        except NotExpressible:
            continue
        ports = [c.port for step in steps for c in step.conditions]
        n_tokens = _n_tokens(steps, widths)
        if n_tokens <= room and len(named) + len(ports) <= len(t.ALIASES):
            room -= n_tokens
            named += ports
            chosen.append((goal, steps))
    start = rng.randrange(len(t.ALIASES))
    aliases = [t.ALIASES[(start + i) % len(t.ALIASES)] for i in range(len(named))]
    return Prompt(
        repair,
        {alias: (port, widths[port]) for alias, port in zip(aliases, named, strict=True)},
        tuple(goal for goal, _ in chosen),
        tuple(steps for _, steps in chosen),
    )


def focus(goals: Sequence[Goal], tried: Iterable[str], rng: Random) -> list[Goal]:
    """The goals in the order in which a prompt should name them: the useful first, but drawn, so that samples differ.

    `tried` are labels that the testbench aims at already, in vain as the goal is still uncovered: they come later.
    """
    vain = set(tried)

    def key(ranked: tuple[int, Goal]) -> float:
        rank, goal = ranked
        weight = (0.25 if goal.label in vain else 1.0) / (rank + 4)
        return rng.expovariate(weight)  # sorting by it draws without replacement, by weight

    return [goal for _, goal in sorted(enumerate(goals), key=key)]
