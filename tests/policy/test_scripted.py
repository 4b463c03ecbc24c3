"""Scripted policies: what they read, how they are seeded, and what they build on."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest.registry import corpus_designs
from llm4cov_assets.policy.base import State
from llm4cov_assets.policy.compact import MAX_CYCLES
from llm4cov_assets.policy.scripted import SCRIPTED, constants, scripted
from llm4cov_assets.policy.stimulus import Burst, Drive, parse
from sim.design import Design, SourceFile
from sim.elaborate import analyse
from sim.goals import goals
from sim.simulation import Coverage, Simulation, Testbench, UncoveredItem

DESIGNS = {design.name: design for design in corpus_designs()}


def observed(design: Design, text: str, status: str = "passed", uncovered: tuple[UncoveredItem, ...] = ()) -> State:
    testbench = Testbench(text)
    simulation = Simulation(
        simulation_id="00" * 16, design_id=design.design_id, rtl_id=design.rtl_id, testbench_id=testbench.testbench_id,
        build_id="11" * 16, language="cocotb", status=status, coverage=Coverage(overall=0.5), uncovered=uncovered,
    )  # fmt: skip
    return State(design, testbench, simulation)


def program(generation):
    assert generation.testbench is not None, generation.error
    found = parse(generation.testbench.text)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def fifo() -> State:
    return State(DESIGNS["sync_fifo"])


@pytest.mark.parametrize("name", SCRIPTED)
@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_every_policy_drafts_a_complete_file_for_every_bundled_design(name, design):
    [generation] = scripted(name).propose([State(design)], 1, seed=0)
    assert program(generation).segments
    compile(generation.testbench.text, "testbench.py", "exec")


@pytest.mark.parametrize("name", ["scripted/random", "scripted/directed"])
def test_samples_and_seeds_give_different_testbenches(name, fifo):
    policy = scripted(name)
    texts = {g.answer for seed in (0, 1) for g in policy.propose([fifo], 3, seed)}
    assert len(texts) == 6


@pytest.mark.parametrize("name", SCRIPTED)
def test_an_answer_does_not_depend_on_the_batch_it_is_asked_in(name, fifo):
    policy, other = scripted(name), State(DESIGNS["alu"])
    together = policy.propose([other, fifo], 2, seed=5)
    assert together[2:] == policy.propose([fifo], 2, seed=5)
    assert [(g.state_id, g.sample) for g in together] == [(s.state_id, i) for s in (other, fifo) for i in (0, 1)]


def test_random_is_four_bursts_as_long_as_a_student_can_write_them(fifo):
    [generation] = scripted("scripted/random").propose([fifo], 1, seed=0)
    actions = [action for segment in program(generation).segments for action in segment.actions]
    assert [type(a) for a in actions] == [Burst] * 4
    assert [a.cycles for a in actions] == [MAX_CYCLES] * 4


def test_reset_drives_no_input(fifo):
    [generation] = scripted("scripted/reset").propose([fifo], 1, seed=0)
    [segment] = program(generation).segments
    assert segment.actions == (Drive((), 20),)


def test_settings_make_another_policy():
    assert scripted("scripted/directed").policy_id != scripted("scripted/directed", corruption=0.0).policy_id
    assert scripted("scripted/random").policy_id != scripted("scripted/reset").policy_id


@pytest.mark.parametrize(("name", "settings"), [("scripted/none", {}), ("scripted/random", {"goals": 3})])
def test_an_unknown_policy_or_setting_is_a_user_error(name, settings):
    with pytest.raises(UserError):
        scripted(name, **settings)


def test_a_repair_keeps_the_testbench_and_appends_bursts_and_up_to_three_goals(fifo):
    policy = scripted("scripted/directed")
    [draft] = policy.propose([fifo], 1, seed=0)
    branches = [b for b in analyse(fifo.design).branches if b.steps is not None]
    missing = tuple(UncoveredItem("branch", b.file, b.line, b.instance, b.what, "") for b in branches)
    for repair in policy.propose([observed(fifo.design, draft.answer, uncovered=missing)], 4, seed=1):
        kept, new = program(draft).segments, program(repair).segments
        assert new[: len(kept)] == kept
        added = new[len(kept) :]
        aimed = [s for s in added if any(isinstance(a, Drive) for a in s.actions)]
        assert 1 <= len(aimed) <= 3
        assert len(added) - len(aimed) <= policy.bursts


@pytest.mark.parametrize("case", ["not ours", "failing"])
def test_a_repair_starts_anew_when_it_cannot_build_on_the_testbench(case, fifo):
    policy = scripted("scripted/directed")
    [draft] = policy.propose([fifo], 1, seed=0)
    state = {
        "not ours": observed(fifo.design, "import cocotb\n"),
        "failing": observed(fifo.design, draft.answer, status="crashed"),
    }[case]
    for repair in policy.propose([state], 8, seed=0):
        segments = program(repair).segments
        assert segments and not set(segments) >= set(program(draft).segments)


def test_a_testbench_that_grew_too_long_is_not_appended_to(fifo):
    policy = scripted("scripted/directed", max_segments=4)
    [draft] = policy.propose([fifo], 1, seed=0)
    [repair] = policy.propose([observed(fifo.design, draft.answer)], 1, seed=0)
    assert len(program(repair).segments) <= 5


def test_without_a_known_goal_a_repair_probes_and_bursts(fifo):
    policy = scripted("scripted/directed")
    [draft] = policy.propose([fifo], 1, seed=0)
    [repair] = policy.propose([observed(fifo.design, draft.answer)], 1, seed=0)
    added = program(repair).segments[len(program(draft).segments) :]
    assert 3 <= len(added) <= 3 + policy.bursts


def test_goals_beyond_the_reach_are_only_begun(fifo):
    policy = scripted("scripted/directed", reach=2, corruption=0.0)
    steps = {goal.label: len(goal.steps) for goal in goals(analyse(fifo.design), None)}
    assert max(steps.values()) > 2
    begun = set()
    for generation in policy.propose([fifo], 40, seed=0):
        for segment in program(generation).segments:
            if segment.goal in steps:
                assert steps[segment.goal] <= 2
            elif segment.goal.startswith("the first steps to "):
                begun.add(segment.goal.removeprefix("the first steps to "))
                assert [type(a) for a in segment.actions] == [Drive, Drive, Burst]
    assert begun and all(steps[label] > 2 for label in begun)


def test_bursts_are_of_any_length_and_some_goals_are_explored_from(fifo):
    policy = scripted("scripted/directed")
    segments = [s for g in policy.propose([fifo], 100, seed=0) for s in program(g).segments]
    lengths = [s.actions[0].cycles for s in segments if isinstance(s.actions[0], Burst)]
    assert 0 < sum(n > 32 for n in lengths) < len(lengths) and max(lengths) <= MAX_CYCLES and min(lengths) >= 4
    aimed = [s for s in segments if not isinstance(s.actions[0], Burst)]
    explored = [s for s in aimed if isinstance(s.actions[-1], Burst)]
    assert 0.2 < len(explored) / len(aimed) < 0.4


def test_corruption_is_a_share_of_the_goals():
    designs = [State(d) for d in DESIGNS.values()]
    clean, spoilt = (scripted("scripted/directed", corruption=c) for c in (0.0, 1.0))
    rng = Random(0)
    for state in designs:
        interface = analyse(state.design).interface
        for generation in clean.propose([state], 2, seed=3):
            for segment in program(generation).segments:
                assert clean._spoil(segment, interface, rng) == segment
                if len(segment.actions) == 1 and isinstance(segment.actions[0], Drive):
                    assert spoilt._spoil(segment, interface, rng).goal == segment.goal


def test_a_design_that_cannot_be_analysed_is_an_answer_with_an_error():
    broken = Design(name="broken", sources=(SourceFile("broken.sv", b"module broken; endmodule"),), top="absent")
    for name in SCRIPTED:
        [generation] = scripted(name).propose([State(broken)], 1, seed=0)
        assert generation.testbench is None
        assert generation.error
        assert generation.finish_reason == "error"


@pytest.mark.parametrize(
    ("guard", "expected"),
    [
        ("count == 8'hA5", [0xA5]),
        ("a > 12 && b != 4'b1_010", [12, 10]),
        ("x[3:0] == 3", [3]),
        ("mem[7] == 2'd1", [1]),
        ("state == IDLE2", []),
        ("v == 4'bx01z", []),
        ("!en", []),
        ("t == 'o17", [15]),
        ("ready", []),
    ],
)
def test_constants_of_a_guard(guard, expected):
    assert constants(guard) == expected


def test_the_prompt_names_the_state_and_the_aims(fifo):
    [generation] = scripted("scripted/directed").propose([fifo], 1, seed=0)
    assert fifo.state_id in generation.prompt
    assert "no testbench yet" in generation.prompt
    for segment in program(generation).segments:
        assert segment.goal in generation.prompt
    assert replace(generation, sample=9).prompt_id == generation.prompt_id
