"""All of manchester_codec: frames through the loop-back, to this address and others, jammed, torn, late and short."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge

HALF = 4


@cocotb.test()
async def frames_and_violations(dut):
    Clock(dut.clk, 10, "ns").start()
    draw = random.Random(1)
    dut.rst_n.value = dut.valid.value = dut.jam.value = dut.line_in.value = dut.last.value = 0
    dut.loopback.value = 1
    await ClockCycles(dut.clk, 2)
    dut.rst_n.value = 1

    async def send(*values, underrun=False):
        for i, value in enumerate((0, *values)):  # the first valid starts the frame
            dut.valid.value, dut.data.value = 1, value
            dut.last.value = i == len(values) and not underrun
            await RisingEdge(dut.clk)
            while not dut.ready.value:
                await RisingEdge(dut.clk)
        dut.valid.value = 0
        while dut.active.value:
            await RisingEdge(dut.clk)
        await ClockCycles(dut.clk, 20)

    async def drive(halves, length=HALF):
        """Levels of the line, each for half a bit."""
        for level in halves:
            dut.line_in.value = int(level)
            await ClockCycles(dut.clk, length)

    received = []

    async def listen():
        while True:
            await RisingEdge(dut.clk)
            if dut.got.value:
                received.append(int(dut.received.value))

    def code(bits):
        return "".join("01" if bit == "1" else "10" for bit in bits)

    cocotb.start_soon(listen())
    for address in (0x3C, 0xFF, 0x55, 0xAA):
        values = [address, 0x00, 0xFF, draw.randrange(256)]
        await send(*values)
        assert received == values
        received.clear()
    await send(0x3C, 0x99, underrun=True)
    await send(0x3C)
    dut.loopback.value = 0
    start = code("1010101011010101")
    train = code("1010101")
    for tail in (
        code("00111100101"),  # torn within a byte
        code("00111100"),  # ends with one
        code("1010") + "1100",  # a long time where half a bit is due
        "",
    ):
        await drive("0" + start + tail)
        await drive("0000")
    await drive("0" + train + code("0000"))  # zeros in place of the marker
    await drive("0000")
    await drive("0" + start + code("1"))
    await drive("01", 1)  # glitch
    await drive("0000")
    await drive("0" + code("11011010"))  # trained late
    await drive("0000")
    await drive("0" + code("10") + "011", 4)
    await drive("00000")
    for start_half in (0, 1):
        for _ in range(12):
            await drive(draw.choice(("0", "1", "01", "10", "0011")))
        dut.jam.value = start_half
        await send(0x12)
    dut.loopback.value = 1
    await send(0x3C, 0x12)
    dut.jam.value = 0
    dut.rst_n.value = 0
    await ClockCycles(dut.clk, 2)
