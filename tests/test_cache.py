"""`llm4cov cache`: counts, why a result was not there, and what may be removed. On real small simulations."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from llm4cov_assets import caches
from llm4cov_assets.cli import app
from llm4cov_assets.commands import adhoc
from llm4cov_assets.policy.generation_cache import GenerationCache, generation_id
from sim.design import Design, SourceFile
from sim.misses import Explanation, explain
from sim.occupancy import in_use
from sim.simulation import Limits, Testbench
from sim.simulator import Simulator
from warehouse.errors import WarehouseError

COUNTER = """module counter(input logic clk, input logic en, output logic [1:0] n);
  initial n = 0;
  always_ff @(posedge clk) if (en) n <= n + 1;
endmodule
"""

TESTBENCH = """import cocotb
from cocotb.triggers import Timer

@cocotb.test()
async def count(dut):
    dut.en.value = 1
    for _ in range({n}):
        dut.clk.value = 0
        await Timer(1, "ns")
        dut.clk.value = 1
        await Timer(1, "ns")
"""

DAY = 86_400.0


def design(text: str = COUNTER, **fields: object) -> Design:
    return Design(name="counter", sources=(SourceFile("counter.sv", text.encode()),), top="counter", **fields)  # type: ignore[arg-type]


def bench(n: int) -> Testbench:
    return Testbench(TESTBENCH.replace("{n}", str(n)))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which testbench 2 was simulated and stored as rows, and testbench 3 simulated only."""
    home = tmp_path_factory.mktemp("cached")
    with Simulator(home, workers=1) as simulator:
        stored, _ = list(simulator.run_many(design(), [bench(2), bench(3)]))
        adhoc.record_simulations(home, design(), [bench(2)], [stored], simulator.points)
    return home


@pytest.fixture(scope="module")
def simulator(home: Path) -> Iterator[Simulator]:
    with Simulator(home, workers=1) as opened:
        yield opened


def why(simulator: Simulator, subject: Design, testbench: Testbench, **options: object) -> Explanation:
    return explain(simulator, subject, testbench, **options)  # type: ignore[arg-type]


def said(found: Explanation) -> list[str]:
    """The differences from the nearest result."""
    return [d.what + (f": {d.detail}" if d.detail else "") for d in found.nearest[0].differences]


def test_a_result_that_is_there_is_a_hit(simulator: Simulator) -> None:
    found = why(simulator, design(), bench(2))
    assert found.hit and found.build == "there" and "stored since 20" in found.reason


def test_other_settings_are_named_one_by_one(simulator: Simulator) -> None:
    found = why(simulator, design(), bench(2), seed=7, limits=Limits(sim_time_ns=5))
    assert not found.hit
    assert said(found) == ["the seed of the simulation (--seed)", "the limit sim_time_ns"]
    [seed, limit] = found.nearest[0].differences
    assert (seed.now, seed.then, limit.now, limit.then) == (7, 0, 5, Limits().sim_time_ns)


def test_another_testbench_is_said_with_the_line_where_it_differs(simulator: Simulator) -> None:
    known = {bench(n).testbench_id: bench(n).text for n in (2, 3)}
    found = why(simulator, design(), bench(9), text_of=known.get)
    assert said(found) == ["the testbench: differs from line 7"]
    assert len(found.nearest) == found.looked_at == 2


def test_another_design_is_said_with_files_and_lines(simulator: Simulator) -> None:
    changed = why(simulator, design(COUNTER.replace("n + 1", "n + 2")), bench(2))
    assert said(changed) == ["the design: counter.sv differs from line 3"]
    assert changed.build == "not there: the design would be built"
    defined = why(simulator, design(defines=(("X", "1"),)), bench(2))
    same = "its files are the same: top module, defines, parameters or include folders differ"
    assert said(defined) == [f"the design: {same}"]


def test_nothing_near_is_said_too(simulator: Simulator, tmp_path: Path) -> None:
    other = "module other(input logic a, output logic b);\n  assign b = a;\nendmodule\n"
    subject = Design(name="other", sources=(SourceFile("other.sv", other.encode()),), top="other")
    found = why(simulator, subject, Testbench("import cocotb\n"))
    assert found.nearest == () and found.reason == "none of the 2 stored results is of this design or of this testbench"


