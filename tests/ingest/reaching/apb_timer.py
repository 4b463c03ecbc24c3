"""All of apb_timer: the lock, both modes, a wrapped count, captures, and every refused access."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge


@cocotb.test()
async def every_register_and_event(dut):
    Clock(dut.pclk, 10, "ns").start()

    async def access(address, value=None):
        dut.psel.value, dut.penable.value = 1, 0
        dut.paddr.value, dut.pwrite.value, dut.pwdata.value = address, value is not None, value or 0
        await RisingEdge(dut.pclk)
        dut.penable.value = 1
        await RisingEdge(dut.pclk)
        while not dut.pready.value:
            await RisingEdge(dut.pclk)
        dut.psel.value = dut.penable.value = 0
        await RisingEdge(dut.pclk)

    async def write(*pairs):
        for address, value in pairs:
            await access(address, value)

    async def pulse():
        for level in (1, 0):
            dut.capture.value = level
            await ClockCycles(dut.pclk, 2)

    dut.presetn.value = dut.psel.value = dut.penable.value = dut.capture.value = 0
    await ClockCycles(dut.pclk, 2)
    dut.presetn.value = 1
    await write((6, 1), (6, 0x5A), (6, 0x77), (1, 3), (2, 3), (6, 0x5A), (6, 0xA5), (1, 7), (2, 0xFF), (2, 20), (5, 1))
    await write((7, 0), (3, 0x55), (3, 0xAA), (3, 18), (0, 7))
    for address in range(8):
        await access(address)
    await ClockCycles(dut.pclk, 40)  # one-shot: stops at compare
    assert (dut.running.value, dut.irq.value) == (0, 1)
    await write((3, 250), (1, 5), (1, 0), (2, 252), (0, 5), (3, 1), (4, 1))
    for _ in range(3):
        await pulse()
        await access(5)
        await access(4)
    await write((2, 4), (4, 2), (4, 4), (0, 1))
    await ClockCycles(dut.pclk, 300)  # past compare, through FF
    await pulse()
    await write((4, 7), (0, 2), (3, 0x5A), (0, 1))
    for value in (0xA5, 0x5A, 0xFF, 0):
        await write((0, 0), (3, value), (0, 1))
        await pulse()
        await access(3)
        await access(5)
        await write((4, 4), (4, 0), (6, value))
    await write((6, 0), (6, 0x5A), (6, 0xA5), (1, 6), (2, 0xF0), (2, 0x0F), (1, 2), (0, 4))
    dut.presetn.value = 0
    await ClockCycles(dut.pclk, 2)
