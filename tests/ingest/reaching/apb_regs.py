"""The counter of apb_regs runs to the highest threshold that it takes."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge


@cocotb.test()
async def count_to_two_hundred(dut):
    Clock(dut.pclk, 10, "ns").start()
    dut.presetn.value = dut.psel.value = dut.penable.value = 0
    await ClockCycles(dut.pclk, 2)
    dut.presetn.value = 1
    for address, value in ((0x14, 0xB16B), (0x08, 200), (0x04, 0x0003)):
        dut.psel.value, dut.pwrite.value, dut.paddr.value, dut.pwdata.value = 1, 1, address, value
        await RisingEdge(dut.pclk)
        dut.penable.value = 1
        await ClockCycles(dut.pclk, 2)
        dut.psel.value = dut.penable.value = 0
        await RisingEdge(dut.pclk)
    await ClockCycles(dut.pclk, 204)
    assert dut.irq.value == 1
