"""`llm4cov sim`, `close`, `cache` and `doctor`: exit codes, JSON and what is written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

COUNTER = """
module counter(input logic clk, input logic rst_n, input logic en, output logic [1:0] n, output logic full);
  always_ff @(posedge clk or negedge rst_n)
    if (!rst_n) n <= 0;
    else if (en) n <= n + 1;
  assign full = n == 2'd3;
endmodule
"""

DEEP = """
module deep(input logic clk, input logic rst, input logic en, output logic [63:0] n);
  always_ff @(posedge clk) if (rst) n <= 0; else if (en) n <= n + 1;
endmodule
"""

TESTBENCH = """
import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

@cocotb.test()
async def count(dut):
    Clock(dut.clk, 10, "ns").start()
    dut.rst_n.value = 0
    dut.en.value = 0
    await RisingEdge(dut.clk)
    dut.rst_n.value = 1
    dut.en.value = 1
    for _ in range(6):
        await RisingEdge(dut.clk)
    print("counted to", int(dut.n.value))
    assert {condition}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    (folder / "counter.sv").write_text(COUNTER)
    (folder / "deep.sv").write_text(DEEP)
    (folder / "switch.sv").write_text("module switch(inout wire a, inout wire b);\n  rtran r(a, b);\nendmodule\n")
    (folder / "passing.py").write_text(TESTBENCH.replace("{condition}", "True"))
    (folder / "failing.py").write_text(TESTBENCH.replace("{condition}", "False"))
    (folder / "broken.py").write_text("def broken(:\n")
    (folder / "broken.sv").write_text("module broken(input logic a;\nendmodule\n")
    (folder / "empty").mkdir()
    (folder / "latin.py").write_bytes(b"# \xe9\n")
    return folder


