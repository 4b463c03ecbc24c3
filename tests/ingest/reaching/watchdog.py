"""Four barks of watchdog, each answered in time: one more than its counter holds."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles


@cocotb.test()
async def four_barks(dut):
    Clock(dut.clk, 10, "ns").start()
    dut.rst.value, dut.kick.value = 1, 0
    await ClockCycles(dut.clk, 2)
    dut.rst.value = 0

    async def kick(*keys):
        for key in keys:
            dut.kick.value, dut.key.value = 1, key
            await ClockCycles(dut.clk, 1)
        dut.kick.value = 0

    await kick(0xC0)
    for _ in range(4):
        await ClockCycles(dut.clk, 40)
        await kick(0x5C, 0xA3)
    assert dut.barks.value == 3
    await kick(0xA3, 0xE7)
    await ClockCycles(dut.clk, 2)
