"""The contract's types as Arrow's, and rows into Parquet bytes. The one module of the border that needs pyarrow.

Writers (`bench.seal`, `bench.simulate`) and readers (`harvest`) use it alike, so that they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.contract import SCHEMA_VERSION
from bench.schema import ColumnType, Table

_SCALARS = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "dictionary": pa.dictionary(pa.int32(), pa.string()),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us", "UTC"),
}


def arrow_type(type_: ColumnType) -> pa.DataType:
    """Return Arrow's type for one of the contract's."""
    if type_.kind == "struct":
        return pa.struct([pa.field(name, arrow_type(item)) for name, item in type_.fields])
    if type_.item is None:
        return _SCALARS[type_.kind]
    if type_.kind == "map":
        return pa.map_(pa.string(), arrow_type(type_.item))
    return pa.list_(arrow_type(type_.item))


@cache
def arrow_schema(table: Table) -> pa.Schema:
    """Return the table's Arrow schema, without metadata; columns that may not be null are marked so."""
    return pa.schema([pa.field(each.name, arrow_type(each.parsed_type), each.is_nullable) for each in table.columns])


def file_metadata(table: Table, producer: str, run_id: str | None = None) -> dict[str, str]:
    """Return the key-value metadata of a file: `run_id` only in bundles."""
    metadata = {"schema_version": str(SCHEMA_VERSION), "table": table.name, "producer": producer}
    return metadata if run_id is None else {**metadata, "run_id": run_id}


def table_from_rows(table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return rows (by column name; timestamps as aware datetimes) as an Arrow table in the table's schema.

    Raises:
        pa.ArrowInvalid, pa.ArrowTypeError: a value does not fit its column.
    """
    columns = {name: [row.get(name) for row in rows] for name in table.column_names}
    return table_from_columns(table, columns)


def table_from_columns(table: Table, columns: Mapping[str, Any]) -> pa.Table:
    """Return whole columns (lists or Arrow arrays, equally long) as an Arrow table in the table's schema."""
    schema = arrow_schema(table)
    arrays = [_array(columns[field.name], field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _array(values: Any, type_: pa.DataType) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    if pa.types.is_timestamp(type_):
        values = [_instant(each) for each in values]
    if pa.types.is_list(type_) and pa.types.is_struct(type_.value_type):
        values = [each and [_with_instants(item, type_.value_type) for item in each] for each in values]
    if pa.types.is_map(type_):
        values = [list(each.items()) if isinstance(each, Mapping) else each for each in values]
    if pa.types.is_dictionary(type_):
        return pa.array(values, type_.value_type).dictionary_encode().cast(type_)
    return pa.array(values, type_)


def _instant(value: Any) -> Any:
    """RFC 3339 text becomes a datetime: rows that went through the spool's JSON carry text."""
    if not isinstance(value, str):
        return value
    return datetime.fromisoformat(value.replace("Z", "+00:00"))


def _with_instants(item: Mapping[str, Any], type_: pa.StructType) -> dict[str, Any]:
    names = {field.name for field in type_ if pa.types.is_timestamp(field.type)}
    return {name: _instant(value) if name in names else value for name, value in item.items()}


def parquet_bytes(data: pa.Table, metadata: Mapping[str, str]) -> bytes:
    """Return the table as a Parquet file: zstd, page checksums, the given key-value metadata."""
    sink = BytesIO()
    with_metadata = data.replace_schema_metadata(dict(metadata))
    pq.write_table(with_metadata, sink, compression="zstd", write_page_checksum=True)
    return sink.getvalue()
