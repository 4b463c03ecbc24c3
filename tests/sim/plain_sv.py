"""The reference for SystemVerilog testbenches: design and testbench in one plain Verilator build with coverage."""

from __future__ import annotations

import subprocess
from pathlib import Path

from sim.design import Design
from sim.toolchain import Toolchain, find_toolchain

MAIN = """\
#include "verilated.h"
#include "verilated_cov.h"
#include "Vplain.h"
int main(int argc, char** argv) {
    VerilatedContext context;
    context.commandArgs(argc, argv);
    context.randSeed(1);
    context.fatalOnError(false);
    context.errorLimit(1 << 30);
    context.coveragep()->forcePerInstance(true);
    Vplain model{&context};
    while (!context.gotFinish()) {
        model.eval();
        if (!model.eventsPending()) break;
        context.time(model.nextTimeSlot());
    }
    model.final();
    context.coveragep()->write("coverage.dat");
}
"""


def run(design: Design, text: str, folder: Path) -> bytes:
    """Build design and testbench below `folder` and run them; returns Verilator's coverage data."""
    tools = find_toolchain(folder / "home")
    design.write_to(folder / "rtl")
    (folder / "rtl" / "testbench.sv").write_text(text)
    (folder / "main.cpp").write_text(MAIN)
    command = [
        tools.verilator, "--cc", "--exe", "--build", "--prefix", "Vplain", "--timing", "--timescale", "1ns/1ps",
        "--coverage", "--no-coverage-fsm", "--x-assign", "0", "--x-initial", "0", "-Wno-fatal", "--Mdir", "../obj",
        "-O3", "-CFLAGS", "-fcoroutines -std=c++20 -O1",
        "-MAKEFLAGS", "CXX=g++ LINK=g++ CFG_CXXFLAGS_PCH_I=-include OBJCACHE=ccache",
        *(f"-I{d}" for d in design.include_dirs), *(f"-D{n}={v}" if v else f"-D{n}" for n, v in design.defines),
        *(s.path for s in design.sources), "testbench.sv", "../main.cpp", "-o", "plain",
    ]  # fmt: skip
    built = subprocess.run(command, cwd=folder / "rtl", env=tools.environment, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[-3000:]
    subprocess.run([folder / "obj" / "plain"], cwd=folder, check=True, timeout=120, stdout=subprocess.DEVNULL)
    return (folder / "coverage.dat").read_bytes()


def run_from_scratch(tools: Toolchain, design: Design, text: str, folder: Path) -> None:
    """Build and run as a person would with `verilator --binary --coverage`, without a compiler cache."""
    design.write_to(folder / "rtl")
    (folder / "rtl" / "testbench.sv").write_text(text)
    command = [
        tools.verilator, "--binary", "--coverage", "-Wno-fatal", "--top-module", "tb", "--Mdir", "../obj",
        "-CFLAGS", "-fcoroutines -std=c++20", "-MAKEFLAGS", "CXX=g++ LINK=g++ CFG_CXXFLAGS_PCH_I=-include OBJCACHE=",
        *(s.path for s in design.sources), "testbench.sv", "-o", "plain",
    ]  # fmt: skip
    built = subprocess.run(command, cwd=folder / "rtl", env=tools.environment, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[-3000:]
    subprocess.run([folder / "obj" / "plain"], cwd=folder, check=True, timeout=120, stdout=subprocess.DEVNULL)
    assert (folder / "coverage.dat").stat().st_size > 0
