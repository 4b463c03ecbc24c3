"""Small records of every data set format, as their publishers lay them out."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def rtl(name: str, body: str = "assign y = a & b;") -> str:
    return f"module {name}(input logic [3:0] a, input logic [3:0] b, output logic [3:0] y);\n  {body}\nendmodule\n"


PROCESS = """
import os
def test_report():
    metrics = {}
    assert metrics ["uut"]["Average"] >= float(os.getenv("TARGET")), "too low"
"""


def cvdp(id: Any = "cvdp_copilot_adder_0007", cid: str = "cid012", **files: Any) -> dict[str, Any]:
    """A record of CVDP that is not agentic; `files` are added to the harness."""
    harness = {
        "docker-compose.yml": "services:\n",
        "src/.env": "HASH   = 1\nTARGET = 95\n",
        "src/process.py": PROCESS,
        "src/adder.sv": rtl("adder", "assign y = a + b;"),
    }
    return {
        "id": id,
        "categories": [cid, "easy"],
        "input": {"prompt": "Develop a testbench that generates stimuli for the adder, instantiated as `uut`.",
                  "context": {}},
        "output": {"response": "", "context": {"verif/adder_tb.sv": ""}},
        "harness": {"files": harness | files},
    }  # fmt: skip


def agentic(id: Any = "cvdp_agentic_adder_0007", cid: str = "cid012") -> dict[str, Any]:
    """An agentic record: the RTL and a document are its context."""
    return {
        "id": id,
        "categories": [cid, "hard"],
        "system_message": "You may use files.",
        "prompt": "Write a testbench for `adder`.",
        "context": {
            "rtl/adder.sv": rtl("adder", "assign y = a + b;"),
            "verif/adder_tb.sv": "module adder_tb; adder uut(); endmodule\n",
            "docs/adder.md": "# Adder\nIt adds.",
        },
        "patch": {"verif/adder_tb.sv": ""},
        "harness": {"src/.env": "TARGET=99.5\nINST = uut\n", "src/test_runner.py": "import os\n"},
    }


def ecov(id: Any = "ecov_and", name: str = "masker", **fields: Any) -> dict[str, Any]:
    """A record of CVDP-ECov with a small design of its own."""
    return {
        "id": id,
        "rtl_files": [{"name": f"rtl/{name}.sv", "content": rtl(name)}],
        "spec_files": [{"name": "docs/spec.md", "content": "It masks."}],
        "dut_module_name": name,
        "dut_instance_name": "u_dut",
        "instruction": "Cover the masker.",
        "targets": [{"inst_name": "u_dut", "metric": "Overall Average", "target_percentage": 92.5}],
        "difficulty": "medium",
        "is_agentic": False,
    } | fields


def codev(id: Any = 17, code: str | None = None) -> dict[str, Any]:
    """A record of CodeV-R1."""
    return {
        "problem_id": id,
        "question": [{"role": "system", "content": "You write Verilog."}, {"role": "user", "content": "An OR gate."}],
        "ground_truth": [{"role": "assistant", "content": code or rtl("either", "assign y = a | b;")}],
    }


def verithoughts(code: str | None = None, verified: Any = True) -> dict[str, Any]:
    """A record of VeriThoughts; these have no id."""
    return {
        "question": "Write an XOR gate.",
        "ground_truth": code or rtl("differ", "assign y = a ^ b;"),
        "verified": verified,
    }


def write_lines(path: Path, records: Iterable[Any]) -> Path:
    """Write JSON Lines; what is bytes already is written as it is."""
    lines = [r if isinstance(r, bytes) else json.dumps(r).encode() for r in records]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path
