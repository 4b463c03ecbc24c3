"""All of pipelined_multiplier: modes, both kinds of saturation, order of tags, stalls, flushes, flags cleared."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge

PLAIN, ROUND, SUM, CLEAR = range(4)


@cocotb.test()
async def products_sums_and_flags(dut):
    Clock(dut.clk, 10, "ns").start()
    draw = random.Random(1)
    dut.rst.value = 1
    dut.in_valid.value = dut.flush.value = dut.is_signed.value = dut.tag.value = 0
    dut.out_ready.value = 1
    await ClockCycles(dut.clk, 2)
    dut.rst.value = 0
    tag = 0

    async def give(a, b, mode=PLAIN, signed=0, times=1, skip=1):
        nonlocal tag
        for _ in range(times):
            dut.a.value, dut.b.value, dut.mode.value, dut.is_signed.value = a, b, mode, signed
            dut.tag.value, dut.in_valid.value = tag, 1
            tag = (tag + skip) % 8
            await RisingEdge(dut.clk)
        dut.in_valid.value = 0

    for _ in range(2):
        for a, b in ((0xB3, 0xB3), (0xFF, 0xFF), (0x80, 0x80), (0x7F, 0x80), (0x55, 0xAA), (1, 1), (0, 0)):
            for signed in (0, 1):
                for mode in (PLAIN, ROUND):
                    await give(a, b, mode, signed)
        await give(0x9C, 0x07, PLAIN, signed=1)
        await ClockCycles(dut.clk, 3)
        assert dut.product.value.to_signed() == -100 * 7
        await give(0x7F, 0xFF, ROUND)  # 7E81 rounds up
        await give(0xFF, 0x80, ROUND)  # 7F80 has no room
        await give(0x7F, 0x7F, SUM, 1, times=4)  # beyond 7FFF
        await give(0x80, 0x7F, SUM, 1, times=8)  # and 8000
        await give(3, 5, CLEAR)
        await give(7, 9, PLAIN, times=4, skip=3)
        await ClockCycles(dut.clk, 1)
        await give(3, 5, times=2)
        dut.flush.value = 1
        await ClockCycles(dut.clk, 1)
        dut.flush.value = 0
        await give(0x80, 0x80, CLEAR)
        await ClockCycles(dut.clk, 4)
    for _ in range(300):
        dut.out_ready.value, dut.flush.value = draw.randrange(2), draw.randrange(12) == 0
        dut.in_valid.value, dut.mode.value = draw.randrange(4) > 0, draw.randrange(4)
        dut.is_signed.value = draw.randrange(2)
        dut.a.value, dut.b.value, dut.tag.value = draw.randrange(256), draw.randrange(256), draw.randrange(8)
        await RisingEdge(dut.clk)
    dut.rst.value = 1
    await ClockCycles(dut.clk, 2)
