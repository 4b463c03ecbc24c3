"""Rendered stimulus in the simulator: values arrive at the right edge, whatever the ports look like."""

from __future__ import annotations

import re

import pytest

from llm4cov_assets.ingest.registry import corpus_designs
from llm4cov_assets.learning.rollout import rollout
from llm4cov_assets.policy.base import State
from llm4cov_assets.policy.scripted import scripted
from llm4cov_assets.policy.stimulus import Burst, Drive, Program, Reset, Segment, from_goal, render
from sim.design import Design, SourceFile
from sim.elaborate import analyse
from sim.goals import goals
from sim.simulation import Simulation, Testbench
from sim.simulator import Simulator

pytestmark = pytest.mark.slow

ODD = r"""
module odd(
  input logic clk, input logic rst_n, input logic slow, input logic [99:0] wide,
  input struct packed { logic [3:0] hi; logic [7:0] lo; } pair, input enum logic [1:0] { A, B, C } kind,
  input logic [1:0][3:0] packed_array, input logic [7:0] unpacked [0:3], input logic signed [7:0] number,
  input logic \in , input logic \a+b , input logic _u, inout wire pad, output logic [31:0] n, output logic [31:0] m
);
  always_ff @(posedge clk or negedge rst_n)
    if (!rst_n) n <= 0;
    else begin
      n <= n + 1;
      $display("@ %0d %h %h %h %h %h %h %h %h %b %b %b %b", n, wide, pair, kind, packed_array, unpacked[0], unpacked[1],
               unpacked[2], unpacked[3], \in , \a+b , _u, number == -1);
    end
  always_ff @(posedge slow) m <= m + 1;
endmodule
"""


@pytest.fixture(scope="module")
def simulator(tmp_path_factory):
    with Simulator(tmp_path_factory.mktemp("home"), workers=1) as simulator:
        yield simulator


def run(simulator: Simulator, design: Design, *segments: Segment) -> Simulation:
    text = render(Program(segments), design, analyse(design).interface)
    [result] = simulator.run_many(design, [Testbench(text)])
    assert result.status == "passed", result.feedback
    return result


def test_values_of_every_kind_of_port_arrive_at_the_next_edge(simulator):
    design = Design(name="odd", sources=(SourceFile("odd.sv", ODD.encode()),), top="odd", clock="clk")
    first = Drive((("wide", (1 << 100) - 3), ("unpacked", 0x11223344), ("number", 0xFF), ("in", 1)), 2)
    second = Drive((("a+b", 1), ("_u", 1), ("kind", 2), ("pair", 0xABC), ("packed_array", 0x21)))
    result = run(simulator, design, Segment("all", (first, second, Reset(3), Drive((), 2))))
    seen = [line.split("@ ")[1].split() for line in result.log.splitlines() if "@ " in line]
    before = ["f" * 24 + "d", "000", "0", "00", "11", "22", "33", "44", "1", "0", "0", "1"]
    after = [*before[:1], "abc", "2", "21", *before[4:9], "1", "1", "1"]
    assert seen == [["0", *before], ["1", *before], ["2", *after], ["0", *after], ["1", *after]]


def test_a_burst_is_the_same_in_every_run(simulator):
    design = next(d for d in corpus_designs() if d.name == "sync_fifo")
    first, second = (run(simulator, design, Segment(goal, (Burst(7, 50),))) for goal in ("a", "b"))
    assert first.simulation_id != second.simulation_id
    assert first.hits == second.hits


def test_goals_are_hit_by_the_segments_made_for_them(simulator):
    design = next(d for d in corpus_designs() if d.name == "traffic_light")
    analysis = analyse(design)
    start = run(simulator, design, Segment("idle", (Drive((), 3),)))
    wanted = [goal for goal in goals(analysis, start.uncovered) if re.match(r"traffic_light.sv:\d+:", goal.label)]
    texts = [render(Program((from_goal(g, analysis.interface),)), design, analysis.interface) for g in wanted]
    results = list(simulator.run_many(design, [Testbench(text) for text in texts]))
    missed = [g.label for g, r in zip(wanted, results, strict=True) if set(g.items) & set(r.uncovered)]
    assert len(wanted) > 10
    assert len(missed) <= len(wanted) // 10, missed


def test_the_scripted_policies_rank_as_they_should(simulator):
    designs = [d for d in corpus_designs() if d.name in ("traffic_light", "vending", "float_class")]
    states = [State(design) for design in designs]

    def scores(policy, states, seed=0):
        steps = rollout(policy, states, 1, seed, simulator.run_batches)
        assert [step.status for step in steps] == ["passed"] * len(states)
        return steps

    reset = scores(scripted("scripted/reset"), states)
    random = scores(scripted("scripted/random"), states)
    steps = scores(scripted("scripted/directed"), states)
    for seed in (1, 2, 3):
        best = [s.next_state if s.next_state and s.gain > 0 else s.state for s in steps]
        steps = scores(scripted("scripted/directed"), best, seed)
    directed = sum(max(s.state.score, s.score_after) for s in steps) / len(designs)
    assert sum(s.score_after for s in reset) / len(designs) < 0.5
    assert sum(s.score_after for s in random) / len(designs) > 0.6
    assert directed > sum(s.score_after for s in random) / len(designs)
