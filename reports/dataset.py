"""The published tables of one generation, as the pages read them.

`.current` is resolved once, so that a harvest which publishes meanwhile changes nothing under our feet. A table
that is missing is empty. The tables about the whole fleet are held; the details of runs (stages, proofs,
telemetry, logs) are read date by date, so that memory is bounded by a day and not by history.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import polars as pl

from bench.contract import SCHEMA_VERSION
from bench.schema import Table
from harvest.contract import (
    BAD_MACHINES,
    COHORTS,
    DATED_TABLES,
    FINGERPRINTS,
    HARVESTS,
    IN_FLIGHT,
    MACHINES,
    PUBLISHED_TABLES,
    REJECTS,
    RENTALS,
    RUN_LOGS,
    RUN_PROOFS,
    RUN_STAGES,
    RUN_TELEMETRY,
    RUNS,
)
from harvest.tables import empty_frame, read_files
from reports.errors import DataNewer, DataUnreadable

DOWNLOADS = ("bad_machines.csv", "bad_machines.json")
_DETAILS = (RUN_STAGES, RUN_PROOFS, RUN_TELEMETRY, RUN_LOGS)


@dataclass(frozen=True, slots=True)
class Dataset:
    """One generation. `as_of` is the instant that the newest harvest judged at; null where there was none."""

    folder: Path
    as_of: datetime | None
    runs: pl.DataFrame
    machines: pl.DataFrame
    cohorts: pl.DataFrame
    bad_machines: pl.DataFrame
    fingerprints: pl.DataFrame
    in_flight: pl.DataFrame
    rentals: pl.DataFrame
    rejects: pl.DataFrame
    harvests: pl.DataFrame


@dataclass(frozen=True, slots=True)
class RunDetails:
    """What one run left, beside its row in `runs`. A frame without rows where nothing arrived."""

    stages: pl.DataFrame
    proofs: pl.DataFrame
    telemetry: pl.DataFrame
    logs: pl.DataFrame


@dataclass(frozen=True, slots=True)
class Day:
    """The details of all runs of one date, and the tables of that date that cannot be read."""

    by_table: Mapping[str, Mapping[str, pl.DataFrame]]
    unreadable: tuple[str, ...]

    def details(self, run_id: str) -> RunDetails:
        """Return one run's details."""
        return RunDetails(*(self.by_table[table.name].get(run_id, empty_frame(table)) for table in _DETAILS))


def open_dataset(folder: Path) -> Dataset:
    """Return the newest generation of a data folder.

    Raises:
        DataUnreadable: no such folder, no table in it, or a fleet table that cannot be read.
        DataNewer: a table of a newer version.
    """
    generation = _generation(folder)
    if not any(
        table_files(generation, table) or (generation / table.name).is_dir() for table in PUBLISHED_TABLES.values()
    ):
        raise DataUnreadable(
            f"{folder} holds no published table. The old site is kept; run `harvest run --data {folder}` first."
        )
    harvests = _read(generation, HARVESTS)
    return Dataset(
        folder=generation,
        as_of=None if harvests.is_empty() else harvests["as_of"][-1],
        runs=_read(generation, RUNS),
        machines=_read(generation, MACHINES),
        cohorts=_read(generation, COHORTS),
        bad_machines=_read(generation, BAD_MACHINES),
        fingerprints=_read(generation, FINGERPRINTS),
        in_flight=_read(generation, IN_FLIGHT),
        rentals=_read(generation, RENTALS),
        rejects=_read(generation, REJECTS),
        harvests=harvests,
    )


def read_day(dataset: Dataset, date: str) -> Day:
    """Return the details of all runs of a date (YYYY-MM-DD). A table that cannot be read is named, not raised.

    Raises:
        DataNewer: a table of a newer version.
    """
    by_table: dict[str, Mapping[str, pl.DataFrame]] = {}
    unreadable = []
    for table in _DETAILS:
        by_table[table.name] = {}
        try:
            frame = _read(dataset.folder, table, date)
        except DataUnreadable:
            unreadable.append(table.name)
            continue
        parts = frame.partition_by("run_id", as_dict=True, maintain_order=True)
        by_table[table.name] = {str(key[0]): part for key, part in parts.items()}
    return Day(by_table, tuple(unreadable))


def table_files(generation: Path, table: Table, date: str = "*") -> list[Path]:
    """Return a table's files in order of name: one at most, or those of the dates (of one date)."""
    if table in DATED_TABLES:
        return sorted(generation.glob(f"{table.name}/date={date}/*.parquet"))
    path = generation / f"{table.name}.parquet"
    return [path] if path.exists() else []


def _generation(folder: Path) -> Path:
    """Resolve `.current` where there is one; a folder without it holds its tables directly."""
    if not folder.is_dir():
        raise DataUnreadable(f"{folder} is not a folder. The old site is kept; say with --data where the tables are.")
    current = folder / ".current"
    if current.is_symlink() and not current.exists():
        raise DataUnreadable(f"{current} leads nowhere. The old site is kept; run the harvest again.")
    return current.resolve() if current.exists() else folder.resolve()


def _read(generation: Path, table: Table, date: str = "*") -> pl.DataFrame:
    files = table_files(generation, table, date)
    try:
        for path in files:
            _refuse_newer(path)
        return read_files(table, files)
    except (OSError, pl.exceptions.PolarsError) as error:
        first_line = str(error).partition("\n")[0]
        raise DataUnreadable(
            f"table {table.name!r} in {generation} cannot be read: {first_line}. "
            "The old site is kept; run the harvest again."
        ) from error


def _refuse_newer(path: Path) -> None:
    written = pl.read_parquet_metadata(path).get("schema_version", "1")
    if not written.isdigit() or int(written) > SCHEMA_VERSION:
        raise DataNewer(
            f"{path} has schema version {written}; this program knows up to {SCHEMA_VERSION}. "
            "The old site is kept; update lastwords."
        )
