"""Selection, filter and evaluation on a real design, real testbenches and a real simulator."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from llm4cov_assets import rows
from llm4cov_assets.learning.audit import false_gains
from llm4cov_assets.learning.evaluation import compare, evaluate, leaderboard
from llm4cov_assets.learning.filter import candidates, judge, with_verdicts
from llm4cov_assets.learning.rollout import rollout
from llm4cov_assets.learning.selection import select
from llm4cov_assets.policy.base import State
from llm4cov_assets.policy.scripted import scripted
from sim.design import Design, SourceFile
from sim.simulator import Simulator

LOCK = """\
module lock(input logic clk, input logic rst_n, input logic [7:0] code, output logic open, output logic alarm);
  logic [1:0] step;
  always_ff @(posedge clk or negedge rst_n)
    if (!rst_n) begin
      step <= 0; open <= 0; alarm <= 0;
    end else begin
      case (step)
        2'd0: if (code == 8'h5A) step <= 1;
        2'd1: if (code == 8'hC3) step <= 2; else if (code == 8'hFF) alarm <= 1;
        2'd2: begin open <= 1; step <= 0; end
        default: step <= 0;
      endcase
    end
endmodule
"""
DESIGN = Design("lock", (SourceFile("lock.sv", LOCK.encode()),), top="lock")


@pytest.mark.slow
def test_directed_repairs_of_real_drafts_gain_what_they_claim_and_beat_reset_alone(tmp_path: Path):
    with Simulator(tmp_path, workers=1) as simulator:
        drafts = rollout(scripted("scripted/reset"), [State(DESIGN)], 1, 0, simulator.run_batches)
        drafts += rollout(scripted("scripted/random"), [State(DESIGN)], 2, 0, simulator.run_batches)
        seen = {s.next_state.state_id: s.next_state for s in drafts if s.next_state}
        table = pl.DataFrame(
            [(DESIGN.design_id, i, s.simulation.status, s.simulation.running, s.score) for i, s in seen.items()],
            schema=["design_id", "state_id", "status", "running", "score"],
            orient="row",
        )
        chosen = select(table)
        assert chosen["score"].min() == table["score"].min() < 1

        states = [seen[i] for i in chosen["state_id"]]
        repairs = rollout(scripted("scripted/directed"), states, 4, 0, simulator.run_batches)
        transitions = rows.transition_rows(repairs, config_hash="c", stage=0, role="repair", policy="teacher")
        judged = judge(candidates(repairs, transitions["transition_id"].to_list()))
        transitions = with_verdicts(transitions, judged)
        assert transitions["accepted"].any()

        simulations = [s.simulation for s in (*drafts, *repairs)]
        points = rows.point_rows(simulations[0].build_id, DESIGN.rtl_id, simulator.points(simulations[0].build_id))
        tables = (rows.state_rows(states), rows.simulation_rows(simulations), rows.hit_rows(simulations), points)
        assert false_gains(transitions, *tables).is_empty()
        assert not false_gains(transitions.with_columns(pl.col("gain") + 0.01), *tables).is_empty()

        evaluations = []
        for name in ("scripted/reset", "scripted/directed"):
            policy = scripted(name)
            episodes = evaluate(policy, [DESIGN], simulator.run_batches, "agentic", n=2, rounds=1)
            names = {DESIGN.design_id: "lock"}
            evaluations.append(
                rows.evaluation_rows(episodes, policy, config_hash="c", clusters=names, benchmarks=names)
            )
    found = pl.concat(evaluations)
    board = leaderboard(found, 100).filter(pl.col("benchmark") == "all")
    assert dict(board.select("policy", "sim_pass").iter_rows()) == {"scripted/directed": 1.0, "scripted/reset": 1.0}
    assert compare(found, [("scripted/directed", "scripted/reset")], 100)["diff"][0] > 0.1