def llm4cov(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"LLM4COV_HOME": str(folder / "home")}
    command = [sys.executable, "-m", "llm4cov_assets.cli", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def one_object(done: subprocess.CompletedProcess[str]) -> dict:
    assert len(done.stdout.splitlines()) == 1, done.stderr
    return json.loads(done.stdout)


def test_sim_prints_one_object_and_exits_0_when_passed(folder):
    done = llm4cov(folder, "sim", "counter.sv", "passing.py", "--json")
    result = one_object(done)
    assert done.returncode == 0, done.stderr
    assert result["status"] == "passed"
    assert 0 < result["coverage"]["overall"] <= 1
    assert "counted to" in result["log"]
    again = one_object(llm4cov(folder, "sim", "counter.sv", "passing.py", "--json"))
    assert again["cached"]
    assert again["coverage"] == result["coverage"]
    fresh = one_object(llm4cov(folder, "sim", "counter.sv", "passing.py", "--json", "--no-cache"))
    assert not fresh["cached"]
    assert fresh["simulation_id"] == result["simulation_id"]


@pytest.mark.parametrize(
    ("design", "testbench", "status"),
    [
        ("counter.sv", "failing.py", "test_failed"),
        ("counter.sv", "broken.py", "load_error"),
        ("counter.sv", "counter.sv", "policy_violation"),
        ("switch.sv", "passing.py", "design_error"),
    ],
)
def test_sim_exits_1_with_an_object_for_every_other_status(folder, design, testbench, status):
    done = llm4cov(folder, "sim", design, testbench, "--json")
    assert one_object(done)["status"] == status
    assert done.returncode == 1


def test_sim_says_of_a_design_with_random_numbers_that_it_is_no_function_of_its_inputs(folder):
    (folder / "noisy.sv").write_text(COUNTER.replace("counter(", "noisy(").replace("n + 1", "$urandom"))
    (folder / "noisy.py").write_text((folder / "passing.py").read_text())
    done = llm4cov(folder, "sim", "noisy.sv", "noisy.py", "--json")
    assert one_object(done)["deterministic"] is False
    assert "not a function of its inputs" in llm4cov(folder, "sim", "noisy.sv", "noisy.py").stderr


def test_sim_runs_systemverilog_from_a_file_or_a_folder(folder):
    text = "module tb;\n  logic clk = 0, rst_n = 0, en = 0; wire [1:0] n; wire full;\n  counter dut(.*);\n"
    text += "  always #5 clk = ~clk;\n  `GO\nendmodule\n"
    (folder / "bench").mkdir()
    (folder / "bench" / "tb.sv").write_text('`include "go.svh"\n' + text)
    (folder / "bench" / "go.svh").write_text("`define GO initial begin #12 rst_n = 1; en = 1; #60 $finish; end\n")
    result = one_object(llm4cov(folder, "sim", "counter.sv", "bench", "--json"))
    assert (result["status"], result["language"]) == ("passed", "systemverilog")
    (folder / "tb.sv").write_text(text.replace("`GO", "initial #20 $finish"))
    done = llm4cov(folder, "sim", "counter.sv", "tb.sv")
    assert done.returncode == 1 and "error: tb.sv:6" in done.stdout


def test_sim_prints_status_metrics_and_the_place_of_the_log(folder):
    done = llm4cov(folder, "sim", "counter.sv", "failing.py")
    assert done.returncode == 1
    for text in ("test_failed", "error: failing.py:17: AssertionError", "overall", "line", "toggle", "log:"):
        assert text in done.stdout
    log = Path("".join(done.stdout.rsplit("log: ", 1)[1].rsplit("   simulation ", 1)[0].split()))
    assert "counted to" in log.read_text()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("counter.sv", "nowhere.py"), "nowhere.py"),
        (("nowhere.sv", "passing.py"), "nowhere.sv"),
        (("empty", "passing.py"), "empty"),
        (("broken.sv", "passing.py"), "broken.sv"),
        (("counter.sv", "latin.py"), "latin.py"),
        (("counter.sv", "empty"), "empty"),
        (("counter.sv", "counter.sv", "--language", "vhdl"), "vhdl"),
        (("counter.sv", "passing.py", "--timeout", "0"), "--timeout"),
        (("counter.sv", "passing.py", "--timeout", "nan"), "--timeout"),
        (("counter.sv", "passing.py", "--timeout", "1e300"), "--timeout"),
        (("counter.sv", "passing.py", "--seed", "9" * 30), "--seed"),
        (("counter.sv", "passing.py", "--waves", "/proc/waves.vcd"), "/proc/waves.vcd"),
        (("counter.sv", "passing.py", "--waves", "waves.lxt"), ".vcd or .fst"),
        (("counter.sv", "a" * 5000 + ".py"), "aaa"),
        (("a" * 5000 + ".sv", "passing.py"), "aaa"),
        (("~nobody-here/a.sv", "passing.py"), "~nobody-here"),
        (("counter.sv",), "TESTBENCH"),
        (("counter.sv", "passing.py", "--wave", "x"), "--wave"),
        (("counter.sv", "passing.py", "--param", "W"), "--param W"),
        (("counter.sv", "passing.py", "--top", "none"), "none"),
    ],
)
def test_unreadable_input_is_one_line_and_exit_code_2(folder, arguments, named):
    done = llm4cov(folder, "sim", *arguments, "--json")
    assert done.returncode == 2
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert named in line


@pytest.mark.slow
def test_close_writes_testbenches_and_a_summary(folder):
    done = llm4cov(folder, "close", "counter.sv", "--rounds", "2", "--budget-sims", "12", "--out", "closed", "--json")
    summary = one_object(done)
    assert done.returncode == 0, done.stderr
    assert summary["simulations"] <= 12
    assert summary["merged"]["overall"] >= summary["best"]["overall"]
    assert json.loads((folder / "closed" / "summary.json").read_text()) == summary
    report = (folder / "closed" / "summary.md").read_text()
    assert "| overall |" in report and "Files: best.py, testbench_1.py" in report
    best = one_object(llm4cov(folder, "sim", "counter.sv", "closed/best.py", "--json"))
    assert best["status"] == "passed"
    assert best["coverage"]["overall"] == summary["best"]["overall"]
    assert best["cached"]


@pytest.mark.slow
def test_close_keeps_what_there_is_at_ctrl_c(folder):
    environment = os.environ | {"LLM4COV_HOME": str(folder / "home")}
    command = [sys.executable, "-m", "llm4cov_assets.cli", "close", "deep.sv", "--rounds", "100000"]
    command += ["--budget-sims", "100000", "--samples", "16", "--out", "interrupted", "--json"]
    running = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stderr is not None
    while "points" not in running.stderr.readline():
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    output, _ = running.communicate(timeout=120)
    summary = json.loads(output)
    assert summary["stopped"] == "interrupted"
    assert summary["best"]["overall"] > 0
    assert (folder / "interrupted" / "best.py").exists()


