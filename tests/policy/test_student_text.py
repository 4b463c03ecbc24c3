"""Tokens, compact text and grammar."""

from itertools import pairwise
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

from llm4cov_assets.policy import tokens as t
from llm4cov_assets.policy.compact import (
    ANSWER_TOKENS,
    PROMPT_TOKENS,
    NotExpressible,
    build_prompt,
    focus,
    goal_steps,
)
from llm4cov_assets.policy.grammar import AnswerGrammar, Shape, first_error
from llm4cov_assets.policy.stimulus import Burst, Drive, Reset, Segment
from sim.conditions import Constraint, Step


def interface(**widths):
    return SimpleNamespace(
        data_inputs=tuple(SimpleNamespace(name=name, width=width) for name, width in widths.items()),
        resets=(SimpleNamespace(port="rst_n", active_low=True),),
    )


def goal(label, *steps):
    return SimpleNamespace(label=label, steps=steps, items=())


def step(*constraints, cycles=1):
    return Step(tuple(Constraint(*c) for c in constraints), cycles)


def condition(io, *constraints):
    return goal_steps(goal("g", step(*constraints)), io)[0].conditions


def test_text_survives_tokens_and_back():
    text = "new g0 p15 1 p3 >= a5 ; p23 0 x 0c g1 p4 != add do r 64 g0 p15 1"
    assert t.decode(t.encode(text)) == text


def test_hugging_face_tokenizer_agrees():
    text = "more g0 p0 1 p3 <= add ; p1 0 x 0c do"
    fast = t.fast_tokenizer()
    assert fast(text)["input_ids"] == t.encode(text)
    assert fast.decode(t.encode(f"{text} <eos>"), skip_special_tokens=True) == text
    assert fast.pad_token_id == t.PAD_ID != t.EOS_ID == fast.eos_token_id


def test_a_word_outside_the_vocabulary_is_named():
    with pytest.raises(ValueError, match="zz"):
        t.encode("new zz")


def test_tokens_of_the_prompt_begin_those_of_prompt_and_completion():
    prompt, completion = "new g0 p3 a5 do", "g0 p3 a5 <eos>"
    together = f"{prompt} {completion}"
    assert t.encode(together) == t.encode(prompt) + t.encode(completion)
    fast = t.fast_tokenizer()
    assert fast(together)["input_ids"][: len(t.encode(prompt))] == fast(prompt)["input_ids"]


def test_strict_relations_are_shown_as_inclusive_ones():
    io = interface(a=8)
    assert condition(io, ("a", ">", 0x40)) == (("a", ">=", 0x41),)
    assert condition(io, ("a", "<", 0x40)) == (("a", "<=", 0x3F),)
    assert condition(io, ("a", "!=", 0)) == (("a", ">=", 1),)
    assert condition(io, ("a", "!=", 7)) == (("a", "!=", 7),)


def test_a_relation_with_one_answer_is_shown_as_its_value():
    assert condition(interface(a=1), ("a", "!=", 0)) == (("a", "", 1),)
    assert condition(interface(a=8), ("a", ">", 254)) == (("a", "", 255),)
    assert condition(interface(a=8), ("a", "<", 1)) == (("a", "", 0),)


def test_selects_and_several_conditions_are_shown_as_a_value_that_meets_them():
    io = interface(a=8)
    assert condition(io, ("a", "==", 5, 6, 4), ("a", "==", 1, 0, 0)) == (("a", "", 0x51),)
    ((_, relation, value),) = condition(io, ("a", ">", 3), ("a", "<", 6))
    assert relation == "" and 3 < value < 6


def test_a_reset_that_a_step_asserts_is_released_by_the_next():
    steps = goal_steps(goal("g", step(("rst_n", "==", 0)), step(("a", "==", 1))), interface(a=1))
    assert steps[1].conditions == (("a", "", 1), ("rst_n", "", 1))


def test_long_holds_are_split():
    steps = goal_steps(goal("g", step(("a", "==", 1), cycles=600)), interface(a=1))
    assert [s.cycles for s in steps] == [255, 255, 90]


