"""One object of a bundle: bytes in, a table that can be trusted out, or the reason why not. Pure.

Everything that opens an untrusted file is behind `trusted_table`, so that it can move into a process of its own.
The order matters: checksum, footer, schema, and only then the pages (with their checksums), UTF-8 and ranges.
polars never sees a file that has not been through here: it checks no page checksum and can crash on a forged one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

import pyarrow as pa
import pyarrow.parquet as pq

from bench.arrow import arrow_schema
from bench.contract import BUNDLE_TABLES, SCHEMA_VERSION
from bench.keys import MAX_OBJECT_BYTES
from bench.schema import Table
from harvest.contract import RejectReason
from harvest.limits import (
    MAX_COLUMN_COUNT,
    MAX_FOOTER_BYTES,
    MAX_ROW_COUNT,
    MAX_ROW_GROUP_COUNT,
    MAX_SCHEMA_DEPTH,
    MAX_TABLE_BYTES,
)
from harvest.ranges import out_of_range

_READER_ERRORS = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, IndexError, OverflowError, MemoryError)
"""What pyarrow was seen to raise on damaged and forged files; a crash of the process is the caller's to contain."""
_FOOTER_TAIL_BYTES = 8
_ONE_ROW_TABLES = ("opening", "closing", "closing-partial")


@dataclass(frozen=True, slots=True)
class Listed:
    """What the closing says of an object."""

    bytes: int
    sha256: str
    rows: int


