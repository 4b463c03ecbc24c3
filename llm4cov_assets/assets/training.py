"""Bodies of `base_student`, `sft_dataset`, `checkpoint` and the control's training."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm4cov_assets.assets.resources import TrainerResource
from llm4cov_assets.assets.work import Outcome, Work
from llm4cov_assets.errors import UserError
from sim.identity import content_id

if TYPE_CHECKING:
    import polars as pl

    from llm4cov_assets.learning.dataset import AcceptedPair
    from llm4cov_assets.policy.checkpoint import Checkpoint
    from sim.simulator import Simulator


def initial_checkpoint(work: Work) -> Checkpoint:
    """The base student, made when it is not there yet."""
    from llm4cov_assets.policy.student import base_student

    return base_student(work.profile, work.store.home / "checkpoints")


def initial_student(work: Work) -> Outcome:
    """The base student's checkpoint row."""
    made = initial_checkpoint(work)
    return Outcome({"checkpoints": checkpoint_rows(work, [("untrained", made)])}, {"parameters": made.parameters})


def stage_data(work: Work, k: int) -> pl.DataFrame:
    """Rows that stage k trains on: its own, and with `replay` those of the stages before it, its own counting twice."""
    import polars as pl

    own = work.read("sft_examples", f"stage_{k}/sft_dataset")
    if not work.profile.replay or own.is_empty():
        return own
    before = [work.read("sft_examples", f"stage_{j}/sft_dataset") for j in range(k)]
    return pl.concat([*before, own, own]) if k else own


def trained(
    work: Work, trainer: TrainerResource, policy: str, data: pl.DataFrame, *, parent: str, phases: Sequence[int]
) -> Outcome:
    """Train `policy` on `data` from the checkpoint of asset `parent`, with the steps and rates of stages `phases`.

    Without any row the weights stay those of the parent, and the metadata shows 0 steps.
    """
    folder = work.store.home / "checkpoints"
    before = work.read("checkpoints", parent)
    if before.is_empty():
        raise UserError(f"{work.asset} starts from {parent}, which has no checkpoint yet: materialise it first")
    path, made = work.store.home / before.sort("created_at")["path"][-1], []
    for phase in phases if data.height else []:
        steps = work.profile.steps[phase]
        with work.task(f"training with the steps of stage {phase}", steps, "steps") as task:
            seen = 0

            def progress(step: int, _: int, loss: float) -> None:
                nonlocal seen
                task.advance(step - seen)
                seen = step

            made.append(
                trainer.train(
                    data.sort("example_id"),
                    path,
                    folder,
                    steps=steps,
                    learning_rate=work.profile.learning_rates[phase],
                    batch_rows=work.profile.batch_rows,
                    max_length=work.profile.max_length,
                    threads=work.profile.threads,
                    seed=work.profile.seed,
                    progress=progress,
                )
            )
        path = made[-1].path
    made = made or [unchanged(path, folder, policy)]
    names = [f"{policy}/phase_{n}" for n in range(1, len(made))] + [policy]
    rows = checkpoint_rows(work, list(zip(names, made, strict=True)), n_designs=data["design_id"].n_unique())
    return Outcome({"checkpoints": rows}, training_metadata(made))


def unchanged(parent: Path, folder: Path, policy: str) -> Checkpoint:
    """A checkpoint with the weights of its parent: a stage that accepted nothing has nothing to train on."""
    from llm4cov_assets.policy.checkpoint import Checkpoint, load_checkpoint, save_checkpoint

    before = load_checkpoint(parent)
    if before is None:
        raise UserError(f"{parent} is not a finished checkpoint: materialise the asset that makes it again")
    checkpoint_id = content_id("checkpoint", "unchanged", before.checkpoint_id, policy)
    path = folder / checkpoint_id
    if found := load_checkpoint(path):
        return found

    def copy(target: Path) -> None:
        for file in before.path.glob("*"):
            if file.name.startswith(("model", "config", "generation_config")):
                shutil.copy2(file, target)

    made = Checkpoint(checkpoint_id, path, before.checkpoint_id, parameters=before.parameters, versions=before.versions)
    save_checkpoint(made, copy)
    return made


