"""Column schemas of the tables, as Dagster shows them."""

from __future__ import annotations

from typing import Any

import dagster as dg

from warehouse.schema import TABLES


def column_schema(table: str) -> dict[str, Any]:
    """Definition metadata of an asset whose main table is `table`: its columns, and its name."""
    columns = [
        dg.TableColumn(
            c.name, c.type, description=c.comment, constraints=dg.TableColumnConstraints(nullable=c.nullable)
        )
        for c in TABLES[table].all_columns
    ]
    return {"dagster/column_schema": dg.TableSchema(columns), "dagster/table_name": f"trajectories.main.{table}"}
