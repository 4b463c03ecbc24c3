from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "warehouse"))
from example_rows import Example, example

from warehouse.store import Store


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Example]:
    """A small warehouse that tests only read, with a second configuration in it that is the current one."""
    store, rows = Store(tmp_path_factory.mktemp("filled")), example()
    rows.write(store)
    other = Example("beef" * 4, "run-2")
    later = datetime(2026, 2, 2)
    other.add("runs", None, "run", None, run_id="run-2", profile="other", settings="{}", started_at=later)
    other.policy("teacher")
    other.step("0/fifo/0", "fifo", "teacher", "draft", {0, 1}, stage=0)
    other.write(store)
    return store, rows
