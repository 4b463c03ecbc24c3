"""Training rows from accepted pairs."""

from itertools import pairwise
from random import Random

import pytest

from llm4cov_assets.learning import dataset
from llm4cov_assets.learning.dataset import AcceptedPair, examples
from llm4cov_assets.policy import tokens as t
from llm4cov_assets.policy.base import State
from llm4cov_assets.policy.compact import ANSWER_TOKENS
from llm4cov_assets.policy.grammar import Shape, first_error
from llm4cov_assets.policy.stimulus import Burst, Drive, Program, Reset, Segment, from_goal, render
from sim.design import Design, SourceFile
from sim.elaborate import analyse
from sim.goals import goals
from sim.simulation import Coverage, Simulation, Testbench

RTL = b"""module pick (input clk, input rst_n, input [7:0] key, input go, input [63:0] wide, output reg [2:0] seen);
  always @(posedge clk or negedge rst_n)
    if (!rst_n) seen <= 0;
    else begin
      if (go && key == 8'ha5) seen[0] <= 1;
      if (go && key == 8'h3c) seen[1] <= 1;
      if (go && wide == 64'd77) seen[2] <= 1;
    end
endmodule
"""
DESIGN = Design("pick", (SourceFile("pick.v", RTL),), "pick")
BURST = Segment("64 random cycles", (Burst(1, 64),))


@pytest.fixture(autouse=True)
def same_constants(monkeypatch):
    monkeypatch.setattr(dataset, "OTHER_CONSTANTS", 0.0)


def all_goals():
    return goals(analyse(DESIGN), None)


def aimed(constant):
    """The goal that needs `constant`, and the segment that reaches it."""
    interface = analyse(DESIGN).interface
    found = next(g for g in all_goals() if any(c.value == constant for step in g.steps for c in step.constraints))
    return found, from_goal(found, interface)


def bench_of(*segments):
    return Testbench(render(Program(segments), DESIGN, analyse(DESIGN).interface))


def simulation(bench, missed):
    uncovered = tuple(item for goal in missed for item in goal.items)
    return Simulation(
        "s" * 32, DESIGN.design_id, DESIGN.rtl_id, bench.testbench_id, "b" * 32, "cocotb", "passed",
        coverage=Coverage(overall=0.5), uncovered=uncovered,
    )  # fmt: skip


def pair(segments, missed, before=(), missed_before=None, transition="t" * 32):
    bench = bench_of(*before, *segments)
    if missed_before is None:
        return AcceptedPair(transition, State(DESIGN), bench, simulation(bench, missed), "draft")
    old = bench_of(*before)
    state = State(DESIGN, old, simulation(old, missed_before))
    return AcceptedPair(transition, state, bench, simulation(bench, missed), "repair")


def test_a_draft_teaches_its_bursts_and_the_goals_it_hit():
    _, segment = aimed(0xA5)
    rows, dropped = examples([pair([BURST, segment], [])], 1, 0, 512)
    assert dropped == {} and rows["role"].to_list() == ["draft"]
    prompt, completion = rows.row(0, named=True)["prompt"], rows.row(0, named=True)["completion"]
    assert prompt.startswith("new ") and prompt.count("g0") == 1 and "a5" in prompt
    assert completion.startswith("r 40 g0 ") and " a5" in completion and completion.endswith(" <eos>")
    assert rows["n_tokens"][0] == len(t.encode(prompt)) + len(t.encode(completion))


def test_a_repair_teaches_only_what_it_appended_and_newly_hit():
    (_, done), (second, new) = aimed(0xA5), aimed(0x3C)
    rows, dropped = examples([pair([new], [], before=[BURST, done], missed_before=[second])], 1, 0, 512)
    row = rows.row(0, named=True)
    assert row["prompt"].startswith("more ") and "3c" in row["prompt"] and "a5" not in row["prompt"]
    assert row["completion"].startswith("g0 ") and dropped == {}


def test_a_goal_that_was_not_hit_is_never_named():
    (_, right), (missed, wrong) = aimed(0xA5), aimed(0x3C)
    rows, dropped = examples([pair([right, wrong], [missed])], 8, 0, 512)
    assert all("3c" not in row["prompt"] and "g1" not in row["prompt"] for row in rows.iter_rows(named=True))
    assert dropped.pop("segment: its goal was not hit") == 1


