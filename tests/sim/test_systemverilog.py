"""SystemVerilog testbenches: what they can do, which status they get, and that they share everything with cocotb."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.coverage import difference, indices, popcount
from sim.design import Design, SourceFile
from sim.reading import TestbenchError, read_testbench
from sim.simulation import Limits, Simulation, Testbench
from sim.simulator import Simulator
from tests.sim.conftest import BUS, DELAYS, design, test_body

LIMITS = Limits(sim_time_ns=100_000, wall_s=20)
HEAD = """\
module tb;
  logic clk = 0, rst_n = 0, en = 0;
  logic [1:0] mode = 0;
  wire [3:0] q;
  wire hit;
  counter dut(.*);
  always #5 clk = ~clk;
"""


def bench(*lines: str) -> str:
    """A testbench of the counter: clock, then `lines`."""
    return HEAD + "".join(f"  {line}\n" for line in lines) + "endmodule\n"


def simulate(simulator: Simulator, subject: Design, text: str, limits: Limits = LIMITS, seed: int = 0) -> Simulation:
    [result] = simulator.run_many(subject, [Testbench(text, "systemverilog")], limits=limits, seed=seed)
    return result


def test_language_of_the_testbench_changes_neither_points_nor_build(simulator, counter):
    run = bench(
        'initial begin #22 rst_n = 1; en = 1; repeat (18) @(posedge clk); $display("q is %0d", q); $finish; end'
    )
    ours = simulate(simulator, counter, run)
    [other] = simulator.run_many(counter, [Testbench(test_body("await ClockCycles(dut.clk, 20)"))])
    assert ours.status == other.status == "passed"
    assert (ours.build_id, {m: n for m, (_, n) in ours.points.items()}) == (
        other.build_id, {m: n for m, (_, n) in other.points.items()},
    )  # fmt: skip
    assert popcount(ours.hits) == popcount(other.hits) > 0
    assert "q is " in ours.log and ours.sim_time_ns == 195
    assert [i["path"] for i in ours.instances] == ["counter"]


@pytest.mark.parametrize(
    ("lines", "status", "told"),
    [
        (['initial begin #12 rst_n = 1; #50 $fatal(1, "dead"); end'], "test_failed", "dead"),
        (["initial begin #12 rst_n = 1; #50 $stop; end"], "test_failed", "$stop"),
        (["initial begin #12 rst_n = 1; en = 1; end"], "timeout", "simulated time"),
        (["initial begin #12 rst_n = 1; forever begin mode = mode + 1; #0; end end"], "nonconverged", "converge"),
        (['initial begin $display("x" end'], "compile_error", "testbench.sv:8"),
        (["initial nothing = 1;"], "compile_error", "nothing"),
    ],
    ids=["fatal", "stop", "endless", "zero time loop", "syntax", "undeclared"],
)
def test_statuses(simulator, counter, lines, status, told):
    r = simulate(simulator, counter, bench(*lines))
    assert r.status == status, r.log
    assert told in r.feedback or told in r.log
    assert (r.coverage.overall is None) == (status == "compile_error")
    assert r.running == (status in ("test_failed", "timeout"))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("initial dut.secret = 3;", "secret"),
        ("initial force dut.secret = 3;", "secret"),
        ('initial $system("touch /tmp/here");', "$system"),
        ("counter second(.*);", "counter"),
        ('`define S(x) $sys``x("id")\n  initial `S(tem);', "$system"),
    ],
    ids=["write", "force", "program", "second instance", "macro"],
)
def test_reaching_into_the_design_or_out_of_the_sandbox_is_a_policy_violation(simulator, counter, line, told):
    r = simulate(simulator, counter, bench(line))
    assert r.status == "policy_violation" and not r.running
    assert told in r.feedback and "testbench.sv:" in r.feedback
    assert r.coverage.overall is None and r.hits == b""


def test_messages_come_without_what_says_nothing_and_the_cause_comes_first(simulator, counter):
    r = simulate(simulator, counter, bench("initial nothing = 1;"))
    assert "nothing" in r.log and "Exiting due to" not in r.log and "See the manual" not in r.log
    again = simulate(simulator, counter, "module tb; endmodule\nmodule counter; endmodule\n")
    assert again.status == "policy_violation" and "instantiated" not in again.log.partition("\n")[0]


def test_time_of_a_run_is_that_of_its_end(simulator, counter):
    text = bench("initial #1000 $finish;").replace("always #5", "initial #5")
    assert simulate(simulator, counter, text).sim_time_ns == 1000


def test_simulation_ends_without_finish_when_nothing_is_left_to_do(simulator, counter):
    text = bench("initial begin rst_n = 1; en = 1; end").replace("always #5", "initial repeat (20) #5")
    r = simulate(simulator, counter, text)
    assert r.status == "passed" and r.sim_time_ns == 100


def test_error_and_failed_assertion_fail_the_test_and_do_not_end_it(simulator, counter):
    lines = (
        'initial begin #12 rst_n = 1; en = 1; $error("told"); assert (q == 9) else $error("not nine");',
        'repeat (20) @(posedge clk); $display("went on"); $finish; end',
    )
    r = simulate(simulator, counter, bench(*lines))
    assert r.status == "test_failed" and r.sim_time_ns > 190
    assert all(word in r.log for word in ("told", "not nine", "went on"))


def test_evaluation_limit_is_timeout_with_coverage(simulator, counter):
    r = simulate(simulator, counter, bench("initial begin rst_n = 1; en = 1; end"), Limits(evaluations=50))
    assert r.status == "timeout" and r.evaluations == 50 and r.coverage.overall > 0


@pytest.mark.slow
def test_endless_loop_without_time_is_timeout_with_the_coverage_until_then(simulator, counter):
    lines = ("initial begin rst_n = 1; en = 1; #100 while (1) mode = mode + 1; end",)
    r = simulate(simulator, counter, bench(*lines), Limits(wall_s=1.0))
    assert r.status == "timeout" and r.coverage.overall > 0.3 and r.sim_time_ns == 100 - 5


def test_finish_in_the_design_is_early_exit(simulator):
    stops = design("module stops(input logic clk); always @(posedge clk) $finish; endmodule", "stops")
    text = "module tb; logic clk = 0; stops dut(clk); always #5 clk = ~clk; endmodule"
    assert simulate(simulator, stops, text).status == "early_exit"


def test_constrained_random_values_come_from_the_seed(simulator, counter):
    text = bench(
        "class Item; rand bit [1:0] m; rand bit e; constraint c { m != 2; e -> m > 0; } endclass",
        "Item item = new;",
        'initial begin rst_n = 1; repeat (6) begin @(posedge clk); if (!item.randomize()) $error("unsolved");',
        '  if (item.m == 2 || (item.e && item.m == 0)) $error("constraint");',
        '  mode <= item.m; en <= item.e; $display("%0d%0d", item.m, item.e); end $finish; end',
    )
    first, again = simulate(simulator, counter, text), simulate(simulator, counter, text + "\n")
    other = simulate(simulator, counter, text, seed=5)
    assert first.status == "passed", first.log
    assert (first.log, first.hits) == (again.log, again.hits)
    assert other.log != first.log


def test_classes_interfaces_programs_clocking_blocks_and_dumps(simulator, counter):
    text = """\
