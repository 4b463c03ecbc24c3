"""The same points are hit as when cocotb's own runner runs the same testbench on a plain Verilator build."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from llm4cov_assets.ingest.registry import corpus_designs
from llm4cov_assets.policy.base import State
from llm4cov_assets.policy.scripted import scripted
from sim.coverage import indices, parse_coverage
from sim.design import Design
from sim.simulation import Testbench
from tests.sim.conftest import COUNTER, HEAD, design

LAST_EDGE = (
    HEAD
    + """\
@cocotb.test()
async def ends_at_an_edge(dut):
    await start(dut)
    dut.mode.value = 3
    await RisingEdge(dut.clk)
"""
)


def plain_hits(design: Design, testbench: Testbench, folder: Path) -> set[tuple[object, ...]]:
    """Points hit under cocotb's own runner and main program."""
    from cocotb_tools.runner import get_runner

    toolchain = os.environ.copy()
    try:
        from sim.toolchain import find_toolchain

        tools = find_toolchain(folder / "home")
        os.environ["VERILATOR_ROOT"] = str(tools.verilator_root)
        shim = folder / "bin"
        shim.mkdir()
        (shim / "verilator").write_text(f'#!/bin/sh\nexec "{tools.verilator}" "$@"\n')
        (shim / "verilator").chmod(0o755)
        os.environ["PATH"] = f"{shim}:{os.environ['PATH']}"
        design.write_to(folder / "rtl")
        (folder / "plain_testbench.py").write_text(testbench.text)
        runner = get_runner("verilator")
        runner.build(
            sources=[folder / "rtl" / s.path for s in design.sources],
            includes=[folder / "rtl" / i for i in design.include_dirs],
            hdl_toplevel=design.top,
            build_dir=folder / "build",
            parameters=dict(design.parameters),
            build_args=[
                "--coverage", "--no-coverage-fsm", "--x-assign", "0", "--x-initial", "0", "-Wno-fatal", "--timing",
                "-CFLAGS", "-fcoroutines -std=c++20", "-MAKEFLAGS",
                "CXX=g++ LINK=g++ CFG_CXXFLAGS_PCH_I=-include",
            ],
        )  # fmt: skip
        runner.test(
            hdl_toplevel=design.top, test_module="plain_testbench", test_dir=folder, build_dir=folder / "build",
            test_args=["--coverage-per-instance"], extra_env={"PYTHONPATH": str(folder)}, seed=0,
        )  # fmt: skip
    finally:
        os.environ.clear()
        os.environ.update(toolchain)
    data = parse_coverage(
        (folder / "coverage.dat").read_bytes(), top=design.top, dut=design.top, root=str(folder / "rtl")
    )
    return {_key(data.points[i]) for i in indices(data.hits)}


def _key(point: object) -> tuple[object, ...]:
    return (point.metric, point.file, point.line, point.column, point.instance, point.what)  # type: ignore[attr-defined]


def _named(name: str) -> Design:
    return next(found for found in corpus_designs() if found.name == name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["counter", "alu", "packet_router"])
def test_hits_are_those_of_a_plain_run(simulator, tmp_path, name):
    subject = design(COUNTER) if name == "counter" else _named(name)
    if name == "counter":
        testbench = Testbench(LAST_EDGE)
    else:
        (generation,) = scripted("scripted/directed").propose([State(subject)], 1, 0)
        assert generation.testbench is not None
        testbench = generation.testbench
    (ours,) = simulator.run_many(subject, [testbench])
    points = simulator.points(ours.build_id)
    assert ours.status == "passed"
    assert {_key(points[i]) for i in indices(ours.hits)} == plain_hits(subject, testbench, tmp_path)
