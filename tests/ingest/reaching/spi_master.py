"""The peer of spi_master answers with its error code."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge


@cocotb.test()
async def the_peer_answers_a7(dut):
    Clock(dut.clk, 10, "ns").start()
    dut.rst_n.value = 0
    dut.cancel.value = 0
    dut.mode.value = 0
    await RisingEdge(dut.clk)
    dut.rst_n.value = 1
    dut.length.value, dut.tx.value, dut.start.value = 7, 0x5A, 1
    await RisingEdge(dut.clk)
    dut.start.value = 0
    for bit in f"{0xA7:08b}":
        dut.miso.value = int(bit)
        await FallingEdge(dut.sclk)
    for _ in range(8):
        await RisingEdge(dut.clk)