class Untrusted(Exception):
    """An object cannot be believed. `reason` is the reject's."""

    def __init__(self, reason: RejectReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def trusted_table(data: bytes, table: str, run_id: str, listed: Listed | None) -> pa.Table:
    """Return an object's rows in exactly the columns and types of its table; missing columns are null.

    Args:
        data: the object's bytes.
        table: `opening`, `logs`, `telemetry`, `stages`, `proofs`, `closing-partial` or `closing`.
        run_id: whose bundle it stands in.
        listed: its entry in the closing; null in a bundle without one, whose only check are page checksums.

    Raises:
        Untrusted: a check failed, or the reader did.
    """
    declared = BUNDLE_TABLES[table]
    check_listed(data, listed)
    try:
        file = _open(data)
        _check_footer(file.metadata)
        _check_metadata(file.metadata.metadata or {}, declared, run_id)
        rows = _read(file, declared)
    except _READER_ERRORS as error:
        raise Untrusted(_reader_reason(error), f"{type(error).__name__}: {error}") from error
    _check_row_count(rows.num_rows, table, listed)
    _check_values(rows, declared)
    return rows


def check_listed(data: bytes, listed: Listed | None) -> None:
    """Raise Untrusted where an object is too large, or not the bytes that the closing lists."""
    if len(data) > MAX_OBJECT_BYTES:
        raise Untrusted(RejectReason.OVER_LIMIT, f"{len(data)} bytes; an object has at most {MAX_OBJECT_BYTES}")
    if listed is None:
        return
    if len(data) != listed.bytes:
        raise Untrusted(RejectReason.SHA_MISMATCH, f"{len(data)} bytes; the closing lists {listed.bytes}")
    if sha256(data).hexdigest() != listed.sha256:
        raise Untrusted(RejectReason.SHA_MISMATCH, f"the closing lists sha256 {listed.sha256}")


def _open(data: bytes) -> pq.ParquetFile:
    footer_bytes = int.from_bytes(data[-_FOOTER_TAIL_BYTES:-4], "little")
    if footer_bytes > MAX_FOOTER_BYTES:
        raise Untrusted(RejectReason.BOMB, f"a footer of {footer_bytes} bytes; at most {MAX_FOOTER_BYTES} are read")
    return pq.ParquetFile(
        pa.BufferReader(data),
        schema_depth_limit=MAX_SCHEMA_DEPTH,
        page_checksum_verification=True,
        arrow_extensions_enabled=False,
    )


def _check_footer(footer: pq.FileMetaData) -> None:
    counts = (
        ("rows", footer.num_rows, MAX_ROW_COUNT),
        ("columns", footer.num_columns, MAX_COLUMN_COUNT),
        ("row groups", footer.num_row_groups, MAX_ROW_GROUP_COUNT),
    )
    for what, count, limit in counts:
        if not 0 <= count <= limit:
            raise Untrusted(RejectReason.BOMB, f"{count} {what}; an object has at most {limit}")
    group_rows = [footer.row_group(index).num_rows for index in range(footer.num_row_groups)]
    if min(group_rows, default=0) < 0 or sum(group_rows) != footer.num_rows:
        detail = f"the footer says {footer.num_rows} rows, its row groups {sum(group_rows)}"
        raise Untrusted(RejectReason.ROW_COUNT_MISMATCH, detail)


def _check_metadata(metadata: dict[bytes, bytes], declared: Table, run_id: str) -> None:
    text = {name.decode("utf-8"): value.decode("utf-8") for name, value in metadata.items() if name != b"ARROW:schema"}
    version = text.get("schema_version", "")
    if not (version.isascii() and version.isdigit() and len(version) < 10):
        raise Untrusted(RejectReason.SCHEMA_MISMATCH, f"schema_version is {version[:40]!r}; a number was expected")
    if int(version) > SCHEMA_VERSION:
        raise Untrusted(RejectReason.SCHEMA_NEWER, f"schema_version {version}; this program knows {SCHEMA_VERSION}")
    for name, expected in (("table", declared.name), ("run_id", run_id)):
        if text.get(name) != expected:
            detail = f"metadata {name!r} is {str(text.get(name))[:80]!r}; {expected!r} was expected"
            raise Untrusted(RejectReason.SCHEMA_MISMATCH, detail)


def _read(file: pq.ParquetFile, declared: Table) -> pa.Table:
    found = {field.name: field.type for field in file.schema_arrow}
    schema = arrow_schema(declared)
    _check_schema(found, schema)
    known = [name for name in schema.names if name in found]
    rows = file.read(columns=known, use_threads=False)  # a worker is one of as many as there are processors
    if rows.nbytes > MAX_TABLE_BYTES:
        raise Untrusted(RejectReason.BOMB, f"{rows.nbytes} bytes in memory; an object has at most {MAX_TABLE_BYTES}")
    rows.validate(full=True)
    columns = [
        rows[field.name].cast(field.type) if field.name in found else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _check_schema(found: Mapping[str, pa.DataType], declared: pa.Schema) -> None:
    for field in declared:
        if field.name not in found:
            if not field.nullable:
                raise Untrusted(RejectReason.SCHEMA_MISMATCH, f"column {field.name!r} is not there")
        elif _plain(found[field.name]) != _plain(field.type):
            detail = f"column {field.name!r} is {found[field.name]}; {field.type} was expected"
            raise Untrusted(RejectReason.SCHEMA_MISMATCH, detail)


def _plain(type_: pa.DataType) -> pa.DataType:
    """A dictionary of strings is written where another writer writes strings: both mean the same."""
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def _check_row_count(row_count: int, table: str, listed: Listed | None) -> None:
    if listed is not None and row_count != listed.rows:
        raise Untrusted(RejectReason.ROW_COUNT_MISMATCH, f"{row_count} rows; the closing lists {listed.rows}")
    if table in _ONE_ROW_TABLES and row_count != 1:
        raise Untrusted(RejectReason.ROW_COUNT_MISMATCH, f"{row_count} rows; this table has one")


def _check_values(rows: pa.Table, declared: Table) -> None:
    for column in declared.columns:
        null_count = rows[column.name].null_count
        if null_count and not column.is_nullable:
            raise Untrusted(RejectReason.SCHEMA_MISMATCH, f"column {column.name!r} has {null_count} nulls")
    problem = out_of_range(rows, declared)
    if problem is not None:
        raise Untrusted(RejectReason.OUT_OF_RANGE, problem)


def _reader_reason(error: Exception) -> RejectReason:
    text = str(error).lower()
    if "nested" in text or "depth" in text:
        return RejectReason.SCHEMA_DEPTH
    if isinstance(error, UnicodeDecodeError) or "utf8" in text or "utf-8" in text:
        return RejectReason.INVALID_UTF8
    if isinstance(error, MemoryError):
        return RejectReason.BOMB
    return RejectReason.BAD_PARQUET
