"""All of uart_fifo: both directions in every format, flow control of both kinds, an overrun, and broken frames."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles

PARITY, ODD, TWO_STOPS, SOFT = 8, 4, 2, 1


@cocotb.test()
async def both_directions(dut):
    Clock(dut.clk, 10, "ns").start()
    draw = random.Random(1)
    dut.rst_n.value = 0
    for port in (dut.format, dut.clear, dut.write, dut.read, dut.cts_n, dut.write_data):
        port.value = 0
    dut.rx.value = 1
    await ClockCycles(dut.clk, 2)
    dut.rst_n.value = 1

    async def pulse(port):
        port.value = 1
        await ClockCycles(dut.clk, 1)
        port.value = 0
        await ClockCycles(dut.clk, 1)

    async def receive(*values, form=0, spoil_parity=0, stop=1, read=True):
        for value in values:
            data = [value >> i & 1 for i in range(8)]
            parity = [(sum(data) + bool(form & ODD)) % 2 ^ spoil_parity] if form & PARITY else []
            for bit in (0, *data, *parity, stop):
                dut.rx.value = bit
                await ClockCycles(dut.clk, 4)
            dut.rx.value = 1
            await ClockCycles(dut.clk, 6)
            if read:
                if dut.rx_ready.value and stop and not spoil_parity:
                    assert dut.read_data.value == value
                await pulse(dut.read)

    for form in (0, PARITY, PARITY | ODD | TWO_STOPS, TWO_STOPS, SOFT, SOFT | PARITY | ODD):
        dut.format.value = form
        await receive(0x55, 0xAA, 0x11, 0x13, 0x11, 0xFF, 0x00, form=form)
        await receive(0x5A, form=form, spoil_parity=1)
        await receive(0xA5, form=form, stop=0)
        for value in (0x55, 0xAA, 0xFF, 0x00, 0x3C, 0xC3):
            dut.write.value, dut.write_data.value = 1, value
            await ClockCycles(dut.clk, 1)
            dut.write.value = 0
            await ClockCycles(dut.clk, 2)
        dut.cts_n.value = 1
        await ClockCycles(dut.clk, 60)
        dut.cts_n.value = 0
        await ClockCycles(dut.clk, 200)
        await receive(0x69, form=form, read=False)
        await ClockCycles(dut.clk, 64)  # nobody reads it
        await receive(*(draw.choice((0x96, 0x69, 0xFF, 0x00)) for _ in range(6)), form=form, read=False)  # overrun
        for _ in range(6):
            await pulse(dut.read)
        await pulse(dut.clear)
    dut.cts_n.value, dut.format.value = 1, 0
    for value in (0xFF, 0x00):  # into every place of both queues
        for _ in range(4):
            dut.write_data.value = value
            await pulse(dut.write)
        await receive(*[value] * 4, read=False)
        await pulse(dut.clear)
    dut.cts_n.value, dut.format.value = 0, SOFT
    await receive(0x13)  # paused until software flow control is off
    dut.format.value = 0
    dut.rx.value = 0
    await ClockCycles(dut.clk, 1)  # too short for a start bit
    dut.rx.value = 1
    await ClockCycles(dut.clk, 6)
    for _ in range(400):
        dut.write.value, dut.write_data.value = draw.randrange(24) == 0, draw.randrange(256)
        await ClockCycles(dut.clk, 1)
    for delay in range(36, 46):  # a write in every cycle in which the second byte may be taken
        await ClockCycles(dut.clk, 200)
        for _ in range(2):
            await pulse(dut.write)
        await ClockCycles(dut.clk, delay)
        await pulse(dut.write)
    for delay in range(36, 46):  # a read in every cycle in which a second byte may come
        await receive(0x96, read=False)
        cocotb.start_soon(receive(0x69, read=False))
        await ClockCycles(dut.clk, delay)
        await pulse(dut.read)
        await ClockCycles(dut.clk, 60 - delay)
        await pulse(dut.clear)
    dut.rst_n.value = 0
    await ClockCycles(dut.clk, 2)