@pytest.mark.slow
def test_ctrl_c_ends_a_simulation_at_once_and_leaves_no_folder(folder):
    home = folder / "interrupted-home"
    (folder / "endless.py").write_text(
        "import cocotb\n\n@cocotb.test()\nasync def t(dut):\n    while True:\n        pass\n"
    )
    command = [sys.executable, "-m", "llm4cov_assets.cli", "sim", "counter.sv", "endless.py", "--timeout", "100000"]
    running = subprocess.Popen(
        command, cwd=folder, env=os.environ | {"LLM4COV_HOME": str(home)}, stderr=subprocess.PIPE, text=True
    )
    try:
        while not list((home / "cache" / "run").glob("*/job-*")):
            assert running.poll() is None
            time.sleep(0.1)
        running.send_signal(signal.SIGINT)
        _, told = running.communicate(timeout=120)
    finally:
        running.kill()
    assert running.returncode == 130
    assert "llm4cov: interrupted" in told
    assert not list((home / "cache" / "run").iterdir())


@pytest.mark.parametrize("arguments", [("--policy", "nobody"), ("--policy", "stage_2"), ("--out", "passing.py")])
def test_close_refuses_what_it_cannot_do_before_it_starts(folder, arguments):
    done = llm4cov(folder, "close", "counter.sv", *arguments)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert arguments[1] in line


@pytest.mark.slow
def test_what_was_simulated_is_in_the_warehouse(folder):
    llm4cov(folder, "sim", "counter.sv", "passing.py")
    llm4cov(folder, "warehouse", "publish")
    query = "select status, stage, partition_key from simulations where log like '%counted to%' order by status"
    found = json.loads(llm4cov(folder, "sql", query, "--json").stdout)
    assert {"status": "passed", "stage": None, "partition_key": "adhoc"} in found


def test_a_simulated_design_is_known_by_name_afterwards(folder):
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "late.sv").write_text(COUNTER.replace("module counter", "module late"))
    first = one_object(llm4cov(folder, "sim", "elsewhere/late.sv", "passing.py", "--json"))
    (folder / "elsewhere" / "late.sv").unlink()
    again = one_object(llm4cov(folder, "sim", "late", "passing.py", "--json"))
    assert again["cached"]
    assert again["simulation_id"] == first["simulation_id"]


def test_a_folder_is_simulated_as_it_is_now(folder):
    (folder / "edited").mkdir()
    source = folder / "edited" / "edited.sv"
    source.write_text(COUNTER.replace("module counter", "module edited"))
    first = one_object(llm4cov(folder, "sim", "edited", "passing.py", "--json"))
    source.write_text(source.read_text().replace("n <= n + 1", "n <= n + 2"))
    again = one_object(llm4cov(folder, "sim", "edited", "passing.py", "--json"))
    assert again["design_id"] != first["design_id"]


def test_a_name_that_is_a_folder_as_well_is_said(folder):
    (folder / "timer").mkdir()
    (folder / "timer" / "timer.sv").write_text(COUNTER)
    done = llm4cov(folder, "sim", "timer", "passing.py", "--json")
    assert done.stderr == "llm4cov: timer is a design of that name; ./timer names the folder\n"
    assert one_object(done)["status"] == "test_failed"


def test_a_name_stands_for_the_version_that_was_simulated_last(folder):
    source = folder / "versions" / "versioned.sv"
    source.parent.mkdir()
    rtl_ids = []
    for wide in (2, 3, 2):
        source.write_text(COUNTER.replace("module counter", "module versioned").replace("[1:0]", f"[{wide - 1}:0]"))
        rtl_ids.append(one_object(llm4cov(folder, "sim", str(source), "passing.py", "--json"))["rtl_id"])
        named = one_object(llm4cov(folder, "sim", "versioned", "passing.py", "--json"))
        assert named["rtl_id"] == rtl_ids[-1]
    assert rtl_ids[0] == rtl_ids[2] != rtl_ids[1]


