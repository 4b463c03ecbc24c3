"""Processors as people install them: they build, simulate and replay."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.load import load_design
from sim.simulation import Testbench
from sim.simulator import Simulator

pytestmark = pytest.mark.slow

TESTBENCH = """\
import random
import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge

@cocotb.test()
async def random_words(dut):
    cocotb.start_soon(Clock(dut.{clock}, 10, unit="ns").start())
    dut.{reset}.value = {active}
    await ClockCycles(dut.{clock}, 4)
    dut.{reset}.value = 1 - {active}
    for _ in range(400):
        dut.{data}.value = random.getrandbits(32)
        dut.{valid}.value = random.randrange(2)
        await RisingEdge(dut.{clock})
"""


def package_folder(name: str) -> Path:
    module = pytest.importorskip(name)
    return Path(module.__file__).parent / "verilog"


def test_picorv32(home):
    picorv32 = load_design(package_folder("pythondata_cpu_picorv32") / "picorv32.v", top="picorv32")
    text = TESTBENCH.format(clock="clk", reset="resetn", active=0, data="mem_rdata", valid="mem_ready")
    with Simulator(home, workers=1) as s:
        [r] = s.run_many(picorv32, [Testbench(text)])
        build = s.build(picorv32)
    assert r.status == "passed", r.log
    assert r.coverage.overall > 0.2 and len(build.points) > 5000 and build.deterministic
    assert set(r.points) == {"line", "branch", "expression", "toggle"}


def test_serv(home):
    serv = load_design(package_folder("pythondata_cpu_serv") / "rtl", top="serv_rf_top")
    text = TESTBENCH.format(clock="clk", reset="i_rst", active=1, data="i_ibus_rdt", valid="i_ibus_ack")
    with Simulator(home, workers=1) as s:
        [r] = s.run_many(serv, [Testbench(text)])
    assert r.status == "passed", r.log
    assert r.coverage.overall > 0.3
    assert {"serv_rf_top", "serv_rf_top.cpu", "serv_rf_top.cpu.alu"} <= {i["path"] for i in r.instances}
