"""All of ps2_receiver: keys with shift, caps lock, extension and release, and each kind of broken frame."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles


@cocotb.test()
async def typing_and_broken_frames(dut):
    Clock(dut.clk, 10, "ns").start()
    draw = random.Random(1)

    async def bits(levels):
        for level in levels:
            dut.ps2_data.value = level
            dut.ps2_clk.value = 0
            await ClockCycles(dut.clk, 6)
            dut.ps2_clk.value = 1
            await ClockCycles(dut.clk, 6)

    async def send(*codes, start=0, flip=0, stop=1, take=True):
        for code in codes:
            data = [code >> i & 1 for i in range(8)]
            await bits([start, *data, (1 ^ sum(data) & 1) ^ flip, stop])
            await ClockCycles(dut.clk, 2)
            if take:
                dut.take.value = 1
                await ClockCycles(dut.clk, 2)
                dut.take.value = 0

    dut.rst.value = dut.ps2_clk.value = dut.ps2_data.value = 1
    dut.take.value = 0
    await ClockCycles(dut.clk, 6)
    dut.rst.value = 0
    await bits([1])  # no start bit
    await send(0xE0, 0xF0, 0x75)
    assert (dut.key_code.value, dut.extended.value, dut.released.value) == (0x75, 1, 1)
    await send(0x1C, 0xE0, 0x75, 0xF0, 0x1C, 0xFF, 0x00)
    await send(0x58, 0xF0, 0x58)
    assert dut.caps_lock.value == 1
    await send(0x12, 0x58, 0xF0, 0x58, 0xF0, 0x12)  # not with shift
    await send(0xE0, 0x12, 0x12, 0xAA, 0xF0, 0x58)
    await send(0xF0, 0x58)
    await send(0x15, 0x2A, take=False)  # overrun
    dut.take.value = 1
    await ClockCycles(dut.clk, 3)
    await send(0x2B)
    dut.take.value = 0
    await send(0x33, flip=1)
    await send(0x33, stop=0)
    await bits([0, 1, 1])
    await ClockCycles(dut.clk, 70)  # times out
    for length in (1, 2):  # too short to count
        dut.ps2_clk.value = 0
        await ClockCycles(dut.clk, length)
        dut.ps2_clk.value = 1
        await ClockCycles(dut.clk, 6)
    await send(*(draw.randrange(256) for _ in range(6)))
    dut.rst.value = 1
    await ClockCycles(dut.clk, 6)
