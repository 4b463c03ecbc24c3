from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "warehouse"))
from example_rows import Example, example

from llm4cov_assets.export import preferences, sft, trajectories
from llm4cov_assets.export.exporting import Exported, export
from llm4cov_assets.export.selection import Selection, configurations
from llm4cov_assets.export.tally import Limits
from llm4cov_assets.export.wording import Designs
from llm4cov_assets.learning.training import data_hash
from warehouse.store import Store


def extended() -> Example:
    """The small warehouse with several answers to the draft of stage 0, and completions as the student has them."""
    rows = example()
    for made in (r for (table, *_), its in rows.rows.items() if table == "sft_examples" for r in its):
        made["completion"] += " <eos>"
    draft = rows.steps["0/fifo/0"]
    rows.step("0/fifo/0/worse", "fifo", "teacher", "repair", {0, 1, 4}, stage=0, before=draft)
    rows.step("0/fifo/0/hangs", "fifo", "teacher", "repair", set(), stage=0, before=draft, status="timeout")
    rows.step("0/fifo/0/tool", "fifo", "teacher", "repair", set(), stage=0, before=draft, status="tool_error")
    rows.step("0/fifo/0/text", "fifo", "teacher", "repair", None, stage=0, before=draft)
    uart = rows.steps["0/uart/0"]
    rows.step("0/uart/0/near", "uart", "teacher", "repair", {0, 1}, stage=0, before=uart)
    return rows


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A published warehouse that tests only read. Stage 0's checkpoint has the hash of its rows."""
    store, rows = Store(tmp_path_factory.mktemp("exported")), extended()
    examples = [
        r for (table, stage, *_), its in rows.rows.items() if (table, stage) == ("sft_examples", 0) for r in its
    ]
    trained_on = data_hash(pl.DataFrame(examples).sort("example_id"))
    for (table, stage, *_), made in rows.rows.items():
        if table == "checkpoints" and stage == 0:
            made[0]["data_hash"] = trained_on
    rows.write(store)
    store.publish(force=True)
    return store


def run(
    store: Store,
    folder: Path,
    kind: str = "sft",
    *,
    text: str = "compact",
    margin: float = 0.01,
    hits: bool = False,
    config: str | None = None,
    fmt: str = "hf",
    limits: Limits = Limits(),  # noqa: B008  # frozen
    dry_run: bool = False,
    **filters: Any,
) -> Exported:
    """What `llm4cov export` does, in this process."""
    with store.connect() as connection:
        selection = Selection(configurations(connection, config), **filters)
        designs = Designs(connection)
        source = {
            "sft": lambda: sft.source(selection, text, designs),  # type: ignore[arg-type]
            "preferences": lambda: preferences.source(selection, text, margin, designs),  # type: ignore[arg-type]
            "trajectories": lambda: trajectories.source(selection, hits),
        }[kind]()
        points = trajectories.points() if hits else None
        return export(
            connection,
            source,
            selection,
            folder,
            fmt=fmt,
            limits=limits,
            points=points,
            dry_run=dry_run,  # type: ignore[arg-type]
        )


def rows_of(folder: Path, shape: str, split: str = "train") -> list[dict[str, Any]]:
    """Rows of a Parquet export."""
    return [
        row for path in sorted((folder / shape).glob(f"{split}-*.parquet")) for row in pq.read_table(path).to_pylist()
    ]
