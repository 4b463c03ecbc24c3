"""The cookbook is made from the questions and committed."""

from __future__ import annotations

import os

from example_rows import Example

from warehouse import cookbook
from warehouse.examples import load_examples
from warehouse.store import Store


def test_the_committed_cookbook_is_up_to_date(made: tuple[Store, Example]) -> None:
    with made[0].connect() as connection:
        page = cookbook.page(connection)
    if os.environ.get("UPDATE_SNAPSHOT"):
        cookbook.PAGE.write_text(page, encoding="utf-8")
    made_by = "run UPDATE_SNAPSHOT=1 pytest tests/warehouse/test_cookbook.py"
    assert cookbook.PAGE.read_text(encoding="utf-8") == page, made_by
    assert all(f"`.run {name}`" in page for name in load_examples())


def test_values_fit_into_a_table() -> None:
    assert cookbook.cell(0.25) == "0.25"
    assert cookbook.cell("ab" * 16) == "ababababab…"
    assert cookbook.cell("a|b\nc") == "a\\|b ⏎ c"
    assert cookbook.cell(["clk", None]) == "clk,"
    assert len(cookbook.cell("x" * 100)) == cookbook.WIDTH + 1
