"""Between polars frames (ids as hex text) and Arrow tables as they lie in parts (ids as 16 bytes)."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from warehouse.errors import WarehouseError
from warehouse.schema import EFFORT, Column, Table

POLARS_TYPES: dict[str, Any] = {
    "id": pl.String(),
    "text": pl.String(),
    "int": pl.Int64(),
    "float": pl.Float64(),
    "bool": pl.Boolean(),
    "timestamp": pl.Datetime("us"),
    "blob": pl.Binary(),
    "text[]": pl.List(pl.String()),
    "id[]": pl.List(pl.String()),
}
ARROW_TYPES: dict[str, pa.DataType] = {
    "id": pa.binary(16),
    "text": pa.string(),
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "timestamp": pa.timestamp("us"),
    "blob": pa.binary(),
    "text[]": pa.list_(pa.string()),
    "id[]": pa.list_(pa.binary(16)),
}

_NEVER_IN_THE_HASH = frozenset({"created_at", "dagster_run_id"}) | EFFORT
_HEX_ID = r"^[0-9a-f]{32}$"


def arrow_schema(table: Table) -> pa.Schema:
    """The columns of a part, in order, provenance last."""
    return pa.schema([pa.field(c.name, ARROW_TYPES[c.type], nullable=c.nullable) for c in table.all_columns])


def empty(table: Table) -> pl.DataFrame:
    """A frame of no rows with all columns of `table`, provenance included."""
    return pl.DataFrame(schema={c.name: POLARS_TYPES[c.type] for c in table.all_columns})


def checked(table: Table, frame: pl.DataFrame) -> pl.DataFrame:
    """`frame` in the table's column order and types; WarehouseError if it does not fit.

    Integers widen, integers become floats, an all-null column takes the column's type and NaN becomes null.
    Nothing else is converted: a wrong type is a mistake of the writer.
    """
    wanted = {c.name: c for c in table.columns}
    missing = [name for name in wanted if name not in frame.columns]
    unknown = [name for name in frame.columns if name not in wanted]
    if missing or unknown:
        raise WarehouseError(
            f"{table.name}: "
            + "; ".join(
                f"{what} {', '.join(names)}"
                for what, names in (("missing columns", missing), ("unknown columns", unknown))
                if names
            )
            + " (see warehouse/schema.py)"
        )
    for column in table.columns:
        if not _fits(column, frame.schema[column.name]):
            raise WarehouseError(
                f"{table.name}.{column.name}: expected {column.type}, the frame has {frame.schema[column.name]}"
            )
    frame = frame.select(pl.col(c.name).cast(POLARS_TYPES[c.type]) for c in table.columns)
    floats = [c.name for c in table.columns if c.type == "float"]
    frame = frame.with_columns(pl.col(floats).fill_nan(None)) if floats else frame
    for column in table.columns:
        _check_values(table, column, frame[column.name])
    return frame


def _fits(column: Column, dtype: pl.DataType) -> bool:
    match column.type:
        case "int":
            return dtype.is_integer() or dtype == pl.Null
        case "float":
            return dtype.is_numeric() or dtype == pl.Null
        case "timestamp":
            return (isinstance(dtype, pl.Datetime) and dtype.time_zone is None) or dtype == pl.Null
        case "text" | "id":
            return dtype in (pl.String, pl.Categorical, pl.Enum, pl.Null)
        case "text[]" | "id[]":
            return (isinstance(dtype, pl.List) and dtype.inner in (pl.String, pl.Null)) or dtype == pl.Null
        case _:
            return dtype in (POLARS_TYPES[column.type], pl.Null)


def _check_values(table: Table, column: Column, values: pl.Series) -> None:
    if not column.nullable and values.null_count():
        row = values.is_null().arg_true()[0]
        raise WarehouseError(
            f"{table.name}.{column.name}: {values.null_count()} of {len(values)} values are null (or NaN), "
            f"first in row {row}; the column must have values"
        )
    if column.type in ("id", "id[]"):
        ids = values.explode() if column.type == "id[]" else values
        wrong = ids.filter(~ids.str.contains(_HEX_ID))
        if len(wrong):
            raise WarehouseError(f"{table.name}.{column.name}: {wrong[0]!r} is no id (32 lower-case hex digits)")


def to_arrow(table: Table, frame: pl.DataFrame) -> pa.Table:
    """A checked frame with provenance as the Arrow table that goes into a part."""
    decoded = frame.select(
        pl.col(c.name).str.decode("hex")
        if c.type == "id"
        else pl.col(c.name).list.eval(pl.element().str.decode("hex"))
        if c.type == "id[]"
        else pl.col(c.name)
        for c in table.all_columns
    )
    return decoded.to_arrow().cast(arrow_schema(table))


def from_arrow(table: Table, rows: pa.Table) -> pl.DataFrame:
    """The frame of a part: ids as hex text, columns that the part's schema version lacked as null."""
    frame = pl.DataFrame(pl.from_arrow(rows))
    return frame.select(
        pl.lit(None, POLARS_TYPES[c.type]).alias(c.name)
        if c.name not in frame.columns
        else pl.col(c.name).bin.encode("hex")
        if c.type == "id"
        else pl.col(c.name).list.eval(pl.element().bin.encode("hex"))
        if c.type == "id[]"
        else pl.col(c.name).cast(POLARS_TYPES[c.type])
        for c in table.all_columns
    )


def content_hash(rows: pa.Table) -> str:
    """32 hex digits over names, types and values of the rows, in order.

    Left out is what differs between two runs that did the same work: when, in which run, and how much effort it
    took. So doing the same work again gives the same part, and nothing is written twice.
    """
    digest = hashlib.sha256()
    for name in rows.column_names:
        if name not in _NEVER_IN_THE_HASH:
            array = rows.column(name).combine_chunks()
            digest.update(f"{name}:{_type_name(array.type)}:{len(array)}".encode())
            _feed(digest, array)
    return digest.hexdigest()[:32]


def _type_name(kind: pa.DataType) -> str:
    """Parquet and Arrow call the items of a list differently."""
    return f"list<{kind.value_type}>" if isinstance(kind, pa.ListType) else str(kind)


def _feed(digest: Any, array: Any) -> None:
    """Feed an array's values, not its buffers: offsets and padding differ between equal arrays."""
    kind = array.type
    digest.update(np.packbits(np.asarray(array.is_valid())).tobytes())
    if pa.types.is_list(kind):
        digest.update(np.asarray(array.value_lengths().fill_null(0), dtype=np.int64).tobytes())
        _feed(digest, array.flatten())
    elif pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        values = array.cast(pa.large_binary()).fill_null(b"")
        offsets = np.frombuffer(values.buffers()[1], dtype=np.int64)[values.offset : values.offset + len(values) + 1]
        digest.update((offsets - offsets[0]).tobytes() if len(offsets) else b"")
        if len(offsets) and values.buffers()[2] is not None:
            digest.update(memoryview(values.buffers()[2])[offsets[0] : offsets[-1]])
    elif pa.types.is_boolean(kind):
        digest.update(np.packbits(np.asarray(array.fill_null(False))).tobytes())
    elif pa.types.is_timestamp(kind):
        digest.update(np.asarray(array.cast(pa.int64()).fill_null(0)).tobytes())
    else:
        digest.update(np.asarray(array.fill_null(0)).tobytes())
