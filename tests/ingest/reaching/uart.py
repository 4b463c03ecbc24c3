"""uart receives a carriage return, which it echoes as a line feed."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles


@cocotb.test()
async def echo_a_carriage_return(dut):
    Clock(dut.clk, 10, "ns").start()
    dut.rst_n.value = 0
    dut.echo.value = 1
    for port in (dut.send, dut.loopback, dut.parity_on):
        port.value = 0
    dut.rx.value = 1
    await ClockCycles(dut.clk, 2)
    dut.rst_n.value = 1
    await ClockCycles(dut.clk, 4)
    for bit in "0" + f"{0x0D:08b}"[::-1] + "1":  # start, data from the least significant bit, stop
        dut.rx.value = int(bit)
        await ClockCycles(dut.clk, 4)
    await ClockCycles(dut.clk, 60)
