"""All of wishbone_bridge: accesses of both kinds, the guarded window, faults, time-outs, and buses that give up."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge


@cocotb.test()
async def accesses_and_all_their_ends(dut):
    Clock(dut.wb_clk, 10, "ns").start()
    Clock(dut.dev_clk, 14, "ns").start()
    draw = random.Random(1)
    device = {"answers": True, "fault": 0, "data": 0}

    async def answer():
        while True:
            await RisingEdge(dut.dev_clk)
            dut.dev_done.value = device["answers"] and draw.randrange(3) == 0
            if dut.dev_request.value and dut.dev_done.value:
                device["data"] = int(dut.dev_rdata.value)
            dut.dev_fault.value, dut.dev_rdata.value = device["fault"], draw.randrange(256)

    async def access(address, value=None, cycles=100):
        dut.cyc.value = dut.stb.value = 1
        dut.adr.value, dut.we.value, dut.dat_w.value = address, value is not None, value or 0
        for _ in range(cycles):
            await RisingEdge(dut.wb_clk)
            if dut.ack.value or dut.err.value or dut.rty.value:
                if dut.ack.value and value is None and address != 0x3F:
                    assert dut.dat_r.value == device["data"]
                break
        dut.cyc.value = draw.randrange(2) if cycles == 100 else 0
        dut.stb.value = 0
        await ClockCycles(dut.wb_clk, 2)

    dut.wb_rst.value, dut.dev_rst_n.value = 1, 0
    for port in (dut.cyc, dut.stb, dut.we, dut.dev_done, dut.dev_fault, dut.dat_w, dut.adr):
        port.value = 0
    await ClockCycles(dut.wb_clk, 4)
    dut.wb_rst.value, dut.dev_rst_n.value = 0, 1
    cocotb.start_soon(answer())
    for _ in range(2):
        for address, value in ((0x3F, None), (0x25, 1), (0x3F, 0x6E), (0x3F, None), (0x25, 0x55), (0x2A, None)):
            await access(address, value)
        await access(0x3F, 0x33)
        for value in (0x55, 0xAA, 0xFF, 0):
            await access(value & 0x3E, value)
            await access(~value & 0x1E)
        device["fault"] = 1
        await access(0x0A)
        await access(0x05, 7)
        device["fault"] = 0
        device["answers"] = False
        await access(0x01)  # times out
        await access(0x02)  # still drained
        device["answers"] = True
        await ClockCycles(dut.wb_clk, 40)
        for cycles in (*range(1, 14), *range(1, 14)):  # the bus gives up at every point of the access
            await access(0x03, draw.choice((None, 9)), cycles)
            await ClockCycles(dut.wb_clk, 40)
        for _ in range(20):
            await access(draw.randrange(64), draw.choice((None, draw.randrange(256))))
    dut.wb_rst.value, dut.dev_rst_n.value = 1, 0
    await ClockCycles(dut.wb_clk, 4)
