"""`llm4cov designs` as a person uses it: exit codes, JSON on stdout, one line on stderr for what is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from warehouse.lineage import trace
from warehouse.store import Store


def designs(home: Path, *arguments: str, columns: int = 200) -> subprocess.CompletedProcess[str]:
    """Run `llm4cov designs` in a process of its own."""
    command = [sys.executable, "-m", "llm4cov_assets.cli", "designs", *arguments]
    environment = {**os.environ, "LLM4COV_HOME": str(home), "COLUMNS": str(columns)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


def sql(home: Path, query: str) -> list[tuple[object, ...]]:
    import duckdb

    with duckdb.connect(str(home / "trajectories.duckdb"), read_only=True) as connection:
        return connection.execute(query).fetchall()


def test_list_names_designs_by_glob_and_split(home: Path) -> None:
    found = json.loads(designs(home, "list", "a*", "--split", "eval", "--json").stdout)
    assert {d["name"] for d in found} >= {"alu", "apb_regs", "async_fifo"}
    assert {d["split"] for d in found} == {"eval"}
    assert "alarm_clock" in designs(home, "list", "alarm*").stdout
    assert "register_map_e0_000" in designs(home, "list", "register_map_e0_000", columns=80).stdout


def test_show_tells_ports_branches_and_paths(home: Path) -> None:
    shown = json.loads(designs(home, "show", "watchdog", "--json").stdout)
    assert shown["clocks"] == ["clk"]
    assert [r["port"] for r in shown["resets"]] == ["rst"]
    assert {p["name"]: p["width"] for p in shown["ports"]}["key"] == 8
    assert any(b["steps"] for b in shown["branches"])
    assert "reset, active high, synchronous" in designs(home, "show", "watchdog").stdout
    shown = designs(home, "show", "uart").stdout
    assert "instances: uart (uart), " in shown
    assert "any inputs" in shown
    assert "handshake send/ready: the testbench drives send; with tx_data" in shown


BUFFER = """\
`include "limits.svh"
package kinds; typedef enum logic [1:0] {LOAD, STORE, HALT} kind_t; endpackage
module buffer import kinds::*; #(parameter int WIDTH = 8, parameter type word_t = logic [WIDTH-1:0]) (
  input logic clk, rst_n, in_valid, input word_t in_data, input kind_t kind, output logic in_ready, output word_t q);
  localparam DEPTH = `LIMIT;
  assign in_ready = q != DEPTH;
  always_ff @(posedge clk or negedge rst_n)
    if (!rst_n) q <= 0;
    else if (in_valid && in_ready) case (kind)
      LOAD: q <= in_data;
      STORE: if (in_data inside {[3:9]}) q <= q + 1;
      default: q <= q;
    endcase
