"""Where are the tables? Files, rows, sizes, columns, and how to read each with polars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bench.contract import SCHEMA_VERSION
from bench.schema import Table
from harvest.contract import DATED_TABLES
from reports import format as fmt
from reports import paths
from reports.parts import Cell, Grid, headings


@dataclass(frozen=True, slots=True)
class TableSize:
    """What one published table holds; zero files is a table that was not written."""

    table: Table
    file_count: int
    row_count: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class TableEntry:
    anchor: str
    name: str
    meaning: str
    key: str
    columns: Grid
    polars: str


@dataclass(frozen=True, slots=True)
class DataPage:
    path: str
    title: str
    lead: str
    sizes: Grid
    rejects: str
    tables: tuple[TableEntry, ...]
    as_of: str


def data_page(sizes: Sequence[TableSize], reject_count: int, as_of: datetime | None) -> DataPage:
    """Return the page of all published tables."""
    rows = tuple(_size_row(size) for size in sizes)
    titles = headings("Table:code", "What a row is", "Rows:number", "Files:number", "Size:number")
    refused = "Nothing was refused by the harvest."
    if reject_count:
        refused = f"{fmt.counted(reject_count, 'thing')} refused by the harvest; table rejects says what and why."
    return DataPage(
        path=paths.DATA,
        title="Data",
        lead=f"Everything on this site comes from {len(sizes)} Parquet tables (schema version {SCHEMA_VERSION}); read them yourself.",
        sizes=Grid("tables", "Published tables", titles, rows, "There is no table."),
        rejects=refused,
        tables=tuple(_entry(size.table) for size in sizes),
        as_of=fmt.instant(as_of),
    )


def _size_row(size: TableSize) -> tuple[Cell, ...]:
    return (
        Cell(size.table.name, f"{paths.DATA}#table-{size.table.name}"),
        Cell(size.table.meaning),
        Cell(fmt.count(size.row_count), sort=str(size.row_count)),
        Cell(fmt.count(size.file_count), sort=str(size.file_count)),
        Cell(fmt.bytes_text(size.size_bytes), sort=str(size.size_bytes)),
    )


def _entry(table: Table) -> TableEntry:
    rows = tuple(
        (
            Cell(each.name),
            Cell(each.type),
            Cell(each.unit or "–"),
            Cell("yes" if each.is_nullable else "no"),
            Cell(each.meaning),
        )
        for each in table.columns
    )
    titles = headings("Column:code", "Type:code", "Unit", "May be null", "Meaning")
    grid = Grid(f"columns-{table.name}", f"Columns of {table.name}", titles, rows, "")
    return TableEntry(
        f"table-{table.name}", table.name, table.meaning, ", ".join(table.key), grid, _polars_lines(table)
    )


def _polars_lines(table: Table) -> str:
    place = f"DATA/{table.name}/date=*/*.parquet" if table in DATED_TABLES else f"DATA/{table.name}.parquet"
    return f'import polars as pl\n{table.name} = pl.read_parquet("{place}")\nprint({table.name}.head())'
