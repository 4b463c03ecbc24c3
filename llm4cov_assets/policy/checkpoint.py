"""Checkpoint folders: weights and tokenizer as plain transformers loads them, `training.json`, and a model card.

`training.json` is written last and the folder gets its name by a rename, so a folder that has it is complete.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm4cov_assets.policy.tokens import TOKEN_ID, save_tokenizer

if TYPE_CHECKING:
    from transformers import Qwen3ForCausalLM

RECORD = "training.json"


@dataclass(frozen=True)
class Checkpoint:
    """A finished checkpoint. `loss_curve` holds (step, mean loss since the entry before); `tokens` counts the input
    tokens that training saw; `cpu_s` is the CPU time of the training process. All are empty for a base student."""

    checkpoint_id: str
    path: Path
    parent_checkpoint_id: str | None = None
    data_hash: str = ""
    parameters: int = 0
    steps: int = 0
    tokens: int = 0
    cpu_s: float = 0.0
    wall_s: float = 0.0
    n_examples: int = 0
    dropped_too_long: int = 0
    loss_curve: tuple[tuple[int, float], ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    versions: str = ""
    reused: bool = field(default=False, compare=False)


def load_checkpoint(path: Path) -> Checkpoint | None:
    """The checkpoint in folder `path`, marked as reused; None when there is no finished one."""
    try:
        record = json.loads((path / RECORD).read_text())
    except FileNotFoundError:
        return None
    curve = tuple((int(step), float(loss)) for step, loss in record.pop("loss_curve"))
    return Checkpoint(**record, path=path, loss_curve=curve, reused=True)


def speaks(path: Path) -> bool:
    """Whether the model in folder `path` is there and has the vocabulary of this program; one that was trained by
    another version may have another, and no answer of it could be read."""
    try:
        vocabulary = json.loads((path / "tokenizer.json").read_text())["model"]["vocab"]
    except FileNotFoundError:
        return False
    return bool(vocabulary == TOKEN_ID)


def save_checkpoint(checkpoint: Checkpoint, write_weights: Callable[[Path], None]) -> None:
    """Make the folder `checkpoint.path`: weights by `write_weights(folder)`, tokenizer, card, record.

    An unfinished folder of that name is replaced.
    """
    final = checkpoint.path
    partial = final.with_name(f".{final.name}.{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    write_weights(partial)
    save_tokenizer(partial)
    record = asdict(checkpoint)
    del record["path"], record["reused"]
    (partial / "README.md").write_text(_card(checkpoint))
    (partial / RECORD).write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    shutil.rmtree(final, ignore_errors=True)
    os.replace(partial, final)


def load_model(path: Path) -> Qwen3ForCausalLM:
    """The model of a checkpoint folder, in float32, ready for inference."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, local_files_only=True)
    return model.eval()


def versions() -> str:
    """Versions that decide trained weights; read from package metadata, so nothing heavy is imported."""
    from importlib.metadata import version

    return " ".join(f"{name} {version(name)}" for name in ("torch", "transformers", "trl"))


def _card(checkpoint: Checkpoint) -> str:
    first, last = (checkpoint.loss_curve[0][1], checkpoint.loss_curve[-1][1]) if checkpoint.loss_curve else (None, None)
    how = (
        f"Trained with TRL's SFTTrainer for {checkpoint.steps} steps on {checkpoint.n_examples} rows "
        f"({checkpoint.tokens} tokens), loss {first:.3f} to {last:.3f}, from checkpoint "
        f"`{checkpoint.parent_checkpoint_id}`."
        if first is not None and last is not None
        else "Seeded initial weights; not trained."
    )
    return f"""---
library_name: transformers
pipeline_tag: text-generation
license: apache-2.0
---
# Testbench student {checkpoint.checkpoint_id}

A {checkpoint.parameters:,}-parameter model of the Qwen3 architecture. It reads uncovered conditions of a hardware
design in a compact text and answers with stimulus, which is rendered to an ordinary cocotb testbench. It does not read
the design's source, and it makes stimulus only: no checks, no assertions.

{how}

Prompt: `new g0 p0 1 p3 >= a5 ; p7 0 x 0c do`; answer: `g0 p0 1 p3 a5 ; p7 0 x 0c <eos>`. Decode under the
grammar of answers, which keeps ports, tags and numbers of digits legal. `{RECORD}` holds the settings and the loss.

Versions: {checkpoint.versions}.
"""