endmodule
module other(input logic a, output logic y); assign y = a; endmodule
"""


def test_show_takes_overrides_and_tells_what_they_make_of_the_design(home: Path, tmp_path: Path) -> None:
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "limits.svh").write_text("`ifndef LIMIT\n`define LIMIT 4\n`endif\n")
    (tmp_path / "buffer.sv").write_text(BUFFER)
    given = (str(tmp_path / "buffer.sv"), "--include", str(tmp_path / "headers"), "--json")
    shown = json.loads(designs(home, "show", *given, "--define", "LIMIT=9", "--param", "WIDTH=12").stdout)
    assert {p["name"]: (p["width"], p["type"], p["role"]) for p in shown["ports"]}["in_data"] == (
        12, "buffer.word_t", "payload",
    )  # fmt: skip
    parameters = {p["name"]: (p["value"], p["default"], p["overridable"]) for p in shown["parameters"]}
    assert parameters == {
        "WIDTH": ("12", "8", True), "word_t": ("logic[11:0]", "logic [WIDTH-1:0]", False), "DEPTH": ("9", "9", False),
    }  # fmt: skip
    assert shown["overrides"] == {"WIDTH": "12"} and shown["defines"] == {"LIMIT": "9"}
    [enum] = shown["enums"]
    assert (enum["name"], enum["scope"], enum["members"]) == ("kind_t", "kinds", {"LOAD": 0, "STORE": 1, "HALT": 2})
    [pair] = shown["handshakes"]
    assert (pair["valid"], pair["ready"], pair["drives"], pair["payload"]) == (
        "in_valid", "in_ready", "valid", ["in_data"],
    )  # fmt: skip
    compared = [(c["subject"], c["operator"], c["literal"], c["value"]) for c in shown["constants"]]
    assert compared == [("q", "!=", "DEPTH", 9), ("kind", "==", "LOAD", 0), ("kind", "==", "STORE", 1),
                        ("in_data", ">=", "3", 3), ("in_data", "<=", "9", 9)]  # fmt: skip
    assert [(i["file"], i["line"], i["included"]) for i in shown["includes"]] == [
        ("buffer.sv", 1, "headers/limits.svh")
    ]
    assert shown["n_tokens"] == sum(s["n_tokens"] for s in shown["sizes"]) > 100
    assert json.loads(designs(home, "show", *given, "--top", "other").stdout)["combinational"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("sync_fifo", "--param", "DEEP=4"), "sync_fifo has no parameter 'DEEP' to override; it has WIDTH, DEPTH"),
        (("sync_fifo", "--param", "DEPTH=deep"), "DEPTH=deep is no value"),
        (("sync_fifo", "--top", "fifo"), "no module 'fifo' to be the top; choose another with --top: sync_fifo"),
    ],
)
def test_wrong_overrides_are_put_right(home: Path, arguments: tuple[str, ...], said: str) -> None:
    run = designs(home, "show", *arguments)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.strip().count("\n") == 0 and said in run.stderr


def test_a_large_design_is_shown_in_part_on_the_page_and_whole_in_json(home: Path, tmp_path: Path) -> None:
    ports = ", ".join(f"input logic p{i}" for i in range(200))
    arms = "\n".join(f"      8'd{i}: y <= {i % 7};" for i in range(120))
    (tmp_path / "wide.sv").write_text(
        f"module wide(input logic clk, input logic [7:0] s, {ports}, output logic [2:0] y);\n"
        f"  always_ff @(posedge clk) case (s)\n{arms}\n      default: y <= 0;\n    endcase\nendmodule\n"
    )
    page = designs(home, "show", str(tmp_path / "wide.sv")).stdout
    assert page.count("\n") < 200 and "and 155 more, --json has all" in page and "more, --json has all" in page
    shown = json.loads(designs(home, "show", str(tmp_path / "wide.sv"), "--json").stdout)
    assert (len(shown["ports"]), len(shown["constants"]), len(shown["branches"])) == (203, 120, 122)


def test_an_unknown_design_is_one_line_on_stderr_and_exit_code_2(home: Path) -> None:
    wrong = (("show", "nowhere"), ("export", "nowhere", "out"), ("calibrate", "nowhere*"), ("import", "nowhere"))
    for arguments in wrong:
        run = designs(home, *arguments)
        assert (run.returncode, run.stdout) == (2, "")
        assert run.stderr.strip().count("\n") == 0 and "nowhere" in run.stderr


def test_a_name_that_is_nearly_right_is_put_right(home: Path) -> None:
    assert "did you mean sync_fifo" in designs(home, "show", "Sync-FIFO").stderr
    assert "did you mean watchdog" in designs(home, "export", "watchdgo", "out").stderr
    assert "did you mean packet_parser" in designs(home, "list", "packet_pars").stderr


def test_export_writes_a_folder_that_import_reads(home: Path, tmp_path: Path) -> None:
    exported = json.loads(designs(home, "export", "packet_router", str(tmp_path / "out"), "--json").stdout)
    assert "design.toml" in exported["files"]
    run = designs(home, "import", str(tmp_path / "out"), "--split", "eval", "--dry-run", "--no-build", "--json")
    assert [d["name"] for d in json.loads(run.stdout)["accepted"]] == ["packet_router"]


def test_generate_puts_a_batch_into_the_warehouse(home: Path) -> None:
    run = designs(home, "generate", "--count", "4", "--families", "lock,packet", "--seed", "9", "--json")
    assert [d["name"] for d in json.loads(run.stdout)] == [f"lock_9_{i:03d}" for i in range(4)]
    run = designs(home, "generate", "--count", "2", "--families", "packet", "--split", "eval", "--json")
    assert {d["benchmark"] for d in json.loads(run.stdout)} == {"held_out_families"}
    counts = sql(home, "select split, cluster, count(*) from designs group by all order by all")
    assert counts == [("eval", "packet", 2), ("train", "lock", 4)]
    assert sql(home, "select count(*) from design_files") == [(6,)]
    assert designs(home, "generate", "--families", "packet").returncode == 2


@pytest.mark.slow
def test_import_accepts_good_designs_lists_bad_ones_and_stores_both(warm_home: Path, tmp_path: Path) -> None:
    home = warm_home
    source = tmp_path / "source"
    for name, text in {
        "good": "module good(input logic a, output logic y); assign y = !a; endmodule\n",
        "dice": "module dice(input logic clk, output logic q); always_ff @(posedge clk) q <= $random; endmodule\n",
        "broken": "module broken(input logic a;\nendmodule\n",
        "loop": "module loop(input logic a, output logic y); logic [3:0] w; assign w[9] = a; assign y = q; endmodule\n",
    }.items():
        (source / name).mkdir(parents=True)
        (source / name / f"{name}.sv").write_text(text)
    run = designs(home, "import", str(source), "--json")
    report = json.loads(run.stdout)
    assert run.returncode == 0
    assert [d["name"] for d in report["accepted"]] == ["dice", "good"]
    assert {r["name"] for r in report["rejected"]} == {"broken", "loop"}
    assert all(".sv:" in r["detail"] for r in report["rejected"])
    found = sql(home, "select name, split, deterministic from designs where split = 'train' order by name")
    assert found == [("dice", "train", False), ("good", "train", True)]
    assert sql(home, "select name from rejected_designs_all order by name") == [("broken",), ("loop",)]
    assert json.loads(designs(home, "show", "good", "--json").stdout)["top"] == "good"
    assert designs(home, "import", str(source / "broken")).returncode == 1


@pytest.mark.slow
def test_calibrate_stores_targets_of_the_named_design(warm_home: Path) -> None:
    run = designs(warm_home, "calibrate", "token_bucket", "--budget-sims", "6", "--json")
    assert run.returncode == 0
    targets = {r["metric"]: r for r in json.loads(run.stdout)}
    assert set(targets) == {"overall", "line", "branch", "expression", "toggle"}
    assert 0.5 < targets["overall"]["target"] < 0.96
    stored = "select count(*) from targets_all join designs using (design_id) where name = 'token_bucket'"
    assert sql(warm_home, stored) == [(5,)]
    assert sql(warm_home, "select deterministic from designs where name = 'token_bucket'") == [(True,)]


@pytest.mark.slow
def test_targets_lead_back_to_the_simulations_of_their_campaign(warm_home: Path) -> None:
    assert designs(warm_home, "calibrate", "gray_encoder", "--budget-sims", "6").returncode == 0
    steps = sql(
        warm_home,
        "select lower(hex(t.simulation_id)), s.n_points from rows.transitions as t join rows.simulations as s"
        " using (simulation_id) join rows.coverage_hits using (simulation_id) join rows.designs as d"
        " on d.design_id = t.design_id where t.role = 'calibration' and d.name = 'gray_encoder'",
    )
    assert len(steps) == 6
    store = Store(warm_home)
    with store.connect() as connection:
        traced = trace(connection, str(steps[0][0]))
    assert traced is not None
    assert {"transitions", "targets"} <= set(traced.n_led_to)
    assert store.verify() == []


def test_a_design_is_retired_and_restored_by_name(home: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.v").write_text("module mine(input a, input b, output y); assign y = a ^ b; endmodule\n")
    assert designs(home, "import", str(tmp_path / "mine.v"), "--no-build").returncode == 0
    assert designs(home, "retire", "mine", "--reason", "not ours").returncode == 0
    shown = designs(home, "show", "mine")
    assert shown.returncode == 2 and "mine is retired: not ours" in shown.stderr
    assert "restored" not in shown.stderr and designs(home, "retire", "mine").returncode == 2
    assert designs(home, "restore", "mine").returncode == 0
    assert designs(home, "show", "mine").returncode == 0
    assert designs(home, "restore", "mine").returncode == 2


def test_a_file_list_is_a_design_to_every_command(home: Path, tmp_path: Path) -> None:
    (tmp_path / "rtl").mkdir()
    (tmp_path / "rtl" / "top.v").write_text("module top(input a, output y); assign y = a ^ `INVERT; endmodule\n")
    (tmp_path / "chip.f").write_text("+define+INVERT=1\nrtl/top.v\n")
    shown = json.loads(designs(home, "show", str(tmp_path / "chip.f"), "--json").stdout)
    assert (shown["name"], shown["top"], shown["defines"]) == ("chip", "top", {"INVERT": "1"})
