"""More refused writes than the error counter of axi_lite_regs can hold."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge


@cocotb.test()
async def sixteen_refused_writes(dut):
    Clock(dut.aclk, 10, "ns").start()
    dut.aresetn.value = 0
    await RisingEdge(dut.aclk)
    dut.aresetn.value = 1
    dut.awaddr.value = 4
    for port in (dut.awvalid, dut.wvalid, dut.bready):
        port.value = 1
    for _ in range(80):
        await RisingEdge(dut.aclk)
