"""Scores: what a machine's runs say about it, first version. Pure, frame to frame.

A machine is scored by `machine_id` within a cohort; its host decides nothing. This version counts and compares
medians. It gives no probability, no interval and no dollars: an interval made without a model of the noise would
pretend to know more than the counts beside it, so those columns are null.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from harvest.contract import MACHINES, Blame, MachineState, Outcome
from harvest.policy import Policy
from harvest.scoring.cohort import scored_runs
from harvest.tables import conform, polars_schema

KEYS = ("machine_id", "cohort_id")
TOLD_COLUMNS = ("gpu_model", "num_gpus", "host_id", "geolocation")
"""Shown beside a score; they move nothing."""
INDEPENDENT_AFTER = pl.duration(hours=24)
"""Two failures on one machine are two witnesses when they are a day apart; within a day one trouble causes both."""
RATIO_DECIMALS = 9
"""So that the last bit of a division never decides on which side of a threshold a ratio falls."""

_HAS_PASSED = pl.col("outcome").eq_missing(pl.lit(Outcome.PASSED.value))
_IS_TOO_SLOW = pl.col("outcome").eq_missing(pl.lit(Outcome.TOO_SLOW.value))
_BLAME = pl.col("blame").fill_null(Blame.UNKNOWN.value)
IS_FAILURE = ~_HAS_PASSED & ~_IS_TOO_SLOW
IS_BLAMED_FAILURE = IS_FAILURE & _BLAME.eq(Blame.MACHINE.value)
IS_UNEXPLAINED_FAILURE = IS_FAILURE & _BLAME.eq(Blame.UNKNOWN.value)


def machines(runs: pl.DataFrame, cohorts: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """Return the table MACHINES: one row per machine and cohort of the scored runs (RUNS, with cohort_id).

    Runs of an unknown machine are nobody's. `rate_ratio` is given from the first measured rate on, null without
    one; `measured_count` says what it rests on.
    """
    return judged(runs_of_machines(runs), cohorts, policy, KEYS).pipe(conform, MACHINES)


def runs_of_machines(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the scored runs whose machine is known."""
    return scored_runs(runs).filter(pl.col("machine_id").is_not_null())


def judged(scored: pl.DataFrame, cohorts: pl.DataFrame, policy: Policy, keys: Sequence[str]) -> pl.DataFrame:
    """Return one row per `keys` (KEYS, or KEYS and more): counts, rate ratio, what speaks against it, state."""
    baseline = cohorts.select("cohort_id", "is_weak", pl.col("median_rate_proofs_per_hour").alias("cohort_median"))
    ratio = pl.col("median_rate_proofs_per_hour") / pl.col("cohort_median")
    return (
        scored.pipe(_with_decisive_failure, keys, policy.bad_failure_count)
        .group_by(keys)
        .agg(**_counts(), **_newest())
        .join(baseline, on="cohort_id", how="left", validate="m:1")
        .with_columns(rate_ratio=ratio.round(RATIO_DECIMALS), same_gpus_as=_no_machines())
        .with_columns(is_slow=_is_slow(policy), is_failing=_is_failing(policy))
        .with_columns(state=_state(policy))
    )


def _with_decisive_failure(scored: pl.DataFrame, keys: Sequence[str], count: int) -> pl.DataFrame:
    """Add `decisive_failure_at`: when the count-th independent failure blamed on the machine was seen, else null."""
    marked = scored.with_columns(decisive_failure_at=pl.col("seen_at").filter(IS_BLAMED_FAILURE).min().over(keys))
    is_independent = pl.col("seen_at") >= pl.col("decisive_failure_at") + INDEPENDENT_AFTER
    for _ in range(count - 1):
        later = pl.col("seen_at").filter(IS_BLAMED_FAILURE & is_independent).min().over(keys)
        marked = marked.with_columns(decisive_failure_at=later)
    return marked


def _counts() -> dict[str, pl.Expr]:
    """Passed, slow and failed add up to run_count: a run whose outcome is unknown did not pass."""
    rate = pl.col("measured_rate_proofs_per_hour")
    return {
        "run_count": pl.len(),
        "passed_count": _HAS_PASSED.sum(),
        "slow_count": _IS_TOO_SLOW.sum(),
        "failed_count": IS_FAILURE.sum(),
        "blamed_failure_count": IS_BLAMED_FAILURE.sum(),
        "unexplained_count": IS_UNEXPLAINED_FAILURE.sum(),
        "vanished_count": (pl.col("outcome") == Outcome.VANISHED.value).sum(),
        "measured_count": rate.count(),
        "median_rate_proofs_per_hour": rate.median(),
        "decisive_failure_at": pl.col("decisive_failure_at").first(),
    }


def _newest() -> dict[str, pl.Expr]:
    """What is told of the machine as its newest run had it; ids sort by time."""
    return {
        **{name: pl.col(name).sort_by("run_id").last() for name in TOLD_COLUMNS},
        "first_seen_at": pl.coalesce(pl.col("first_stored_at").min(), pl.col("seen_at").min()),
        "last_seen_at": pl.col("seen_at").max(),
    }


def _is_slow(policy: Policy) -> pl.Expr:
    """Slower than its cohort by a margin, where the cohort is strong enough to say so."""
    return (~pl.col("is_weak") & (pl.col("rate_ratio") < policy.slow_rate_ratio)).fill_null(False)


def _is_failing(policy: Policy) -> pl.Expr:
    """Two failures or more that nothing takes off the machine: one of them its fault, or half of its runs."""
    doubtful_count = pl.col("blamed_failure_count") + pl.col("unexplained_count")
    is_half = pl.col("unexplained_count") * 2 >= pl.col("run_count")
    return (doubtful_count >= policy.bad_failure_count) & ((pl.col("blamed_failure_count") > 0) | is_half)


def _state(policy: Policy) -> pl.Expr:
    """Return the state: rules in order, the first that holds; what no rule names is `unknown`, not good.

    One failure alone never lists a machine, but a machine with one that was its fault has not earned `good`
    either, nor has one that is slow beside too few others, or that never passed.
    """
    is_much_slower = pl.col("is_slow") & (pl.col("rate_ratio") < policy.bad_rate_ratio)
    is_bad_by_rate = is_much_slower & (pl.col("measured_count") >= policy.min_run_count)
    is_slow_beside_any = (pl.col("rate_ratio") < policy.slow_rate_ratio).fill_null(False)
    has_no_blame = pl.col("blamed_failure_count") == 0
    rules = (
        (MachineState.UNKNOWN, pl.col("run_count") < policy.min_run_count),
        (MachineState.BAD, pl.col("decisive_failure_at").is_not_null() | is_bad_by_rate),
        (MachineState.WATCH, pl.col("is_slow") | pl.col("is_failing")),
        (MachineState.GOOD, (pl.col("passed_count") > 0) & has_no_blame & ~is_slow_beside_any),
    )
    named = (pl.when(rule).then(pl.lit(state.value)) for state, rule in rules)
    return pl.coalesce(*named, pl.lit(MachineState.UNKNOWN.value))


def _no_machines() -> pl.Expr:
    """GPUs are not compared across machine ids yet."""
    return pl.lit([], polars_schema(MACHINES)["same_gpus_as"])
