"""The same points are hit as when cocotb's own runner runs the same testbench on a plain Verilator build."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm4cov_assets.ingest.registry import corpus_designs
from llm4cov_assets.policy.base import State
from llm4cov_assets.policy.scripted import scripted
from sim.coverage import indices, parse_coverage
from sim.design import Design
from sim.simulation import Testbench
from tests.sim import plain
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
    plain.build(design, folder)
    data = parse_coverage(
        plain.run(design, testbench, folder), top=design.top, dut=design.top, root=str(folder / "rtl")
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
