"""The small student as a policy, with untrained weights: legal whatever it has (not) learnt."""

import json
from dataclasses import replace

import numpy as np
import pytest

from llm4cov_assets.policy import tokens as t
from llm4cov_assets.policy.base import State
from llm4cov_assets.policy.compact import ANSWER_TOKENS, build_prompt
from llm4cov_assets.policy.generation_cache import GenerationCache
from llm4cov_assets.policy.grammar import first_error
from llm4cov_assets.policy.stimulus import parse
from llm4cov_assets.policy.student import StudentPolicy, base_student, choose
from llm4cov_assets.profiles import Profile
from sim.design import Design, SourceFile
from sim.elaborate import analyse
from sim.goals import goals
from sim.simulation import Coverage, Simulation

RTL = b"""module lock (input clk, input rst_n, input [7:0] key, input try, output reg open);
  reg [1:0] state;
  always @(posedge clk or negedge rst_n)
    if (!rst_n) begin state <= 0; open <= 0; end
    else if (try)
      case (state)
        0: if (key == 8'ha5) state <= 1;
        1: if (key == 8'h3c) state <= 2; else state <= 0;
        2: begin open <= 1; state <= 0; end
        default: state <= 0;
      endcase
endmodule
"""
DESIGN = Design("lock", (SourceFile("lock.v", RTL),), "lock")
TOPLESS = Design("topless", (SourceFile("lock.v", RTL),), "nowhere")


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return base_student(Profile(hidden_size=32, layers=1), tmp_path_factory.mktemp("base"))


def student(base, **settings):
    return StudentPolicy("untrained", base.path, base.checkpoint_id, **settings)


def observed(testbench):
    """A running simulation that covered nothing of what the design's goals stand for."""
    missed = tuple(item for goal in goals(analyse(DESIGN), None) for item in goal.items)
    simulation = Simulation(
        "s" * 32, DESIGN.design_id, DESIGN.rtl_id, testbench.testbench_id, "b" * 32, "cocotb", "passed",
        coverage=Coverage(overall=0.5), uncovered=missed,
    )  # fmt: skip
    return State(DESIGN, testbench, simulation)


def test_an_untrained_student_gives_complete_readable_files(base):
    found = student(base).propose([State(DESIGN)], 8, seed=1)
    assert len(found) == 8 and len({g.answer for g in found}) > 1
    for sample, g in enumerate(found):
        assert (g.sample, g.error, g.finish_reason) == (sample, "", "stop")
        assert parse(g.testbench.text) is not None and "@cocotb.test()" in g.testbench.text
        assert g.prompt.startswith("new ") and g.prompt_tokens == len(t.encode(g.prompt))
        assert g.completion_tokens == len(t.encode(g.answer)) + 1


def test_answers_are_legal_for_their_prompts(base):
    from random import Random

    from llm4cov_assets.policy.checkpoint import load_model
    from llm4cov_assets.policy.student import sample_answers

    analysis = analyse(DESIGN)
    prompts = [build_prompt(analysis.interface, goals(analysis, None), Random(i), repair=False) for i in range(12)]
    for prompt, answer in zip(
        prompts, sample_answers(load_model(base.path), prompts, range(12), 1.0, 1.0), strict=True
    ):
        assert first_error(answer, prompt.shape, ANSWER_TOKENS) is None


def test_samples_that_share_a_prompt_differ_in_their_answers_alone(base):
    found = student(base, per_prompt=4, temperature=1.0).propose([State(DESIGN)], 8, seed=1)
    first, second = found[:4], found[4:]
    assert {g.prompt for g in first} == {found[0].prompt} != {g.prompt for g in second} == {found[4].prompt}
    assert len({g.answer for g in first}) > 1
    assert student(base, per_prompt=4).policy_id != student(base).policy_id


