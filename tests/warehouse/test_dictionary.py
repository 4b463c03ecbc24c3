"""The data dictionary is made from the schema and committed."""

from __future__ import annotations

from warehouse import dictionary
from warehouse.catalog import load_views
from warehouse.schema import TABLES


def test_the_committed_page_is_up_to_date() -> None:
    assert dictionary.PAGE.read_text() == dictionary.page(), "run python -m warehouse.dictionary"


def test_every_table_view_and_column_is_described() -> None:
    page = dictionary.page()
    for table in TABLES.values():
        assert f"### {table.name}\n" in page
        for column in table.columns:
            assert column.comment
            assert f"| {column.name} |" in page
    for view in load_views():
        assert view.comment
        assert view.column_comments


def test_references_lead_to_tables() -> None:
    for table in TABLES.values():
        assert {*table.key} <= {c.name for c in table.all_columns}
        for column in table.columns:
            assert not column.refers_to or column.type == TABLES[column.refers_to].columns[0].type
