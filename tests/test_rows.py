"""Objects as rows of the warehouse's tables."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from llm4cov_assets import rows
from llm4cov_assets.policy.base import Generation, State
from sim.coverage import bitset
from sim.design import Design, SourceFile
from sim.elaborate import analyse
from sim.identity import content_id
from sim.simulation import Coverage, CoveragePoint, Simulation, Testbench
from warehouse.frames import checked
from warehouse.schema import TABLES

RTL = b"""`include "d.svh"
module d #(parameter int W = `X) (input logic clk, input logic rst_n, input logic [W-1:0] a, output logic [W-1:0] q);
  always_ff @(posedge clk or negedge rst_n) begin
    if (!rst_n) q <= 0;
    else if (q == 9) q <= 1;
    else q <= a;
  end
endmodule
"""
DESIGN = Design(
    "d",
    (SourceFile("rtl/d.sv", RTL),),
    top="d",
    includes=(SourceFile("rtl/d.svh", b"`define X 4\n"),),
    include_dirs=("rtl",),
    specification="Counts.\n",
)
BENCH = Testbench("a = 1\nb = 2\n")
ID = content_id("x")
PASSED = Simulation(
    simulation_id=ID,
    design_id=DESIGN.design_id,
    rtl_id=DESIGN.rtl_id,
    testbench_id=BENCH.testbench_id,
    build_id=content_id("build"),
    language="cocotb",
    status="passed",
    coverage=Coverage(0.5, line=0.5),
    points={"line": (1, 2)},
    hits=bitset([1, 0]),
)
GENERATION = Generation("1" * 32, "2" * 32, "3" * 32, 0, 7, "prompt", "answer", BENCH)
POLICY = SimpleNamespace(name="p", engine="scripted", policy_id="4" * 32, checkpoint_id=None)


@pytest.mark.parametrize("table", sorted(TABLES))
def test_an_empty_frame_of_every_table_is_one_that_the_store_takes(table):
    assert checked(TABLES[table], rows.table_frame(table)).is_empty()


def test_a_missing_value_is_null_and_the_types_are_those_of_the_table():
    frame = rows.table_frame("simulations", [{"simulation_id": ID, "overall": None}])
    assert frame.schema == rows.table_schema("simulations") and frame["status"][0] is None


def test_designs_and_their_files_are_rows():
    row = rows.design_row(DESIGN, split="eval", kind="hand_written", source="corpus", analysis=analyse(DESIGN))
    frame = checked(TABLES["designs"], rows.design_rows([row]))
    found = frame.row(0, named=True)
    assert (found["n_files"], found["n_lines"], found["input_bits"], found["output_bits"]) == (2, 9, 6, 4)
    assert (found["resets"], found["cluster"], found["deterministic"]) == (["!rst_n"], "d", None)
    assert (found["n_branches"], found["n_conditions_known"], found["n_tokens"]) == (4, 4, 84)
    assert (found["difficulty"], found["difficulty_label"], found["declared_difficulty"]) == (0.0, "easy", "")
    unread = rows.design_row(DESIGN, split="adhoc", kind="imported", source="x", declared_difficulty="medium")
    assert (unread["n_ports"], unread["n_tokens"], unread["difficulty"]) == (0, 84, None)
    assert checked(TABLES["designs"], rows.design_rows([unread]))["declared_difficulty"].to_list() == ["medium"]
    files = checked(TABLES["design_files"], rows.file_rows([DESIGN]))
    assert files["role"].to_list() == ["source", "include", "specification"]
    assert files["n_tokens"].to_list() == [81, 3, None]


def test_what_elaboration_finds_in_a_design_is_rows():
    row = rows.design_row(DESIGN, split="eval", kind="hand_written", source="corpus", analysis=analyse(DESIGN))
    tables = rows.design_tables([row], [DESIGN])
    for table, frame in tables.items():
        checked(TABLES[table], frame)
    facts = {t for t in TABLES if t.startswith("design_")} - {"design_events", "design_overlaps"}
    assert set(tables) == {"designs", "exclusions", "targets"} | facts
    roles = tables["design_ports"].select("name", "role").rows()
    assert roles == [("clk", "clock"), ("rst_n", "reset"), ("a", "data"), ("q", "data")]
    assert tables["design_constants"].select("subject", "operator", "value").rows() == [("q", "==", "9")]
    assert tables["design_parameters"].select("name", "value", "default_value").rows() == [("W", "4", "4")]
    assert tables["design_instances"].select("path", "module").rows() == [("d", "d")]
    assert tables["design_includes"].select("file", "line", "included").rows() == [("rtl/d.sv", 1, "rtl/d.svh")]
    empty = rows.design_tables([], [])
    assert set(empty) == set(tables) and all(frame.is_empty() for frame in empty.values())


def test_what_a_policy_said_is_rows_usable_or_not():
    unusable = Generation("5" * 32, "2" * 32, "3" * 32, 1, 7, "prompt", "???", None, error="no testbench")
    both = [GENERATION, unusable]
    generations = checked(TABLES["generations"], rows.generation_rows(both))
    assert generations["testbench_id"].to_list() == [BENCH.testbench_id, None]
    assert checked(TABLES["prompts"], rows.prompt_rows(both)).height == 1
    assert checked(TABLES["testbenches"], rows.testbench_rows([BENCH, None, BENCH]))["n_lines"].to_list() == [2]
    assert checked(TABLES["policies"], rows.policy_rows([POLICY]))["engine"].to_list() == ["scripted"]


def test_a_simulation_is_one_row_and_a_failing_one_has_no_coverage():
    failing = Simulation(**{**vars(PASSED), "simulation_id": "6" * 32, "status": "crashed", "hits": b""})
    frame = checked(TABLES["simulations"], rows.simulation_rows([PASSED, PASSED, failing, None]))
    assert frame.select("status", "overall", "line", "branch", "n_hit", "n_points").rows() == [
        ("passed", 0.5, 0.5, None, 1, 2),
        ("crashed", None, None, None, 1, 2),
    ]
    assert checked(TABLES["coverage_hits"], rows.hit_rows([PASSED, failing]))["n_hit"].to_list() == [1]


def test_points_and_states_are_rows():
    points = [
        CoveragePoint("line", "d.sv", 1, 2, "d", "block", "x"),
        CoveragePoint("toggle", "d.sv", 1, 2, "d", "q", "x"),
    ]
    frame = checked(TABLES["coverage_points"], rows.point_rows(PASSED.build_id, PASSED.rtl_id, points))
    assert frame.select("point", "metric").rows() == [(0, "line"), (1, "toggle")]
    states = checked(TABLES["states"], rows.state_rows([State(DESIGN), State(DESIGN, BENCH, PASSED), None]))
    assert states.select("score", "simulation_id").rows() == [(0.0, None), (0.5, ID)]


def test_a_repair_goes_on_with_the_trajectory_of_its_draft():
    from llm4cov_assets.learning.rollout import Step

    drafted = State(DESIGN, BENCH, PASSED)
    draft = Step(State(DESIGN), GENERATION, drafted, PASSED, logical=True)
    repair = Step(drafted, Generation("7" * 32, "2" * 32, drafted.state_id, 0, 7, "q", "a", None), None, None, False)
    drafts = rows.transition_rows([draft], config_hash="c", stage=1, role="draft", policy="p")
    trajectories = dict(drafts.select("next_state_id", "trajectory_id").iter_rows())
    repairs = rows.transition_rows(
        [repair], config_hash="c", stage=1, role="repair", policy="p", trajectories=trajectories
    )
    for frame in (drafts, repairs):
        checked(TABLES["transitions"], frame)
    assert drafts["trajectory_id"].to_list() == repairs["trajectory_id"].to_list()
    assert (drafts["step"][0], repairs["step"][0], repairs["status"][0]) == (0, 1, "unparsable")
    assert repairs["gain"][0] == -0.5
    other = rows.transition_rows([draft], config_hash="other", stage=1, role="draft", policy="p")
    assert other["transition_id"][0] != drafts["transition_id"][0]