def test_everything_left_out_is_counted_with_its_reason():
    _, segment = aimed(77)
    probe = Segment("probe something", (Drive((("go", 1),)),))
    _, right = aimed(0xA5)
    spoilt = Segment(right.goal, (*right.actions, Reset()))
    foreign = AcceptedPair("f" * 32, State(DESIGN), Testbench("import cocotb"), simulation(bench_of(), []), "draft")
    rows, dropped = examples([pair([segment, probe], []), pair([spoilt], []), foreign], 1, 0, 512)
    assert rows.is_empty()
    assert dropped == {
        "pair: nothing in it can be taught": 1,
        "pair: testbench is not a rendered program": 1,
        "row: segment has a reset after its start": 1,
        "segment: aims at no goal that was uncovered": 1,
        "segment: goal needs a wide port": 1,
    }


def test_rows_over_the_longest_length_are_left_out_and_counted():
    _, segment = aimed(0xA5)
    rows, dropped = examples([pair([segment], [])], 3, 0, 5)
    assert rows.is_empty() and dropped == {"row: too long": 3}


def test_variants_differ_and_equal_arguments_give_equal_rows():
    (_, a), (_, b) = aimed(0xA5), aimed(0x3C)
    rows, _ = examples([pair([a, b], [])], 8, 0, 512)
    assert rows["prompt"].n_unique() == len(rows) > 6
    assert {row.count("g1") for row in rows["prompt"]} == {0, 1}, "goals are subset"
    assert rows.equals(examples([pair([a, b], [])], 8, 0, 512)[0])
    assert not rows.equals(examples([pair([a, b], [])], 8, 1, 512)[0])


def test_answers_are_legal_under_the_grammar():
    (_, a), (_, b) = aimed(0xA5), aimed(0x3C)
    long = Segment(b.goal, (*b.actions, Drive((), 700)))
    rows, _ = examples([pair([BURST] * 6 + [a, long], [])], 20, 0, 512)
    for row in rows.iter_rows(named=True):
        words = row["prompt"].split()
        # key takes two digits, the others one bit
        shape = Shape({a: 8 if len(v) == 2 else 1 for a, v in pairwise(words) if a in t.ALIASES}, 2)
        assert first_error(t.encode(row["completion"]), shape, ANSWER_TOKENS) is None


def test_a_burst_alone_gives_one_row():
    rows, _ = examples([pair([BURST], [])], 8, 0, 512)
    assert rows["completion"].to_list() == ["r 40 <eos>"]


def test_other_constants_change_conditions_and_answers_alike(monkeypatch):
    monkeypatch.setattr(dataset, "OTHER_CONSTANTS", 1.0)
    _, segment = aimed(0xA5)
    rows, _ = examples([pair([segment], [])], 8, 0, 512)
    asked = set()
    for row in rows.iter_rows(named=True):
        goal = row["prompt"].split(" g0 ")[1].removesuffix(" do").split()
        answer = row["completion"].removesuffix(" <eos>").split()[1:]
        assert answer[: len(goal)] == goal
        asked.add(next(word for word in goal if len(word) == 2 and word[0] not in "pgx"))
    assert len(asked) > 4, "the constant is another one in almost every row"


def test_other_constants_leave_ranges_and_resets_alone():
    from types import SimpleNamespace

    from llm4cov_assets.policy.compact import build_prompt
    from sim.conditions import Constraint, Step

    interface = SimpleNamespace(
        data_inputs=(SimpleNamespace(name="a", width=8), SimpleNamespace(name="b", width=8)),
        resets=(SimpleNamespace(port="rst", active_low=False),),
    )
    step = Step((Constraint("a", ">", 9), Constraint("b", "==", 9), Constraint("rst", "==", 1)))
    goal = SimpleNamespace(label="g", steps=(step,), items=())
    prompt = build_prompt(interface, [goal], Random(0), repair=True)
    segment = Segment("g", (Drive((("a", 10), ("b", 9), ("rst", 1))),))
    other, (changed,) = dataset._other_constants(prompt, [segment], interface, Random(3))
    values = dict(changed.actions[0].values)
    assert (values["a"], values["rst"]) == (10, 1) and values["b"] != 9
    assert {c.port: c.value for c in other.steps[0][0].conditions} == {"a": 10, "b": values["b"], "rst": 1}
