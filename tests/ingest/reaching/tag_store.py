"""All of tag_store: fills, evictions by age, locked ways up to all of them, duplicates, misses, and flushes."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles

NOTHING, LOOKUP, FILL, INVALIDATE, LOCK, UNLOCK, FLUSH = range(7)


@cocotb.test()
async def every_operation_in_both_sets(dut):
    Clock(dut.clk, 10, "ns").start()
    draw = random.Random(1)
    dut.rst_n.value = dut.op.value = dut.set.value = dut.tag.value = 0
    await ClockCycles(dut.clk, 2)
    dut.rst_n.value = 1

    async def do(op, set_number, *tags):
        for tag in tags:
            dut.op.value, dut.set.value, dut.tag.value = op, set_number, tag
            await ClockCycles(dut.clk, 1)
        dut.op.value = NOTHING

    for number in (0, 1):
        tags = (0x15, 0x2A, 0x3F, 0x00)
        await do(FILL, number, *tags)
        await do(FILL, number, 0x2A)  # duplicate
        await do(LOOKUP, number, 0x15, 0x3F, 0x00)
        await do(FILL, number, 0x33)
        await ClockCycles(dut.clk, 1)
        assert number == 1 or dut.victim.value == 0x2A  # the one used longest ago
        await do(LOOKUP, number, *tags, 0x07)
        await do(FILL, number, *range(8, 13))  # evictions
        await do(LOCK, number, 9, 0x07)
        await do(FLUSH, number, 1, 0x12, 0x2D)
        await do(LOOKUP, number, 9, 9, 9, 10)
        await do(FILL, number, 20, 21, 22)
        await do(LOCK, number, 20, 21, 22)
        await do(FILL, number, 50)  # all are locked
        await do(FLUSH, number, 0x2D)
        await ClockCycles(dut.clk, 3)
        await do(UNLOCK, number, 0)
        await do(INVALIDATE, number, 20, 55)
        for op in (FILL, LOOKUP, 7):
            await do(op, number, *(draw.randrange(64) for _ in range(12)))
        for _ in range(150):
            op = draw.choice((LOOKUP, FILL, FILL, LOCK, INVALIDATE, UNLOCK))
            await do(op, draw.randrange(2), draw.randrange(10) * 7 % 64)
    dut.rst_n.value = 0
    await ClockCycles(dut.clk, 2)