def test_the_same_arguments_give_the_same_proposals(base):
    states = [State(DESIGN)]
    first, again = (student(base).propose(states, 3, seed=5) for _ in range(2))
    assert [replace(g, latency_s=0) for g in first] == [replace(g, latency_s=0) for g in again]
    other = student(base).propose(states, 3, seed=6)
    assert [g.answer for g in other] != [g.answer for g in first]
    assert {g.generation_id for g in other}.isdisjoint(g.generation_id for g in first)


def test_a_row_does_not_depend_on_the_rows_beside_it(base):
    alone = student(base).propose([State(DESIGN)], 2, seed=5)
    state = observed(alone[0].testbench)
    beside = student(base).propose([state, State(DESIGN)], 2, seed=5)
    assert [g.answer for g in beside[2:]] == [g.answer for g in alone]


def test_a_repair_is_appended_to_the_state_s_testbench(base):
    draft = student(base).propose([State(DESIGN)], 1, seed=1)[0].testbench
    repair = student(base).propose([observed(draft)], 1, seed=2)[0]
    assert repair.prompt.startswith("more ")
    before, after = parse(draft.text).segments, parse(repair.testbench.text).segments
    assert after[: len(before)] == before and len(after) > len(before)


def test_a_failing_state_is_answered_with_a_new_file(base):
    draft = student(base).propose([State(DESIGN)], 1, seed=1)[0].testbench
    state = observed(draft)
    failing = State(DESIGN, draft, replace(state.simulation, status="crashed", coverage=Coverage()))
    answer = student(base).propose([failing], 1, seed=2)[0]
    assert answer.prompt.startswith("new ")


def test_a_design_that_cannot_be_analysed_is_an_answer_with_an_error(base, tmp_path):
    bad, good = student(base, cache_dir=tmp_path).propose([State(TOPLESS), State(DESIGN)], 1, seed=1)
    assert bad.testbench is None and bad.finish_reason == "error" and "nowhere" in bad.error
    assert good.testbench is not None
    assert len(list(tmp_path.glob("*/*.json"))) == 1, "the error is not cached"


def test_cached_answers_are_not_decoded_again(base, tmp_path, monkeypatch):
    policy = student(base, cache_dir=tmp_path)
    first = policy.propose([State(DESIGN)], 3, seed=1)
    fresh = student(base, cache_dir=tmp_path)
    monkeypatch.setattr(fresh, "_decode", lambda *_: pytest.fail("decoded"))
    again = fresh.propose([State(DESIGN)], 3, seed=1)
    assert [replace(g, cached=False) for g in again] == first
    assert all(g.cached for g in again) and not any(g.cached for g in first)


def test_policy_id_follows_what_decides_the_proposals(base):
    assert student(base).policy_id == student(base, threads=2).policy_id
    assert student(base).policy_id != student(base, temperature=0.1).policy_id


def test_choose_follows_mask_nucleus_and_temperature():
    logits = np.array([[3.0, 2.0, 1.0, 5.0]], dtype=np.float32)
    mask = np.array([[True, True, True, False]])
    assert choose(logits, mask, np.array([0.5]), 0, 1.0)[0] == 0
    draws = np.linspace(0, 1, 1000, endpoint=False)
    rows = (np.repeat(logits, 1000, 0), np.repeat(mask, 1000, 0), draws)
    share = np.bincount(choose(*rows, 1.0, 1.0), minlength=4) / 1000
    assert np.allclose(share, [0.665, 0.245, 0.090, 0], atol=0.002)
    assert set(choose(*rows, 1.0, 0.8)) == {0, 1}


def test_generation_cache_keeps_the_preimage_and_refuses_errors(tmp_path):
    cache = GenerationCache(tmp_path)
    key = {"prompt": "new do", "sample": 0}
    assert cache.get(key) is None
    cache.put(key, {"text": "r 40"})
    assert cache.get(key) == {"text": "r 40"} and cache.get({**key, "sample": 1}) is None
    (path,) = tmp_path.glob("*/*.json")
    assert json.loads(path.read_text())["key"] == key
    path.write_text("{")
    assert cache.get(key) is None, "a damaged entry counts as absent"
    with pytest.raises(ValueError, match="not cached"):
        cache.put(key, {"error": "timeout"})