`timescale 1ns/1ps
interface bus(input logic clk);
  logic en = 0, rst_n = 0; logic [1:0] mode = 0; logic [3:0] q; logic hit;
  clocking cb @(posedge clk); default input #1step output #1; output en, mode; input q; endclocking
endinterface
class Driver;
  virtual bus b;
  function new(virtual bus b); this.b = b; endfunction
  task run(int n); repeat (n) begin @(b.cb); b.cb.mode <= $urandom; b.cb.en <= 1; end endtask
endclass
module any_name;
  logic clk = 0;
  bus b(clk);
  counter #(.W(4)) u(.clk, .rst_n(b.rst_n), .en(b.en), .mode(b.mode), .q(b.q), .hit(b.hit));
  covergroup cg @(posedge clk); coverpoint b.mode; endgroup
  initial begin clk = 0; forever #5 clk = ~clk; end
  initial begin
    automatic Driver d = new(b);
    $dumpfile("x.vcd"); $dumpvars(0, any_name);
    #12 b.rst_n = 1;
    d.run(30);
    $display("at %0t", $time);
    $finish;
  end
  final $display("the end");
endmodule
"""
    r = simulate(simulator, counter, text)
    assert r.status == "passed", r.log
    assert "the end" in r.log and r.coverage.overall > 0.8
    assert "covergroup" in r.log  # left out by the simulator, and said so


def test_ports_of_every_kind_parameters_and_packages(simulator):
    rtl = """\
package kinds;
  typedef enum logic [1:0] { IDLE, RUN, STOP } state_t;
  typedef struct packed { logic [6:0] data; logic last; } word_t;
  localparam int DEPTH = 3;
endpackage
`define WIDE 130
module ports import kinds::*; #(parameter int W = 5, parameter type T = logic [2:0]) (
  input clk, input logic [`WIDE:0] wide, input logic signed [W-1:0] a [DEPTH], input word_t w, input state_t s,
  input T t, input logic [1:0][3:0] packed2, input bit \\odd.name ,
  output logic [`WIDE:0] y, output logic signed [W+1:0] sum, output state_t next, output word_t out [1:0],
  output wire [63:0] long
);
  assign long = {32'(sum), 32'(wide)};
  always_ff @(posedge clk) begin
    y <= wide ^ {131{\\odd.name }}; sum <= a[0] + a[1] - a[2]; out[0] <= w; out[1] <= ~w;
    next <= s == IDLE ? RUN : s == RUN ? STOP : IDLE;
  end
