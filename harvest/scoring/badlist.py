"""The bad-machine list: who is on it, why, since when, until when; and its CSV and JSON. Pure.

The list is worked out whole from the machines' runs each time; nothing of an earlier list is read.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import polars as pl

from harvest.contract import BAD_MACHINES, MachineState
from harvest.policy import Policy
from harvest.scoring.cohort import cohorts
from harvest.scoring.reason import reason, would_clear
from harvest.scoring.score import (
    IS_BLAMED_FAILURE,
    IS_UNEXPLAINED_FAILURE,
    KEYS,
    RATIO_DECIMALS,
    judged,
    runs_of_machines,
)
from harvest.tables import conform

LISTED = (MachineState.BAD.value, MachineState.WATCH.value)
VALID_HARVEST_COUNT = 2
"""An exported list is good for this many harvest intervals: one harvest may be missed."""
FORMULA_START = r"^[=+\-@\t\r]"
"""A spreadsheet takes a cell that begins so for a formula."""
INSTANT = "%Y-%m-%dT%H:%M:%S%.6fZ"


def bad_machines(machines: pl.DataFrame, runs: pl.DataFrame, policy: Policy, as_of: datetime) -> pl.DataFrame:
    """Return the table BAD_MACHINES: one row per machine that is `bad` or on `watch` in one of its cohorts.

    `machines` is the table MACHINES of `runs` (RUNS, with cohort_id). A machine leaves `listing_days` after the
    newest run that speaks against it. `since` comes from a replay of its runs, in the order they were stored, with
    today's baselines.
    """
    listed = machines.filter(pl.col("state").is_in(LISTED))
    scored = runs_of_machines(runs).join(listed, on=KEYS, how="semi")
    replayed = _replayed(scored, cohorts(runs, policy), policy)
    newest = pl.col("newest_evidence_at")
    return (
        listed.join(_cohort_counts(machines), on="machine_id", how="left", validate="m:1")
        .join(_since(replayed), on=(*KEYS, "state"), how="left", validate="1:1")
        .join(_today(replayed), on=KEYS, how="left", validate="1:1")
        .join(_evidence(scored, replayed, policy), on=KEYS, how="left", validate="1:1")
        .with_columns(expires_at=newest + timedelta(days=policy.listing_days), source=pl.lit("score"))
        .filter(pl.col("expires_at") > as_of)
        .with_columns(reason=reason(), would_clear=would_clear(policy))
        .sort(_worst_first(), descending=[False, False, True, False], nulls_last=True)
        .unique("machine_id", keep="first", maintain_order=True)
        .pipe(conform, BAD_MACHINES)
    )


def _replayed(scored: pl.DataFrame, baselines: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """Return one row per machine, cohort and run: the judgement after that run, with today's baselines."""
    ordered = scored.sort("seen_at", "run_id").with_columns(position=pl.int_range(pl.len()).over(KEYS))
    after = ordered.select(*KEYS, after_position="position", after_at="seen_at")
    return (
        ordered.join(after, on=KEYS, validate="m:m")
        .filter(pl.col("position") <= pl.col("after_position"))
        .pipe(judged, baselines, policy, (*KEYS, "after_position", "after_at"))
    )


def _since(replayed: pl.DataFrame) -> pl.DataFrame:
    """Return one row per machine, cohort and state: when a run first gave that state."""
    return replayed.group_by(*KEYS, "state").agg(since=pl.col("after_at").min())


def _today(replayed: pl.DataFrame) -> pl.DataFrame:
    """Return one row per machine and cohort: what speaks against it after its newest run."""
    return replayed.filter(pl.col("after_position") == pl.col("after_position").max().over(KEYS)).select(
        *KEYS, "is_slow", "is_failing", "is_weak", "unexplained_count", "cohort_median"
    )


def _evidence(scored: pl.DataFrame, replayed: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """Return one row per machine and cohort: the runs that speak against it, their causes and main fingerprint."""
    rate_ratio = (pl.col("measured_rate_proofs_per_hour") / pl.col("cohort_median")).round(RATIO_DECIMALS)
    is_slow_run = pl.col("is_slow") & (rate_ratio < policy.slow_rate_ratio).fill_null(False)
    is_doubtful_failure = pl.col("is_failing") & IS_UNEXPLAINED_FAILURE
    blamed_causes = pl.col("cause").filter(IS_BLAMED_FAILURE).drop_nulls().unique().sort()
    return (
        scored.join(_today(replayed), on=KEYS, how="left", validate="m:1")
        .filter(IS_BLAMED_FAILURE | is_doubtful_failure | is_slow_run)
        .group_by(KEYS)
        .agg(
            newest_evidence_at=pl.col("seen_at").max(),
            blamed_causes=blamed_causes,
            top_fingerprint_id=pl.col("fingerprint_id").drop_nulls().mode().min(),
            run_ids=pl.col("run_id").sort(),
        )
    )


def _cohort_counts(machines: pl.DataFrame) -> pl.DataFrame:
    return machines.group_by("machine_id").agg(cohort_count=pl.len())


def _worst_first() -> list[pl.Expr]:
    """Of a machine's cohorts the worst state, then the lowest ratio, then the most failures; the id breaks ties."""
    is_on_watch = pl.col("state") != MachineState.BAD.value
    return [is_on_watch, pl.col("rate_ratio"), pl.col("blamed_failure_count"), pl.col("cohort_id")]


def badlist_csv(bad: pl.DataFrame, as_of: datetime, policy: Policy) -> bytes:
    """Return the table BAD_MACHINES as CSV: UTF-8, a header, `as_of` and `valid_until` first in each row.

    Lists are joined by a space, instants are RFC 3339 in UTC, null is an empty cell. Text that a spreadsheet would
    take for a formula gets an apostrophe in front.
    """
    text = pl.col(pl.String)
    return (
        _export(bad)
        .with_columns(pl.col(pl.List(pl.String)).list.join(" "))
        .with_columns(pl.when(text.str.contains(FORMULA_START)).then("'" + text).otherwise(text).name.keep())
        .select(*(pl.lit(value).alias(name) for name, value in _validity(as_of, policy).items()), *bad.columns)
        .write_csv()
        .encode()
    )


def badlist_json(bad: pl.DataFrame, as_of: datetime, policy: Policy) -> bytes:
    """Return the table BAD_MACHINES as one JSON object: `as_of`, `valid_until` and `machines`, a list of its rows."""
    whole = {**_validity(as_of, policy), "machines": _export(bad).to_dicts()}
    return (json.dumps(whole, indent=1, allow_nan=False) + "\n").encode()


def _export(bad: pl.DataFrame) -> pl.DataFrame:
    return bad.with_columns(pl.col(pl.Datetime("us", "UTC")).dt.strftime(INSTANT))


def _validity(as_of: datetime, policy: Policy) -> dict[str, str]:
    valid_until = as_of + timedelta(seconds=VALID_HARVEST_COUNT * policy.harvest_interval_s)
    return {
        name: f"{instant.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
        for name, instant in (("as_of", as_of), ("valid_until", valid_until))
    }
