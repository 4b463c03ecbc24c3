"""A run of a million evaluations replays exactly, in both languages, on a design with wide ports.

Every evaluation is recorded with all inputs that changed; at the end another process replays the record, and one
output that differs would make the result `forged`.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path

from sim.coverage import popcount
from sim.design import Design, SourceFile
from sim.simulation import Language, Limits, Simulation, Testbench
from sim.simulator import Simulator

RTL = """\
package kinds;
  typedef struct packed { logic [6:0] tag; logic [64:0] data; } word_t;
  typedef enum logic [1:0] { HOLD, ROTATE, MIX, CLEAR } op_t;
endpackage
module wide import kinds::*; (
  input logic clk, input logic rst, input op_t op, input logic [260:0] a, input logic [2:0][32:0] b, input word_t w,
  input logic signed [15:0] s [2], output logic [260:0] y, output word_t last, output logic signed [17:0] sum,
  output logic [31:0] seen
);
  always_ff @(posedge clk)
    if (rst) begin
      y <= '0; last <= '0; sum <= 0; seen <= 0;
    end else begin
      case (op)
        HOLD: y <= y;
        ROTATE: y <= {y[130:0], y[260:131]};
        MIX: y <= y ^ a ^ 261'(b) ^ {w, 189'(w.data)};
        default: y <= a;
      endcase
      if (w.tag == 7'h2a || w.data[64:60] == '1) last <= w;
      sum <= s[0] - s[1] + 18'(b[1][3:0]);
      if (^a) seen <= seen + 1;
    end
endmodule
"""
COCOTB = """\
import random
import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

@cocotb.test()
async def runs_long(dut):
    words = random.Random(11)
    edge = FallingEdge(dut.clk)
    cocotb.start_soon(Clock(dut.clk, 10, unit="ns").start())
    for n in range({cycles}):
        dut.rst.value = n < 2
        dut.op.value = n & 3
        dut.a.value = words.getrandbits(261)
        if n % 8 == 0:
            dut.b.value = words.getrandbits(99)
            dut.w.value = words.getrandbits(72)
            dut.s[n // 8 % 2].value = words.randrange(-1 << 15, 1 << 15)
        await edge
"""
SYSTEMVERILOG = """\
module tb;
  import kinds::*;
  logic clk = 0, rst = 1;
  op_t op = HOLD; logic [260:0] a = 0; logic [2:0][32:0] b = 0; word_t w = 0; logic signed [15:0] s [2];
  logic [260:0] y; word_t last; logic signed [17:0] sum; logic [31:0] seen;
  wide dut(.*);
  always #5 clk = ~clk;
  initial begin
    for (int n = 0; n < {cycles}; n++) begin
      rst = n < 2;
      op = op_t'(n & 3);
      for (int i = 0; i < 9; i++) a = {{a[228:0], $urandom}};
      if (n % 8 == 0) begin
        b = {{$urandom, $urandom, $urandom, $urandom}};
        w = {{$urandom, $urandom, $urandom}};
        s[n / 8 % 2] = $urandom;
      end
      @(negedge clk);
    end
    $finish;
  end
endmodule
"""
TEXTS: dict[Language, str] = {"cocotb": COCOTB, "systemverilog": SYSTEMVERILOG}


@dataclass(frozen=True)
class Long:
    """A long run; `again` is the same testbench simulated a second time."""

    first: Simulation
    again: Simulation

    @property
    def exact(self) -> bool:
        same = (self.first.hits, self.first.evaluations) == (self.again.hits, self.again.evaluations)
        return self.first.status == self.again.status == "passed" and same and popcount(self.first.hits) > 0


def wide() -> Design:
    return Design(name="wide", top="wide", sources=(SourceFile("wide.sv", RTL.encode()),))


def long_run(home: Path, language: Language, cycles: int) -> Long:
    """Simulate two evaluations or more a cycle, twice."""
    limits = Limits(sim_time_ns=10**10, evaluations=10**8, wall_s=3600, cpu_s=3600)
    text = Testbench(TEXTS[language].format(cycles=cycles), language)
    with Simulator(home, workers=1, read_cache=False) as simulator:
        first, again = (next(simulator.run_many(wide(), [text], limits=limits)) for _ in range(2))
    return Long(first, again)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", type=int, default=1_000_000, help="evaluations at least (default: 1,000,000)")


def run(options: argparse.Namespace) -> bool:
    exact = True
    with tempfile.TemporaryDirectory(prefix="soak-") as home:
        for language in TEXTS:
            found = long_run(Path(home), language, -(-options.n // 2))
            first = found.first
            exact &= found.exact and first.evaluations >= options.n
            print(
                f"{language:14} {first.status}, {first.evaluations:,} evaluations to {first.sim_time_ns:,} ns, "
                f"overall {first.coverage.overall or 0:.3f}; {first.cpu_s:.2f} CPU s with replay, {first.wall_s:.2f} s",
                flush=True,
            )
            if not found.exact:
                print(f"  again: {found.again.status}, {found.again.evaluations:,} evaluations\n{first.log[-2000:]}")
    return exact
