from __future__ import annotations

from pathlib import Path

import pytest
from example_rows import Example, example

from warehouse.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Example]:
    """A published small warehouse that tests only read."""
    store, rows = Store(tmp_path_factory.mktemp("made")), example()
    rows.write(store)
    store.publish(force=True)
    return store, rows
