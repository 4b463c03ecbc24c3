"""The whole graph on three designs, with real Verilator and real TRL: what a person relies on from `llm4cov run`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest
from typer.testing import CliRunner

from llm4cov_assets.assets.batches import evaluation_records
from llm4cov_assets.assets.due import REASON
from llm4cov_assets.assets.evaluating import evaluations_of
from llm4cov_assets.assets.inbox import due_closures, inbox
from llm4cov_assets.assets.instance import terminal_instance
from llm4cov_assets.assets.partitions import design_batches
from llm4cov_assets.assets.plan import run_pipeline, stages_of
from llm4cov_assets.assets.work import COSTS, Results
from llm4cov_assets.cli import app
from llm4cov_assets.errors import UserError
from llm4cov_assets.profiles import PROFILES, Profile
from llm4cov_assets.rows import table_frame
from warehouse.parts import list_parts, read_part
from warehouse.schema import TABLES
from warehouse.store import Provenance, Store

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parent.parent

TINY = Profile(
    name="tiny",
    train_designs=3,
    eval_hand_written=2,
    eval_per_family=0,
    batch_size=2,
    drafts=2,
    repairs=2,
    variants=4,
    hidden_size=32,
    layers=1,
    steps=(6, 3, 3),
    batch_rows=8,
    floor=0.2,
    eval_samples=1,
    eval_rounds=1,
    resamples=200,
    calibration_sims=4,
)
"""Three training designs in two batches, two evaluation designs, a student that learns next to nothing."""

WORK = tuple(cost for cost in COSTS if cost not in ("simulations_from_cache", "generations_from_cache", "cpu_s"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home with one whole run in it."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLM4COV_HOME", str(folder))
        patch.delenv("DAGSTER_HOME", raising=False)
        summary = run_pipeline(TINY, [0, 1, 2], folder)
        (folder / "summary.json").write_text(json.dumps(summary.costs))
        yield folder


def test_a_whole_run_fills_the_leaderboard(home: Path) -> None:
    scores = Store(home).read("scores", config_hash=TINY.config_hash)
    students = {"untrained", "stage_0", "stage_1", "stage_2", "control"}
    policies = students | {"teacher", "scripted/directed", "scripted/random", "scripted/reset"}
    assert set(scores["policy"]) == policies
    assert set(scores["mode"]) == {"direct", "agentic"}
    assert scores.filter(policy="teacher", benchmark="all", mode="agentic")["avg_cov"][0] > 0.3
    compared = Store(home).read("comparisons", config_hash=TINY.config_hash)
    assert ("stage_2", "control") in set(compared.select("policy_a", "policy_b").iter_rows())


def test_every_row_says_where_it_comes_from(home: Path) -> None:
    store = Store(home)
    for table in ("designs", "simulations", "transitions", "selections", "sft_examples", "checkpoints", "evaluations"):
        rows = store.read(table)
        assert rows.height, table
        assert (
            not rows.select("config_hash", "dagster_run_id", "asset_key", "code_version")
            .null_count()
            .sum_horizontal()[0]
        )


def test_a_run_that_is_killed_anywhere_leaves_no_row_that_refers_to_nothing(home: Path) -> None:
    """Parts in the order in which they were written: each refers to what was there before it."""
    seen: dict[str, set[bytes]] = {name: set() for name in TABLES}
    for part in sorted(list_parts(home / "parts"), key=lambda p: p.path.stat().st_mtime_ns):
        table, rows = TABLES[part.table], read_part(part)
        if len(table.key) == 1:
            seen[table.name] |= set(rows[table.key[0]].to_pylist())
        for column in table.columns:
            if column.refers_to:
                missing = set(rows[column.name].to_pylist()) - seen[column.refers_to] - {None}
                assert not missing, f"{part.name}: {column.name}"


def test_no_training_row_comes_from_an_evaluation_design(home: Path) -> None:
    trained = set(Store(home).read("sft_examples")["design_id"])
    assert trained and not trained & {r.design.design_id for r in evaluation_records(TINY, home)}


def test_the_control_takes_the_steps_of_the_later_stages(home: Path) -> None:
    steps = dict(Store(home).read("checkpoints").select("policy", "steps").iter_rows())
    assert (steps["control/phase_1"], steps["control"]) == TINY.steps[1:]


def test_checks_ran_and_passed(home: Path) -> None:
    with terminal_instance(home) as instance:
        events = [
            e.dagster_event.event_specific_data
            for run in instance.get_runs()
            for e in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION)
        ]
    assert {e.check_name for e in events} == {
        "every_accepted_repair_has_its_gain",
        "every_design_is_accepted",
        "every_draft_has_a_transition",
        "every_selected_state_has_its_repairs",
        "no_evaluation_design_in_training_data",
    }
    assert all(e.passed for e in events)


def test_a_second_run_does_nothing_and_says_so(home: Path) -> None:
    first = json.loads((home / "summary.json").read_text())
    assert first["simulations_run"] and first["generations_run"] and first["training_steps_run"]
    before = table(home)
    summary = run_pipeline(TINY, [0, 1, 2], home)
    assert {cost: summary.costs[cost] for cost in WORK} == dict.fromkeys(WORK, 0)
    assert table(home).equals(before)


def test_rows_that_somebody_deleted_are_made_again_from_the_caches(home: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(home, tmp_path / "home"))
    before = table(copy)
    parts = list_parts(copy / "parts", ["evaluations"], config_hash=TINY.config_hash)
    next(p for p in parts if "stage_1" in read_part(p)["policy"].to_pylist()).path.unlink()
    assert [problem.where for problem in Store(copy).verify()] == [
        f"parts/evaluations/_/{TINY.config_hash}-stage_1%2Fevaluation.current"
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLM4COV_HOME", str(copy))
        summary = run_pipeline(TINY, [0, 1, 2], copy)
    assert {cost: summary.costs[cost] for cost in WORK} == dict.fromkeys(WORK, 0)
    assert summary.costs["generations_from_cache"]
    assert Store(copy).verify() == [] and table(copy).equals(before)


def test_the_published_file_can_be_read(home: Path) -> None:
    assert Store(home).query("select count(*) as n from leaderboard")["n"][0] > 0


def test_a_second_terminal_run_is_told_who_runs(home: Path) -> None:
    from llm4cov_assets.assets.instance import only_one

    with only_one(home, "llm4cov run --profile demo"), pytest.raises(UserError, match=f"demo.*{os.getpid()}"):
        run_pipeline(TINY, [0], home)


def test_a_budget_that_is_spent_ends_the_run_with_one_line(home: Path) -> None:
    from llm4cov_assets.assets.plan import RunFailed

    with pytest.raises(RunFailed, match="--budget-sims"):
        run_pipeline(TINY.model_copy(update={"seed": 1}), [0], home, budget_sims=5)


def test_a_killed_run_goes_on_to_the_same_table(home: Path, tmp_path: Path) -> None:
    """Killed with -9 in the middle of the training, and finished by the same call."""
    environment = os.environ | {"LLM4COV_HOME": str(tmp_path)}
    code = (
        "import sys; from pathlib import Path; from llm4cov_assets.profiles import Profile\n"
        "from llm4cov_assets.assets.plan import run_pipeline\n"
        "run_pipeline(Profile.model_validate_json(sys.argv[1]), [0], Path(sys.argv[2]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, TINY.model_dump_json(), str(tmp_path)], cwd=ROOT, env=environment
    )
    try:
        while not list((tmp_path / "checkpoints").glob(".work-*/config.json")):
            assert process.poll() is None, "the run ended before its training began"
            time.sleep(0.2)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLM4COV_HOME", str(tmp_path))
        summary = run_pipeline(TINY, [0], tmp_path)
    assert summary.costs["simulations_run"] < json.loads((home / "summary.json").read_text())["simulations_run"] / 2
    assert table(tmp_path).equals(table(home).filter(pl.col("policy").is_in(table(tmp_path)["policy"].to_list())))
    with terminal_instance(tmp_path) as instance:
        statuses = [run.status for run in instance.get_runs()]
        assert statuses.count(dg.DagsterRunStatus.FAILURE) == 1
        assert set(statuses) == {dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.SUCCESS}
        assert not instance.event_log_storage.get_concurrency_info("training").claimed_slots


def test_a_dropped_design_becomes_a_batch_and_is_closed(home: Path) -> None:
    """The sensor starts its closure, and the schedule only what can help: once more when it is below a target."""
    from definitions import defs

    folder = home / "inbox" / "blinker"
    folder.mkdir()
    (folder / "blinker.sv").write_text(
        "module blinker(input logic clk, input logic rst_n, input logic [3:0] key, output logic led);\n"
        "  logic [7:0] spare;\n"
        "  assign spare = 8'h00;\n"
        "  always_ff @(posedge clk or negedge rst_n)\n"
        "    if (!rst_n) led <= 1'b0;\n"
        "    else if (key == 4'ha) led <= ~led;\n"
        "endmodule\n"
    )
    old = time.time() - 60
    for path in (folder / "blinker.sv", folder):
        os.utime(path, (old, old))
    store = Store(home)
    with terminal_instance(home) as instance:
        job = defs.resolve_job_def("close_new_designs")

        def due() -> list[dg.RunRequest | dg.SkipReason]:
            return list(due_closures(dg.build_schedule_context(instance=instance)))

        def execute(request: dg.RunRequest) -> dict[str, Any]:
            result = job.execute_in_process(
                instance=instance, partition_key=request.partition_key, run_config=request.run_config, tags=request.tags
            )
            assert result.success
            [event] = result.asset_materializations_for_node("closure")
            assert event.metadata["reason"].value == request.tags[REASON]
            report = home / "reports" / "closure" / str(request.partition_key) / "blinker" / "summary.json"
            return json.loads(report.read_text())

        tick = inbox(dg.build_sensor_context(instance=instance, definitions=defs))
        assert isinstance(tick, dg.SensorResult) and tick.run_requests and tick.dynamic_partitions_requests
        [request] = tick.run_requests
        assert request.run_key and request.run_key.startswith("blinker:")
        instance.add_dynamic_partitions(design_batches.name, list(tick.dynamic_partitions_requests[0].partition_keys))
        first = execute(request)
        assert 0.7 < first["merged"]["overall"] < 1
        again = inbox(dg.build_sensor_context(instance=instance, definitions=defs))
        assert isinstance(again, dg.SkipReason) or not again.run_requests
        [skip] = due()
        assert isinstance(skip, dg.SkipReason) and "without a target" in str(skip.skip_message)

        target = {
            "design_id": first["design_id"], "simulator": store.read("simulations")["simulator"][0],
            "metric": "overall", "target": 1.0, "origin": "calibrated", "reference": 1.0, "simulations": 1,
        }  # fmt: skip
        store.write("targets", table_frame("targets", [target]), Provenance(None, TINY.config_hash))
        [request] = due()
        assert isinstance(request, dg.RunRequest) and "below target: blinker overall" in request.tags[REASON]
        second = execute(request)
        assert second["merged"]["overall"] >= first["merged"]["overall"]
        assert second["simulations"] > first["simulations"]
        [skip] = due()
        assert isinstance(skip, dg.SkipReason) and "still below target" in str(skip.skip_message)
    closed = store.read("transitions", asset_key="closure")
    assert set(closed["partition_key"]) == {request.partition_key}
    assert "closure/earlier" in set(closed["policy"])
    assert not set(closed["policy_id"]) - set(store.read("policies")["policy_id"])


def test_a_dropped_design_that_cannot_be_read_is_a_warning_with_file_and_line(home: Path) -> None:
    from definitions import defs

    folder = home / "inbox" / "torn"
    folder.mkdir()
    (folder / "torn.sv").write_text("module torn(input logic a;\nendmodule\n")
    old = time.time() - 60
    for path in (folder / "torn.sv", folder):
        os.utime(path, (old, old))
    with terminal_instance(home) as instance:
        tick = inbox(dg.build_sensor_context(instance=instance, definitions=defs))
        assert isinstance(tick, dg.SensorResult) and tick.run_requests and tick.dynamic_partitions_requests
        instance.add_dynamic_partitions(design_batches.name, list(tick.dynamic_partitions_requests[0].partition_keys))
        job = defs.resolve_job_def("close_new_designs")
        result = job.execute_in_process(instance=instance, partition_key=tick.run_requests[0].partition_key)
    [warning] = [e for e in result.get_asset_check_evaluations() if e.check_name == "every_design_is_accepted"]
    assert result.success
    assert not warning.passed and warning.severity == dg.AssetCheckSeverity.WARN
    assert "torn.sv:1" in str(warning.metadata["first"].value)


@pytest.fixture
def known(home: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    """A command line that knows the profile of these tests."""
    monkeypatch.setitem(PROFILES, TINY.name, TINY)
    return CliRunner()


def test_compare_prints_paired_differences(known: CliRunner) -> None:
    result = known.invoke(app, ["compare", "teacher", "scripted/reset", "--profile", "tiny", "--json"])
    rows = json.loads(result.stdout)
    assert {(r["policy_a"], r["policy_b"]) for r in rows} == {("teacher", "scripted/reset")}
    assert all(r["diff_low"] <= r["diff"] <= r["diff_high"] for r in rows)
    assert next(r for r in rows if r["benchmark"] == "all" and r["mode"] == "agentic")["diff"] > 0


def test_compare_names_the_policies_there_are(known: CliRunner) -> None:
    error = known.invoke(app, ["compare", "teacher", "nobody", "--profile", "tiny"]).exception
    assert isinstance(error, UserError) and "scripted/random" in str(error)


def test_run_prints_the_leaderboard_of_a_finished_pipeline(known: CliRunner) -> None:
    result = known.invoke(app, ["run", "--profile", "tiny", "--json"])
    assert result.exit_code == 0
    answer = json.loads(result.stdout)
    assert answer["simulations_run"] == answer["generations_run"] == answer["training_steps_run"] == 0
    assert [r["policy"] for r in answer["leaderboard"][:5]] == ["untrained", "stage_0", "stage_1", "stage_2", "control"]
    assert answer["comparisons"][0]["policy_a"] == "stage_2" and answer["comparisons"][0]["policy_b"] == "untrained"


def test_the_report_is_one_file(known: CliRunner, tmp_path: Path) -> None:
    known.invoke(app, ["report", "--profile", "tiny", "--out", str(tmp_path / "report.html")])
    text = (tmp_path / "report.html").read_text()
    assert "scripted/random" in text and "<svg" in text and "http" not in text.replace("http://www.w3.org", "")


def test_profiles_say_what_they_cost(known: CliRunner) -> None:
    listed = {p["name"]: p for p in json.loads(known.invoke(app, ["profiles", "--json"]).stdout)}
    assert sum(listed["demo"]["budget_cpu_s"].values()) < 2000
    assert isinstance(known.invoke(app, ["run", "--profile", "nothing"]).exception, UserError)


@pytest.mark.parametrize(("text", "stages"), [("0-2", [0, 1, 2]), ("1", [1]), ("0,2", [0, 2])])
def test_stages_are_read(text: str, stages: list[int]) -> None:
    assert stages_of(text) == stages


@pytest.mark.parametrize("seed", ["-1", "4294967296"])
def test_a_seed_that_no_trainer_takes_is_refused_before_anything_runs(known: CliRunner, seed: str) -> None:
    assert known.invoke(app, ["run", "--profile", "tiny", "--seed", seed]).exit_code == 2


@pytest.mark.parametrize("text", ["3", "a", "", "2-1", "0-5"])
def test_other_stages_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="--stages"):
        stages_of(text)


def table(folder: Path) -> pl.DataFrame:
    """What the leaderboard is made of, apart from what came from a cache."""
    rows = evaluations_of(Results(TINY, Store(folder)))
    columns = ["policy", "mode", "design_id", "sample", "status", "overall", "rounds", "simulations", "testbench_id"]
    return rows.select(columns).sort(columns[:4])
