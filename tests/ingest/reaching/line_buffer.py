"""All of line_buffer: whole frames with each filter, stalled results, short and long lines, and a bright row."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge

COLUMNS, ROWS = 6, 5


@cocotb.test()
async def whole_and_broken_frames(dut):
    Clock(dut.clk, 10, "ns").start()
    draw = random.Random(1)
    dut.rst_n.value = dut.in_valid.value = dut.out_ready.value = dut.filter.value = 0
    dut.in_first.value = dut.in_last.value = 0
    await ClockCycles(dut.clk, 2)
    dut.rst_n.value = 1

    async def pixel(value, first, last):
        dut.in_valid.value, dut.in_pixel.value = 1, value
        dut.in_first.value, dut.in_last.value = first, last
        while True:
            dut.out_ready.value = draw.randrange(4) > 0
            await RisingEdge(dut.clk)
            if dut.in_ready.value:
                break
        dut.in_valid.value = draw.randrange(2)
        dut.in_first.value = dut.in_last.value = 0

    async def frame(values, length=ROWS * COLUMNS, spoil=None):
        for i in range(length):
            last = i % COLUMNS == COLUMNS - 1
            await pixel(values(i), i == 0, last != (i == spoil))

    results = []

    async def watch():
        while True:
            await RisingEdge(dut.clk)
            if dut.out_valid.value and dut.out_ready.value:
                results.append(int(dut.out_pixel.value))

    cocotb.start_soon(watch())
    pixels = [draw.randrange(16) for _ in range(ROWS * COLUMNS)]
    await frame(lambda i: pixels[i])
    dut.out_ready.value = 1
    await ClockCycles(dut.clk, 3)
    assert results == [pixels[r * COLUMNS + c] for r in range(ROWS - 1) for c in range(COLUMNS - 1)]
    for kind in range(4):
        dut.filter.value = kind
        await frame(lambda i: draw.randrange(16))
        await frame(lambda i: draw.choice((0, 15)))
        dut.in_valid.value = 1
        await ClockCycles(dut.clk, 4)  # outside a frame
    dut.filter.value = 0
    for spoil in (8, 11, 0, 5):
        await frame(lambda i: draw.randrange(16), 20, spoil)
    await frame(lambda i: 15)
    await frame(lambda i: draw.randrange(16))
    dut.rst_n.value = 0
    await ClockCycles(dut.clk, 2)
