"""Small cases of the long runs of `script/soak`."""

from __future__ import annotations

import psutil
import pytest

from llm4cov_assets.ingest.registry import corpus_designs
from sim.coverage import popcount
from tests.soak import engine, evaluations


@pytest.mark.slow
def test_memory_is_flat_and_nothing_is_left_whatever_testbenches_do(tmp_path):
    alu = next(d for d in corpus_designs() if d.name == "alu")
    found = engine.soak(tmp_path, [alu], 400, workers=2)
    assert found.statuses.total() == 400
    assert found.statuses["passed"] > 390 and found.statuses["crashed"] and found.statuses["test_failed"]
    assert found.growth and all(g.flat for g in found.growth), found.growth
    assert (found.processes, found.files) == ((), ())


def test_soak_of_the_engine_sees_processes_and_files_that_are_left(tmp_path):
    """A check that cannot fail would say nothing."""
    assert not engine.Growth("all", "this process", 50.0, 50.0 + 2 * engine.GROWTH_MB).flat
    others = frozenset(engine.children())
    with psutil.Popen(["sleep", "60"], cwd=tmp_path) as left:
        try:
            assert [p.split()[0] for p in engine.alive({}, tmp_path, others)] == [str(left.pid)]
        finally:
            left.kill()
    assert engine.alive({}, tmp_path, others) == []


@pytest.mark.slow
@pytest.mark.parametrize("language", evaluations.TEXTS)
def test_long_runs_replay_exactly_through_wide_ports(home, language):
    found = evaluations.long_run(home, language, 10_000)
    assert found.exact, (found.first.status, found.again.status, found.first.log)
    assert found.first.evaluations >= 20_000
    assert popcount(found.first.hits) > 0 and found.first.coverage.toggle > 0.9