def test_a_damaged_entry_and_a_build_that_is_gone_are_no_hits(simulator: Simulator, home: Path) -> None:
    path = simulator.cache.path(simulator.key(design(), bench(3), Limits(), 0))
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert "is damaged" in why(simulator, design(), bench(3)).reason
    path.write_bytes(content)
    [build] = [p for p in (home / "builds").iterdir() if (p / "points.dat").exists()]
    build.rename(home / "away")
    with Simulator(home, workers=1) as fresh:
        found = why(fresh, design(), bench(3))
    (home / "away").rename(build)
    assert not found.hit and "the build that its coverage refers to is gone" in found.reason


def test_hits_and_misses_are_counted_over_processes(home: Path) -> None:
    before = caches.sizes(home)
    with Simulator(home, workers=1) as simulator:
        assert all(s.cached for s in simulator.run_many(design(), [bench(2), bench(2), bench(3)]))
    after = caches.sizes(home)
    assert after["simulations"]["hits"] - before["simulations"]["hits"] == 3
    assert after["simulations"]["misses"] == before["simulations"]["misses"] == 2
    assert after["simulations"]["since"] == before["simulations"]["since"]
    assert (after["simulations"]["entries"], after["builds"]["entries"], after["builds"]["misses"]) == (2, 1, 1)


@pytest.fixture
def unused(home: Path, tmp_path: Path) -> Path:
    """A copy of the home in which nothing was used for ten days."""
    copy = tmp_path / "home"

    def take(source: str, target: str) -> None:  # the harness is large, and nobody changes it
        (os.link if os.path.getsize(source) > 1 << 20 else shutil.copy2)(source, target)

    shutil.copytree(home, copy, symlinks=True, copy_function=take)
    age(copy, 10)
    return copy


def age(home: Path, days: float) -> None:
    at = time.time() - days * DAY
    for folder in ("builds", "cache"):
        for path in (home / folder).rglob("*"):
            os.utime(path, (at, at), follow_symlinks=False)


def results(home: Path) -> int:
    return len(list((home / "cache" / "simulations").rglob("*.json.gz")))


def test_only_what_no_row_refers_to_is_removed_and_the_rest_still_answers(unused: Path) -> None:
    tried = caches.evict(unused, older_than_s=DAY, dry_run=True)
    assert (tried.freed["simulations"].entries, results(unused)) == (1, 2)
    done = caches.evict(unused, older_than_s=DAY)
    assert done.as_json() == tried.as_json()
    assert (done.freed["simulations"].entries, done.referred["simulations"], results(unused)) == (1, 1, 1)
    assert (done.freed["builds"].entries, done.referred["builds"]) == (0, 1)
    with Simulator(unused, workers=1) as simulator:
        kept, again = list(simulator.run_many(design(), [bench(2), bench(3)]))
        assert (kept.cached, again.cached) == (True, False) and simulator.counters.builds == 0


def test_results_that_nobody_knows_any_more_go_with_their_build(unused: Path) -> None:
    shutil.rmtree(unused / "parts")
    done = caches.evict(unused, older_than_s=DAY)
    assert (done.freed["simulations"].entries, done.freed["builds"].entries, results(unused)) == (2, 1, 0)
    assert done.n_bytes > 0
    with Simulator(unused, workers=1) as simulator:
        [again] = simulator.run_many(design(), [bench(2)])
        assert again.status == "passed" and simulator.counters.builds == 1


def test_a_build_stays_as_long_as_a_result_needs_it(unused: Path) -> None:
    shutil.rmtree(unused / "parts")
    done = caches.evict(unused, older_than_s=DAY, names=["builds"])
    assert (done.freed["builds"].entries, done.needed) == (0, 1)


def test_size_takes_the_longest_unused_first_and_age_spares_what_is_used(unused: Path) -> None:
    shutil.rmtree(unused / "parts")
    with Simulator(unused, workers=1) as simulator:
        used = simulator.cache.path(simulator.key(design(), bench(2), Limits(), 0))
        old = simulator.cache.path(simulator.key(design(), bench(3), Limits(), 0))
    os.utime(used, (time.time() - 2 * DAY, time.time() - 9 * DAY))  # read two days ago
    left = caches.evict(unused, older_than_s=3 * DAY, dry_run=True)
    assert left.freed["simulations"].entries == 1
    done = caches.evict(unused, larger_than=left.left + left.n_bytes - 1, names=["simulations"])
    assert (done.freed["simulations"].entries, used.exists(), old.exists()) == (1, True, False)


