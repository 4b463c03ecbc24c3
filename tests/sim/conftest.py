"""One home for all tests of simulations: the harness is compiled once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sim.design import Design, SourceFile
from sim.simulator import Simulator

COUNTER = """\
module counter #(parameter W = 4) (
  input logic clk, input logic rst_n, input logic en, input logic [1:0] mode,
  output logic [W-1:0] q, output logic hit
);
  logic [W-1:0] secret;
  always_ff @(posedge clk or negedge rst_n)
    if (!rst_n) q <= 0;
    else if (en) begin
      case (mode)
        2'd0: q <= q + 1;
        2'd1: q <= q - 1;
        default: q <= q ^ secret;
      endcase
    end
  always_ff @(posedge clk) if (!rst_n) secret <= 5; else if (mode == 3) secret <= secret << 1;
  assign hit = q == 9 && en;
endmodule
"""

BUS = """\
module pad(inout wire [3:0] b, input logic oe, input logic [3:0] d, output wire [3:0] r);
  assign b = oe ? d : 4'bz;
  assign r = b;
endmodule
module bus(input logic clk, input logic oe, input logic [3:0] d, inout wire [3:0] io, output logic [3:0] q);
  wire [3:0] r;
  pad u_pad(.b(io), .oe, .d, .r);
  always_ff @(posedge clk) q <= r;
endmodule
"""
"""A pin that the design drives while `oe` is set and reads always."""

DELAYS = """\
`timescale 1ns/1ps
module delays(input logic a, output logic y, output logic tick);
  initial tick = 0;
  always #7 tick = ~tick;
  always @(a) y <= #3 ~a;
endmodule
"""

HEAD = """\
import os, sys, time, random
import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, ReadOnly, RisingEdge, Timer

async def start(dut):
    cocotb.start_soon(Clock(dut.clk, 10, unit="ns").start())
    dut.rst_n.value, dut.en.value, dut.mode.value = 0, 0, 0
    await ClockCycles(dut.clk, 2)
    dut.rst_n.value, dut.en.value = 1, 1

"""


def design(text: str, name: str = "counter", **fields: object) -> Design:
    """A design of one file."""
    return Design(name=name, sources=(SourceFile(f"{name}.sv", text.encode()),), top=name, **fields)  # type: ignore[arg-type]


def test_body(*lines: str) -> str:
    """A testbench of the counter whose one test starts clock and reset and then does `lines`."""
    body = "\n".join(f"    {line}" for line in lines)
    return f"{HEAD}@cocotb.test()\nasync def body(dut):\n    await start(dut)\n{body}\n"


test_body.__test__ = False  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def simulator(home: Path) -> Iterator[Simulator]:
    with Simulator(home) as opened:
        yield opened


@pytest.fixture(scope="session")
def counter() -> Design:
    return design(COUNTER)
