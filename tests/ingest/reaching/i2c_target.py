"""Writes and reads of i2c_target with every pointer, as a bus master does them."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles


@cocotb.test()
async def write_and_read_both_registers(dut):
    Clock(dut.clk, 10, "ns").start()

    async def lines(scl, sda):
        dut.scl.value, dut.sda.value = scl, sda
        await ClockCycles(dut.clk, 2)

    async def start():
        await lines(1, 1)
        await lines(1, 0)
        await lines(0, 0)

    async def send(*values):
        for value in values:
            for bit in f"{value:08b}1":  # the ninth clock is the acknowledgement
                await lines(0, int(bit))
                await lines(1, int(bit))
                await lines(0, int(bit))

    dut.rst_n.value = 0
    await lines(1, 1)
    dut.rst_n.value = 1
    for pointer, value in ((1, 0xF5), (1, 0x0A), (0, 0x77), (9, 0)):
        await start()
        await send(0x62, pointer, value)
    await start()
    await send(0x62, 1)
    await start()
    await send(0x63, 0xFF)
    await lines(0, 0)
    await lines(1, 0)
    await lines(1, 1)
    dut.rst_n.value = 0
    await lines(1, 1)
