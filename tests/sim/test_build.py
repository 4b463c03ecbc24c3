"""Designs are built once, whoever asks, and failures are remembered."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sim.build import BuildError
from sim.design import Design, SourceFile
from sim.simulation import Testbench
from sim.simulator import Simulator
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


def test_metric_that_verilator_cannot_instrument_is_left_out_with_the_reason(simulator, monkeypatch):
    """Stands in for internal errors of Verilator's coverage passes, which come and go with its versions."""
    from sim import build

    real = build._Compilation._generate

    def generate(self, metrics):
        if "expression" in metrics:
            return "%Error: Internal Error: a.sv:1:1: AstNode is not of expected type"
        return real(self, metrics)

    monkeypatch.setattr(build._Compilation, "_generate", generate)
    made = simulator.build(design(COUNTER.replace("counter", "partly"), "partly"))
    assert "AstNode" in made.metrics_unavailable["expression"]
    assert {p.metric for p in made.points} == {"line", "branch", "toggle"}


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("named", "module named(input logic a, output logic y); assign y = a & signal_b; endmodule", "signal_b"),
        ("port", "interface bus;\nendinterface\nmodule port(bus b, output logic y); assign y = 1; endmodule",
         "Interfaced port on top"),
    ],
)  # fmt: skip
def test_errors_of_the_design_are_not_taken_for_those_of_verilator(simulator, name, text, told):
    """Whatever the message happens to say, and where Verilator stumbles over an error that it has reported."""
    with pytest.raises(BuildError) as error:
        simulator.build(design(text, name))
    assert error.value.status == "design_error" and told in error.value.message


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
    waved = simulator.run_with_waves(counter, bench, tmp_path / "out.vcd")
    assert waved.hits == plain.hits and waved.cached
    text = (tmp_path / "out.vcd").read_text()
    assert "$var" in text and "secret" in text and "#" in text


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
    env = {"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"}
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root, env=env) for _ in range(3)]
    built = sorted(int(p.communicate(timeout=300)[0]) for p in running)
    assert built == [0, 0, 1]
