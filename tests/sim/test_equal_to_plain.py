"""The same points exist, and are hit, as when cocotb's own runner runs the same testbench on a plain Verilator build.

A plain build is slow, so script/test compares two designs; `LLM4COV_SOAK=1` (or `script/soak equal`) compares all.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from llm4cov_assets.ingest.registry import corpus_designs
from llm4cov_assets.policy.base import State
from llm4cov_assets.policy.scripted import scripted
from sim.coverage import CoverageData, indices, parse_coverage
from sim.design import Design, SourceFile
from sim.load import load_design
from sim.simulation import Testbench
from tests.sim import plain
from tests.sim.conftest import COUNTER, HEAD, design

LAST_EDGE = (
    HEAD
    + """\
@cocotb.test()
async def ends_at_an_edge(dut):
    await start(dut)
    dut.mode.value = 3
    await RisingEdge(dut.clk)
"""
)
RANDOM = """\
import random
import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

@cocotb.test()
async def drives_words(dut):
    words = random.Random(7)
    cocotb.start_soon(Clock(dut.clk, 10, unit="ns").start())
    for cycle in range(60):
        for name in ("a", "b", "mem_rdata", "mem_ready"):
            if hasattr(dut, name):
                port = getattr(dut, name)
                port.value = words.getrandbits(len(port))
        if hasattr(dut, "resetn"):
            dut.resetn.value = cycle > 4
        await RisingEdge(dut.clk)
"""
INSTANCES = """\
module leaf #(parameter int K = 1) (input logic clk, input logic [3:0] a, output logic [3:0] y);
  always_ff @(posedge clk) if (a > K) y <= a - 4'(K); else y <= y + 1;
endmodule
module instances (input logic clk, input logic [3:0] a, b, output logic [3:0] y);
  logic [3:0] p, q, r [3];
  leaf u0 (.clk, .a(a), .y(p));
  leaf #(.K(9)) u1 (.clk, .a(b), .y(q));
  for (genvar g = 0; g < 3; g++) begin : each
    if (g == 1) begin : middle leaf #(.K(g)) u (.clk, .a(p & q), .y(r[g])); end
    else leaf #(.K(15)) u (.clk, .a(p | 4'(g)), .y(r[g]));
  end
  assign y = r[0] ^ r[1] ^ r[2] ^ (p == q && a != b ? 4'd3 : 4'd0);
endmodule
"""
PACKAGE = """\
package types;
  typedef enum logic [1:0] {IDLE, RUN, DONE} state_t;
  typedef struct packed { state_t state; logic [2:0] left; } both_t;
  function automatic logic odd(input logic [3:0] v); return ^v; endfunction
endpackage
"""
PACKAGE_TOP = """\
module packaged import types::*; (input logic clk, input logic [3:0] a, output both_t y);
  initial y = '0;
  always_ff @(posedge clk)
    case (y.state)
      IDLE: if (odd(a) && a[3]) begin y.state <= RUN; y.left <= a[2:0]; end
      RUN: if (y.left == 0) y.state <= DONE; else y.left <= y.left - 1;
      default: y.state <= a inside {[1:4], 9} ? IDLE : DONE;
    endcase
endmodule
"""
DELAYS = """\
`timescale 1ns/1ps
module delays (input logic clk, input logic [3:0] a, output logic [3:0] y);
  wire [3:0] #3 late = a;
  always @(posedge clk) begin
    y <= #1 late;
    if (late == a) #2 y <= ~late;
  end
endmodule
"""
FAST = ("counter", "packet_router")
ALL = (*FAST, "alu", "cache_controller", "async_fifo", "float_class", "uart", "hamming",
       "wide_counter", "instances", "packaged", "delays", "picorv32")  # fmt: skip


def subject(name: str) -> tuple[Design, Testbench]:
    """A design of the list and the testbench that both sides run."""
    if name == "counter":
        return design(COUNTER), Testbench(LAST_EDGE)
    if name == "wide_counter":
        return design(COUNTER, parameters=(("W", "9"),)), Testbench(LAST_EDGE)
    if name == "packaged":
        files = (SourceFile("lib/types.sv", PACKAGE.encode()), SourceFile("packaged.sv", PACKAGE_TOP.encode()))
        return Design(name=name, top=name, sources=files), Testbench(RANDOM)
    if name in ("instances", "delays"):
        return design({"instances": INSTANCES, "delays": DELAYS}[name], name), Testbench(RANDOM)
    if name == "picorv32":
        package = pytest.importorskip("pythondata_cpu_picorv32")
        return load_design(Path(package.__file__).parent / "verilog" / "picorv32.v", top=name), Testbench(RANDOM)
    found = next(d for d in corpus_designs() if d.name == name)
    (generation,) = scripted("scripted/directed").propose([State(found)], 1, 0)
    assert generation.testbench is not None
    return found, generation.testbench


def plain_data(design: Design, testbench: Testbench, folder: Path) -> CoverageData:
    """What cocotb's own runner and main program counted."""
    plain.build(design, folder)
    data = plain.run(design, testbench, folder)
    return parse_coverage(data, top=design.top, dut=design.top, root=str(folder / "rtl"))


def _key(point: object) -> tuple[object, ...]:
    return (point.metric, point.file, point.line, point.column, point.instance, point.what)  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL if os.environ.get("LLM4COV_SOAK") else FAST)
def test_points_and_hits_are_those_of_a_plain_run(simulator, tmp_path, name):
    examined, testbench = subject(name)
    (ours,) = simulator.run_many(examined, [testbench])
    points = simulator.points(ours.build_id)
    assert ours.status == "passed"
    theirs = plain_data(examined, testbench, tmp_path)
    assert {_key(p) for p in points} == {_key(p) for p in theirs.points}
    assert {_key(points[i]) for i in indices(ours.hits)} == {_key(theirs.points[i]) for i in indices(theirs.hits)}