def training_metadata(made: Sequence[Checkpoint]) -> dict[str, Any]:
    """What a person wants to know about one or more trainings in a row."""
    from llm4cov_assets.report.plots import curve, markdown

    losses, before = [], 0
    for checkpoint in made:
        losses += [(before + step, loss) for step, loss in checkpoint.loss_curve]
        before += checkpoint.steps
    fresh = [c for c in made if not c.reused]
    return {
        "checkpoint_id": made[-1].checkpoint_id,
        "steps": sum(c.steps for c in made),
        "tokens": sum(c.tokens for c in made),
        "examples": made[-1].n_examples,
        "rows_too_long": made[-1].dropped_too_long,
        "parameters": made[-1].parameters,
        "loss_last": losses[-1][1] if losses else 0.0,
        "loss": {"markdown": markdown(curve(losses, "loss"), "loss")},
        "training_steps_run": sum(c.steps for c in fresh),
        "cpu_s": round(sum(c.cpu_s for c in fresh), 2),
    }


def checkpoint_rows(work: Work, made: Sequence[tuple[str, Checkpoint]], n_designs: int = 0) -> pl.DataFrame:
    """Rows of the table `checkpoints`."""
    from llm4cov_assets.rows import table_frame

    return table_frame(
        "checkpoints",
        (
            {
                **{name: getattr(c, name) for name in _SAME},
                "policy": name,
                "path": str(c.path.relative_to(work.store.home)),
                "n_designs": n_designs,
                "loss_first": c.loss_curve[0][1] if c.loss_curve else None,
                "loss_last": c.loss_curve[-1][1] if c.loss_curve else None,
            }
            for name, c in made
        ),
    )


_SAME = (
    "checkpoint_id",
    "parent_checkpoint_id",
    "data_hash",
    "n_examples",
    "steps",
    "tokens",
    "parameters",
    "cpu_s",
    "versions",
)
"""Columns that a checkpoint has under the same name."""


def training_rows(work: Work, simulator: Simulator) -> Outcome:
    """Rows made of what this stage accepted, on training designs."""
    from llm4cov_assets.learning.dataset import examples

    pairs = accepted_pairs(work, simulator)
    with work.task("training rows of accepted pairs", len(pairs), "pairs") as task:
        rows, dropped = examples(pairs, work.profile.variants, work.profile.seed, work.profile.max_length)
        task.advance(len(pairs))
    return Outcome(
        {"sft_examples": rows},
        {
            "accepted_drafts": sum(p.role == "draft" for p in pairs),
            "accepted_repairs": sum(p.role == "repair" for p in pairs),
            "examples": rows.height,
            "designs": rows["design_id"].n_unique(),
            "batches": len(work.finished.partitions(f"stage_{work.stage}/repair_coverage")),
            "tokens": int(rows["n_tokens"].sum()),
            "tokens_longest": int(rows["n_tokens"].max() or 0),
            **{f"left_out/{reason}": n for reason, n in dropped.items()},
        },
    )


def accepted_pairs(work: Work, simulator: Simulator) -> list[AcceptedPair]:
    """What the filter accepted in this stage, ordered by transition; other splits than train are left out."""
    import polars as pl

    from llm4cov_assets.assets.recall import designs_of, states_of, testbenches_of
    from llm4cov_assets.learning.dataset import AcceptedPair

    group = f"stage_{work.stage}"
    pairs: list[AcceptedPair] = []
    for partition in work.finished.partitions(f"{group}/repair_coverage"):
        train = work.read("designs", "designs", partition).filter(split="train")["design_id"].to_list()
        sources = [f"{group}/draft_coverage", f"{group}/repair_coverage"]
        accepted = pl.concat([work.read("transitions", source, partition) for source in sources]).filter(
            pl.col("accepted") & pl.col("design_id").is_in(train)
        )
        wanted = pl.concat([accepted.select("state_id"), accepted.select(state_id="next_state_id")]).unique()
        reached = pl.concat([work.read("states", source, partition) for source in sources]).unique("state_id")
        designs = {d.design_id: d for d in designs_of(work, partition)}
        testbenches = testbenches_of(work, [f"{group}/drafts", f"{group}/repairs"], partition)
        states = states_of(work, simulator, reached.join(wanted, on="state_id").sort("state_id"), designs, testbenches)
        for row in accepted.sort("transition_id").iter_rows(named=True):
            after = states[row["next_state_id"]]
            assert after.testbench and after.simulation
            pairs.append(
                AcceptedPair(
                    row["transition_id"], states[row["state_id"]], after.testbench, after.simulation, row["role"]
                )
            )
    return pairs
