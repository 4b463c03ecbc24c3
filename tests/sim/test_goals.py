"""Goals: which uncovered points they stand for, their order, and whether their steps really reach them."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm4cov_assets.policy.stimulus import Program, from_goal, render
from sim.conditions import Constraint, Step
from sim.design import Design, SourceFile
from sim.elaborate import analyse
from sim.goals import Goal, goals
from sim.load import load_design
from sim.simulation import Testbench, UncoveredItem
from sim.simulator import Simulator

CORPUS = Path(__file__).resolve().parents[2] / "llm4cov_assets" / "corpus"

LOCK = Design(
    name="lock",
    top="lock",
    sources=(
        SourceFile(
            "lock.sv",
            b"""module lock(input logic clk, input logic rst, input logic try_it, input logic [7:0] code,
  output logic open, output logic [3:0] tries);
  logic [1:0] stage;
  always_ff @(posedge clk)
    if (rst) begin
      stage <= 0; open <= 0; tries <= 4'hf;
    end else if (try_it) begin
      if (stage == 0) begin
        if (code == 8'h21) stage <= 1;
      end else if (stage == 1) begin
        if (code == 8'h43) stage <= 2; else stage <= 0;
      end else open <= 1;
      tries <= tries - 1;
    end
endmodule
""",
        ),
    ),
)


def item(line: int, what: str, metric: str = "branch") -> UncoveredItem:
    return UncoveredItem(metric, "lock.sv", line, "lock", what, "")


def equal(port: str, value: int) -> Constraint:
    return Constraint(port, "==", value)


def test_at_the_start_there_is_a_goal_for_every_branch_that_does_not_come_by_itself() -> None:
    found = goals(analyse(LOCK), None)
    assert "lock.sv:11:else" in [g.label for g in found]
    reached = {(i.line, i.what) for g in found for i in g.items}
    assert {(8, "elsif"), (9, "if"), (10, "if"), (11, "if"), (11, "else")} <= reached
    assert (5, "elsif") not in reached  # every reset takes it


def test_a_goal_stands_for_all_that_lies_on_its_way() -> None:
    (first,) = goals(analyse(LOCK), [item(9, "if"), item(11, "if")])
    assert first.label == "lock.sv:11:if"
    assert first.items == (item(11, "if"), item(9, "if"))
    assert first.steps == (
        Step((equal("try_it", 1), equal("code", 0x21))),
        Step((equal("try_it", 1), equal("code", 0x43))),
    )
    assert first.guards[-2:] == ("stage == 1", "code == 8'h43")


def test_covered_points_are_no_goals() -> None:
    assert goals(analyse(LOCK), []) == []
    (only,) = goals(analyse(LOCK), [item(9, "else")])
    assert (only.label, only.items) == ("lock.sv:9:else", (item(9, "else"),))


def test_toggles_are_merged_by_signal_and_come_after_branches() -> None:
    uncovered = [item(2, f"tries[{bit}]:{edge}", "toggle") for bit in range(4) for edge in ("0->1", "1->0")]
    uncovered += [item(1, "code[7]:1->0", "toggle"), item(1, "code[7]:0->1", "toggle"), item(9, "if")]
    found = goals(analyse(LOCK), uncovered)
    assert [g.label for g in found] == ["lock.sv:9:if", "toggle:tries", "toggle:code"]
    tries, code = found[1:]
    assert len(tries.items) == 8
    assert code.steps == (Step((Constraint("code", "==", 1, 7, 7),)), Step((Constraint("code", "==", 0, 7, 7),)))


def test_unknown_and_foreign_points_are_left_out() -> None:
    foreign = [item(99, "if"), item(9, "if", "expression"), item(2, "nothing[3]:0->1", "toggle")]
    assert goals(analyse(LOCK), foreign) == []


def test_goals_are_the_same_every_time() -> None:
    assert goals(analyse(LOCK), None) == goals(analyse(LOCK), None)


def run(simulator: Simulator, design: Design, programs: list[list[Goal]]) -> list[set[UncoveredItem]]:
    """What each program leaves uncovered."""
    interface = analyse(design).interface
    benches = [
        Testbench(render(Program(tuple(from_goal(g, interface) for g in p)), design, interface)) for p in programs
    ]
    results = list(simulator.run_many(design, benches))
    assert {r.status for r in results} == {"passed"}
    return [{UncoveredItem(u.metric, u.file, u.line, u.instance, u.what, "") for u in r.uncovered} for r in results]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["packet_parser", "timer", "alu"])
def test_goals_reach_in_simulation_what_they_promise(simulator: Simulator, name: str) -> None:
    design = load_design(CORPUS / name)
    analysis = analyse(design)
    found = goals(analysis, None)
    assert found
    for goal, left in zip(found, run(simulator, design, [[g] for g in found]), strict=True):
        assert not left & set(goal.items), goal.label
    (left,) = run(simulator, design, [found])
    toggles = [g for g in goals(analysis, sorted(left, key=repr)) if g.label.startswith("toggle:")]
    for goal, left in zip(toggles, run(simulator, design, [[g] for g in toggles]), strict=True):
        assert not left & set(goal.items), goal.label


@pytest.mark.slow
@pytest.mark.parametrize("name", ["packet_parser", "alu", "packet_router"])
def test_every_branch_that_the_simulator_counts_has_its_condition(simulator: Simulator, name: str) -> None:
    design = load_design(CORPUS / name)
    places = {(b.file, b.line, b.what, b.instance) for b in analyse(design).branches}
    build = simulator.build(design)
    points = {
        (p.file, p.line, p.what, p.instance) for p in simulator.points(build.build_id) if p.metric in ("line", "branch")
    }
    assert points <= places
