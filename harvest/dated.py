"""The tables by date: the rows of runs that were read again replace their old ones, all other files stay.

Whoever reads a run stages its rows, one file a run and table; they are gathered by date at the end. One date of one
table is one file, sorted, so that its bytes do not tell how many harvests it took. A date is held in memory while it
is rewritten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from io import BytesIO
from pathlib import Path

import polars as pl

from bench import PRODUCER
from bench.keys import run_date
from bench.schema import Table
from harvest.contract import RUN_LOGS, RUN_PROOFS, RUN_STAGES, RUN_TELEMETRY, RUNS
from harvest.dataset import NewGeneration, dated_files, dates_of
from harvest.errors import DataUnwritable
from harvest.tables import conform, empty_frame, frame_bytes, read_files

DETAIL_TABLES = (RUN_STAGES, RUN_PROOFS, RUN_TELEMETRY, RUN_LOGS)


def stage_rows(staging: Path, run_id: str, frames: Mapping[str, pl.DataFrame]) -> None:
    """Write one run's rows, by table name; a frame without rows leaves no file.

    Raises:
        DataUnwritable: the disk is full, or the folder may not be written.
    """
    for table, frame in frames.items():
        if not frame.is_empty():
            _stage_frame(_staged_path(staging, table, run_id), frame)


def _stage_frame(path: Path, frame: pl.DataFrame) -> None:
    sink = BytesIO()
    frame.write_ipc(sink, compression="lz4")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(sink.getvalue())
    except OSError as error:
        raise DataUnwritable(
            f"{path} cannot be written: {error.strerror}. The published tables are as before; "
            "make room, or mend the folder's rights, and run the same command again."
        ) from error


def _staged_rows(staging: Path, table: Table, run_ids: Iterable[str]) -> list[pl.DataFrame]:
    paths = (_staged_path(staging, table.name, run_id) for run_id in run_ids)
    return [empty_frame(table), *(pl.read_ipc(path.read_bytes()) for path in paths if path.exists())]


def _staged_path(staging: Path, table: str, run_id: str) -> Path:
    return staging / table / f"{run_id}.arrow"


def write_details(new: NewGeneration, read_run_ids: Set[str], kept_run_ids: Set[str], gone_run_ids: Set[str]) -> None:
    """Fill the new generation's tables of single runs.

    Args:
        new: the generation to fill; its staging folder has the rows of `read_run_ids`.
        read_run_ids: runs that were read by this harvest and are over.
        kept_run_ids: runs whose rows stay as they were.
        gone_run_ids: runs of the generation before that are in neither.
    """
    changed_dates = {run_date(run_id) for run_id in read_run_ids | gone_run_ids}
    read_by_date = _by_date(read_run_ids)
    for table in DETAIL_TABLES:
        for date in dates_of(new.previous, table.name) - changed_dates:
            new.keep_dated(table.name, date)
        for date in sorted(changed_dates):
            kept = _kept_rows(new, table, date, kept_run_ids)
            staged = _staged_rows(new.staging, table, read_by_date.get(date, ()))
            _write(new, table, date, pl.concat([kept, *staged]))


def _kept_rows(new: NewGeneration, table: Table, date: str, run_ids: Set[str]) -> pl.DataFrame:
    before = read_files(table, dated_files(new.previous, table.name, date))
    return before.filter(pl.col("run_id").is_in(list(run_ids)))


def write_runs(new: NewGeneration, runs: pl.DataFrame) -> None:
    """Fill the new generation's table `runs`, whose rows are worked out again by each harvest."""
    for date, run_ids in _by_date(runs["run_id"]).items():
        _write(new, RUNS, date, runs.filter(pl.col("run_id").is_in(run_ids)))


def _by_date(run_ids: Iterable[str]) -> dict[str, list[str]]:
    by_date: dict[str, list[str]] = {}
    for run_id in sorted(run_ids):
        by_date.setdefault(run_date(run_id), []).append(run_id)
    return by_date


def _write(new: NewGeneration, table: Table, date: str, rows: pl.DataFrame) -> None:
    if not rows.is_empty():
        new.write_dated(table.name, date, frame_bytes(conform(rows, table).rechunk(), table, PRODUCER))


def dated_rows(new: NewGeneration, table: Table) -> pl.DataFrame:
    """Return all rows of a table that the new generation holds."""
    dates = sorted(dates_of(new.folder, table.name))
    return read_files(table, [path for date in dates for path in dated_files(new.folder, table.name, date)])
