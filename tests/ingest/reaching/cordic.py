"""All of cordic: rotations into every quadrant, exact ends, vectors and the zero vector, jobs dropped, overflow."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge


@cocotb.test()
async def both_modes_in_all_quadrants(dut):
    Clock(dut.clk, 10, "ns").start()
    draw = random.Random(1)
    dut.rst_n.value = dut.start.value = dut.cancel.value = 0
    await ClockCycles(dut.clk, 2)
    dut.rst_n.value = 1

    async def job(vectoring, x, y, angle, cancel=False):
        dut.vectoring.value, dut.x_in.value, dut.y_in.value, dut.angle_in.value = vectoring, x, y, angle
        dut.start.value = 1
        await RisingEdge(dut.clk)
        dut.start.value = 0
        for cycle in range(12):
            dut.cancel.value = cancel and cycle == 4
            await RisingEdge(dut.clk)

    for x, y in ((127, 127), (-128, 127), (-128, -128), (127, -128), (100, 0), (-100, 0)):
        for angle in (-45, 45, -128, 127, 0, 64):
            await job(0, x, y, angle)
        await job(1, x, y, 0)
    await job(0, 100, 0, 64)  # a quarter turn
    assert abs(dut.x_out.value.to_signed()) < 6 and abs(dut.y_out.value.to_signed() - 165) < 6
    await job(1, 60, 80, 0)
    assert abs(dut.x_out.value.to_signed() - 165) < 6 and abs(dut.angle_out.value.to_signed() - 38) < 3
    await job(0, 0, 0, 0)  # exact, and x = 0
    await job(1, 0, 0, 0)
    await job(1, 10, 10, 0)
    await job(1, 10, 20, 5, cancel=True)
    for _ in range(150):
        await job(draw.randrange(2), *(draw.randrange(-128, 128) for _ in range(3)), draw.randrange(8) == 0)
    dut.rst_n.value = 0
    await ClockCycles(dut.clk, 2)
