"""The page data/SCHEMA.md, made from the contracts: what a bundle and the published tables hold. Pure.

Regenerate with: python -m harvest.schema_page > data/SCHEMA.md
"""

from __future__ import annotations

from enum import Enum
from types import ModuleType

import bench.contract
import harvest.contract
from bench.contract import BUNDLE_TABLES, CLOSING, SCHEMA_HISTORY, SCHEMA_VERSION
from bench.keys import LAUNCHES_PREFIX, PART_TABLES
from bench.schema import Column, Table
from harvest.contract import DATED_TABLES, SINGLE_TABLES

COMMAND = "python -m harvest.schema_page > data/SCHEMA.md"

INTRODUCTION = f"""# What the data holds

This page is made from `bench/contract.py` and `harvest/contract.py`; do not edit it. To make it again:
`{COMMAND}`

Rules for every table
- The unit stands in the name. Base units only; `_ratio` is a quotient (a share: 0 to 1).
- Null means *not measured*; zero means *measured, none*. A rate without a completed proof is null, never 0.
- Instants are UTC, in microseconds. Ids of runs and rentals are UUIDv7 in lower case; `machine_id`, `host_id` and
  `instance_id` are the marketplace's integers.
- Files are Parquet, zstd, with the metadata `schema_version`, `table`, `producer` and, in bundles, `run_id`.
- Rows are sorted by the table's key. A missing table has no rows; a missing column is null.
"""

HOW_TO_OPEN = """## How to open a table

`DATA` is the folder given to `harvest run --data`. A table by date is a folder, each other table one file. Whoever
reads several tables while a harvest may be running resolves the link `DATA/.current` once and reads below it.

polars

```python
import polars as pl
runs = pl.read_parquet("DATA/runs/*/*.parquet", hive_partitioning=False)
machines = pl.read_parquet("DATA/machines.parquet")
```

duckdb

```python
import duckdb
runs = duckdb.sql("SELECT * FROM read_parquet('DATA/runs/*/*.parquet', hive_partitioning = false)")
machines = duckdb.sql("SELECT * FROM 'DATA/machines.parquet'")
```

pandas

```python
import pandas as pd
runs = pd.read_parquet("DATA/runs", partitioning=None)
machines = pd.read_parquet("DATA/machines.parquet")
```
"""

BUNDLE = f"""## The bundle

One folder of the store for each run, written by `bench`: `bundles/v1/<date of run_id>/<run_id>/`. Each object is
written once and never changed. `closing-partial.parquet` has the columns of `closing` and is there only where the
runner was told to end. Launch records are JSON, under `{LAUNCHES_PREFIX}<date>/<rental_id>.<step>.json`.
"""

PUBLISHED = """## The published tables

Written by `harvest` into its data folder. `date=` is the date of the run's id, in UTC.
"""


def schema_page() -> str:
    """Return the whole page as Markdown."""
    bundle_tables = (table for name, table in BUNDLE_TABLES.items() if name == table.name)
    sections = (
        INTRODUCTION,
        HOW_TO_OPEN,
        BUNDLE,
        *(_table_section(table, _bundle_file(table)) for table in bundle_tables),
        PUBLISHED,
        *(_table_section(table, f"{table.name}/date=YYYY-MM-DD/*.parquet") for table in DATED_TABLES),
        *(_table_section(table, f"{table.name}.parquet") for table in SINGLE_TABLES),
        _vocabularies_section(),
        _history_section(),
    )
    return "\n".join(sections)


def _bundle_file(table: Table) -> str:
    if table.name in PART_TABLES:
        return f"{table.name}-00000.parquet ..."
    return f"{table.name}.parquet, closing-partial.parquet" if table is CLOSING else f"{table.name}.parquet"


def _table_section(table: Table, file: str) -> str:
    head = ("| column | type | unit | null | meaning |", "|---|---|---|---|---|")
    rows = (_row(column) for column in table.columns)
    key = ", ".join(f"`{name}`" for name in table.key)
    return _lines(f"### `{file}`", "", f"{table.meaning} Key: {key}.", "", *head, *rows)


def _row(column: Column) -> str:
    null = "yes" if column.is_nullable else "no"
    cells = (f"`{column.name}`", f"`{column.type}`", column.unit, null, column.meaning)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _vocabularies_section() -> str:
    words = [*_vocabularies(bench.contract), *_vocabularies(harvest.contract)]
    rows = (f"| {each.__name__} | {', '.join(f'`{word.value}`' for word in each)} |" for each in words)
    return _lines("## Vocabularies", "", "| name | words |", "|---|---|", *rows)


def _vocabularies(module: ModuleType) -> list[type[Enum]]:
    """Return the vocabularies that the module itself declares, in its order; one without words is a base."""
    own = (each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__)
    return [each for each in own if issubclass(each, Enum) and len(each)]


def _history_section() -> str:
    rows = (f"| {version} | {day} | {lacks} |" for version, day, lacks in SCHEMA_HISTORY)
    change = "A new column or table is free; a changed name, type or meaning is a new version."
    note = f"This is version {SCHEMA_VERSION}. {change}"
    return _lines("## History", "", note, "", "| version | since | what older data lacks |", "|---|---|---|", *rows)


def _lines(*lines: str) -> str:
    return "\n".join((*lines, ""))


if __name__ == "__main__":
    print(schema_page(), end="")
