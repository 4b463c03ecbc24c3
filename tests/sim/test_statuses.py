"""Every status, produced for real; those of SystemVerilog testbenches in detail in test_systemverilog.py."""

from __future__ import annotations

import pytest

from sim.coverage import difference, popcount
from sim.design import Design
from sim.simulation import STATUSES, Limits, Simulation, Testbench
from sim.simulator import Simulator
from tests.sim.conftest import HEAD, design, test_body

CLOCKED = "@cocotb.test()\nasync def t(dut):\n    cocotb.start_soon(Clock(dut.clk, 10, unit='ns').start())\n"
QUICK = Limits(wall_s=4.0, cpu_s=20.0)


def simulate(simulator: Simulator, design: Design, text: str, limits: Limits = QUICK, seed: int = 0) -> Simulation:
    [result] = simulator.run_many(design, [Testbench(text)], limits=limits, seed=seed)
    return result


def test_passed_has_coverage_points_instances_and_time(simulator, counter):
    r = simulate(simulator, counter, test_body("await ClockCycles(dut.clk, 20)"))
    assert r.status == "passed" and r.running
    assert 0 < r.coverage.overall < 1
    assert r.points["toggle"][1] > r.points["line"][1] > 0
    assert [i["path"] for i in r.instances] == ["counter"]
    assert r.sim_time_ns == 210
    assert r.uncovered and r.hits and r.cpu_s > 0
    assert "fsm" in r.metrics_unavailable


def test_failing_assertion_is_test_failed_with_line_and_source(simulator, counter):
    r = simulate(simulator, counter, test_body("await RisingEdge(dut.clk)", "assert dut.q.value == 13, 'no 13'"))
    assert r.status == "test_failed" and r.running and r.score > 0
    line = next(n for n, t in enumerate(HEAD.split("\n") + [""] * 9, 1) if not t and n > 12) + 4
    assert "assert dut.q.value == 13" in r.feedback
    assert f"testbench.py:{line}" in r.log or "testbench.py" in r.log


def test_one_failing_test_among_passing_ones_is_test_failed(simulator, counter):
    text = (
        test_body("await RisingEdge(dut.clk)") + "\n@cocotb.test()\nasync def second(dut):\n    raise ValueError('x')\n"
    )
    assert simulate(simulator, counter, text).status == "test_failed"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def broken(:\n", "SyntaxError"),
        ("import no_such_module\n", "no_such_module"),
        ("import cocotb\n", "No tests were discovered"),
        ("raise SystemExit(3)\n", "SystemExit"),
        ("import os\nos._exit(0)\n", ""),
        ("import cocotb\n@cocotb.test(skip=True)\nasync def t(dut):\n    pass\n", "skip"),
        ("", "No tests were discovered"),
        ("\x00", ""),
    ],
    ids=["syntax", "import", "no test", "exit", "_exit", "all skipped", "empty", "null byte"],
)
def test_load_error_when_no_test_starts(simulator, counter, text, told):
    r = simulate(simulator, counter, text)
    assert r.status == "load_error" and not r.running
    assert r.coverage.overall is None and r.hits == b""
    assert told in r.log


def test_results_that_the_testbench_writes_itself_do_not_make_it_pass(simulator, counter):
    text = """\
import os
open("results.xml", "w").write("<testsuites><testsuite><testcase name='t'/></testsuite></testsuites>")
os._exit(0)
"""
    assert simulate(simulator, counter, text).status == "load_error"


def test_simulated_time_limit_is_timeout_with_coverage(simulator, counter):
    limits = Limits(sim_time_ns=500)
    r = simulate(simulator, counter, test_body("await Timer(1, unit='ms')"), limits)
    assert r.status == "timeout" and r.running and r.coverage.overall > 0
    assert r.sim_time_ns <= 500


def test_evaluation_limit_is_timeout_with_coverage(simulator, counter):
    r = simulate(simulator, counter, test_body("await Timer(1, unit='ms')"), Limits(evaluations=300))
    assert r.status == "timeout" and r.evaluations == 300 and r.coverage.overall > 0


def test_endless_loop_in_python_is_timeout_with_the_coverage_until_then(simulator, counter):
    limits = Limits(wall_s=0.7)
    r = simulate(simulator, counter, test_body("await ClockCycles(dut.clk, 20)", "while True: pass"), limits)
    assert r.status == "timeout" and r.coverage.overall > 0
    assert r.sim_time_ns == 210


def test_endless_loop_in_zero_time_is_timeout(simulator, counter):
    lines = ("v = 0", "while True:", "    v = 1 - v; dut.en.value = v", "    await Timer(1, unit='step')")
    r = simulate(simulator, counter, test_body(*lines), Limits(evaluations=5000))
    assert r.status == "timeout"


