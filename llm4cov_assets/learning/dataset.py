"""Training rows from accepted pairs: the prompt that would have led to what the pair's testbench did.

Rows are relabelled in hindsight: a row names only goals that were uncovered before and that the pair's own simulation
hit, whatever the policy had been asked. Each pair gives several variants, with fresh aliases and with the goals
permuted and subset, so that neither names nor places can be learnt by heart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any

from llm4cov_assets.policy import tokens as t
from llm4cov_assets.policy.base import State
from llm4cov_assets.policy.compact import NotExpressible, Prompt, build_prompt, goal_steps
from llm4cov_assets.policy.stimulus import Action, Burst, Drive, Segment, parse
from sim.design import DesignError
from sim.identity import content_id, sha256
from sim.simulation import Simulation, Testbench

if TYPE_CHECKING:
    import polars as pl

    from sim.elaborate import Interface
    from sim.goals import Goal


OTHER_CONSTANTS = 0.5
"""Share of the rows that are given other constants than the design's, so that those are not learnt by heart."""


@dataclass(frozen=True)
class AcceptedPair:
    """A step that the filter accepted: the state before, the testbench that answered it, and what its simulation
    showed. `role` is `draft` (the state is s0) or `repair`."""

    transition_id: str
    state: State
    testbench: Testbench
    simulation: Simulation
    role: str


@dataclass(frozen=True)
class _Lesson:
    """What one pair teaches: bursts, and goals that it hit with the segments that aimed at them."""

    interface: Interface
    bursts: tuple[Burst, ...]
    reached: tuple[tuple[Goal, Segment], ...]


