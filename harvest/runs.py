"""The table `runs`, put together: rows read now, rows kept, and rentals that never began. Pure, frame to frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from bench.arrow import table_from_rows
from bench.schema import Table
from harvest.contract import RUNS, BundleState
from harvest.tables import conform

EXCLUDING_FLAGS = (
    "time_travel",
    "duplicate_conflict",
    "too_fast",
    "framing",
    "same_gpu_elsewhere",
    "best_of_many",
    "no_benchmark",
)
"""A run with one of these does not move its machine's score."""


def frame_of(table: Table, rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Return rows (maps as dicts, instants as aware datetimes) as a frame of a published table."""
    frame = pl.from_arrow(table_from_rows(table, rows))
    assert isinstance(frame, pl.DataFrame)  # a table gives a frame; the signature also covers arrays
    return conform(frame, table)


def all_runs(kept: pl.DataFrame, rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Return kept and new rows as one frame of RUNS, each with whether it is scored."""
    return pl.concat([kept, frame_of(RUNS, rows)]).pipe(with_is_scored).pipe(conform, RUNS)


def with_is_scored(runs: pl.DataFrame) -> pl.DataFrame:
    """Fill `is_scored`: the machine and the outcome are known, and nothing odd keeps the run out."""
    is_odd = pl.col("flags").list.set_intersection(list(EXCLUDING_FLAGS)).list.len() > 0
    return runs.with_columns(
        is_scored=pl.col("machine_id").is_not_null()
        & pl.col("outcome").is_not_null()
        & ~is_odd
        & (pl.col("bundle_state") != str(BundleState.IMPORTED))
    )