def test_loop_that_ignores_exceptions_is_timeout(simulator, counter):
    lines = ("while True:", "    try:", "        while True: pass", "    except BaseException:", "        pass")
    assert simulate(simulator, counter, test_body(*lines), Limits(wall_s=0.7)).status == "timeout"


def test_waiting_without_a_clock_is_starved(simulator, counter):
    text = HEAD + "@cocotb.test()\nasync def t(dut):\n    await RisingEdge(dut.clk)\n"
    r = simulate(simulator, counter, text)
    assert r.status == "starved" and not r.running


def test_combinational_loop_is_nonconverged(simulator):
    loop = design("module osc(input logic a, output logic y); assign y = a & ~y; endmodule", "osc")
    text = HEAD + "@cocotb.test()\nasync def t(dut):\n    dut.a.value = 1\n    await Timer(5)\n"
    r = simulate(simulator, loop, text)
    assert r.status == "nonconverged"
    assert "converge" in r.log


def test_segmentation_fault_is_crashed(simulator, counter):
    r = simulate(simulator, counter, test_body("import ctypes; ctypes.string_at(0)"))
    assert r.status == "crashed"


def test_memory_limit_is_resource_limit(simulator, counter):
    r = simulate(simulator, counter, test_body("x = bytearray(3 << 30)"), Limits(memory_mb=256))
    assert r.status == "resource_limit"


def test_endless_output_is_resource_limit(simulator, counter):
    r = simulate(simulator, counter, test_body("while True: print('x' * 10000)"), Limits(output_bytes=1 << 20))
    assert r.status == "resource_limit"
    assert len(r.log) <= 64 << 10


def test_processor_time_limit_is_resource_limit(simulator, counter):
    r = simulate(simulator, counter, test_body("while True: pass"), Limits(cpu_s=1.0, wall_s=30.0))
    assert r.status == "resource_limit"


@pytest.mark.parametrize("line", ["os._exit(0)", "sys.stdout.flush(); os.kill(os.getpid(), 9)"], ids=["_exit", "kill"])
def test_leaving_before_the_end_is_not_passed(simulator, counter, line):
    r = simulate(simulator, counter, test_body("await ClockCycles(dut.clk, 5)", line))
    assert r.status in ("early_exit", "crashed") and not r.running


def test_sys_exit_in_a_test_fails_it(simulator, counter):
    assert simulate(simulator, counter, test_body("sys.exit(0)")).status in ("test_failed", "early_exit")


def test_finish_in_the_design_is_early_exit(simulator):
    stops = design(
        "module stops(input logic clk); int n = 0; always @(posedge clk) begin n++; if (n == 5) $finish; end endmodule",
        "stops",
    )
    text = HEAD + CLOCKED + "    await ClockCycles(dut.clk, 50)\n"
    assert simulate(simulator, stops, text).status == "early_exit"


def test_fatal_in_the_design_is_test_failed_with_coverage(simulator):
    fatal = design(
        "module fatal(input logic clk, input logic [3:0] a);\n"
        '  always @(posedge clk) if (a == 3) $fatal(1, "three");\nendmodule\n',
        "fatal",
    )
    text = (
        HEAD
        + """@cocotb.test()
async def t(dut):
    cocotb.start_soon(Clock(dut.clk, 10, unit='ns').start())
    for n in range(10):
        dut.a.value = n
        await RisingEdge(dut.clk)
"""
    )
    r = simulate(simulator, fatal, text)
    assert r.status == "test_failed" and r.coverage.overall > 0
    assert "three" in r.log


def test_design_that_does_not_parse_is_design_error_naming_file_and_line(simulator):
    broken = design("module broken(input logic a);\n  assign a = ;\nendmodule\n", "broken")
    results = list(simulator.run_many(broken, [Testbench("a"), Testbench("b")]))
    assert [r.status for r in results] == ["design_error", "design_error"]
    assert "broken.sv:2" in results[0].log and "assign a = ;" in results[0].feedback


def test_missing_module_is_design_error(simulator):
    r = simulate(simulator, design("module lacks(input logic a);\n  nowhere u(.a(a));\nendmodule\n", "lacks"), "x")
    assert r.status == "design_error" and "nowhere" in r.feedback and "lacks.sv:2" in r.feedback


