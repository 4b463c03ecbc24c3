"""Policies by public name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from llm4cov_assets.errors import UserError
from llm4cov_assets.policy.base import Generation, Policy, State
from llm4cov_assets.policy.scripted import BASELINES, SCRIPTED, ScriptedDirected, scripted
from llm4cov_assets.profiles import Profile

if TYPE_CHECKING:
    from warehouse.store import Store

STUDENTS = ("untrained", "stage_0", "stage_1", "stage_2", "control")
"""Policies that are a checkpoint of the current configuration."""


class Renamed:
    """A policy under another public name; everything else, its identity included, is the original's."""

    def __init__(self, name: str, policy: Policy) -> None:
        self.name = name
        self.engine, self.policy_id, self.checkpoint_id = policy.engine, policy.policy_id, policy.checkpoint_id
        self.original = policy

    def propose(self, states: Sequence[State], n: int, seed: int) -> list[Generation]:
        """See `Policy.propose`."""
        return self.original.propose(states, n, seed)


def baseline_names(profile: Profile) -> list[str]:
    """Policies that the stages are measured against. A teacher without limits is listed once, as `teacher`."""
    same = profile.teacher if not profile.teacher_reach else ""
    return ["untrained", "teacher", *(name for name in BASELINES if name != same)]


def policy_by_name(name: str, profile: Profile, store: Store) -> Policy:
    """The policy `name` of `profile`'s configuration.

    Names: `scripted/...`, `teacher` (what the profile names as such) and the students `untrained`, `stage_0`,
    `stage_1`, `stage_2`, `control`. UserError for any other name, and for a student that is not trained yet.
    """
    if name == "teacher":
        if profile.teacher == ScriptedDirected.name:
            limited = ScriptedDirected(reach=profile.teacher_reach, patience=profile.teacher_patience)
            return Renamed("teacher", limited)
        return Renamed("teacher", policy_by_name(profile.teacher, profile, store))
    if name in SCRIPTED:
        return scripted(name)
    if name not in STUDENTS:
        raise UserError(f"no policy {name!r}; there are teacher, {', '.join((*SCRIPTED, *STUDENTS))}")
    found = checkpoint_of(name, profile, store)
    if found is None:
        raise UserError(
            f"policy {name} is not trained yet for profile {profile.name}: llm4cov run --profile {profile.name}"
        )
    return student(name, *found, profile, store.home)


def checkpoint_of(name: str, profile: Profile, store: Store) -> tuple[str, Path] | None:
    """Id and folder of the checkpoint behind a student of this configuration, or None."""
    rows = store.read("checkpoints", config_hash=profile.config_hash).filter(pl.col("policy") == name)
    if rows.is_empty():
        return None
    newest = rows.sort("created_at").row(-1, named=True)
    return newest["checkpoint_id"], store.home / newest["path"]


def student(
    name: str, checkpoint_id: str, folder: Path, profile: Profile, home: Path, *, exploring: bool = False
) -> Policy:
    """The student with the weights in `folder`, with the home's generation cache; sampling as the profile says for
    evaluations or, `exploring`, for the drafts and repairs of a stage."""
    from llm4cov_assets.policy.student import StudentPolicy

    return StudentPolicy(
        name,
        folder,
        checkpoint_id,
        temperature=profile.exploration if exploring else profile.temperature,
        per_prompt=profile.per_prompt if exploring else 1,
        top_p=profile.top_p,
        threads=profile.threads,
        cache_dir=home / "cache" / "generations",
    )
