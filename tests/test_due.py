"""What the schedule closes again, what it leaves alone, and what it says about both."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import dagster as dg
import pytest

from definitions import defs
from llm4cov_assets.assets.closing import DUE_KEY, policies_hash, student_in_words
from llm4cov_assets.assets.due import (
    FIRST_BUDGET,
    REASON,
    SECOND_BUDGET,
    TRIES,
    Attempts,
    ClosedBatch,
    ClosedDesign,
    Decision,
    decide,
)
from llm4cov_assets.assets.earlier import Earlier
from llm4cov_assets.assets.finished import Finished, Record
from llm4cov_assets.assets.inbox import due_closures, inbox
from llm4cov_assets.assets.partitions import design_batches
from llm4cov_assets.policy.base import State
from llm4cov_assets.policy.portfolio import portfolio
from llm4cov_assets.profiles import PROFILES
from sim.design import Design
from sim.simulation import Testbench

OLD, NEW = "0ld", "new"
FIFO = ClosedDesign("fifo", "f", "verilator 5.48.0", {"overall": 0.8, "line": 0.9, "toggle": None}, 7, ("t",))
FULL = replace(FIFO, name="full", design_id="u", merged={"overall": 1.0}, uncovered=0)
DEAD = replace(FIFO, name="dead", design_id="d", merged={}, uncovered=None, testbenches=())
TARGETS = {("f", "verilator 5.48.0"): {"overall": 0.9, "toggle": 0.5}}
MET = {("f", "verilator 5.48.0"): {"overall": 0.8, "line": 0.85, "toggle": 0.5}}


def closed(*designs: ClosedDesign, policies: str = NEW, budget: int = FIRST_BUDGET) -> ClosedBatch:
    return ClosedBatch(designs, policies, f"student {policies}", budget)


def decided(
    batch: ClosedBatch | None, targets=None, attempts: Attempts | None = None, now: str = NEW, simulator: str = ""
) -> Decision:
    return decide({"b": batch}, now, f"student {now}", targets or {}, {"b": attempts or Attempts()}, simulator)


def test_a_newer_student_makes_every_design_with_points_left_due() -> None:
    [due] = decided(closed(FIFO, FULL, policies=OLD)).due
    assert due.budget_sims == FIRST_BUDGET
    assert due.reason == "closed with student 0ld, now there is student new; not covered: fifo 7 points"


def test_a_design_that_is_covered_in_full_is_never_due_again() -> None:
    decision = decided(closed(FULL, policies=OLD))
    assert decision == Decision([], "1 covered in full")


def test_a_design_that_nothing_ran_on_is_not_taken_for_covered() -> None:
    [due] = decided(closed(DEAD, policies=OLD)).due
    assert "dead everything" in due.reason


def test_a_design_below_target_gets_the_larger_budget_once() -> None:
    [due] = decided(closed(FIFO), TARGETS).due
    assert due.budget_sims == SECOND_BUDGET
    assert due.reason == "below target: fifo overall 0.800 of 0.900; 256 simulations instead of 64"
    after = decided(closed(FIFO, budget=SECOND_BUDGET), TARGETS)
    assert after == Decision([], "1 closed with student new, still below target with a budget of 256 simulations")
    [again] = decided(closed(FIFO, budget=SECOND_BUDGET, policies=OLD), TARGETS).due
    assert again.budget_sims == SECOND_BUDGET and "now there is" in again.reason


def test_a_design_at_target_rests_until_there_is_a_newer_student() -> None:
    assert decided(closed(FIFO), MET) == Decision([], "1 closed with student new and at target")
    assert decided(closed(FIFO, policies=OLD), MET).due


def test_targets_of_another_simulator_do_not_count() -> None:
    decision = decided(closed(FIFO), {("f", "verilator 9"): {"overall": 1.0}})
    assert not decision.due and "without a target" in decision.rest


def test_another_version_of_the_simulator_makes_everything_due_that_ran_on_it() -> None:
    batch = closed(FIFO, FULL)
    assert decided(batch, simulator="verilator 5.48.0").due == []
    [due] = decided(batch, simulator="verilator 5.50.0").due
    assert due.reason == "closed with verilator 5.48.0, now there is verilator 5.50.0, which may have other points"
    assert due.budget_sims == FIRST_BUDGET
    [later] = decided(batch, simulator="verilator 5.52.0").due
    assert later.key != due.key, "what failed with one version is tried with the next"
    assert decided(closed(replace(DEAD, simulator="")), simulator="verilator 5.50.0").due == [], "nothing ran on it"


def test_a_batch_whose_closure_did_not_finish_is_due() -> None:
    [due] = decided(None).due
    assert due.budget_sims == FIRST_BUDGET and "not finished" in due.reason


def test_a_batch_without_a_readable_design_rests() -> None:
    assert decided(closed(policies=OLD)) == Decision([], "1 could not be read")


def test_what_is_running_is_not_started_again() -> None:
    assert decided(None, attempts=Attempts(unfinished=True)) == Decision([], "1 being closed now")


def test_what_failed_twice_rests_until_something_changes() -> None:
    [due] = decided(None).due
    assert decided(None, attempts=Attempts(failed={due.key: TRIES - 1})).due == [due]
    tired = Attempts(failed={due.key: TRIES})
    assert decided(None, attempts=tired) == Decision([], f"1 given up after {TRIES} failed runs")
    assert decided(None, attempts=tired, now="newer").due


def test_what_an_earlier_closure_found_is_proposed_first_and_once() -> None:
    design, testbenches = Design(name="d", sources=(), top="d"), [Testbench("a"), Testbench("b")]
    policy = Earlier(testbenches)
    proposed = policy.propose([State(design)], 1, seed=3)
    assert [g.testbench for g in proposed] == testbenches
    assert len({g.generation_id for g in proposed}) == 2
    assert policy.propose([State(design, testbenches[0])], 1, seed=3) == []
    assert policy.policy_id != Earlier(testbenches[:1]).policy_id


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    """A Dagster instance with an empty home."""
    monkeypatch.setenv("LLM4COV_HOME", str(tmp_path))
    with dg.instance_for_test() as found:
        yield found


def drop(home: Path, name: str, text: str = "module m; endmodule\n") -> None:
    """Put an RTL file into the inbox, as if a minute ago."""
    (home / "inbox").mkdir(exist_ok=True)
    (home / "inbox" / name).write_text(text)
    old = time.time() - 60
    os.utime(home / "inbox" / name, (old, old))


def dropped(instance: dg.DagsterInstance) -> list[dg.RunRequest]:
    """What the sensor asks for now; its batches are added, as the daemon would."""
    tick = inbox(dg.build_sensor_context(instance=instance, definitions=defs))
    assert isinstance(tick, dg.SensorResult) and tick.dynamic_partitions_requests
    instance.add_dynamic_partitions(design_batches.name, list(tick.dynamic_partitions_requests[0].partition_keys))
    return list(tick.run_requests or [])


def words(tick: dg.SensorResult | dg.SkipReason) -> str:
    """Why a tick of the sensor starts nothing."""
    assert isinstance(tick, dg.SkipReason) or not tick.run_requests
    return str((tick if isinstance(tick, dg.SkipReason) else tick.skip_reason).skip_message)


def ticked(instance: dg.DagsterInstance) -> list[dg.RunRequest | dg.SkipReason]:
    """What the schedule asks for now."""
    return list(due_closures(dg.build_schedule_context(instance=instance)))


def finish(home: Path, batch: str, *designs: ClosedDesign) -> None:
    """Leave the record of a closure with the policies of now."""
    policies = portfolio((), home)
    memo = asdict(ClosedBatch(designs, policies_hash(policies), student_in_words(policies), FIRST_BUDGET))
    record = Record("k", "v", {}, {}, "run", memo=memo)
    Finished(home, PROFILES["demo"].config_hash).put("closure", batch, record)


def ran(instance: dg.DagsterInstance, batch: str, status: dg.DagsterRunStatus, **tags: str) -> None:
    """Leave a run of a batch."""
    job = defs.resolve_job_def("close_new_designs")
    instance.create_run_for_job(job, status=status, tags={"dagster/partition": batch} | tags)


def test_an_empty_inbox_has_nothing_due(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    [skip] = ticked(instance)
    assert isinstance(skip, dg.SkipReason)
    assert skip.skip_message == f"nothing is due: no design in {tmp_path / 'inbox'}"


def test_runs_say_whether_their_design_is_new_or_changed(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    drop(tmp_path, "fifo.sv")
    [first] = dropped(instance)
    assert first.tags[REASON] == "fifo.sv is new in the inbox"
    skip = inbox(dg.build_sensor_context(instance=instance, definitions=defs))
    assert "nothing new" in words(skip) and "1 unchanged" in words(skip)
    drop(tmp_path, "fifo.sv", "module m2; endmodule\n")
    [second] = dropped(instance)
    assert second.tags[REASON] == "fifo.sv changed in the inbox"


def test_a_failed_inbox_run_is_started_again_by_the_schedule(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    drop(tmp_path, "fifo.sv")
    batch = str(dropped(instance)[0].partition_key)
    ran(instance, batch, dg.DagsterRunStatus.STARTED)
    [skip] = ticked(instance)
    assert isinstance(skip, dg.SkipReason) and "1 being closed now" in str(skip.skip_message)
    instance.delete_run(instance.get_runs()[0].run_id)
    ran(instance, batch, dg.DagsterRunStatus.FAILURE)
    for _ in range(TRIES):
        [request] = ticked(instance)
        assert isinstance(request, dg.RunRequest) and request.partition_key == batch
        ran(instance, batch, dg.DagsterRunStatus.FAILURE, **{DUE_KEY: request.tags[DUE_KEY]})
    [skip] = ticked(instance)
    assert isinstance(skip, dg.SkipReason) and "given up" in str(skip.skip_message)


def test_closed_designs_rest_and_old_versions_are_left_alone(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    for name in ("full.sv", "fifo.sv"):
        drop(tmp_path, name)
    for request, design in zip(dropped(instance), (FIFO, FULL), strict=True):
        finish(tmp_path, str(request.partition_key), design)
    [skip] = ticked(instance)
    assert isinstance(skip, dg.SkipReason)
    assert "1 closed with no student, without a target" in str(skip.skip_message)
    assert "1 covered in full" in str(skip.skip_message)
    (tmp_path / "inbox" / "fifo.sv").unlink()
    [skip] = ticked(instance)
    assert isinstance(skip, dg.SkipReason)
    assert skip.skip_message == "nothing is due: 1 covered in full; 1 older or removed left alone"


def test_requests_are_valid_runs_of_the_closure_job(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    drop(tmp_path, "fifo.sv")
    dropped(instance)
    [request] = ticked(instance)
    assert isinstance(request, dg.RunRequest)
    assert dg.validate_run_config(defs.resolve_job_def("close_new_designs"), request.run_config)
