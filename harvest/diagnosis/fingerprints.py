"""Failures that are the same failure: one row a fingerprint, over all runs. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl

from harvest.contract import FINGERPRINTS
from harvest.tables import conform, polars_schema

DIMENSIONS = ("gpu_model", "driver_version", "build_id", "plan_name")
_TYPES = polars_schema(FINGERPRINTS)
_WEEK = timedelta(days=7)


def fingerprints(runs: pl.DataFrame, as_of: datetime) -> pl.DataFrame:
    """Return the table `fingerprints`, sorted by its key.

    `trend_ratio` is the runs of the last 7 days over those of the 7 before; null where there were none before.
    """
    failed = runs.filter(pl.col("fingerprint_id").is_not_null())
    age = pl.lit(as_of) - pl.col("started_at").fill_null(pl.col("first_stored_at"))
    counts = (
        failed.sort("run_id")
        .group_by("fingerprint_id")
        .agg(
            *(pl.col(name).first() for name in ("root_text", "blame", "cause", "certainty", "action", "rule")),
            kind=pl.col("fingerprint_kind").first(),
            title=pl.col("fingerprint_title").first(),
            run_count=pl.len(),
            machine_count=pl.col("machine_id").drop_nulls().n_unique(),
            build_count=pl.col("build_id").drop_nulls().n_unique(),
            driver_count=pl.col("driver_version").drop_nulls().n_unique(),
            gpu_model_count=pl.col("gpu_model").drop_nulls().n_unique(),
            first_seen_at=pl.col("started_at").min(),
            last_seen_at=pl.col("started_at").max(),
            usd_lost=pl.when(pl.col("usd_lost").is_not_null().any()).then(pl.col("usd_lost").sum()),
            new_count=(age <= _WEEK).sum(),
            old_count=((age > _WEEK) & (age <= 2 * _WEEK)).sum(),
        )
        .with_columns(trend_ratio=pl.when(pl.col("old_count") > 0).then(pl.col("new_count") / pl.col("old_count")))
    )
    whole = counts.join(_spread(failed, runs), on="fingerprint_id", how="left", validate="1:1").with_columns(
        pl.col("spread").fill_null([]), near=pl.lit([], _TYPES["near"])
    )
    return conform(whole, FINGERPRINTS)


def _spread(failed: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """Return, by fingerprint, how many of the runs with each value failed so."""
    parts = [_spread_over(failed, runs, each) for each in DIMENSIONS]
    return (
        pl.concat(parts)
        .sort("fingerprint_id", "dimension", "value")
        .group_by("fingerprint_id", maintain_order=True)
        .agg(spread=pl.struct("dimension", "value", "failed_count", "run_count"))
    )


def _spread_over(failed: pl.DataFrame, runs: pl.DataFrame, dimension: str) -> pl.DataFrame:
    value = pl.col(dimension).alias("value")
    all_counts = runs.group_by(value).agg(run_count=pl.len().cast(pl.Int64))
    return (
        failed.group_by("fingerprint_id", value)
        .agg(failed_count=pl.len().cast(pl.Int64))
        .filter(pl.col("value").is_not_null())
        .join(all_counts, on="value", how="left", validate="m:1")
        .select("fingerprint_id", pl.lit(dimension).alias("dimension"), "value", "failed_count", "run_count")
    )