def examples(
    accepted: Sequence[AcceptedPair], variants: int, seed: int, max_length: int
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Rows of the table `sft_examples`, `variants` per pair at most, and why how many things were left out.

    Keys of the counts begin with what was left out: `pair:`, `segment:` or `row:`. Equal arguments give equal rows.
    """
    import polars as pl

    rows: list[dict[str, Any]] = []
    dropped: Counter[str] = Counter()
    lessons: dict[int, _Lesson | None] = {}
    # design by design, because the analysis of a design is kept for a while only, and planning paths is the costly part
    for number in sorted(range(len(accepted)), key=lambda i: accepted[i].state.design.design_id):
        lessons[number] = _lesson(accepted[number], dropped)
    for number, pair in enumerate(accepted):
        lesson = lessons[number]
        if lesson is None:
            continue
        seen: set[tuple[str, str]] = set()
        # a burst alone has one answer for every prompt: more variants would only drown the rest
        for variant in range(variants if lesson.reached else 1):
            rng = Random(sha256(["variant", seed, pair.transition_id, variant]))
            row = _row(pair, lesson, rng, dropped, max_length)
            if row is None:
                continue
            if row in seen:
                dropped["row: same as another variant"] += 1
                continue
            seen.add(row)
            prompt, completion = row
            rows.append(
                {
                    "example_id": content_id("example", pair.transition_id, variant, prompt, completion),
                    "transition_id": pair.transition_id,
                    "design_id": pair.state.design.design_id,
                    "role": pair.role,
                    "variant": variant,
                    "prompt": prompt,
                    "completion": completion,
                    "n_tokens": len(t.encode(prompt)) + len(t.encode(completion)),
                }
            )
    schema = {
        "example_id": pl.String, "transition_id": pl.String, "design_id": pl.String, "role": pl.String,
        "variant": pl.Int64, "prompt": pl.String, "completion": pl.String, "n_tokens": pl.Int64,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema), dict(sorted(dropped.items()))


def _lesson(pair: AcceptedPair, dropped: Counter[str]) -> _Lesson | None:
    """What the pair teaches, or None; what it does not teach is counted."""
    from sim.elaborate import analyse
    from sim.goals import goals

    program = parse(pair.testbench.text)
    if program is None:
        dropped["pair: testbench is not a rendered program"] += 1
        return None
    before = pair.state.simulation if pair.state.simulation and pair.state.simulation.running else None
    kept = parse(pair.state.testbench.text) if before and pair.state.testbench else None
    old = Counter(kept.segments) if kept else Counter[Segment]()
    new = []
    for segment in program.segments:
        if old[segment]:
            old[segment] -= 1
        else:
            new.append(segment)
    try:
        analysis = analyse(pair.state.design)
    except DesignError:
        dropped["pair: design cannot be analysed"] += 1
        return None
    open_goals = {goal.label: goal for goal in goals(analysis, before.uncovered if before else None)}
    missed = _points(pair.simulation.uncovered)
    bursts: list[Burst] = []
    reached: list[tuple[Goal, Segment]] = []
    for segment in new:
        goal = open_goals.get(segment.goal)
        reason = ""
        if segment.actions and all(isinstance(action, Burst) for action in segment.actions):
            bursts += [action for action in segment.actions if isinstance(action, Burst)]
        elif goal is None:
            reason = "aims at no goal that was uncovered"
        elif 2 * len(_points(goal.items) - missed) < len(_points(goal.items)):
            reason = "its goal was not hit"
        elif any(goal.label == other.label for other, _ in reached):
            reason = "its goal has a segment already"
        else:
            try:
                goal_steps(goal, analysis.interface)
                reached.append((goal, segment))
            except NotExpressible as error:
                reason = str(error)
        if reason:
            dropped[f"segment: {reason}"] += 1
    if not bursts and not reached:
        dropped["pair: nothing in it can be taught"] += 1
        return None
    return _Lesson(analysis.interface, tuple(bursts), tuple(reached))


def _points(items: Sequence[Any]) -> set[tuple[str, str, int, str, str]]:
    """Uncovered items as a set, without what is only there to be read."""
    return {(i.metric, i.file, i.line, i.instance, i.what) for i in items}


def _row(
    pair: AcceptedPair, lesson: _Lesson, rng: Random, dropped: Counter[str], max_length: int
) -> tuple[str, str] | None:
    """One variant as (prompt, completion), or None, counted."""
    most = min(len(t.TAGS), len(lesson.reached))
    # half of the rows are as full as prompts are when the student answers them; the others teach the short ones
    wanted = most if rng.random() < 0.5 else rng.randint(min(1, most), most)
    picked = rng.sample(lesson.reached, wanted)
    prompt = build_prompt(lesson.interface, [goal for goal, _ in picked], rng, repair=pair.role == "repair")
    segment_of = {goal.label: segment for goal, segment in picked}
    segments = [segment_of[goal.label] for goal in prompt.goals]
    if rng.random() < OTHER_CONSTANTS:
        prompt, segments = _other_constants(prompt, segments, lesson.interface, rng)
    try:
        answer = prompt.answer(lesson.bursts, segments)
    except NotExpressible as error:
        dropped[f"row: {error}"] += 1
        return None
    completion = f"{answer} {t.EOS}"
    if len(prompt.ids) + len(t.encode(completion)) > max_length:
        dropped["row: too long"] += 1
        return None
    return prompt.text, completion


def _other_constants(
    prompt: Prompt, segments: Sequence[Segment], interface: Interface, rng: Random
) -> tuple[Prompt, list[Segment]]:
    """The same lesson with other constants: a mask per port, on the conditions and on the values driven alike.

    Where conditions are equalities, what to drive does not depend on the constants, so a design with other constants
    would have given this row. Ports with a range keep their values, and so do resets.
    """
    resets = {reset.port for reset in interface.resets}
    conditions = [c for steps in prompt.steps for step in steps for c in step.conditions]
    ranged = {c.port for c in conditions if c.relation}
    ports = sorted({c.port for c in conditions} - ranged - resets)
    widths = dict(prompt.ports.values())
    masks = {port: rng.getrandbits(widths[port]) for port in ports}
    steps = tuple(
        tuple(
            step._replace(conditions=tuple(c._replace(value=c.value ^ masks.get(c.port, 0)) for c in step.conditions))
            for step in goal
        )
        for goal in prompt.steps
    )
    return replace(prompt, steps=steps), [
        replace(segment, actions=tuple(_masked(action, masks) for action in segment.actions)) for segment in segments
    ]


def _masked(action: Action, masks: dict[str, int]) -> Action:
    if not isinstance(action, Drive):
        return action
    return replace(action, values=tuple((port, value ^ masks.get(port, 0)) for port, value in action.values))
