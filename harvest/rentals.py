"""Rentals: how long each took and what it cost, from launch records and runs. Pure, frame to frame.

First version: GPU dollars only. What disk and traffic cost, and whether the marketplace still bills, is not known
yet, and null says so.
"""

from __future__ import annotations

import polars as pl

from harvest.contract import RENTALS
from harvest.launches import Launches
from harvest.runs import BENCHMARK_STAGE
from harvest.tables import conform

_SECONDS_PER_HOUR = 3600
_INSTANT = pl.Datetime("us", "UTC")
_RECORD_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "rental_id": pl.String,
    "granted_at": _INSTANT,
    "rented_at": _INSTANT,
    "record_ended_at": _INSTANT,
    "rental_kind": pl.String,
    "fate": pl.String,
}


def rentals(runs: pl.DataFrame, in_flight: pl.DataFrame, stages: pl.DataFrame, launches: Launches) -> pl.DataFrame:
    """Return the table RENTALS.

    Args:
        runs: table RUNS; `started_at`, `ended_at` and `price_usd_per_hour` may be null.
        in_flight: table IN_FLIGHT; its rentals have not ended.
        stages: table RUN_STAGES of the same runs; only benchmarks are looked at.
        launches: the operator's records: a rental without one is the runs of one instance, else one run.
    """
    return (
        _spells(runs, in_flight)
        .join(_benchmarks(stages), on="run_id", how="left", validate="1:1")
        .join(record_by_run(launches), on="run_id", how="left", validate="1:1")
        .with_columns(setup_s=_setup_s())
        .sort("run_id")
        .group_by(_rental_key(), maintain_order=True)
        .agg(*_summed_runs())
        .join(record_frame(launches), left_on="record_id", right_on="rental_id", how="left", validate="1:1")
        .with_columns(*_ends(), rental_id=pl.coalesce("record_id", pl.col("run_ids").list.first()))
        .with_columns(loading_s=_elapsed_s("rented_at", "running_at"), gpu_usd=_gpu_usd())
        .with_columns(usd_spent="gpu_usd")
        .pipe(conform, RENTALS)
    )


def _spells(runs: pl.DataFrame, in_flight: pl.DataFrame) -> pl.DataFrame:
    """Return one row a run: when it ran (`over_at` is null while it is alive), where, and at what price."""
    told = ("run_id", "instance_id", "machine_id", "price_usd_per_hour", "started_at")
    over = runs.select(*told, over_at=pl.coalesce("ended_at", "last_stored_at"), is_alive=pl.lit(False))
    alive = in_flight.select(*told, over_at=pl.lit(None, _INSTANT), is_alive=pl.lit(True))
    return pl.concat([over, alive])


def _benchmarks(stages: pl.DataFrame) -> pl.DataFrame:
    return (
        stages.filter(pl.col("stage") == BENCHMARK_STAGE)
        .group_by("run_id")
        .agg(
            benchmark_started_at=pl.col("started_at").min(),
            benchmark_s=_sum_or_null("wall_s"),
        )
    )


def _setup_s() -> pl.Expr:
    return (
        pl.when("is_alive")
        .then(None)
        .otherwise(_elapsed_s("started_at", pl.coalesce("benchmark_started_at", "over_at")))
    )


def _rental_key() -> pl.Expr:
    instance = pl.format("instance {}", "instance_id")
    return pl.coalesce("record_id", instance, "run_id").alias("rental_key")


def _summed_runs() -> tuple[pl.Expr, ...]:
    return (
        pl.col("record_id").first(),
        pl.col("run_id").alias("run_ids"),
        pl.col("instance_id").drop_nulls().last(),
        pl.col("machine_id").drop_nulls().last(),
        pl.col("price_usd_per_hour").drop_nulls().last(),
        pl.col("started_at").min().alias("running_at"),
        pl.when(~pl.col("is_alive").any()).then(pl.col("over_at").max()).alias("runs_over_at"),
        _sum_or_null("setup_s"),
        _sum_or_null("benchmark_s"),
    )


def _sum_or_null(name: str) -> pl.Expr:
    """The sum of no rows is 0, which would say: measured, none."""
    return pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name)


def _ends() -> tuple[pl.Expr, ...]:
    source = (
        pl.when(pl.col("record_ended_at").is_not_null())
        .then(pl.lit("record"))
        .when(pl.col("runs_over_at").is_not_null())
        .then(pl.lit("run"))
    )
    return pl.coalesce("record_ended_at", "runs_over_at").alias("ended_at"), source.alias("ended_source")


def _gpu_usd() -> pl.Expr:
    begun_at = pl.coalesce("rented_at", "running_at")
    return pl.col("price_usd_per_hour") * _elapsed_s(begun_at, "ended_at") / _SECONDS_PER_HOUR


def _elapsed_s(start: str | pl.Expr, end: str | pl.Expr) -> pl.Expr:
    """Seconds between two instants; null where either is, or where the end is before the start."""
    first = pl.col(start) if isinstance(start, str) else start
    last = pl.col(end) if isinstance(end, str) else end
    seconds = (last - first).dt.total_microseconds() / 1e6
    return pl.when(seconds >= 0).then(seconds)


def record_by_run(launches: Launches) -> pl.DataFrame:
    """Return which rental's record each run id stands in: run_id, record_id."""
    pairs = {run_id: record.rental_id for run_id, record in launches.by_run_id.items()}
    columns = {"run_id": list(pairs), "record_id": list(pairs.values())}
    return pl.DataFrame(columns, schema={"run_id": pl.String, "record_id": pl.String})


def record_frame(launches: Launches) -> pl.DataFrame:
    """Return the records' instants, kind and fate, one row a rental."""
    rows = [
        {
            "rental_id": each.rental_id,
            "granted_at": each.granted_at,
            "rented_at": each.rented_at,
            "record_ended_at": each.ended_at,
            "rental_kind": each.identity.get("rental_kind"),
            "fate": each.fate,
        }
        for each in launches.records.values()
    ]
    return pl.DataFrame(rows, schema=_RECORD_SCHEMA)
