"""Four good frames for crc8, then the control command that only a good link may give."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge


def crc8(data, crc=0xFF):
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1 ^ (0x07 if crc & 0x80 else 0)) & 0xFF
    return crc


@cocotb.test()
async def a_good_link_forgets_its_refusals(dut):
    Clock(dut.clk, 10, "ns").start()
    dut.rst.value = 1
    await RisingEdge(dut.clk)
    dut.rst.value = 0
    dut.valid.value = 1
    good = [[0x11, crc8([0x11])]] * 4
    for frame in ([0x7E, 0x55], *good, [0x7E, 0x3C]):
        for i, byte in enumerate(frame):
            dut.first.value = i == 0
            dut.last.value = i == len(frame) - 1 and frame[0] != 0x7E
            dut.data.value = byte
            await RisingEdge(dut.clk)
    for _ in range(2):
        await RisingEdge(dut.clk)
