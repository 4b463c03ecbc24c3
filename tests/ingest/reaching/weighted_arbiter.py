"""All of weighted_arbiter: weights, reloads, a lock held too long, a starved requester, and flags set and cleared."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles


@cocotb.test()
async def weights_locks_and_alarms(dut):
    Clock(dut.clk, 10, "ns").start()
    draw = random.Random(1)
    dut.rst.value = 1
    dut.request.value = dut.lock.value = dut.set_weight.value = 0
    await ClockCycles(dut.clk, 2)
    dut.rst.value = 0

    async def weigh(of, weight, key=0xC5):
        dut.set_weight.value, dut.weight_of.value, dut.weight.value, dut.key.value = 1, of, weight, key
        await ClockCycles(dut.clk, 1)
        dut.set_weight.value = 0

    grants = [0] * 4
    for of, weight in enumerate((4, 1, 2, 3)):
        await weigh(of, weight)
    dut.request.value = 15
    for _ in range(20):
        await ClockCycles(dut.clk, 1)
    for _ in range(33):  # three rounds of ten grants and a reload
        await ClockCycles(dut.clk, 1)
        for of in range(4):
            grants[of] += int(dut.grant.value) >> of & 1
    assert grants == [12, 3, 6, 9]
    dut.request.value = 0
    for weights in ((7, 1, 4, 2), (1, 7, 3, 5), (6, 2, 7, 7), (7, 7, 5, 6)):
        for of, weight in enumerate(weights):
            await weigh(of, weight)
        for _ in range(60):
            dut.request.value = draw.choice((15, 15, draw.randrange(16)))
            await ClockCycles(dut.clk, 1)
        dut.lock.value = dut.request.value = 15
        await ClockCycles(dut.clk, 45)  # six cycles each: the others starve
        await weigh(0, 1, key=0x0F)  # somebody requests
        await weigh(0, 0)
        await weigh(0, 3, key=0x11)
        dut.request.value = dut.lock.value = 0
        await ClockCycles(dut.clk, 3)
        await weigh(0, 1, key=0x0F)
        for _ in range(40):
            dut.request.value, dut.lock.value = draw.randrange(16), draw.randrange(16)
            await weigh(draw.randrange(4), draw.randrange(8), draw.choice((0xC5, 0x0F, draw.randrange(256))))
    dut.rst.value = 1
    await ClockCycles(dut.clk, 2)
