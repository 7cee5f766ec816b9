"""Dollars of runs: what each cost and lost, and whether its threshold fits its price. Pure, frame to frame."""

from __future__ import annotations

import polars as pl

from harvest.contract import RUNS, BundleState, Outcome
from harvest.launches import Launches
from harvest.rentals import record_by_run, record_frame
from harvest.tables import conform

_SECONDS_PER_HOUR = 3600
_CONSISTENT_WITHIN_RATIO = 0.01
"""Min rate and price may differ by one part in a hundred: both are typed and printed rounded."""
_ROUNDING_RATIO = 1e-9
"""So that exactly one per cent is not decided by the last bit of a division."""
_ASSUMED_FATE_STATES = (BundleState.FINISHED, BundleState.CLOSING_PARTIAL)


def with_thresholds(runs: pl.DataFrame, usd_per_proof: float) -> pl.DataFrame:
    """Fill what follows from price and rate alone.

    Args:
        runs: table RUNS.
        usd_per_proof: what a proof earns where the run does not say it.
    """
    earns = pl.coalesce("usd_per_proof", pl.lit(usd_per_proof))
    price, min_rate = pl.col("price_usd_per_hour"), pl.col("min_rate_proofs_per_hour")
    from_price = pl.when(earns > 0).then(price / earns)
    apart_ratio = (min_rate / pl.col("min_rate_from_price_proofs_per_hour") - 1).abs()
    rate = pl.col("rate_proofs_per_hour")
    return runs.with_columns(
        min_rate_from_price_proofs_per_hour=from_price,
        usd_per_proof_achieved=pl.when(rate > 0).then(price / rate),
    ).with_columns(is_min_rate_consistent=apart_ratio <= _CONSISTENT_WITHIN_RATIO + _ROUNDING_RATIO)


def with_fate(runs: pl.DataFrame, launches: Launches) -> pl.DataFrame:
    """Fill `fate`: as the record says; else, where a closing shows the end, assumed (passed = kept)."""
    recorded = record_by_run(launches).join(
        record_frame(launches).select("rental_id", recorded_fate="fate"),
        left_on="record_id",
        right_on="rental_id",
        how="left",
        validate="m:1",
    )
    has_passed = pl.col("outcome") == Outcome.PASSED.value
    is_known = pl.col("bundle_state").is_in([str(each) for each in _ASSUMED_FATE_STATES])
    assumed = pl.when(is_known & has_passed).then(pl.lit("kept")).when(is_known & ~has_passed).then(pl.lit("destroyed"))
    source = (
        pl.when(pl.col("recorded_fate").is_not_null())
        .then(pl.lit("record"))
        .when(assumed.is_not_null())
        .then(pl.lit("exit_code"))
    )
    return (
        runs.join(recorded, on="run_id", how="left", validate="1:1", maintain_order="left")
        .with_columns(fate=pl.coalesce("recorded_fate", assumed), fate_source=source)
        .pipe(conform, RUNS)
    )


def with_costs(runs: pl.DataFrame, rentals: pl.DataFrame) -> pl.DataFrame:
    """Fill what each run cost and lost: its share of its rental, else its own hours at its price.

    Reads RENTALS for those whose start and end the record gives; `usd_spent` is null without a price or a time.
    """
    own_usd = pl.col("price_usd_per_hour") * pl.col("own_s") / _SECONDS_PER_HOUR
    own_source = pl.when(pl.col("ended_at").is_not_null()).then(pl.lit("ended_at")).otherwise(pl.lit("last_stored_at"))
    has_share = pl.col("share_usd").is_not_null()
    source = pl.when(has_share).then(pl.lit("rental")).when(pl.col("usd_spent").is_not_null()).then(own_source)
    has_passed = pl.col("outcome").eq_missing(pl.lit(Outcome.PASSED.value))
    lost = pl.when(has_passed & pl.col("usd_spent").is_not_null()).then(0.0).otherwise("usd_spent")
    return (
        runs.with_columns(own_s=_own_s())
        .pipe(_with_share, rentals)
        .with_columns(usd_spent=pl.coalesce("share_usd", own_usd))
        .with_columns(usd_spent_source=source, usd_lost=lost)
        .pipe(conform, RUNS)
    )


def _own_s() -> pl.Expr:
    seconds = (pl.coalesce("ended_at", "last_stored_at") - pl.col("started_at")).dt.total_microseconds() / 1e6
    return pl.when(seconds >= 0).then(seconds)


def _with_share(runs: pl.DataFrame, rentals: pl.DataFrame) -> pl.DataFrame:
    """Add `share_usd`: the rental's dollars by the time each of its runs took; equal parts where none has a time."""
    paid = (
        rentals.filter(pl.col("ended_source") == "record", pl.col("rented_at").is_not_null())
        .select("run_ids", paid_rental_id="rental_id", rental_usd="usd_spent")
        .explode("run_ids")
    )
    of_rental_s = pl.col("own_s").sum().over("paid_rental_id")
    run_count = pl.len().over("paid_rental_id")
    share_ratio = pl.when(of_rental_s > 0).then(pl.col("own_s").fill_null(0) / of_rental_s).otherwise(1 / run_count)
    return runs.join(
        paid, left_on="run_id", right_on="run_ids", how="left", validate="1:1", maintain_order="left"
    ).with_columns(share_usd=pl.col("rental_usd") * share_ratio)