def test_goals_on_wide_ports_and_long_goals_are_not_expressible():
    with pytest.raises(NotExpressible, match="wide"):
        condition(interface(a=64), ("a", "==", 1))
    with pytest.raises(NotExpressible, match="long"):
        goal_steps(goal("g", *[step(("a", "==", i)) for i in range(40)]), interface(a=32))


def test_prompt_names_the_first_goals_that_fit_and_passes_over_the_others():
    io = interface(a=8, wide=64)
    goals = [goal("wide", step(("wide", "==", 1))), *(goal(f"g{i}", step(("a", "==", i))) for i in range(5))]
    prompt = build_prompt(io, goals, Random(0), repair=False)
    assert [g.label for g in prompt.goals] == ["g0", "g1", "g2"]
    assert [port for port, _ in prompt.ports.values()] == ["a"] * 3


def test_every_condition_has_an_alias_of_its_own_counting_up_from_a_drawn_start():
    io = interface(a=4, b=1)
    goals = [goal("x", step(("a", "==", 1), ("b", "==", 1)), step(("a", "==", 2))), goal("y", step(("a", "==", 3)))]
    texts = set()
    for seed in range(5):
        prompt = build_prompt(io, goals, Random(seed), repair=True)
        assert [port for port, _ in prompt.ports.values()] == ["a", "b", "a", "a"]
        numbers = [int(alias[1:]) for alias in prompt.ports]
        assert all(after == (before + 1) % len(t.ALIASES) for before, after in pairwise(numbers))
        texts.add(prompt.text)
    assert len(texts) > 2


def test_goals_for_which_no_aliases_are_left_are_passed_over():
    io = interface(a=4)
    long = [step(("a", "==", i % 16)) for i in range(40)]
    goals = [goal("first", *long), goal("second", *long), goal("third", step(("a", "==", 1)))]
    assert [g.label for g in build_prompt(io, goals, Random(0), repair=False).goals] == ["first", "third"]


def test_an_answer_reads_back_as_the_segments_it_was_written_from():
    io = interface(a=8, b=1)
    goals = [goal("x", step(("a", "==", 3), ("b", "==", 0)), step(("a", "==", 4))), goal("y", step(("b", "==", 1)))]
    prompt = build_prompt(io, goals, Random(1), repair=False)
    segments = [
        Segment("x", (Drive((("b", 1), ("a", 0xA5))), Drive((("b", 0),)), Drive((), 12))),
        Segment("y", (Drive((("b", 1),), 2), Drive((("b", 0),)), Burst(9, 32))),
    ]
    answer = prompt.answer([Burst(7, 64)], segments)
    burst, *read = prompt.segments(answer, Random(0))
    assert burst.actions[0].cycles == 64
    for written, found in zip(segments, read, strict=True):
        assert found.goal == written.goal
        assert [(dict(getattr(a, "values", ())), a.cycles) for a in found.actions] == [
            (dict(getattr(a, "values", ())), a.cycles) for a in written.actions
        ]
    assert [type(a) for a in read[-1].actions] == [Drive, Drive, Burst]
    assert first_error(t.encode(f"{answer} <eos>"), prompt.shape, ANSWER_TOKENS) is None


def test_segments_that_the_text_cannot_say_are_refused():
    prompt = build_prompt(interface(a=8), [goal("x", step(("a", "==", 3)))], Random(1), repair=False)
    for actions in [(Drive((("other", 1),)),), (Reset(),), tuple(Drive((("a", i),)) for i in range(80))]:
        with pytest.raises(NotExpressible):
            prompt.answer([], [Segment("x", actions)])
    with pytest.raises(NotExpressible):
        prompt.answer([], [])


def test_focus_prefers_useful_goals_and_puts_off_those_tried_in_vain():
    goals = [goal(f"g{i}") for i in range(20)]
    first = [focus(goals, ["g0"], Random(seed))[0].label for seed in range(400)]
    assert first.count("g1") > first.count("g15")
    assert first.count("g1") > first.count("g0")
    assert sorted(g.label for g in focus(goals, [], Random(0))) == sorted(g.label for g in goals)


