"""The two special cases of float_class that need an exact pair of numbers: one and one, the lowest and the least."""

import cocotb
from cocotb.triggers import Timer


@cocotb.test()
async def exact_pairs(dut):
    for mode, x, y in ((1, 0x3C00, 0x3C00), (3, 0xFBFF, 0x0001)):
        dut.mode.value, dut.x.value, dut.y.value = mode, x, y
        await Timer(10, "ns")
        assert dut.special.value == 1
