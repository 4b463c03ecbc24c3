"""All of dma_engine: chains, bursts cut at boundaries, bad descriptors, and each way to fail."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge


@cocotb.test()
async def transfers_that_end_well_and_others(dut):
    Clock(dut.clk, 10, "ns").start()
    draw = random.Random(1)
    dut.rst_n.value = 0
    for port in (dut.desc_valid, dut.stop, dut.rd_valid, dut.rd_error, dut.wr_ready, dut.wr_error, dut.stop_key):
        port.value = 0
    await ClockCycles(dut.clk, 2)
    dut.rst_n.value = 1

    read, wrote = [], []

    async def watch():
        while True:
            await RisingEdge(dut.clk)
            if dut.rd_request.value and dut.rd_valid.value and not dut.rd_error.value:
                read.append((int(dut.rd_address.value), int(dut.rd_data.value)))
            if dut.wr_valid.value and dut.wr_ready.value:
                wrote.append((int(dut.wr_address.value), int(dut.wr_data.value)))

    async def transfer(source, target, length, chained=0, read_errors=0, write_error=0, silent=False, stop_at=None):
        """Give a descriptor and be the memory until the engine has had its way."""
        dut.source.value, dut.target.value, dut.length.value, dut.chained.value = source, target, length, chained
        dut.desc_valid.value = 1
        await RisingEdge(dut.clk)
        dut.desc_valid.value = 0
        for cycle in range(70):
            dut.rd_valid.value = not silent and draw.randrange(3) > 0
            dut.rd_error.value = draw.randrange(10) < read_errors
            dut.rd_data.value = draw.randrange(256)
            dut.wr_ready.value = draw.randrange(2)
            dut.wr_error.value = write_error
            dut.stop.value, dut.stop_key.value = cycle == stop_at, 0xDA if cycle in (stop_at, 1) else 0x25
            await RisingEdge(dut.clk)
        dut.stop.value = 1
        dut.stop_key.value = 0
        await ClockCycles(dut.clk, 2)
        dut.stop.value = 0
        await ClockCycles(dut.clk, 3)
        dut.stop_key.value = 0xFF

    cocotb.start_soon(watch())
    await transfer(0x11, 0x80, 10)
    assert [address for address, _ in read] == [*range(0x11, 0x1B)]
    assert wrote == [(0x80 + i, data) for i, (_, data) in enumerate(read)]
    await transfer(0x10, 0x80, 0)
    await transfer(0x10, 0x12, 5)
    await transfer(0x00, 0xFF, 15, chained=1)
    await transfer(0xFE, 0x40, 7, chained=1, read_errors=1)
    for source in (0x00, 0x20):
        await transfer(source, 0x60, 14)
    await transfer(0xAA, 0x55, 4)
    await transfer(0x55, 0xAA, 9, read_errors=10)
    await transfer(0x20, 0x60, 6, write_error=1)
    await transfer(0x30, 0x90, 3, silent=True)
    for stop_at in (2, 9):
        await transfer(0x40, 0xA0, 8, chained=1, stop_at=stop_at)
    dut.desc_valid.value = 1
    for _ in range(120):
        dut.source.value, dut.target.value = draw.randrange(256), draw.randrange(256)
        dut.length.value, dut.chained.value = draw.randrange(16), draw.randrange(2)
        dut.rd_valid.value, dut.rd_error.value, dut.wr_ready.value, dut.wr_error.value = 1, 0, 1, 0
        await RisingEdge(dut.clk)
    dut.rst_n.value = 0
    await ClockCycles(dut.clk, 2)
