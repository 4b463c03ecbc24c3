"""What a campaign may leave of axi_lite_regs: every bit of the limit, a read that it cuts off, and more refused writes
than the error counter can hold."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge


async def write(dut, address, value, protection=0):
    """One write of both bytes; the response is taken at once."""
    dut.awaddr.value, dut.awprot.value = address, protection
    dut.wdata.value, dut.wstrb.value = value, 3
    dut.awvalid.value = dut.wvalid.value = dut.bready.value = 1
    await RisingEdge(dut.aclk)
    dut.awvalid.value = dut.wvalid.value = 0
    for _ in range(4):
        await RisingEdge(dut.aclk)


@cocotb.test()
async def limited_read_and_sixteen_refused_writes(dut):
    Clock(dut.aclk, 10, "ns").start()
    for port in (dut.awvalid, dut.wvalid, dut.arvalid):
        port.value = 0
    dut.aresetn.value = 0
    await RisingEdge(dut.aclk)
    dut.aresetn.value = 1
    await write(dut, 8, 0x900D, protection=1)
    for limit in (0xFF, 0, 7):
        await write(dut, 4, limit)
    await write(dut, 0, 0x1234)
    dut.araddr.value = 0
    dut.arvalid.value = dut.rready.value = 1
    for _ in range(3):
        await RisingEdge(dut.aclk)
    assert dut.rdata.value == 7
    await write(dut, 8, 0)
    for _ in range(17):
        await write(dut, 4, 9)
