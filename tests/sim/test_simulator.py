"""Simulator.run_many and run_batches: order, duplicates, cache, faults."""

from __future__ import annotations

import dataclasses
import gzip
import json
import threading

import pytest

from sim.engine import Engine
from sim.simulation import Limits, Testbench
from sim.simulator import Simulator
from sim.toolchain import ToolError
from tests.sim.conftest import COUNTER, design, test_body


def bench(n: int, salt: str = "") -> Testbench:
    return Testbench(test_body(f"await ClockCycles(dut.clk, {n})") + f"# {salt}\n")


@pytest.fixture
def fresh(home):
    with Simulator(home, workers=2) as simulator:
        yield simulator


def test_results_come_in_the_order_of_the_testbenches(fresh, counter):
    counts = [9, 2, 30, 4, 17, 1, 8]
    results = list(fresh.run_many(counter, [bench(n, "order") for n in counts]))
    assert [r.sim_time_ns for r in results] == [10 * n + 10 for n in counts]
    assert [r.testbench_id for r in results] == [bench(n, "order").testbench_id for n in counts]


def test_duplicates_are_simulated_once(fresh, counter):
    results = list(fresh.run_many(counter, [bench(3, "twice")] * 5))
    assert fresh.counters.simulated == 1 and fresh.counters.from_cache == 4
    assert len({r.simulation_id for r in results}) == 1 and len(results) == 5


def test_known_results_come_from_the_cache_and_are_the_same(fresh, counter, home):
    benches = [bench(n, "cached") for n in (2, 5)] + [Testbench("def broken(:\n")]
    first = list(fresh.run_many(counter, benches))
    with Simulator(home) as again:
        second = list(again.run_many(counter, benches))
        assert again.counters.simulated == 0 and again.counters.builds == 0
    for a, b in zip(first, second, strict=True):
        assert b.cached
        assert b == dataclasses.replace(a, cached=True, build_cached=True)


def test_simulation_id_depends_on_all_that_decides_the_result(fresh, counter):
    ids = {
        next(fresh.run_many(counter, [bench(2)], seed=s, limits=limits)).simulation_id
        for s in (0, 1)
        for limits in (Limits(), Limits(sim_time_ns=5000))
    }
    assert len(ids) == 4
    same_rtl = design(COUNTER, specification="another text")
    assert next(fresh.run_many(same_rtl, [bench(2)])).simulation_id in ids
    assert next(fresh.run_many(same_rtl, [bench(2)])).design_id == same_rtl.design_id


def test_entry_keeps_what_its_key_was_made_of(fresh, counter, home):
    r = next(fresh.run_many(counter, [bench(6, "key")]))
    [path] = (home / "cache" / "simulations").glob(f"*/{r.simulation_id}*.json.gz")
    entry = json.loads(gzip.decompress(path.read_bytes()))
    assert entry["key"]["rtl_id"] == counter.rtl_id
    assert entry["key"]["testbench_id"] == bench(6, "key").testbench_id
    assert entry["key"]["limits"]["evaluations"] == Limits().evaluations
    assert entry["key"]["simulator"].startswith("verilator ")


@pytest.mark.parametrize(
    "damage",
    [b"", b"not gzip", gzip.compress(b"[]"), gzip.compress(b'{"key": 1, "result": {}}')],
    ids=["empty", "not gzip", "a list", "another object"],  # of their own: what is compressed holds the time
)
def test_damaged_entry_is_simulated_again(fresh, counter, home, damage):
    r = next(fresh.run_many(counter, [bench(4, "damage")]))
    [path] = (home / "cache" / "simulations").glob(f"*/{r.simulation_id}*.json.gz")
    path.write_bytes(damage)
    again = next(fresh.run_many(counter, [bench(4, "damage")]))
    assert not again.cached and again.hits == r.hits


def test_batches_yield_every_job_with_its_results_whatever_fails(fresh, counter):
    other = design(COUNTER.replace("counter", "other"), "other")
    bad = design("module bad(;\nendmodule\n", "bad")
    jobs = [
        (counter, [bench(2), bench(3)]),
        (bad, [bench(1)]),
        (other, [bench(2)]),
        (counter, []),
        (counter, [bench(3)]),
    ]
    got = dict(fresh.run_batches(jobs))
    assert sorted(got) == [0, 1, 2, 3, 4]
    assert [[r.status for r in got[i]] for i in range(5)] == [
        ["passed", "passed"], ["design_error"], ["passed"], [], ["passed"],
    ]  # fmt: skip
    assert got[4][0].simulation_id == got[0][1].simulation_id
    assert got[2][0].rtl_id == other.rtl_id


def test_wall_clock_timeouts_are_tried_twice_stored_and_run_again_on_request(counter, home):
    limits = Limits(wall_s=0.4)
    text = test_body("await ClockCycles(dut.clk, 4)", "while True: pass")
    with Simulator(home, workers=1) as s:
        runs = count_runs(s)
        assert next(s.run_many(counter, [Testbench(text)], limits=limits)).status == "timeout"
        assert len(runs) == 2
        assert next(s.run_many(counter, [Testbench(text)], limits=limits)).cached
    with Simulator(home, workers=1, retry_faults=True) as s:
        assert not next(s.run_many(counter, [Testbench(text)], limits=limits)).cached


def test_deterministic_limits_are_results_like_any_other(counter, home):
    limits = Limits(sim_time_ns=300)
    text = Testbench(test_body("await Timer(1, unit='ms')") + "# limit\n")
    with Simulator(home, workers=1) as s:
        runs = count_runs(s)
        assert next(s.run_many(counter, [text], limits=limits)).status == "timeout"
        assert len(runs) == 1
    with Simulator(home, workers=1, retry_faults=True) as s:
        assert next(s.run_many(counter, [text], limits=limits)).cached


def test_fault_of_the_tools_is_tried_again(counter, home, monkeypatch):
    real, tries = Engine.run, []

    def flaky(self, *args, **kwargs):
        tries.append(1)
        if len(tries) == 1:
            raise ToolError("no space left on device")
        return real(self, *args, **kwargs)

    monkeypatch.setattr(Engine, "run", flaky)
    with Simulator(home, workers=1) as s:
        assert next(s.run_many(counter, [bench(5, "flaky")])).status == "passed"
    assert len(tries) == 2


def test_simulators_share_a_home_from_several_threads(counter, home):
    statuses: list[str] = []

    def work(n: int) -> None:
        with Simulator(home, workers=1) as s:
            statuses.extend(r.status for r in s.run_many(counter, [bench(k, "threads") for k in range(1, 5)]))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert statuses == ["passed"] * 12


def test_nothing_is_left_in_the_run_folder(fresh, counter, home):
    list(fresh.run_many(counter, [bench(2, "left"), Testbench("open('x', 'w').write('y')\n")]))
    fresh.close()
    mine = [p for p in (home / "cache" / "run").iterdir() if any(p.rglob("testbench.py"))]
    assert mine == []


def count_runs(simulator: Simulator) -> list[int]:
    """Count the runs of engines that `simulator` starts from now on."""
    runs: list[int] = []
    make = simulator._pool._make_engine

    def counting() -> Engine:
        engine = make()
        real = engine.run

        def run(*args, **kwargs):
            runs.append(1)
            return real(*args, **kwargs)

        engine.run = run  # type: ignore[method-assign]
        return engine

    simulator._pool._make_engine = counting
    return runs
