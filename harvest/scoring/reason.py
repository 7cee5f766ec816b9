"""The sentences of the bad-machine list: why a machine is on it, and what would take it off. Pure expressions."""

from __future__ import annotations

import polars as pl

from harvest.policy import Policy


def reason() -> pl.Expr:
    """Return one sentence with numbers.

    Reads the counts and rate_ratio of a listed machine, and is_failing, is_weak, blamed_causes, unexplained_count.
    Example: "2 of 6 runs failed by the machine's fault (gpu_fell_off_bus); median rate 0.71 of its cohort's,
    5 measured runs."
    """
    parts = (_blamed(), _unexplained(), _rate())
    sentence = pl.concat_str(*parts, pl.lit(None, pl.String), separator="; ", ignore_nulls=True)
    return sentence.str.head(1).str.to_uppercase() + sentence.str.slice(1) + "."


def would_clear(policy: Policy) -> pl.Expr:
    """Return one sentence: when it leaves by itself and what would clear it sooner. Reads expires_at too."""
    leaves = pl.format(
        "Leaves by itself on {} if no further run speaks against it", pl.col("expires_at").dt.strftime("%Y-%m-%d")
    )
    sooner = pl.lit(f"; a median rate of at least {policy.slow_rate_ratio:g} of its cohort's clears it sooner.")
    is_slow_alone = pl.col("is_slow") & (pl.col("blamed_failure_count") == 0) & ~pl.col("is_failing")
    return leaves + pl.when(is_slow_alone).then(sooner).otherwise(pl.lit("."))


def _blamed() -> pl.Expr:
    causes = pl.when(pl.col("blamed_causes").list.len() > 0).then(pl.col("blamed_causes").list.join(", "))
    text = pl.format(
        "{} of {} runs failed by the machine's fault ({})",
        "blamed_failure_count",
        "run_count",
        causes.fill_null("cause not known"),
    )
    return pl.when(pl.col("blamed_failure_count") > 0).then(text)


def _unexplained() -> pl.Expr:
    text = pl.format("{} of {} runs failed and nothing explains why", "unexplained_count", "run_count")
    return pl.when(pl.col("is_failing") & (pl.col("unexplained_count") > 0)).then(text)


def _rate() -> pl.Expr:
    """The rate is told even where it decides nothing: a reader sees that it was looked at, and on how much."""
    runs = pl.when(pl.col("measured_count") == 1).then(pl.lit("run")).otherwise(pl.lit("runs"))
    weak = (
        pl.when(pl.col("is_weak")).then(pl.lit(", in a cohort of too few machines to judge by")).otherwise(pl.lit(""))
    )
    text = pl.format(
        "median rate {} of its cohort's, {} measured {}{}",
        two_decimals(pl.col("rate_ratio")),
        "measured_count",
        runs,
        weak,
    )
    return pl.when(pl.col("rate_ratio").is_not_null()).then(text).otherwise(pl.lit("no rate was measured"))


def two_decimals(ratio: pl.Expr) -> pl.Expr:
    """Return a ratio as text with two decimals, cut, not rounded: 0.949 must not read as 0.95, the threshold."""
    hundredths = (ratio * 100).round(6).floor().cast(pl.Int64).cast(pl.String).str.zfill(3)
    return hundredths.str.head(-2) + "." + hundredths.str.tail(2)