def test_waves_are_written_beside_the_result(folder):
    done = llm4cov(folder, "sim", "counter.sv", "passing.py", "--json", "--waves", "counter.vcd")
    assert one_object(done)["status"] == "passed"
    assert "$var" in (folder / "counter.vcd").read_text()


@pytest.mark.slow
def test_coverage_is_written_for_other_tools_and_shown_by_file(folder):
    (folder / "pair").mkdir()
    (folder / "pair" / "leaf.sv").write_text(COUNTER.replace("module counter", "module leaf"))
    ports = "input logic clk, input logic rst_n, input logic en, output logic [1:0] n, output logic full"
    (folder / "pair" / "pair.sv").write_text(f"module pair({ports});\n  leaf u(.*);\nendmodule\n")
    done = llm4cov(folder, "sim", "pair", "passing.py", "--json", "--lcov", "pair.info", "--dat", "pair.dat")
    result = one_object(done)
    assert [row["path"] for row in result["files"]] == ["leaf.sv", "pair.sv"]
    assert (folder / "pair.info").read_text().count("SF:") >= 1
    assert (folder / "pair.dat").read_text().count("\nC '") == sum(total for _, total in result["points"].values())
    assert "pair.sv" in llm4cov(folder, "sim", "pair", "passing.py").stdout
    broken = llm4cov(folder, "sim", "pair", "broken.py", "--lcov", "none.info")
    assert "none.info: not written" in broken.stderr and not (folder / "none.info").exists()


@pytest.mark.slow
def test_exclusions_are_shown_beside_a_score_that_they_do_not_change(folder):
    (folder / "waived").mkdir()
    (folder / "waived" / "waived.sv").write_text(COUNTER.replace("module counter", "module waived"))
    before = one_object(llm4cov(folder, "sim", "waived", "failing.py", "--json"))
    tables = '[[exclude]]\nmetric = "toggle"\nreason = "not wanted"\n[[exclude]]\nfile = "gone.sv"\nreason = "old"\n'
    (folder / "waived" / "exclusions.toml").write_text(tables)
    after = one_object(llm4cov(folder, "sim", "waived", "failing.py", "--json"))
    assert after["cached"] and after["coverage"] == before["coverage"] and after["points"] == before["points"]
    assert {item["metric"] for item in after["excluded"]} == {"toggle"}
    assert after["coverage_without_excluded"]["toggle"] is None
    assert after["stale_exclusions"] == ["every metric of gone.sv"]
    shown = llm4cov(folder, "sim", "waived", "failing.py").stdout
    assert "not wanted" in shown and "stale exclusion" in shown
    llm4cov(folder, "warehouse", "publish")
    found = json.loads(llm4cov(folder, "sql", "select reason from exclusions order by number", "--json").stdout)
    assert found == [{"reason": "not wanted"}, {"reason": "old"}]
    (folder / "waived" / "exclusions.toml").write_text("[[exclude]]\nmetric = 'line'\n")
    refused = llm4cov(folder, "sim", "waived", "failing.py")
    assert refused.returncode == 2 and "exclusions.toml:1: an exclusion needs a reason" in refused.stderr


def test_cache_counts_what_is_stored(folder):
    counted = one_object(llm4cov(folder, "cache", "--json"))
    assert set(counted) >= {"home", "simulations", "builds", "checkpoints"}
    assert llm4cov(folder, "cache").returncode == 0


def test_doctor_lists_what_is_needed(folder):
    done = llm4cov(folder, "doctor", "--json")
    report = one_object(done)
    names = {check["name"] for check in report["checks"]}
    assert {"verilator", "cocotb", "libpython", "g++", "make", "ccache", "z3", "bwrap", "torch", "trl", "gpu"} <= names
    assert all(check["mend"] for check in report["checks"] if not check["ok"])
    assert done.returncode == (0 if report["ok"] else 1)


@pytest.mark.parametrize("place", ["passing.py", "passing.py/below", "~nobody-here/home"])
def test_a_home_that_cannot_be_one_is_one_line(folder, place):
    environment = os.environ | {"LLM4COV_HOME": place}
    command = [sys.executable, "-m", "llm4cov_assets.cli", "sim", "counter.sv", "passing.py"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stdout == ""
    [line] = done.stderr.splitlines()
    assert place in line and "LLM4COV_HOME" in line
