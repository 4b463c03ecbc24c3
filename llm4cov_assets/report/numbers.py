"""The numbers of one configuration as the report, the terminal and asset metadata show them, read with SQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    import duckdb

    from warehouse.store import Store

ORDER = ("untrained", "stage_0", "stage_1", "stage_2", "control", "teacher")
"""Order of policies wherever they are listed; others follow by name."""

PAIRS = (
    ("stage_2", "untrained"),
    ("stage_2", "scripted/random"),
    ("stage_2", "control"),
    ("stage_1", "stage_0"),
    ("stage_2", "stage_1"),
    ("stage_2", "teacher"),
)
"""Comparisons: what training gave, over undirected stimulus, over more training, stage by stage, to the teacher."""

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Numbers:
    """Rows of one configuration, in the order in which they are shown.

    `board` and `differences` are rows of `leaderboard` and `comparisons`, "all" before the kinds of design and direct
    before agentic; `funnel`, `rounds` and `repairs` are those of the views; `trajectory_id` is the most telling one.
    """

    board: Rows
    differences: Rows
    funnel: pl.DataFrame
    rounds: pl.DataFrame
    repairs: pl.DataFrame
    checkpoints: pl.DataFrame
    trajectory_id: str | None

    def policies(self) -> list[str]:
        """The policies of the leaderboard, in order."""
        return list(dict.fromkeys(row["policy"] for row in self.board))


def numbers(store: Store, config_hash: str, board: Rows | None = None, differences: Rows | None = None) -> Numbers:
    """The numbers of a configuration as they are stored at this moment.

    `board` and `differences` stand in for those of the store when they are just being made.
    """
    store.publish(force=True)
    with store.connect() as connection:

        def view(name: str) -> pl.DataFrame:
            query = f"select * exclude (config_hash) from {name}_all where config_hash = ?"
            return connection.execute(query, [config_hash]).pl()

        return Numbers(
            ordered(view("leaderboard").to_dicts() if board is None else board),
            ordered(view("comparisons").to_dicts() if differences is None else differences),
            view("stage_funnel").sort("stage"),
            view("rounds").sort("benchmark", "policy", "round"),
            view("repairs").sort("stage", "transition_id"),
            view("checkpoints").sort("created_at", "policy"),
            _most_telling(connection, config_hash),
        )


def ordered(rows: Rows) -> Rows:
    """Rows of the leaderboard or of comparisons in the order in which they are shown."""
    return sorted(rows, key=lambda r: (r["benchmark"] != "all", r["benchmark"], r["mode"] != "direct", _place(r)))


def policy_place(policy: str) -> tuple[int, str]:
    """Where a policy stands among others."""
    return (ORDER.index(policy) if policy in ORDER else len(ORDER), policy)


def _place(row: dict[str, Any]) -> tuple[int, str]:
    if "policy" in row:
        return policy_place(row["policy"])
    pair = (row["policy_a"], row["policy_b"])
    return (PAIRS.index(pair) if pair in PAIRS else len(PAIRS), " ".join(pair))


def _most_telling(connection: duckdb.DuckDBPyConnection, config_hash: str) -> str | None:
    query = "select trajectory_id from episodes_all where config_hash = ? and telling = 1"
    found = connection.execute(query, [config_hash]).fetchone()
    return found[0] if found else None
