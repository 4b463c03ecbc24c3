"""Which policies close a design when nobody names one."""

from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

from llm4cov_assets.errors import UserError
from llm4cov_assets.policy.base import State
from llm4cov_assets.policy.portfolio import PARTNERS, portfolio
from llm4cov_assets.policy.student import base_student
from llm4cov_assets.profiles import PROFILES
from llm4cov_assets.rows import table_frame
from sim.design import Design, SourceFile
from warehouse.store import Provenance, Store

PROFILE = PROFILES["quick"]
INVERTER = b"module inverter(input logic a, output logic b); assign b = !a; endmodule"


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A home where stages 0 and 1, and then the control, have their checkpoints."""
    home = tmp_path_factory.mktemp("home")
    found = base_student(PROFILE, home / "checkpoints")
    for n, policy in enumerate(("stage_0", "stage_1", "control")):
        row = {
            "checkpoint_id": f"{n:032x}", "policy": policy, "path": str(found.path.relative_to(home)), "data_hash": "",
            "n_examples": 1, "n_designs": 1, "steps": 1, "tokens": 1, "parameters": 1, "cpu_s": 0.0, "versions": "",
        }  # fmt: skip
        provenance = Provenance(n, PROFILE.config_hash, asset_key=f"stage_{n}/checkpoint")
        Store(home).write("checkpoints", table_frame("checkpoints", [row]), provenance)
    return home


def test_without_a_student_the_scripted_policies_work_alone(tmp_path):
    assert [policy.name for policy in portfolio((), tmp_path)] == list(PARTNERS)


def test_the_student_of_the_last_stage_comes_first(trained):
    assert [policy.name for policy in portfolio((), trained)] == ["stage_1", *PARTNERS]


def test_students_are_those_of_the_configuration_that_ran_last_not_of_the_one_that_trained_last(trained, tmp_path):
    home = Path(shutil.copytree(trained, tmp_path / "home"))
    store, other = Store(home), "beef" * 4
    later = store.read("checkpoints").filter(policy="stage_0").with_columns(checkpoint_id=pl.lit("a" * 32))
    columns = table_frame("checkpoints").columns
    store.write("checkpoints", later.select(columns), Provenance(0, other, asset_key="stage_0/checkpoint"))

    def ran(config_hash: str, run_id: str, hour: int) -> None:
        row = {"run_id": run_id, "profile": "p", "settings": "{}", "started_at": datetime(2026, 1, 1, hour)}
        store.write("runs", table_frame("runs", [row]), Provenance(None, config_hash, asset_key="run"))

    ran(other, "1", 1)
    assert portfolio((), home)[0].checkpoint_id == "a" * 32
    ran(PROFILE.config_hash, "2", 2)
    assert portfolio((), home)[0].name == "stage_1"
    assert portfolio(["stage_0"], home)[0].checkpoint_id == "0" * 32


def test_named_policies_are_taken_as_they_are(trained):
    names = ["control", "scripted/reset", "control"]
    assert [policy.name for policy in portfolio(names, trained)] == ["control", "scripted/reset"]


def test_the_student_answers(trained):
    design = Design(name="inverter", sources=(SourceFile("inverter.sv", INVERTER),), top="inverter")
    student = portfolio((), trained)[0]
    [generation] = student.propose([State(design)], 1, seed=0)
    assert generation.testbench is not None, generation.error


def test_a_student_of_another_vocabulary_or_without_its_folder_is_left_out(trained, tmp_path):
    home = Path(shutil.copytree(trained, tmp_path / "home"))
    [tokenizer] = (home / "checkpoints").glob("*/tokenizer.json")
    tokenizer.write_text(tokenizer.read_text().replace('"g0"', '"goal"'))
    for _ in range(2):
        assert [policy.name for policy in portfolio((), home)] == list(PARTNERS)
        with pytest.raises(UserError, match="llm4cov run"):
            portfolio(["stage_1"], home)
        shutil.rmtree(tokenizer.parent, ignore_errors=True)


@pytest.mark.parametrize("name", ["stage_2", "nobody", "scripted/none"])
def test_a_policy_that_is_not_there_is_a_user_error(trained, name):
    with pytest.raises(UserError, match=name):
        portfolio([name], trained)
