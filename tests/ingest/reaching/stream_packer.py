"""All of stream_packer: words of any length, null bytes, empty and overlong packets, late words, a slow receiver."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge


@cocotb.test()
async def packets_of_all_kinds(dut):
    Clock(dut.aclk, 10, "ns").start()
    draw = random.Random(1)
    dut.aresetn.value = dut.s_tvalid.value = dut.m_tready.value = 0
    await ClockCycles(dut.aclk, 2)
    dut.aresetn.value = 1
    dut.m_tready.value = 1

    async def byte(data, keep=1, last=0, user=0):
        dut.s_tvalid.value, dut.s_tdata.value, dut.s_tkeep.value = 1, data, keep
        dut.s_tlast.value, dut.s_tuser.value = last, user
        await RisingEdge(dut.aclk)
        while not dut.s_tready.value:
            await RisingEdge(dut.aclk)
        dut.s_tvalid.value = 0

    async def packet(length, keep_last=1, user=0, end=0x31, start=0):
        for i in range(length):
            last = i == length - 1
            await byte(end if last else draw.randrange(256), keep_last if last else 1, last, user)

    taken = []

    async def watch():
        while True:
            await RisingEdge(dut.aclk)
            if dut.m_tvalid.value and dut.m_tready.value:
                taken.append((int(dut.m_tdata.value), int(dut.m_tkeep.value), int(dut.m_tlast.value)))

    cocotb.start_soon(watch())
    for i, value in enumerate((0x11, 0x22, 0x33, 0x44, 0x55, 0x66)):
        await byte(value, last=i == 5)
    await ClockCycles(dut.aclk, 2)
    assert taken == [(0x44332211, 15, 0), (0x6655, 3, 1)]
    for _ in range(2):
        for length in (1, 2, 3, 4, 5, 8, 9):
            await packet(length, user=length == 5)
            await packet(length, keep_last=0, user=length == 3)
        await packet(20)
        await packet(24, end=0x11)
        await packet(26, end=0xC1)
        for _ in range(3):
            await byte(0x66, user=1)
        await ClockCycles(dut.aclk, 30)  # late
        await packet(2)
        await byte(0x77)
        await byte(0x78, keep=0)
        for _ in range(2):
            await byte(0x99)
        dut.m_tready.value = 0
        await ClockCycles(dut.aclk, 40)  # complete, not taken
        dut.m_tready.value = 1
        await packet(1)
        await ClockCycles(dut.aclk, 2)
        dut.m_tready.value = 0
        await packet(2)  # a word waits: the next byte is not taken
        dut.s_tvalid.value = 1
        await ClockCycles(dut.aclk, 3)
        dut.s_tvalid.value = 0
        dut.m_tready.value = 1
        await packet(26, user=1, end=0xC1)
    for _ in range(1500):
        dut.m_tready.value = draw.randrange(3) > 0
        dut.s_tvalid.value, dut.s_tkeep.value = draw.randrange(8) > 0, draw.randrange(8) > 0
        dut.s_tdata.value = draw.randrange(256)
        dut.s_tlast.value, dut.s_tuser.value = draw.randrange(12) == 0, draw.randrange(6) == 0
        await RisingEdge(dut.aclk)
    dut.aresetn.value = 0
    await ClockCycles(dut.aclk, 2)