endmodule
"""
    text = """\
module tb;
  import kinds::*;
  logic clk = 0, odd = 0; logic [`WIDE:0] wide = 0, y; logic signed [4:0] a [DEPTH]; word_t w; state_t s, next;
  logic [2:0] t; logic [1:0][3:0] p; logic signed [6:0] sum; word_t out [1:0]; wire [63:0] long;
  ports #(.W(5)) dut(.clk, .wide, .a, .w, .s, .t, .packed2(p), .\\odd.name (odd), .y, .sum, .next, .out, .long);
  always #5 clk = ~clk;
  initial begin
    for (int n = 0; n < 60; n++) begin
      @(negedge clk);
      wide = {5{$urandom}}; odd = n[0]; w = $urandom; s = state_t'(n % 3); t = n; p = $urandom;
      foreach (a[i]) a[i] = $urandom;
      @(posedge clk); #1;
      if (y !== (wide ^ {131{odd}})) $error("y");
      if (sum !== 7'(a[0] + a[1] - a[2])) $error("sum %0d", sum);
      if (out[0] !== w || out[1] !== ~w) $error("out");
      if (next !== (s == IDLE ? RUN : s == RUN ? STOP : IDLE)) $error("next");
      if (long !== {32'(sum), wide[31:0]}) $error("long");
    end
    $finish;
  end
endmodule
"""
    r = simulate(simulator, design(rtl, "ports"), text)
    assert r.status == "passed", r.log
    assert r.coverage.toggle > 0.9


def test_design_with_delays_of_its_own_keeps_its_time(simulator):
    delays = design(DELAYS, "delays")
    text = """\
`timescale 1ns/1ps
module tb;
  logic a = 0; wire y, tick; int ticks = 0;
  delays dut(.*);
  always @(tick) ticks++;  // the first, from x to 0, at time 0
  initial begin
    #10 a = 1; #2 if (y !== 0 && y !== 1'b0) $error("early"); #2 if (y !== 0) $error("late");
    a = 0; #2.9 if (y !== 0) $error("early"); #0.2 if (y !== 1) $error("late");
    #82.9 if (ticks != 15) $error("%0d ticks", ticks);
    $finish;
  end
endmodule
"""
    r = simulate(simulator, delays, text)
    assert r.status == "passed", r.log
    assert r.coverage.line == 1.0


def test_inout_port_carries_both_what_the_testbench_and_what_the_design_drives(simulator):
    text = """\
module tb;
  logic clk = 0, oe = 0, mine = 1; logic [3:0] d = 0, v = 0; wire [3:0] io, q;
  assign io = mine ? v : 4'bz;
  bus dut(.*);
  always #5 clk = ~clk;
  initial begin
    for (int n = 0; n < 32; n++) begin
      @(negedge clk); oe = n[0]; mine = ~n[0]; d = n / 2; v = 15 - n / 2;
      @(posedge clk); #1;
      if (io !== (n[0] ? n / 2 : 15 - n / 2)) $error("io %0d", io);
      if (q !== io) $error("q %0d", q);
    end
    $finish;
  end
endmodule
"""
    r = simulate(simulator, design(BUS, "bus"), text)
    assert r.status == "passed", r.log
    assert r.coverage.toggle > 0.95


def test_port_that_it_cannot_drive_is_unsupported_with_the_reason(simulator):
    text = "module odd(input logic clk, input real r); logic q; always @(posedge clk) q <= ~q; endmodule"
    r = simulate(simulator, design(text, "odd"), "module tb; logic clk = 0; odd dut(.clk); endmodule")
    assert r.status == "unsupported" and "real" in r.feedback and "cocotb" in r.feedback


def test_folder_of_files_is_one_testbench(simulator, counter, tmp_path: Path):
    folder = tmp_path / "bench"
    (folder / "inc").mkdir(parents=True)
    (folder / "a_top.sv").write_text('`include "body.svh"\n' + bench("initial begin go(); $finish; end", "`BODY"))
    (folder / "z_pkg.sv").write_text("package settings; localparam int N = 20; endpackage\n")
    (folder / "inc" / "body.svh").write_text(
        "`define BODY task go(); rst_n = 1; en = 1; repeat (settings::N) @(posedge clk); endtask\n"
    )
    [r] = simulator.run_many(counter, [read_testbench(folder)], limits=LIMITS)
    assert r.status == "passed" and r.sim_time_ns == 195, r.log
    (folder / "a_top.sv").write_text(bench("initial go_nowhere();"))
    [r] = simulator.run_many(counter, [read_testbench(folder)], limits=LIMITS)
    assert r.status == "compile_error" and "bench/a_top.sv:8" in r.log


def test_folder_without_a_testbench_and_circles_of_includes_are_refused(tmp_path: Path):
    with pytest.raises(TestbenchError, match="no testbench found"):
        read_testbench(tmp_path)
    (tmp_path / "a.sv").write_text('`include "b.svh"\n')
    (tmp_path / "b.svh").write_text('`include "b.svh"\n')
    with pytest.raises(TestbenchError, match="circle"):
        read_testbench(tmp_path)


def test_waveforms_show_the_replay(simulator, counter, tmp_path: Path):
    waves = tmp_path / "out.vcd"
    text = bench("initial begin #12 rst_n = 1; en = 1; #60 $finish; end")
    r = simulator.run_examined(counter, Testbench(text, "systemverilog"), waves=waves, limits=LIMITS)
    assert r.status == "passed"
    lines = waves.read_text().splitlines()
    assert any("secret" in line for line in lines if line.lstrip().startswith("$var"))
    assert f"#{70_000}" in lines  # in the design's precision, ps


def test_inputs_that_never_change_still_give_the_first_evaluation(simulator):
    inverter = design("module inverter(input logic a, output logic y); assign y = ~a; endmodule", "inverter")
    text = 'module tb; logic a = 0; wire y; inverter dut(.*); initial #1 if (y !== 1) $error("y"); endmodule'
    r = simulate(simulator, inverter, text)
    assert r.status == "passed", r.log


def test_driving_by_macros_of_the_design_s_headers(simulator):
    subject = Design(
        name="uses", top="uses",
        sources=(SourceFile("uses.sv", b'`include "w.vh"\nmodule uses(input logic [`W-1:0] a, output logic y);'
                            b" assign y = &a; endmodule\n"),),
        includes=(SourceFile("inc/w.vh", b"`define W 3\n"),), include_dirs=("inc",),
    )  # fmt: skip
    text = (
        '`include "w.vh"\nmodule tb; logic [`W-1:0] a = 0; wire y; uses dut(.*);\n'
        " initial begin for (int i = 0; i < 9; i++) begin #1 a = i; end #1 $finish; end endmodule\n"
    )
    r = simulate(simulator, subject, text)
    assert r.status == "passed", r.log
    assert r.coverage.toggle == 1.0
    assert len(indices(difference(r.hits, b""))) == popcount(r.hits)