def random_answers(shapes, budget, seed):
    """Uniform answers under the grammar."""
    grammar, rng = AnswerGrammar(shapes, budget), np.random.default_rng(seed)
    answers = [[] for _ in shapes]
    for _ in range(budget):
        mask = grammar.mask()
        assert mask.any(axis=1).all()
        chosen = (rng.random(mask.shape) * mask).argmax(axis=1)
        grammar.advance(chosen)
        for answer, token in zip(answers, chosen, strict=True):
            if token != t.PAD_ID:
                answer.append(int(token))
    assert grammar.done.all()
    return answers


SHAPE = Shape({"p3": 8, "p0": 1, "p9": 5, "p15": 32}, 2)


@pytest.mark.parametrize("budget", [16, 40, ANSWER_TOKENS])
def test_every_answer_ends_within_the_budget(budget):
    for answer in random_answers([SHAPE, Shape({"p1": 2}, 0)] * 40, budget, seed=budget):
        assert len(answer) <= budget
        assert answer.count(t.EOS_ID) == 1 and answer[-1] == t.EOS_ID and len(answer) > 1


def test_one_burst_may_follow_each_goal_and_ends_it():
    for legal in ["g0 p0 1 r 40 <eos>", "r 08 g0 p0 1 x 03 r 40 g1 p3 a5 r 01 <eos>"]:
        assert first_error(t.encode(legal), SHAPE, ANSWER_TOKENS) is None
    for text in ["g0 p0 1 r 40 r 40 <eos>", "g0 r 40 <eos>", "g0 p0 1 r 40 ; p0 0 <eos>", "g0 p0 1 r 40 p3 a5 <eos>"]:
        assert first_error(t.encode(text), SHAPE, ANSWER_TOKENS) is not None, text


def test_answers_name_only_the_prompt_s_aliases_and_tags_with_values_in_range():
    for answer in random_answers([SHAPE] * 100, ANSWER_TOKENS, seed=5):
        words = t.decode(answer).split()
        tags = [w for w in words if w in t.TAGS]
        assert len(tags) == len(set(tags)) and set(tags) <= {"g0", "g1"}
        for name, value in pairwise(words):
            if name in t.ALIASES:
                width = SHAPE.widths[name]
                assert len(value) == t.digits_of(width) and int(value, 16) < 1 << width
            if name in (t.HOLD, t.BURST):
                assert len(value) == 2 and int(value, 16) > 0


def test_grammar_refuses_what_it_should():
    legal = "r 40 g0 p0 1 p3 a5 ; x 0c g1 p9 1f <eos>"
    assert first_error(t.encode(legal), SHAPE, ANSWER_TOKENS) is None
    for text in [
        "<eos>", "g2 p0 1 <eos>", "g0 <eos>", "g0 p0 2 <eos>", "g0 p0 1 p0 0 <eos>", "g0 p3 a <eos>",
        "g0 p9 20 <eos>", "g0 p1 1 <eos>", "g0 p0 1 g0 p0 0 <eos>", "g0 p0 1 r 00 <eos>", "r 00 <eos>",
        "g0 p0 1 x 00 <eos>", "g0 p0 1 ; <eos>", "r 40 r 40 r 40 r 40 r 40 <eos>", "g0 p0 1",
    ]:  # fmt: skip
        assert first_error(t.encode(text), SHAPE, ANSWER_TOKENS) is not None, text


def test_a_batch_goes_on_with_some_rows_as_if_the_others_had_never_been():
    grammar = AnswerGrammar([SHAPE, SHAPE, Shape({"p1": 3}, 1)], 40)
    grammar.advance(np.array([t.TOKEN_ID["g0"], t.TOKEN_ID["r"], t.TOKEN_ID["g0"]]))
    expected = grammar.mask()[[0, 2]]
    grammar.keep(np.array([0, 2]))
    assert (grammar.mask() == expected).all()


def test_a_prompt_and_its_answer_fit_into_a_training_row():
    assert PROMPT_TOKENS + ANSWER_TOKENS <= 512
