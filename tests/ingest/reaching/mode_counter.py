"""A one-shot of mode_counter over a short range."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge


@cocotb.test()
async def one_shot_to_four(dut):
    Clock(dut.clk, 10, "ns").start()
    dut.rst.value = 1
    await RisingEdge(dut.clk)
    dut.rst.value = 0
    dut.enable.value = 1
    for mode, value, cycles in ((5, 4, 1), (0, 0x51, 1), (1, 0, 14), (7, 0x69, 2)):
        dut.mode.value, dut.value.value = mode, value
        for _ in range(cycles):
            await RisingEdge(dut.clk)
