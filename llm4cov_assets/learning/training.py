"""Supervised fine-tuning of the small student with TRL's SFTTrainer, in a process of its own.

`train` prepares a work folder, starts `python -m llm4cov_assets.learning.training CONFIG.json`, passes its progress
on, and returns the finished checkpoint. The weights are a function of the rows, the parent, the settings and the
library versions: these make the checkpoint's id, the folder's name, and the reason never to train it again.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm4cov_assets.policy import tokens as t
from llm4cov_assets.policy.checkpoint import Checkpoint, load_checkpoint, save_checkpoint, versions
from sim.identity import content_id, sha256

if TYPE_CHECKING:
    import polars as pl

Progress = Callable[[int, int, float], None]
"""Called with (step, steps in all, mean loss since the call before)."""

SAVES = 4
"""How often a training saves its state, to go on from there after a kill."""

MATRIX_RATE = 2.0
"""Learning rate of the matrices (Muon, updates scaled to the size of AdamW's) over that of the rest (AdamW)."""

_COMPLETE = "complete"

_GROUP = 16
"""Batches whose rows are sorted by length together."""


class TrainingError(Exception):
    """The training process failed. The message has the end of its output."""


@dataclass(frozen=True)
class Settings:
    """What decides the weights beside rows, parent and versions."""

    steps: int
    learning_rate: float
    batch_rows: int
    max_length: int
    threads: int
    seed: int
    schedule: str = "cosine"
    warmup_steps: int = 0
    weight_decay: float = 0.01
    adam_beta1: float = 0.9
    adam_beta2: float = 0.98
    matrix_rate: float = MATRIX_RATE
    max_grad_norm: float = 1.0


def data_hash(examples: pl.DataFrame) -> str:
    """Hash of the training rows (prompt and completion), in order."""
    return sha256([[row[0], row[1]] for row in examples.select("prompt", "completion").iter_rows()])


def train(
    examples: pl.DataFrame,
    parent_dir: Path,
    out_dir: Path,
    *,
    steps: int,
    learning_rate: float,
    batch_rows: int,
    max_length: int,
    threads: int,
    seed: int,
    progress: Progress | None = None,
) -> Checkpoint:
    """Train the checkpoint in folder `parent_dir` on `examples` (columns `prompt`, `completion`, in order).

    The result is the folder `out_dir/<checkpoint_id>`. A finished one is returned at once, marked `reused`; an
    unfinished training goes on from its last saved state. Of two calls for the same checkpoint at a time, one trains
    and the other waits. Rows over `max_length` tokens are left out and counted. Raises TrainingError.
    """
    parent = load_checkpoint(parent_dir)
    if parent is None:
        raise TrainingError(f"{parent_dir} is not a finished checkpoint")
    settings = Settings(steps, learning_rate, batch_rows, max_length, threads, seed, warmup_steps=min(50, steps // 10))
    rows_hash = data_hash(examples)
    checkpoint_id = content_id("checkpoint", rows_hash, parent.checkpoint_id, asdict(settings), versions())
    final = out_dir / checkpoint_id
    if found := load_checkpoint(final):
        return found
    work = out_dir / f".work-{checkpoint_id}"
    with _locked(out_dir / f".lock-{checkpoint_id}"):
        if found := load_checkpoint(final):
            return found
        config = {
            "checkpoint_id": checkpoint_id,
            "final": str(final),
            "work": str(work),
            "parent": str(parent_dir),
            "parent_checkpoint_id": parent.checkpoint_id,
            "data_hash": rows_hash,
            "settings": asdict(settings),
            "versions": versions(),
        }
        _prepare(work, config, examples)
        _run(work / "config.json", steps, threads, progress)
        shutil.rmtree(work)
    made = load_checkpoint(final)
    if made is None:
        raise TrainingError(f"training ended without a checkpoint at {final}")
    return Checkpoint(**{**vars(made), "reused": False})


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
        # only after success, when whoever waits finds the finished folder; a lock that failed must keep its name
        path.unlink(missing_ok=True)


def _prepare(work: Path, config: dict[str, Any], examples: pl.DataFrame) -> None:
    """Write rows and configuration; what a killed training saved beside them stays."""
    work.mkdir(parents=True, exist_ok=True)
    with (work / "rows.jsonl").open("w") as file:
        for row in examples.select("prompt", "completion").iter_rows():
            file.write(json.dumps(row) + "\n")
    (work / "config.json").write_text(json.dumps(config, indent=1))


def _run(config: Path, steps: int, threads: int, progress: Progress | None) -> None:
    """Run the training process and pass its progress lines on."""
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        "PYTHONUNBUFFERED": "1",
    }
    command = [sys.executable, "-m", "llm4cov_assets.learning.training", str(config)]
    log = config.with_name("log.txt")
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if progress and line.startswith('{"step"'):
                    entry = json.loads(line)
                    progress(entry["step"], steps, entry["loss"])
            code = process.wait()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if code != 0:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
        raise TrainingError(f"training process ended with {code}; the end of {log}:\n{tail}")


# What follows runs in the training process.


def _tokenise(lines: Sequence[str], max_length: int) -> tuple[list[list[int]], list[list[int]], int]:
    """Rows as (input ids, labels); the prompt has no loss. Also how many rows were too long."""
    ids, labels, dropped = [], [], 0
    for line in lines:
        prompt, completion = (t.encode(text) for text in json.loads(line))
        if len(prompt) + len(completion) > max_length:
            dropped += 1
            continue
        ids.append([*prompt, *completion])
        labels.append([*[-100] * len(prompt), *completion])
    return ids, labels, dropped


def schedule(lengths: Sequence[int], steps: int, batch_rows: int, seed: int) -> list[int]:
    """Row numbers in the order of training, `batch_rows` per step: every row once per pass, passes in random order.

    The rows of a batch have like lengths, which spares most of the padding (two thirds of the work on rows of 13 to
    270 tokens); batches come in random order, so that the length tells nothing about the time.
    """
    rng = random.Random(seed)
    order: list[int] = []
    while len(order) < steps * batch_rows:
        rows = list(range(len(lengths)))
        rng.shuffle(rows)
        # sorting within groups of batches, not all rows, keeps batches different from pass to pass
        group = _GROUP * batch_rows
        batches = []
        for start in range(0, len(rows), group):
            part = sorted(rows[start : start + group], key=lambda row: lengths[row])
            batches += [part[i : i + batch_rows] for i in range(0, len(part), batch_rows)]
        rng.shuffle(batches)
        # a short batch would shift the following ones over their ends
        batches.sort(key=len, reverse=True)
        order += [row for batch in batches for row in batch]
        if len(lengths) % batch_rows:
            order += rng.choices(rows, k=-len(order) % batch_rows)
    return order[: steps * batch_rows]


def _sft_config(settings: Settings, folder: Path) -> Any:
    """Every field that could change the weights or the cost, set here whatever the library's defaults are."""
    import torch
    from trl import SFTConfig

    cuda = torch.cuda.is_available()
    return SFTConfig(
        output_dir=str(folder),
        max_steps=settings.steps,
        num_train_epochs=1.0,
        per_device_train_batch_size=settings.batch_rows,
        gradient_accumulation_steps=1,
        learning_rate=settings.learning_rate,
        lr_scheduler_type=settings.schedule,
        lr_scheduler_kwargs=None,
        warmup_steps=settings.warmup_steps,
        optim="adamw_torch",  # not used: the trainer is given an optimiser
        weight_decay=settings.weight_decay,
        adam_beta1=settings.adam_beta1,
        adam_beta2=settings.adam_beta2,
        max_grad_norm=settings.max_grad_norm,
        label_smoothing_factor=0.0,
        neftune_noise_alpha=None,
        average_tokens_across_devices=False,
        # numbers
        bf16=False,
        fp16=False,
        tf32=False if cuda else None,
        use_cpu=not cuda,
        torch_compile=False,
        use_liger_kernel=False,
        gradient_checkpointing=False,
        activation_offloading=False,
        full_determinism=False,
        seed=settings.seed,
        data_seed=settings.seed,
        # rows: tokenised and cut to length before
        max_length=settings.max_length,
        completion_only_loss=True,
        assistant_only_loss=False,
        loss_type="nll",
        packing=False,
        padding_free=False,
        pad_to_multiple_of=None,
        shuffle_dataset=False,
        dataset_kwargs={"skip_prepare_dataset": True},
        dataset_num_proc=None,
        remove_unused_columns=False,
        train_sampling_strategy="sequential",
        dataloader_num_workers=0,
        dataloader_pin_memory=False,
        dataloader_drop_last=False,
        auto_find_batch_size=False,
        # what is written
        eval_strategy="no",
        logging_strategy="steps",
        logging_steps=max(1, settings.steps // 60),
        logging_first_step=True,
        include_num_input_tokens_seen="non_padding",
        save_strategy="steps",
        save_steps=max(1, settings.steps // SAVES),
        save_total_limit=2,
        save_only_model=False,
        report_to="none",
        push_to_hub=False,
        disable_tqdm=True,
        log_level="warning",
    )


def _last_saved(folder: Path) -> str | None:
    """The newest state that was saved as a whole; a kill in the middle of saving leaves one that is not."""
    whole = [path.parent for path in folder.glob(f"checkpoint-*/{_COMPLETE}")]
    return str(max(whole, key=lambda path: int(path.name.split("-")[1]))) if whole else None


def _train_here(config: dict[str, Any]) -> None:
    """Train, print progress lines, and write the checkpoint."""
    started, cpu = time.monotonic(), time.process_time()
    settings = Settings(**config["settings"])
    work = Path(config["work"])
    ids, labels, dropped = _tokenise((work / "rows.jsonl").read_text().splitlines(), settings.max_length)
    if not ids:
        raise ValueError("no training row is left")
    order = schedule([len(row) for row in ids], settings.steps, settings.batch_rows, settings.seed)

    import torch
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, TrainerCallback
    from trl import SFTTrainer

    from llm4cov_assets.learning.optimizer import MuonAdamW

    torch.set_num_threads(settings.threads)

    class Report(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
            if logs and "loss" in logs:
                print(json.dumps({"step": state.global_step, "loss": float(logs["loss"])}), flush=True)

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            (folder / f"checkpoint-{state.global_step}" / _COMPLETE).touch()

    folder = work / "trainer"
    model = AutoModelForCausalLM.from_pretrained(config["parent"], dtype=torch.float32, local_files_only=True)
    optimizer = MuonAdamW(
        model,
        lr=settings.learning_rate,
        matrix_rate=settings.matrix_rate,
        weight_decay=settings.weight_decay,
        adam_betas=(settings.adam_beta1, settings.adam_beta2),
    )
    trainer = SFTTrainer(
        model=model,
        args=_sft_config(settings, folder),
        train_dataset=Dataset.from_dict({"input_ids": [ids[i] for i in order], "labels": [labels[i] for i in order]}),
        processing_class=t.fast_tokenizer(),
        callbacks=[Report()],
        optimizers=(optimizer, None),
    )
    trainer.train(resume_from_checkpoint=_last_saved(folder))
    curve = tuple((int(e["step"]), float(e["loss"])) for e in trainer.state.log_history if "loss" in e)
    made = Checkpoint(
        checkpoint_id=config["checkpoint_id"],
        path=Path(config["final"]),
        parent_checkpoint_id=config["parent_checkpoint_id"],
        data_hash=config["data_hash"],
        parameters=sum(p.numel() for p in trainer.model.parameters()),
        steps=trainer.state.global_step,
        tokens=int(trainer.state.num_input_tokens_seen),
        cpu_s=time.process_time() - cpu,
        wall_s=time.monotonic() - started,
        n_examples=len(ids),
        dropped_too_long=dropped,
        loss_curve=curve,
        settings=config["settings"],
        versions=config["versions"],
    )
    save_checkpoint(made, trainer.model.save_pretrained)


def _end_with_parent() -> None:
    """Be killed when the starting process dies, so that a killed run leaves no training behind (Linux)."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


if __name__ == "__main__":
    if sys.platform == "linux":
        _end_with_parent()
    _train_here(json.loads(Path(sys.argv[1]).read_text()))
