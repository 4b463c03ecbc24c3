"""All of accumulator_cpu: programs for every opcode, an interrupt, a halt, and the three traps."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge

SYS, LDI, LD, ST, ADD, SUB, AND, XOR, SHR, JMP, JZ, JC, CALL, RET, IN, OUT = range(16)


@cocotb.test()
async def every_opcode_and_trap(dut):
    Clock(dut.clk, 10, "ns").start()
    draw = random.Random(1)

    async def run(*program):
        """Feed the instructions one after another, wherever the machine thinks it is."""
        for op, operand in program:
            dut.instruction.value, dut.fetched.value = op << 8 | operand, 1
            await ClockCycles(dut.clk, 2)
            dut.fetched.value = 0

    async def restart():
        await ClockCycles(dut.clk, 2)
        for port, resume in ((0x0E, 1), (0x0F, 0), (0x0F, 1)):
            dut.in_port.value, dut.resume.value = port, resume
            await RisingEdge(dut.clk)
        dut.resume.value = 0
        await RisingEdge(dut.clk)

    dut.rst.value = 1
    dut.fetched.value = dut.irq.value = dut.resume.value = dut.in_port.value = dut.instruction.value = 0
    await ClockCycles(dut.clk, 2)
    dut.rst.value = 0
    await run((LDI, 200), (ST, 1), (LDI, 100), (ADD, 1), (JC, 0x40), (OUT, 0))
    await ClockCycles(dut.clk, 1)
    assert (dut.out_port.value, dut.pc.value) == (300 - 256, 0x41)
    for value in (0x55, 0xAA, 0xFF, 0x00, 0x5A):
        for word in range(4):
            await run((LDI, value), (ST, word), (OUT, 0), (LD, word), (ADD, word), (OUT, 0))
            await run((SUB, word), (SUB, word), (JC, value))
        dut.in_port.value = value
        await run((IN, 0), (AND, 1), (XOR, 2), (SHR, 0), (JZ, value), (XOR, 1), (JC, 1), (JMP, value))
        await run((LDI, 1), (JZ, 3))
        await run((CALL, value ^ 0xFF), (JMP, value ^ 0xFF), (CALL, 0x10), (RET, 0), (RET, 0))
        await run((LDI, 0), (AND, 0), (JZ, 7), (JC, 9), (LDI, 1), (SHR, 0), (JZ, 7), (JC, 9))
        await run((JMP, value), (SYS, 0), (SYS, 0x3C))
        dut.irq.value = 1
        await ClockCycles(dut.clk, 2)
        await run((SYS, 0), (SYS, 0x99))
        dut.irq.value = 0
        await run((SYS, 0xC3), (SYS, 0x99), (SYS, 0x99), (LDI, 0x33))
        dut.irq.value = 1
        await ClockCycles(dut.clk, 2)
        dut.irq.value = 0
        await restart()
        await run((CALL, 1), (CALL, 2), (CALL, 3))
        await restart()
        await run((RET, 0))
        await restart()
        await run((SYS, 0x42))
        await restart()
        await run((LDI, 0x11), (SYS, 0xA5), (LDI, 0x5A), (SYS, 0xA5))
        for resume, irq in ((0, 0), (1, 0), (0, 1), (1, 1)):
            dut.resume.value, dut.irq.value = resume, irq
            await RisingEdge(dut.clk)
        dut.resume.value = dut.irq.value = 0
        await ClockCycles(dut.clk, 2)
    for _ in range(100):
        await run((draw.randrange(1, 16), draw.randrange(256)))
    dut.rst.value = 1
    await ClockCycles(dut.clk, 2)
