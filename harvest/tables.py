"""A published table as a frame and as a file: the one place that reads and writes them.

Reading is forgiving (a missing table is empty, a missing column null, an unknown column ignored), writing is
strict (exactly the declared columns and types, sorted by the key, so that equal rows give equal bytes).
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow as pa

from bench.arrow import arrow_schema, arrow_type, file_metadata, parquet_bytes
from bench.schema import Table


def polars_schema(table: Table) -> pl.Schema:
    """Return the table's columns and types as polars has them."""
    return pl.from_arrow(arrow_schema(table).empty_table()).schema  # type: ignore[union-attr]  # a table gives a frame


def empty_frame(table: Table) -> pl.DataFrame:
    """Return the table without rows."""
    return pl.DataFrame(schema=polars_schema(table))


def conform(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Return the frame with exactly the table's columns and types, missing ones null, sorted by its key."""
    schema = polars_schema(table)
    columns = [
        pl.col(name).cast(type_) if name in frame.columns else pl.lit(None, type_).alias(name)
        for name, type_ in schema.items()
    ]
    return frame.select(columns).sort(table.key, nulls_last=False, maintain_order=True)


def frame_bytes(frame: pl.DataFrame, table: Table, producer: str) -> bytes:
    """Return a conformed frame as the bytes of its Parquet file.

    Raises:
        ValueError: a column that may not be null holds a null.
    """
    refused = [each.name for each in table.columns if not each.is_nullable and frame[each.name].null_count()]
    if refused:
        raise ValueError(f"table {table.name!r} has nulls in {refused}, which may not be null")
    fields = [pa.field(each.name, arrow_type(each.parsed_type), each.is_nullable) for each in table.columns]
    return parquet_bytes(frame.to_arrow().cast(pa.schema(fields)), file_metadata(table, producer))


def read_files(table: Table, paths: list[Path]) -> pl.DataFrame:
    """Return the rows of the given files of one published table, sorted by its key; no files, no rows."""
    frames = [conform(pl.read_parquet(path, glob=False, hive_partitioning=False), table) for path in paths]
    return pl.concat([empty_frame(table), *frames]).sort(table.key, maintain_order=True)
