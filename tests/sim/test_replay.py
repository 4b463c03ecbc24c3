"""Coverage is the reward: it follows from the recorded inputs alone, whatever the testbench does."""

from __future__ import annotations

import pytest

from sim.coverage import difference, popcount
from sim.design import Design
from sim.simulation import Limits, Simulation, Testbench
from sim.simulator import Simulator
from tests.sim.conftest import BUS, DELAYS, HEAD, design, test_body


def simulate(simulator: Simulator, design: Design, text: str) -> Simulation:
    [result] = simulator.run_many(design, [Testbench(text)], limits=Limits(wall_s=10))
    return result


RUN = "await ClockCycles(dut.clk, 20)"


def test_driving_an_internal_register_that_shows_at_an_output_is_forged(simulator, counter):
    r = simulate(simulator, counter, test_body(RUN, "dut.secret.value = 15", "dut.mode.value = 2", RUN))
    assert r.status == "forged" and not r.running
    assert r.coverage.overall is None and r.hits == b""


def test_driving_an_internal_register_that_shows_nowhere_earns_nothing(simulator, counter):
    honest = simulate(simulator, counter, test_body(RUN))
    for value in (0, 15, 8):
        cheat = simulate(
            simulator, counter, test_body(RUN[:-3] + "10)", f"dut.secret.value = {value}", RUN[:-3] + "10)")
        )
        assert popcount(difference(cheat.hits, honest.hits)) == 0


@pytest.mark.parametrize(
    "lines",
    [
        ("open('coverage.dat', 'w').write('x')",),
        ("open('tests.json', 'w').write('{}')", "import cocotb.simulator; cocotb.simulator.stop_simulator()"),
        ("import ctypes; ctypes.CDLL(None).llm4cov_done()",),
    ],
    ids=["coverage file", "own result file", "ends by itself"],
)
def test_ending_early_by_tricks_gives_only_what_the_inputs_gave(simulator, counter, lines):
    short = simulate(simulator, counter, test_body("await ClockCycles(dut.clk, 2)"))
    r = simulate(simulator, counter, test_body("await ClockCycles(dut.clk, 2)", *lines))
    assert popcount(difference(r.hits, short.hits)) == 0


def test_random_numbers_in_the_design_are_found_and_never_called_forged(simulator):
    noisy = design(
        "module noisy(input logic clk, output logic [31:0] q); always_ff @(posedge clk) q <= $urandom; endmodule",
        "noisy",
    )
    assert simulator.build(noisy).deterministic is False
    text = (
        HEAD
        + """@cocotb.test()
async def t(dut):
    cocotb.start_soon(Clock(dut.clk, 10, unit="ns").start())
    await ClockCycles(dut.clk, 9)
"""
    )
    assert simulate(simulator, noisy, text).status == "passed"


def test_ordinary_designs_are_deterministic(simulator, counter):
    assert simulator.build(counter).deterministic is True


def test_wide_arrays_signed_and_inout_ports_replay(simulator):
    ports = design(
        """
module ports(input logic clk, input logic [130:0] wide, input logic signed [7:0] a [3], inout wire io,
             input logic oe, output logic [130:0] y, output logic signed [9:0] s);
  assign io = oe ? wide[0] : 1'bz;
  always_ff @(posedge clk) begin y <= wide ^ {131{io}}; s <= a[0] + a[1] - a[2]; end
endmodule
""",
        "ports",
    )
    text = (
        HEAD
        + """@cocotb.test()
async def t(dut):
    cocotb.start_soon(Clock(dut.clk, 10, unit="ns").start())
    for n in range(30):
        dut.wide.value = random.getrandbits(131)
        dut.oe.value = n % 2
        for i in range(3):
            dut.a[i].value = random.randrange(-128, 128)
        await RisingEdge(dut.clk)
"""
    )
    r = simulate(simulator, ports, text)
    assert r.status == "passed" and r.coverage.toggle > 0.9


def test_inout_port_carries_both_what_the_testbench_and_what_the_design_drives(simulator):
    text = (
        HEAD
        + """@cocotb.test()
async def t(dut):
    cocotb.start_soon(Clock(dut.clk, 10, unit="ns").start())
    for n in range(32):
        await FallingEdge(dut.clk)
        dut.oe.value, dut.d.value = n % 2, n // 2
        if n % 2 == 0:
            dut.io.value = 15 - n // 2
        await RisingEdge(dut.clk)
        await ReadOnly()
        expected = n // 2 if n % 2 else 15 - n // 2
        assert dut.io.value == expected
        await RisingEdge(dut.clk)
        assert dut.q.value == expected
"""
    )
    r = simulate(simulator, design(BUS, "bus"), text)
    assert r.status == "passed", r.log
    assert r.coverage.toggle > 0.95


def test_design_with_delays_of_its_own_replays(simulator):
    delays = design(DELAYS, "delays")
    text = (
        HEAD
        + """@cocotb.test()
async def t(dut):
    for value in (0, 1, 0, 1):
        dut.a.value = value
        await Timer(20, unit="ns")
    assert dut.y.value == 0
"""
    )
    r = simulate(simulator, delays, text)
    assert r.status == "passed", r.log
    assert r.coverage.toggle == 1.0


def test_same_testbench_and_seed_give_the_same_coverage_another_seed_may_not(simulator, counter, home):
    text = test_body("for _ in range(6):", "    dut.mode.value = random.randrange(4)", "    await RisingEdge(dut.clk)")
    first = simulate(simulator, counter, text)
    with Simulator(home, workers=1, read_cache=False) as again:
        [second] = again.run_many(counter, [Testbench(text)], limits=Limits(wall_s=10))
        others = [next(again.run_many(counter, [Testbench(text)], seed=s)) for s in range(1, 6)]
    assert (second.hits, second.status, second.cached) == (first.hits, first.status, False)
    assert len({r.hits for r in others}) > 1
    assert len({r.simulation_id for r in others} | {first.simulation_id}) == 6
