"""What an export takes from the warehouse: filters as people give them, and as SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb

from llm4cov_assets.errors import UserError

ALL = "all"
"""Instead of a configuration's hash, or of a split: no filter."""

_FEWEST_DIGITS = 6  # of a configuration's hash that may stand for it


@dataclass(frozen=True)
class Selection:
    """Filters on steps (`transitions`). Empty sequences and None leave a filter out; `designs` and `policies` are
    globs; `configs` are whole hashes; `min_gain` is in coverage (0 to 1); a draft's gain is its coverage."""

    configs: tuple[str, ...] = ()
    stages: tuple[int, ...] = ()
    designs: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    split: str = "train"
    min_gain: float | None = None

    def where(self, *, any_split: bool = False) -> tuple[str, dict[str, Any]]:
        """The filters as a condition on `t` (rows.transitions) and `d` (rows.designs), and its parameters."""
        conditions: list[str] = ["true"]
        parameters: dict[str, Any] = {}

        def one_of(column: str, name: str, values: Sequence[Any]) -> None:
            if values:
                conditions.append(f"{column} in (select unnest(${name}))")
                parameters[name] = list(values)

        def glob(column: str, name: str, globs: Sequence[str]) -> None:
            if globs:
                alternatives = [f"{column} glob ${name}_{i}" for i in range(len(globs))]
                conditions.append(f"({' or '.join(alternatives)})")
                parameters.update({f"{name}_{i}": text for i, text in enumerate(globs)})

        one_of("t.config_hash", "configs", self.configs)
        one_of("t.stage", "stages", self.stages)
        one_of("t.role", "roles", self.roles)
        glob("d.name", "design", self.designs)
        glob("t.policy", "policy", self.policies)
        if self.split != ALL and not any_split:
            conditions.append("d.split = $split")
            parameters["split"] = self.split
        if self.min_gain is not None:
            conditions.append("t.gain >= $min_gain - 1e-9")
            parameters["min_gain"] = self.min_gain
        return " and ".join(conditions), parameters

    def as_json(self) -> dict[str, Any]:
        """The filters by the names of the command's options."""
        return {
            "config": list(self.configs) or ALL,
            "stage": list(self.stages) or ALL,
            "design": list(self.designs) or ALL,
            "policy": list(self.policies) or ALL,
            "role": list(self.roles) or ALL,
            "split": self.split,
            "min_gain": self.min_gain,
        }


@dataclass(frozen=True)
class Validation:
    """Clusters (a hand-written design, or one generator family) that are held out of the split `train`."""

    clusters: frozenset[str] = field(default_factory=frozenset)

    def split(self, cluster: str) -> str:
        """The split of the written data that a cluster belongs to."""
        return "validation" if cluster in self.clusters else "train"

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that are written."""
        return ("train", "validation") if self.clusters else ("train",)


def configurations(connection: duckdb.DuckDBPyConnection, wanted: str | None) -> tuple[str, ...]:
    """The hashes that `--config` names: None is the current configuration, `all` no filter (an empty tuple), else a
    hash or the beginning of one. UserError if there is none such."""
    if wanted == ALL:
        return ()
    if wanted is None:
        rows = connection.execute("select config_hash from current_configuration").fetchall()
        if not rows:
            raise UserError("nothing to export: the warehouse has no configuration yet; llm4cov run makes one")
        return (rows[0][0],)
    known = [
        row[0]
        for row in connection.execute(
            "select distinct config_hash from rows.transitions union select config_hash from rows.runs order by 1"
        ).fetchall()
    ]
    found = [c for c in known if c == wanted] or [
        c for c in known if len(wanted) >= _FEWEST_DIGITS and c.startswith(wanted)
    ]
    if len(found) != 1:
        why = f"may mean {', '.join(found)}" if found else "is no configuration here"
        raise UserError(f"--config {wanted}: {why}; there are {', '.join(known) or 'none'}, and {ALL}")
    return (found[0],)