def test_duplicate_module_is_design_error(simulator):
    twice = design("module twice(input logic a); endmodule\nmodule twice(input logic b); endmodule\n", "twice")
    assert simulate(simulator, twice, "x").status == "design_error"


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (("assert False",), "test_failed"),
        (("raise RuntimeError",), "test_failed"),
        (("os._exit(0)",), "early_exit"),
        (("os.kill(os.getpid(), 15)",), "crashed"),
        (("os.abort()",), "crashed"),
        (("while True: pass",), "timeout"),
        (("await Timer(1, unit='sec')",), "timeout"),
    ],
    ids=["assertion", "exception", "_exit", "SIGTERM", "abort", "endless loop", "time"],
)
def test_coverage_until_then_is_kept_however_a_run_ends(simulator, counter, lines, status):
    run = "await ClockCycles(dut.clk, 20)"
    whole = simulate(simulator, counter, test_body(run))
    r = simulate(simulator, counter, test_body(run, *lines), Limits(wall_s=0.7, cpu_s=20))
    assert r.status == status
    assert r.coverage.overall >= whole.coverage.overall and not popcount(difference(whole.hits, r.hits))
    assert r.score == (r.coverage.overall if r.running else 0.0)


@pytest.mark.parametrize("ending", ["starved", "nonconverged"])
def test_coverage_is_kept_where_nothing_goes_on(simulator, ending):
    loop = design(
        "module osc(input logic clk, input logic a, output logic y, output logic q);\n"
        "  assign y = a & ~y;\n  always_ff @(posedge clk) q <= ~q;\nendmodule\n",
        "osc",
    )
    last = "    await RisingEdge(dut.y)\n" if ending == "starved" else "    dut.a.value = 1\n    await Timer(5)\n"
    edges = "    for n in range(6):\n        dut.clk.value = n % 2\n        await Timer(5)\n"
    r = simulate(simulator, loop, HEAD + "@cocotb.test()\nasync def t(dut):\n" + edges + last)
    assert r.status == ending and not r.running and r.score == 0
    assert r.coverage.toggle > 0


def test_every_status_is_produced(simulator, counter):
    """By a testbench or design that a person could have written; nothing here is injected."""
    good, clock = "await ClockCycles(dut.clk, 20)", "module tb; logic clk = 0; {} dut(.clk); endmodule"
    secret = "dut.secret.value = 15"
    real = design("module real_port(input logic clk, input real r); endmodule", "real_port")
    loop = design("module osc(input logic a, output logic y); assign y = a & ~y; endmodule", "osc")
    broken = design("module broken(input logic clk; endmodule", "broken")
    raw = design('module raw(input logic clk); always @(posedge clk) $c("no C++"); endmodule', "raw")
    rise = HEAD + "@cocotb.test()\nasync def t(dut):\n    dut.a.value = 1\n    await Timer(5)\n"
    cases = {
        "passed": (counter, Testbench(test_body(good))),
        "test_failed": (counter, Testbench(test_body("assert False"))),
        "load_error": (counter, Testbench("import nothing_of_that_name")),
        "compile_error": (counter, Testbench("module tb; counter dut(.nothing(1)); endmodule", "systemverilog")),
        "design_error": (broken, Testbench(test_body(good))),
        "tool_error": (raw, Testbench(test_body(good))),
        "timeout": (counter, Testbench(test_body("await Timer(10, unit='ms')"))),
        "starved": (counter, Testbench(HEAD + "@cocotb.test()\nasync def t(dut):\n    await RisingEdge(dut.clk)\n")),
        "nonconverged": (loop, Testbench(rise)),
        "crashed": (counter, Testbench(test_body("import ctypes; ctypes.string_at(0)"))),
        "resource_limit": (counter, Testbench(test_body("while True: print('x' * 100000)"))),
        "early_exit": (counter, Testbench(test_body(good, "os._exit(0)"))),
        "policy_violation": (counter, Testbench('module tb; initial $system("id"); endmodule', "systemverilog")),
        "forged": (counter, Testbench(test_body(good, secret, "dut.mode.value = 2", good))),
        "unsupported": (real, Testbench(clock.format("real_port"), "systemverilog")),
    }
    found = {status: next(simulator.run_many(d, [t])) for status, (d, t) in cases.items()}
    assert {status: r.status for status, r in found.items()} == {status: status for status in STATUSES}
    assert all(r.feedback for r in found.values())


def test_killing_everything_in_reach_harms_no_other_testbench(simulator, counter):
    killer = test_body("import signal", "os.kill(-1, signal.SIGKILL)")
    good = test_body("await ClockCycles(dut.clk, 30)")
    results = list(simulator.run_many(counter, [Testbench(killer), Testbench(good)], limits=QUICK))
    assert results[0].status == "test_failed" and "PermissionError" in results[0].log
    assert results[1].status == "passed"
