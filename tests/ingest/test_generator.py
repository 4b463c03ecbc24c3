"""The generator is seeded, varied, legal, and keeps training apart from evaluation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest.canonical import canonical_content
from llm4cov_assets.ingest.generator import FAMILIES, HELD_OUT, by_name, families, generate
from llm4cov_assets.policy.base import State
from llm4cov_assets.policy.scripted import ScriptedRandom
from sim.design import Design
from sim.elaborate import analyse
from sim.simulator import Simulator

SAMPLE = [g.design for g in generate(2 * len(FAMILIES), seed=11)]


def test_the_same_seed_gives_the_same_designs_and_another_seed_others() -> None:
    first, again, other = (generate(60, seed=s) for s in (3, 3, 4))
    assert [g.design.design_id for g in first] == [g.design.design_id for g in again]
    assert not {canonical_content(g.design) for g in first} & {canonical_content(g.design) for g in other}


def test_more_designs_are_only_added_at_the_end() -> None:
    assert [g.design.rtl_id for g in generate(30)] == [g.design.rtl_id for g in generate(300)[:30]]


def test_hundreds_of_designs_are_distinct_beyond_their_names() -> None:
    designs = [g.design for g in generate(900)]
    assert len({d.rtl_id for d in designs}) == 900
    assert len({canonical_content(d) for d in designs}) == 900
    assert len({d.name for d in designs}) == 900


def test_there_are_ten_families_to_train_on_beside_the_held_out_ones() -> None:
    assert set(HELD_OUT) < set(FAMILIES)
    assert len(FAMILIES) - len(HELD_OUT) >= 10
    assert len(HELD_OUT) >= 3


def test_a_name_is_enough_to_make_a_design_again() -> None:
    made = generate(40, "counter,register_map", 5, "e")[-1]
    again = by_name(made.design.name)
    assert again is not None
    assert again.design == made.design
    assert by_name("counter_x") is None
    assert by_name("nonsense_0_000") is None


def test_a_glob_that_matches_no_family_is_refused_with_the_names() -> None:
    with pytest.raises(UserError, match="lock"):
        families("no_such_*")


@pytest.mark.parametrize("design", SAMPLE, ids=lambda d: d.name)
def test_a_generated_design_is_lint_clean_and_of_a_readable_size(design: Design, lint: Callable[[Design], str]) -> None:
    assert lint(design) == ""
    assert 25 <= design.sources[0].text.count("\n") <= 90


def test_elaboration_finds_a_path_from_reset_to_nearly_every_branch() -> None:
    branches = [b for d in SAMPLE for b in analyse(d).branches]
    assert sum(b.steps is not None for b in branches) / len(branches) > 0.9


def test_resets_and_port_orders_vary() -> None:
    interfaces = [analyse(g.design).interface for g in generate(60)]
    assert len({(r.active_low, r.synchronous) for i in interfaces for r in i.resets}) == 4
    assert len({i.ports[0].name for i in interfaces}) > 10
    assert all(p.width <= 16 for i in interfaces for p in i.ports)


@pytest.mark.slow
def test_two_hundred_random_cycles_mostly_leave_branches_uncovered_in_every_family(simulator: Simulator) -> None:
    """Random stimulus that is lucky with one seed is not with the next."""
    policy = ScriptedRandom(bursts=2, cycles=100)
    jobs = [(d, [g.testbench for g in policy.propose([State(d)], 5, 0) if g.testbench]) for d in SAMPLE]
    scores: list[float] = []
    left: dict[str, list[bool]] = {}
    for number, results in simulator.run_batches(jobs, seed=0):
        name = SAMPLE[number].name
        assert [r.status for r in results] == ["passed"] * 5, name
        family = name.split("_11_")[0]
        left.setdefault(family, []).extend(any(u.metric in ("line", "branch") for u in r.uncovered) for r in results)
        scores += [r.score for r in results]
    assert set(left) == set(FAMILIES)
    assert all(sum(found) >= 5 for found in left.values()), left
    assert sum(map(sum, left.values())) >= 0.9 * len(scores)
    assert 0.5 < sum(scores) / len(scores) < 0.85
