"""Both queues of packet_router are full: it says that it is congested, until somebody takes."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles

OPEN, BROADCAST = 0b01_00_1001, 0b10_00_0101


@cocotb.test()
async def congested(dut):
    Clock(dut.clk, 10, "ns").start()
    dut.rst.value, dut.valid.value, dut.take.value = 1, 0, 0
    await ClockCycles(dut.clk, 2)
    dut.rst.value, dut.valid.value = 0, 1
    for flit in (OPEN, OPEN | 1 << 4, *[BROADCAST] * 3):
        dut.flit.value = flit
        await ClockCycles(dut.clk, 1)
    dut.valid.value = 0
    await ClockCycles(dut.clk, 2)
    assert dut.congested.value == 1
    dut.take.value = 3
    await ClockCycles(dut.clk, 3)
