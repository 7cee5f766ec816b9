"""Small fleets for the tests of scores: usual runs of usual machines, and the few that a test is about."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from data import FOLDER
from harvest.policy import parse_policy
from harvest.scoring.badlist import bad_machines
from harvest.scoring.cohort import cohorts, with_cohort_id
from harvest.scoring.score import machines
from tests.builders import START, make_runs, run_id_at

POLICY = parse_policy((FOLDER / "policy.toml").read_text(encoding="utf-8"))
AS_OF = START + timedelta(days=30)
SUBJECT = 4242
"""The machine that a test is about; the others have small ids."""

Change = Mapping[str, Any]
NO_RATE: Change = {"rate_proofs_per_hour": None, "proofs_completed": None, "measured_wall_s": None}
HARDWARE_FAILURE: Change = {
    **NO_RATE,
    "outcome": "failed",
    "blame": "machine",
    "cause": "gpu_fell_off_bus",
    "fingerprint_id": "aa11",
}
UNEXPLAINED_FAILURE: Change = {**NO_RATE, "outcome": "vanished", "blame": "unknown", "cause": "unknown"}


def on_day(day: float, **change: Any) -> Change:
    """Return changes that put a run on that day after START."""
    started_at = START + timedelta(days=day)
    ended_at = started_at + timedelta(minutes=20)
    times = {"started_at": started_at, "ended_at": ended_at, "first_stored_at": started_at, "last_stored_at": ended_at}
    return {**times, "run_id": run_id_at(started_at, 9_000_000 + int(day * 86_400)), **change}


def usual_machines(count: int = 6) -> list[Change]:
    """Return three passed runs at 40 proofs per hour for each of `count` machines of the usual cohort."""
    return [{"machine_id": machine_id} for machine_id in range(1, count + 1) for _ in range(3)]


def runs_of(*changes: Change) -> pl.DataFrame:
    """Return the runs with their cohorts."""
    return with_cohort_id(make_runs(*changes))


def subject_beside_usual(*changes: Change) -> pl.DataFrame:
    """Return runs of the subject, a day apart unless they say when, beside six usual machines."""
    return runs_of(*usual_machines(), *({**on_day(day), **change} for day, change in enumerate(changes)))


def scored(runs: pl.DataFrame) -> pl.DataFrame:
    return machines(runs, cohorts(runs, POLICY), POLICY)


def bad_list(runs: pl.DataFrame, as_of: datetime = AS_OF) -> pl.DataFrame:
    return bad_machines(scored(runs), runs, POLICY, as_of)


def subject(frame: pl.DataFrame) -> dict[str, Any]:
    """Return the subject's one row."""
    return frame.row(by_predicate=pl.col("machine_id") == SUBJECT, named=True)
