"""Questions to the table `runs` as a whole: when a run was last seen, which are failures, what is recent. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl

from harvest.contract import Blame, BundleState, Outcome

CLOSED = (BundleState.FINISHED, BundleState.CLOSING_PARTIAL)


def with_seen_at(runs: pl.DataFrame) -> pl.DataFrame:
    """Add `seen_at` (the newest time that is known of a run: the store's, else the id's), `began_at` and `date`.

    Sorted newest first; `date` is that of the run id, under which everything of a run is filed.
    """
    id_ms = pl.col("run_id").str.replace_all("-", "").str.slice(0, 12).str.to_integer(base=16)
    id_time = pl.from_epoch(id_ms, time_unit="ms").cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    return runs.with_columns(
        seen_at=pl.coalesce("last_stored_at", "ended_at", "started_at", id_time),
        began_at=pl.coalesce("started_at", id_time),
        date=id_time.dt.strftime("%Y-%m-%d"),
    ).sort("began_at", "run_id", descending=True)


def failures(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the runs that did not pass; one without an outcome did not either."""
    return runs.filter(pl.col("outcome").ne_missing(Outcome.PASSED))


def unexplained(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the failures of which nobody knows whose fault they are."""
    return failures(runs).filter(pl.col("blame").fill_null(Blame.UNKNOWN) == Blame.UNKNOWN)


def seen_within(runs: pl.DataFrame, as_of: datetime, days: float) -> pl.DataFrame:
    """Return the runs last seen in the days before `as_of`."""
    since = as_of - timedelta(days=days)
    return runs.filter((pl.col("seen_at") > since) & (pl.col("seen_at") <= as_of))


def with_whole_evidence(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the runs of which everything arrived that their closing lists: nothing refused, no byte of log lost."""
    return runs.filter(
        pl.col("bundle_state").is_in([str(state) for state in CLOSED]),
        pl.col("bad_tables").list.len().fill_null(0) == 0,
        pl.col("lost_log_bytes").fill_null(0) == 0,
    )


def closed(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the runs whose closing arrived, whole or partial."""
    return runs.filter(pl.col("bundle_state").is_in([str(state) for state in CLOSED]))
