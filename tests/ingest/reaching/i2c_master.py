"""All of i2c_master: transfers with a target that answers, stretches, stops answering, and a second master."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge

START, WRITE, READ, STOP = range(4)


@cocotb.test()
async def transfers_and_all_that_goes_wrong(dut):
    Clock(dut.clk, 10, "ns").start()
    draw = random.Random(1)
    bus = {"scl": 1, "sda": 1}

    async def lines():
        while True:
            await RisingEdge(dut.clk)
            dut.scl_in.value = int(bus["scl"] and not dut.scl_low.value)
            dut.sda_in.value = int(bus["sda"] and not dut.sda_low.value)

    async def give(command, data=0, last=0, wait=True):
        while not dut.ready.value:
            await RisingEdge(dut.clk)
        dut.valid.value, dut.command.value, dut.data.value, dut.last.value = 1, command, data, last
        await RisingEdge(dut.clk)
        dut.valid.value = 0
        await ClockCycles(dut.clk, 2)
        while wait and not dut.ready.value:
            await RisingEdge(dut.clk)

    dut.rst_n.value = dut.valid.value = 0
    dut.scl_in.value = dut.sda_in.value = 1
    await ClockCycles(dut.clk, 2)
    dut.rst_n.value = 1
    cocotb.start_soon(lines())
    await give(STOP)  # refused
    await give(WRITE, 0x55)
    await give(START)
    for data in (0xA5, 0x5A, 0xFF, 0x00):
        await give(WRITE, data)  # nobody acknowledges
    for _ in range(6):
        await give(READ, draw.randrange(256), last=draw.randrange(2), wait=False)
        while not dut.ready.value:
            bus["sda"] = draw.randrange(2)
            bus["scl"] = draw.randrange(3) > 0
            await ClockCycles(dut.clk, 3)
        bus["sda"] = bus["scl"] = 1
    await give(START)
    await give(STOP)
    await give(START)
    bus["sda"] = 0
    await give(WRITE, 0x00)  # zeros pass, and the target acknowledges
    await give(WRITE, 0x80, wait=False)  # a one does not
    await ClockCycles(dut.clk, 30)
    bus["sda"] = 1
    await ClockCycles(dut.clk, 5)
    bus["scl"] = 0
    await ClockCycles(dut.clk, 3)
    bus["scl"] = 1
    await give(START)
    bus["scl"] = 0
    await give(WRITE, 0xC3, wait=False)  # stretched for ever
    await ClockCycles(dut.clk, 60)
    bus["scl"] = 1
    await give(START)
    bus["sda"] = 0
    await give(STOP, wait=False)  # the line stays low
    await ClockCycles(dut.clk, 30)
    bus["sda"] = 1
    await give(START)
    await give(READ, last=1)
    assert dut.received.value == 0xFF
    await give(STOP)
    dut.rst_n.value = 0
    await ClockCycles(dut.clk, 2)
