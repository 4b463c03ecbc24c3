"""The trajectory warehouse: tables, immutable parts, publishing to DuckDB. Knows nothing of Dagster or of models."""
