"""Coverage in the formats of other tools."""

from __future__ import annotations

import re

import pytest

from sim.coverage import bitset, parse_coverage, popcount
from sim.design import Design, SourceFile
from sim.export import lcov, verilator_data
from sim.simulation import CoveragePoint, Simulation, Testbench
from sim.simulator import Simulator
from tests.sim.conftest import COUNTER, test_body

PAIR = """\
module pair(input logic clk, input logic rst_n, input logic en, input logic [1:0] mode, output logic [3:0] p, q);
  counter a(.clk, .rst_n, .en, .mode, .q(p), .hit());
  for (genvar i = 0; i < 1; i++) begin : g
    counter b(.clk, .rst_n, .en(1'b0), .mode, .q(q), .hit());
  end
  always_ff @(posedge clk) if (mode == 2) p_seen: cover (p == 3);
endmodule
"""
PLACE = r"(?:TN:\w*|SF:.+|DA:\d+,[01]|BRDA:\d+,0,\d+,[-01]|BR[FH]:\d+|L[FH]:\d+|end_of_record)"


@pytest.fixture(scope="module")
def result(simulator: Simulator) -> Simulation:
    files = (SourceFile("rtl/counter.sv", COUNTER.encode()), SourceFile("pair.sv", PAIR.encode()))
    bench = Testbench(test_body("await ClockCycles(dut.clk, 4)"))
    [found] = simulator.run_many(Design("pair", files, "pair"), [bench])
    assert found.status == "passed" and popcount(found.hits) > 0
    return found


def test_a_data_file_of_verilator_reads_back_as_the_same_points_with_counts_0_and_1(
    simulator: Simulator, result: Simulation
) -> None:
    build = simulator.finished_build(result.build_id)
    written = verilator_data(build.raw_points, build.coverage_data, result.hits)
    text = {"rtl/counter.sv": COUNTER, "pair.sv": PAIR}
    again = parse_coverage(written, top="pair", sources=text)
    assert again.points == build.points
    assert set(again.counts) == {0, 1} and again.hits == result.hits
    assert {p.metric for p in again.points} == {"line", "branch", "expression", "toggle", "functional"}


def test_a_tracefile_has_every_line_and_branch_and_sums_them_up(simulator: Simulator, result: Simulation) -> None:
    points = simulator.points(result.build_id)
    text = lcov(points, result.hits, "a test/1")
    assert all(re.fullmatch(PLACE, line) for line in text.splitlines())
    assert text.startswith("TN:a_test_1\nSF:pair.sv\n")
    assert text.count("end_of_record\n") == text.count("SF:") == 2
    for record in text.split("end_of_record\n")[:-1]:
        [file] = re.findall(r"SF:(.+)", record)
        lines = dict(re.findall(r"DA:(\d+),(\d)", record))
        wanted = {str(p.line) for p in points if p.file == file and p.metric in ("line", "branch")}
        assert set(lines) == wanted
        assert f"\nLF:{len(lines)}\nLH:{list(lines.values()).count('1')}\n" in record
        taken = re.findall(r"BRDA:\d+,0,\d+,(.)", record)
        assert f"\nBRF:{len(taken)}\nBRH:{taken.count('1')}\n" in record


def test_a_line_is_reached_when_any_instance_reaches_it_and_branches_of_unreached_lines_have_no_count() -> None:
    def point(what: str, line: int, instance: str, metric: str = "branch") -> CoveragePoint:
        return CoveragePoint(metric, "a.sv", line, 3, instance, what, "")

    places = [("if", 4, "top.u"), ("else", 4, "top.u"), ("if", 4, "top.v"), ("else", 4, "top.v"), ("if", 9, "top.u")]
    points = [point(*place) for place in places] + [point("q[0]:0->1", 1, "top", "toggle")]
    text = lcov(points, bitset([0, 0, 1, 0, 0, 1]))
    assert text.split() == [
        "TN:", "SF:a.sv", "BRDA:4,0,0,1", "BRDA:4,0,1,0", "BRDA:9,0,0,-", "BRF:3", "BRH:1", "DA:4,1", "DA:9,0",
        "LF:2", "LH:1", "end_of_record",
    ]  # fmt: skip
