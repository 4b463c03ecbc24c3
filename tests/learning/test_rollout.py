"""One step of a policy on many states."""

from __future__ import annotations

import pytest
from worlds import Author, World, design, state, testbench

from llm4cov_assets.learning.rollout import rollout, simulated

A, B = design("a"), design("b")


def answers(at, sample, seed):
    """Sample 0 is unusable, sample 1 the same for every state, later ones differ."""
    return None if sample == 0 else testbench("passed", 0.5 if sample == 1 else 0.5 + sample / 10)


def test_there_is_one_step_per_state_and_sample_in_order_whatever_the_order_of_results():
    states = [state(A), state(B), state(A, testbench("passed", 0.2))]
    steps = rollout(Author(answers), states, 3, 7, World().simulate)
    assert [(s.state, s.generation.sample) for s in steps] == [(at, i) for at in states for i in range(3)]
    assert [s.status for s in steps] == ["unparsable", "passed", "passed"] * 3
    assert all(s.simulation.design_id == s.state.design.design_id for s in steps if s.simulation)
    assert [round(s.gain, 3) for s in steps[6:]] == [-0.2, 0.3, 0.5]


def test_an_unusable_answer_is_a_step_that_leads_nowhere():
    step = rollout(Author(answers), [state(A)], 1, 0, World().simulate)[0]
    assert (step.next_state, step.simulation, step.logical, step.score_after) == (None, None, False, 0.0)


def test_a_design_is_one_job_and_equal_testbenches_are_sent_and_counted_once():
    world = World()
    steps = rollout(Author(answers), [state(A), state(A, testbench("passed", 0.2)), state(B)], 3, 0, world.simulate)
    ((job_a, job_b),) = world.jobs
    assert (job_a[0], len(job_a[1]), job_b[0], len(job_b[1])) == (A, 2, B, 2)
    assert [s.logical for s in steps] == [False, True, True, False, False, False, False, True, True]


def test_nothing_is_simulated_when_no_answer_is_usable():
    world = World()
    rollout(Author(lambda *_: None), [state(A)], 2, 0, world.simulate)
    assert world.jobs == []


def test_a_policy_that_loses_answers_and_a_simulator_that_loses_results_are_found_out():
    policy = Author(answers)
    policy.propose = lambda states, n, seed: []
    with pytest.raises(ValueError, match="0 generations for 1 states"):
        rollout(policy, [state(A)], 1, 0, World().simulate)
    generations = Author(answers).propose([state(A)], 2, 0)
    with pytest.raises(ValueError, match="1 of 1 designs came back without"):
        simulated([(state(A), g) for g in generations], lambda jobs: [])
