"""The hostile suite: none of these testbenches gains what its inputs did not earn, leaves anything, or harms another.

Each consists of the same honest parts and an attack (tests/sim/hostile). What holds for all is said once, in `Held`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import sim.testbench
from sim.coverage import difference, popcount
from sim.design import Design
from sim.simulation import Simulation, Testbench
from sim.simulator import Simulator
from sim.toolchain import ToolError
from tests.sim.conftest import design
from tests.sim.hostile import python_attacks, verilog_attacks
from tests.sim.hostile.residue import left_in_run_folders, marked_files, processes, surroundings
from tests.sim.hostile.vault import VAULT, Attack, cocotb, quick, systemverilog

SECRET = "what-the-canary-holds"
GOOD, GOOD_VERILOG = cocotb(("pass",)), systemverilog(())


class Held:
    """One tier of the sandbox, with an engine that has run both languages, and a file that nobody may touch."""

    def __init__(self, simulator: Simulator) -> None:
        self.simulator, self.home = simulator, simulator.home
        self.vault: Design = design(VAULT, "vault")
        self.canary = self.home / "canary"
        self.canary.write_text(SECRET)
        self._earned: dict[str, Simulation] = {}
        for testbench in (GOOD_VERILOG, GOOD):
            assert self.earned(testbench).status == "passed"
        self.idle = sum(1 for _ in processes(self.home))

    def earned(self, testbench: Testbench) -> Simulation:
        """The result of an honest testbench."""
        key = testbench.testbench_id
        if key not in self._earned:
            [self._earned[key]] = self.simulator.run_many(self.vault, [testbench], limits=quick())
        return self._earned[key]

    def skip_costly(self, attack: Attack) -> None:
        if attack.slow and self.simulator.toolchain.sandbox.name != "bubblewrap":
            pytest.skip("costly, and tried in the other tier")

    def check(self, attack: Attack, testbench: Testbench, by_honest_means: Testbench) -> None:
        """Run a hostile testbench with an honest one behind it, and hold both to everything that is promised."""
        most, expected, before = self.earned(by_honest_means), self.earned(GOOD), surroundings(self.home)
        hostile, after = self.simulator.run_many(self.vault, [testbench, GOOD], limits=attack.limits)
        assert hostile.status in attack.statuses, hostile.log
        assert attack.says in hostile.log
        assert popcount(difference(hostile.hits, most.hits)) == 0
        assert (after.status, after.hits, after.evaluations) == ("passed", expected.hits, expected.evaluations)
        assert surroundings(self.home) == before
        assert sum(1 for _ in processes(self.home)) <= self.idle
        assert left_in_run_folders(self.home) == []
        assert marked_files(self.home) == []
        assert SECRET not in hostile.log + hostile.feedback
        assert self.canary.read_text() == SECRET


@pytest.fixture(scope="module", params=["bubblewrap", "landlock"])
def held(request: pytest.FixtureRequest, home: Path) -> Iterator[Held]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLM4COV_SANDBOX", request.param)
        patch.setattr(sim.testbench, "CPU_S", 5)  # what takes for ever to compile need not take that long here
        try:
            simulator = Simulator(home, workers=1, read_cache=False)
        except ToolError as error:
            pytest.skip(str(error))
        with simulator:
            yield Held(simulator)


def named(attacks: Mapping[str, Attack]) -> list[object]:
    return [pytest.param(a, id=name, marks=[pytest.mark.slow] if a.slow else []) for name, a in attacks.items()]


@pytest.mark.parametrize("attack", named(python_attacks.ATTACKS))
def test_hostile_cocotb_testbench(held: Held, attack: Attack):
    held.skip_costly(attack)
    held.check(attack, cocotb(attack.lines, top=attack.top), cocotb(attack.ports or ("pass",)))


@pytest.mark.parametrize("attack", named(verilog_attacks.ATTACKS))
def test_hostile_systemverilog_testbench(held: Held, attack: Attack):
    held.skip_costly(attack)
    held.check(attack, systemverilog(attack.lines, top=attack.top), systemverilog(attack.ports))


def test_honest_testbenches_leave_points_that_an_attack_could_gain(held: Held):
    for testbench in (GOOD, GOOD_VERILOG):
        unreached = {point.source for point in held.earned(testbench).uncovered}
        assert {"if (unlocked) loot <= loot + 1;", "if (halted) beyond <= 1;"} <= unreached
        assert any("late" in source for source in unreached)
