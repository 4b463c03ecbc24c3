"""Training of the small student with TRL, on a few tiny rows."""

import json
import os
import signal
import subprocess
import sys
import time

import polars as pl
import pytest

from llm4cov_assets.learning import training
from llm4cov_assets.learning.training import TrainingError, data_hash, train
from llm4cov_assets.policy.checkpoint import load_checkpoint
from llm4cov_assets.policy.student import base_student
from llm4cov_assets.profiles import Profile

ROWS = pl.DataFrame(
    [{"prompt": f"more g0 p{i % 16} {i:02x} do", "completion": f"g0 p{i % 16} {i:02x} <eos>"} for i in range(24)]
)
SETTINGS = {"steps": 8, "learning_rate": 3e-3, "batch_rows": 4, "max_length": 64, "threads": 1, "seed": 3}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    profile = Profile(hidden_size=32, layers=1, max_length=64)
    return base_student(profile, tmp_path_factory.mktemp("base"))


def weights(checkpoint):
    return (checkpoint.path / "model.safetensors").read_bytes()


def test_base_student_is_seeded_and_made_once(base, tmp_path):
    profile = Profile(hidden_size=32, layers=1, max_length=64)
    again = base_student(profile, tmp_path)
    assert weights(again) == weights(base) and again.checkpoint_id == base.checkpoint_id
    assert not again.reused and base_student(profile, tmp_path).reused
    other = base_student(profile.model_copy(update={"seed": 1}), tmp_path)
    assert weights(other) != weights(base) and other.checkpoint_id != base.checkpoint_id


def test_data_hash_depends_on_rows_and_their_order():
    assert data_hash(ROWS) == data_hash(ROWS.clone())
    assert data_hash(ROWS) != data_hash(ROWS.reverse())


def test_a_folder_that_is_no_checkpoint_is_refused(tmp_path):
    with pytest.raises(TrainingError, match="not a finished checkpoint"):
        train(ROWS, tmp_path / "nothing", tmp_path, **SETTINGS)


@pytest.mark.slow
def test_training_learns_is_told_once_and_gives_a_folder_that_transformers_loads(base, tmp_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    long = pl.DataFrame({"prompt": ["more g0 " + "p1 1 " * 40 + "do"], "completion": ["r 40 <eos>"]})
    seen = []
    made = train(
        pl.concat([ROWS, long]), base.path, tmp_path, **SETTINGS, progress=lambda step, n, loss: seen.append((step, n))
    )
    assert seen == [(step, 8) for step in range(1, 9)]
    assert [step for step, _ in made.loss_curve] == list(range(1, 9))
    assert made.loss_curve[-1][1] < made.loss_curve[0][1]
    assert (made.steps, made.n_examples, made.dropped_too_long, made.reused) == (8, 24, 1, False)
    assert made.parent_checkpoint_id == base.checkpoint_id and made.tokens > 0 and made.cpu_s > 0
    assert made.path == tmp_path / made.checkpoint_id
    assert os.listdir(tmp_path) == [made.checkpoint_id], "nothing else is left behind"

    model = AutoModelForCausalLM.from_pretrained(made.path)
    tokenizer = AutoTokenizer.from_pretrained(made.path)
    ids = tokenizer(ROWS["prompt"][0], return_tensors="pt")
    assert model.generate(**ids, max_new_tokens=4).shape[0] == 1
    assert {"README.md", "training.json"} <= set(os.listdir(made.path))

    again = train(
        pl.concat([ROWS, long]), base.path, tmp_path, **SETTINGS, progress=lambda *_: pytest.fail("retrained")
    )
    assert again.reused and again == made


@pytest.mark.slow
def test_a_killed_training_goes_on_to_the_same_weights(base, tmp_path):
    whole = train(ROWS, base.path, tmp_path / "whole", **SETTINGS)

    # a training in a process of its own, killed with everything it started once it has saved a state
    out = tmp_path / "killed"
    ROWS.write_parquet(tmp_path / "rows.parquet")
    script = (
        "import polars as pl, json, pathlib; from llm4cov_assets.learning.training import train; "
        f"train(pl.read_parquet({str(tmp_path / 'rows.parquet')!r}), pathlib.Path({str(base.path)!r}), "
        f"pathlib.Path({str(out)!r}), **json.loads({json.dumps(SETTINGS)!r}))"
    )
    process = subprocess.Popen([sys.executable, "-c", script])
    deadline = time.monotonic() + 120
    while not list(out.glob(".work-*/trainer/checkpoint-*/complete")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert load_checkpoint(out / whole.checkpoint_id) is None

    resumed = train(ROWS, base.path, out, **SETTINGS)
    assert resumed.checkpoint_id == whole.checkpoint_id
    assert weights(resumed) == weights(whole)
    assert resumed.loss_curve == whole.loss_curve and resumed.tokens == whole.tokens


@pytest.mark.slow
def test_a_failing_training_says_why(base, tmp_path):
    too_long = pl.DataFrame({"prompt": ["more g0 " + "p1 1 " * 40 + "do"], "completion": ["r 40 <eos>"]})
    with pytest.raises(TrainingError, match="no training row is left"):
        train(too_long, base.path, tmp_path, **SETTINGS)


def test_two_trainings_of_one_checkpoint_take_turns(tmp_path):
    with training._locked(tmp_path / "lock"):
        script = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)"
        other = subprocess.run([sys.executable, "-c", script, str(tmp_path / "lock")], capture_output=True, text=True)
    assert "BlockingIOError" in other.stderr
