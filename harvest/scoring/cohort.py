"""Cohorts: which runs may be compared, and what is normal among them. Pure, frame to frame.

A cohort is a GPU model, a GPU count and what is measured (the proof kind, else the plan's name). A part may be
null: a machine without a GPU is compared with others without one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import polars as pl

from harvest.contract import COHORTS
from harvest.policy import Policy
from harvest.tables import conform, polars_schema

PARTS = ("gpu_model", "num_gpus", "measured_kind")
RUN_COLUMNS = (
    *("run_id", "machine_id", "cohort_id", "is_scored", "flags"),
    *("gpu_model", "num_gpus", "proof_kind", "plan_name", "host_id", "geolocation"),
    *("outcome", "blame", "cause", "fingerprint_id", "rate_proofs_per_hour", "price_usd_per_hour"),
    *("first_stored_at", "last_stored_at"),
)
"""All that cohorts, scores and the list's reasons read of the table RUNS."""
WITHOUT_RATE_FLAGS = ("few_proofs", "own_neighbour")
"""Flags that leave a run's rate out: it was measured on too little, or beside another run of ours."""


def with_cohort_id(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the runs (table RUNS), in their order, each with its cohort_id; it is never null."""
    parts = runs.select("gpu_model", "num_gpus", measured_kind=_measured_kind())
    combinations = parts.unique()
    ids = combinations.with_columns(
        pl.Series("cohort_id", [cohort_id(each) for each in combinations.to_dicts()], pl.String)
    )
    joined = parts.join(ids, on=PARTS, how="left", nulls_equal=True, validate="m:1", maintain_order="left")
    return runs.with_columns(joined["cohort_id"])


def cohort_id(parts: Mapping[str, Any]) -> str:
    """Return the id of the cohort with these PARTS: the first 12 hex digits of the sha256 of their canonical JSON."""
    named = {
        "gpu_model": parts["gpu_model"],
        "num_gpus": parts["num_gpus"],
        "proof_kind": parts["measured_kind"],
    }
    canonical = json.dumps(named, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]


def scored_runs(runs: pl.DataFrame) -> pl.DataFrame:
    """Return RUN_COLUMNS of the runs that move a score, with `measured_rate_proofs_per_hour` and `seen_at`.

    A missing rate stays null and is in no median. `seen_at` is the store's time of the newest object, or, where
    nothing was stored, the time in the run's id.
    """
    odd = pl.col("flags").list.set_intersection(list(WITHOUT_RATE_FLAGS)).list.len().fill_null(0) > 0
    rate = pl.col("rate_proofs_per_hour")
    id_unix_ms = pl.col("run_id").str.replace("-", "").str.head(12).str.to_integer(base=16, strict=False)
    id_at = id_unix_ms.cast(pl.Datetime("ms", "UTC")).cast(pl.Datetime("us", "UTC"))
    return (
        runs.select(RUN_COLUMNS)
        .filter(pl.col("is_scored").fill_null(True))
        .with_columns(
            measured_rate_proofs_per_hour=pl.when(~odd & rate.is_finite() & (rate > 0)).then(rate),
            seen_at=pl.coalesce("last_stored_at", id_at),
        )
    )


def cohorts(runs: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """Return the table COHORTS of the scored runs (table RUNS, with cohort_id).

    What is normal is the median of the machines' medians, so that a machine rented often weighs no more than
    another; null where no rate was measured. `is_weak` counts machines with a measured rate: only they make the
    median. No cohort leans on another yet, and no effect of plan, build or driver is worked out: `parent_cohort_id`
    is null and `effects` empty.
    """
    scored = scored_runs(runs)
    measured_machine_count = pl.col("measured_machine_count").fill_null(0)
    return (
        scored.group_by("cohort_id")
        .agg(
            gpu_model=pl.col("gpu_model").first(),
            num_gpus=pl.col("num_gpus").first(),
            proof_kind=_measured_kind().first(),
            machine_count=pl.col("machine_id").drop_nulls().n_unique(),
            run_count=pl.len(),
            measured_count=pl.col("measured_rate_proofs_per_hour").count(),
            median_price_usd_per_hour=pl.col("price_usd_per_hour").median(),
        )
        .join(_baselines(scored), on="cohort_id", how="left", validate="1:1")
        .with_columns(
            is_weak=measured_machine_count < policy.weak_cohort_machine_count,
            effects=pl.lit([], polars_schema(COHORTS)["effects"]),
        )
        .pipe(conform, COHORTS)
    )


def _baselines(scored: pl.DataFrame) -> pl.DataFrame:
    """Return one row per cohort with a measured rate of a known machine: median and spread of machines' medians."""
    machine_rate = pl.col("machine_rate_proofs_per_hour")
    return (
        scored.filter(pl.col("machine_id").is_not_null(), pl.col("measured_rate_proofs_per_hour").is_not_null())
        .group_by("cohort_id", "machine_id")
        .agg(machine_rate_proofs_per_hour=pl.col("measured_rate_proofs_per_hour").median())
        .group_by("cohort_id")
        .agg(
            measured_machine_count=pl.len(),
            median_rate_proofs_per_hour=machine_rate.median(),
            rate_low_proofs_per_hour=machine_rate.quantile(0.05, interpolation="linear"),
            rate_high_proofs_per_hour=machine_rate.quantile(0.95, interpolation="linear"),
        )
    )


def _measured_kind() -> pl.Expr:
    return pl.coalesce("proof_kind", "plan_name")
