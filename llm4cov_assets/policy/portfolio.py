"""Which policies work together on one design when nobody names one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from llm4cov_assets.errors import UserError
from llm4cov_assets.policy import registry
from llm4cov_assets.policy.base import Policy
from llm4cov_assets.policy.checkpoint import speaks
from llm4cov_assets.policy.scripted import SCRIPTED, scripted
from llm4cov_assets.profiles import PROFILES, Profile
from warehouse.store import Store

PARTNERS = ("scripted/handshake", "scripted/directed", "scripted/random")
"""They cost nothing to ask, and each reaches points that a student misses. The first leaves the second less to do: on
the bundled designs all three get further with fewer simulations than the other two alone."""

_BEST_FIRST = ("stage_2", "stage_1", "stage_0")


def portfolio(names: Sequence[str], home: Path) -> list[Policy]:
    """The policies called `names`, or without names the newest student (if there is one) and the scripted partners.

    A student is looked up whatever configuration it was trained under, the newest first; one of another version of
    this program, whose answers could not be read, counts as not there. UserError for an unknown name and for a student
    that is not trained yet.
    """
    if names:
        return [_named(name, home) for name in dict.fromkeys(names)]
    newest = _newest_student(home)
    return [*([newest] if newest else []), *(scripted(name) for name in PARTNERS)]


def _named(name: str, home: Path) -> Policy:
    if name in SCRIPTED:
        return scripted(name)
    if name not in registry.STUDENTS:
        raise UserError(f"no policy {name!r}; there are {', '.join((*SCRIPTED, *registry.STUDENTS))}")
    rows = _checkpoints(home).filter(pl.col("policy") == name)
    if rows.is_empty():
        raise UserError(f"policy {name} is not trained yet by this version of the program: llm4cov run")
    return _student(rows.row(-1, named=True), home)


def _newest_student(home: Path) -> Policy | None:
    """The student of the last stage that the newest configuration has reached."""
    rows = _checkpoints(home).filter(pl.col("policy").is_in(_BEST_FIRST))
    if rows.is_empty():
        return None
    current = rows.filter(pl.col("config_hash") == rows["config_hash"][-1]).rows(named=True)
    return _student(min(reversed(current), key=lambda row: _BEST_FIRST.index(row["policy"])), home)


def _checkpoints(home: Path) -> pl.DataFrame:
    """The checkpoints that can be used: those of the configuration that ran last come last, the newest at the end."""
    store = Store(home)
    last = store.read("runs").group_by("config_hash").agg(ran_at=pl.col("started_at").max())
    rows = store.read("checkpoints").join(last, on="config_hash", how="left")
    rows = rows.sort("ran_at", "created_at", nulls_last=False).drop("ran_at")
    return rows.filter([speaks(home / path) for path in rows["path"]]) if rows.height else rows


def _student(row: dict, home: Path) -> Policy:
    profile = next((p for p in PROFILES.values() if p.config_hash == row["config_hash"]), Profile())
    return registry.student(row["policy"], row["checkpoint_id"], home / row["path"], profile, home)