def test_what_was_used_within_the_hour_stays(unused: Path) -> None:
    age(unused, 0.01)
    done = caches.evict(unused, older_than_s=0)
    assert done.n_bytes == 0 and done.recent["simulations"] == results(unused) == 2


def test_looking_does_not_count_as_use(unused: Path) -> None:
    with Simulator(unused, workers=1) as simulator:
        why(simulator, design(), bench(99))
    assert caches.evict(unused, older_than_s=DAY, dry_run=True).freed["simulations"].entries == 1


def test_while_somebody_uses_the_caches_nothing_is_removed(unused: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from sim.occupancy import occupy;"
        " held = occupy(Path(sys.argv[1])); print(1, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(unused)], stdout=subprocess.PIPE) as user:
        assert user.stdout is not None and user.stdout.readline()
        with pytest.raises(caches.CachesInUse, match=rf"process {user.pid}\): nothing was removed"):
            caches.evict(unused, older_than_s=DAY)
        user.kill()
    with in_use(unused), pytest.raises(caches.CachesInUse):
        caches.evict(unused, older_than_s=DAY)
    assert caches.evict(unused, older_than_s=DAY).freed["simulations"].entries == 1


def test_a_part_that_cannot_be_read_stops_everything(unused: Path) -> None:
    part = next((unused / "parts" / "simulations").rglob("*.parquet"))
    part.write_bytes(b"damaged")
    with pytest.raises(WarehouseError, match="is damaged"):
        caches.evict(unused, older_than_s=DAY)
    assert results(unused) == 2


def test_answers_of_models_stay_when_rows_have_them(tmp_path: Path) -> None:
    import polars as pl

    from warehouse.store import Provenance, Store

    answers = GenerationCache(tmp_path / "cache" / "generations")
    keys = [{"policy_id": "a" * 32, "prompt": "new do", "state_id": "b" * 32, "sample": n, "seed": 1} for n in range(2)]
    for key in keys:
        assert answers.get(key) is None
        answers.put(key, {"text": "r 01"})
    assert answers.get(keys[0]) == {"text": "r 01"}
    answers.count()
    row = {
        "generation_id": generation_id(keys[0]), "prompt_id": "c" * 32, "policy_id": "a" * 32, "state_id": "b" * 32,
        "sample": 0, "seed": 1, "text": "r 01", "testbench_id": None, "finish_reason": "stop", "error": "",
        "prompt_tokens": 2, "completion_tokens": 3, "latency_s": 0.1, "retries": 0, "cost_usd": 0.0,
    }  # fmt: skip
    Store(tmp_path).write("generations", pl.DataFrame([row]), Provenance(0, "c0ffee"))
    age(tmp_path, 2)
    sizes = caches.sizes(tmp_path)["generations"]
    assert (sizes["entries"], sizes["hits"], sizes["misses"]) == (2, 1, 2)
    done = caches.evict(tmp_path, older_than_s=DAY)
    assert (done.freed["generations"].entries, done.referred["generations"]) == (1, 1)
    assert answers.get(keys[0]) and not answers.get(keys[1])


def test_the_commands_print_for_people_and_as_json(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM4COV_HOME", str(home))
    (tmp_path / "counter.sv").write_text(COUNTER)
    (tmp_path / "two.py").write_text(bench(2).text)
    (tmp_path / "four.py").write_text(bench(4).text)

    def llm4cov(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, list(arguments))
        return done.exit_code, done.stdout

    where = str(tmp_path / "counter.sv")
    assert llm4cov("cache")[0] == 0
    code, text = llm4cov("cache", "why", where, str(tmp_path / "two.py"))
    assert code == 0 and text.startswith("hit ")
    code, text = llm4cov("cache", "why", where, str(tmp_path / "four.py"), "--seed", "3")
    assert code == 1 and "the seed of the simulation (--seed): 3 now, 0 then" in text
    assert llm4cov("cache", "why", where, str(tmp_path / "four.py"), "--json")[1].startswith('{"simulation_id": ')
    code, text = llm4cov("cache", "evict", "--older-than", "30d", "--dry-run")
    assert code == 0 and "0.0 MB would be freed" in text
    for wrong in ((), ("--older-than", "1y"), ("--larger-than", "much"), ("--older-than", "1d", "--cache", "x")):
        assert llm4cov("cache", "evict", *wrong)[0] != 0
