"""One resource per outside thing, each replaceable in a test, and the profile as run config."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin

import dagster as dg
import pydantic

from llm4cov_assets.errors import UserError
from llm4cov_assets.home import home
from llm4cov_assets.profiles import Profile

if TYPE_CHECKING:
    import polars as pl

    from llm4cov_assets.assets.work import Results
    from llm4cov_assets.policy.base import Policy
    from llm4cov_assets.policy.checkpoint import Checkpoint
    from sim.simulator import Simulator
    from warehouse.store import Store


class _ProfileFields(dg.ConfigurableResource):
    def resolved(self) -> Profile:
        """The profile that the run config describes."""
        return Profile(**{name: getattr(self, name) for name in Profile.model_fields})


def _field(name: str) -> Any:
    """The config field of a profile field; Dagster's config has lists, not tuples."""
    info = Profile.model_fields[name]
    kind, default = info.annotation, info.get_default(call_default_factory=True)
    if get_origin(kind) is tuple:
        kind, default = list[get_args(kind)[0]], list(default)
    return kind, pydantic.Field(default=default, description=info.description)


ProfileResource = pydantic.create_model(
    "ProfileResource", __base__=_ProfileFields, __module__=__name__, **{n: _field(n) for n in Profile.model_fields}
)
"""The profile, field by field, with the defaults of `demo`: what the launchpad shows."""


def run_config(profile: Profile) -> dict[str, Any]:
    """The run config that resolves to `profile`."""
    return {"resources": {"profile": {"config": profile.model_dump(mode="json")}}}


class WarehouseResource(dg.ConfigurableResource):
    """The store of Parquet parts below `LLM4COV_HOME`."""

    def store(self) -> Store:
        from warehouse.store import Store

        return Store(home())


class SimulatorResource(dg.ConfigurableResource):
    """The simulator with its builds, cache and worker pool."""

    workers: int = pydantic.Field(default=0, ge=0, description="worker processes; 0 is one per core")
    retry_faults: bool = pydantic.Field(default=False, description="run simulations again that a machine fault stopped")

    @contextmanager
    def open(self) -> Iterator[Simulator]:
        """A running simulator; its workers end with the block."""
        from sim.simulator import Simulator

        with Simulator(home(), workers=self.workers or None, retry_faults=self.retry_faults) as simulator:
            yield simulator


class PoliciesResource(dg.ConfigurableResource):
    """Policies by public name."""

    def exploring(self, name: str, results: Results) -> Policy:
        """The policy `name` as it drafts and repairs in a stage: a student samples more freely there."""
        return self.named(name, results, exploring=True)

    def named(self, name: str, results: Results, *, exploring: bool = False) -> Policy:
        """The policy `name` as it is now: a student has the weights that its asset made last.

        UserError for an unknown name and for a student that is not trained yet.
        """
        from llm4cov_assets.policy.registry import STUDENTS, policy_by_name, student

        if name not in STUDENTS:
            return policy_by_name(name, results.profile, results.store)
        asset = "base_student" if name == "untrained" else f"{name}/checkpoint"
        rows = results.read("checkpoints", asset).filter(policy=name).rows(named=True)
        if not rows:
            raise UserError(f"policy {name} is not trained yet for profile {results.profile.name}: materialise {asset}")
        home = results.store.home
        checkpoint = rows[0]["checkpoint_id"], home / rows[0]["path"]
        return student(name, *checkpoint, results.profile, home, exploring=exploring)


class TrainerResource(dg.ConfigurableResource):
    """Supervised fine-tuning in a process of its own."""

    def train(self, examples: pl.DataFrame, parent: Path, out: Path, **settings: Any) -> Checkpoint:
        """Train from the checkpoint in `parent`; a finished checkpoint is returned as it is."""
        from llm4cov_assets.learning.training import train

        return train(examples, parent, out, **settings)
