"""Usual rows, so that a test states only what it is about."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from bench.keys import make_run_id
from bench.schema import Table
from harvest.contract import RUNS
from harvest.tables import conform, polars_schema

START = datetime(2026, 11, 2, 8, 0, tzinfo=UTC)
"""When the first usual run starts; each further one starts an hour later."""

GPU_MODEL = "NVIDIA RTX PRO 4000"


def run_id_at(started_at: datetime, number: int = 0) -> str:
    """Return a valid run id of that instant; `number` tells ids of one instant apart."""
    return make_run_id(int(started_at.timestamp() * 1000), number)


def usual_run(number: int = 0) -> dict[str, Any]:
    """Return a run that passed: 12 of 12 proofs at 40 per hour on machine 4242, at $0.296/h."""
    started_at = START + timedelta(hours=number)
    ended_at = started_at + timedelta(minutes=20)
    return {
        "run_id": run_id_at(started_at, number),
        "schema_version": 1,
        "started_at": started_at,
        "ended_at": ended_at,
        "first_stored_at": started_at,
        "last_stored_at": ended_at,
        "marketplace": "vast.ai",
        "machine_id": 4242,
        "machine_id_source": "flag",
        "gpu_model": GPU_MODEL,
        "num_gpus": 1,
        "plan_name": "cuzk",
        "proof_kind": "porep-32g",
        "price_usd_per_hour": 0.296,
        "usd_per_proof": 0.008,
        "min_rate_proofs_per_hour": 37.0,
        "min_rate_source": "price",
        "min_rate_from_price_proofs_per_hour": 37.0,
        "is_min_rate_consistent": True,
        "end_reason": "finished",
        "finished_by": "runner",
        "proofs_requested": 12,
        "proofs_completed": 12,
        "proofs_failed": 0,
        "measured_wall_s": 1080.0,
        "rate_proofs_per_hour": 40.0,
        "bundle_state": "finished",
        "bad_tables": [],
        "flags": [],
        "is_identity_verified": False,
        "is_scored": True,
        "outcome": "passed",
        "blame": "none",
        "action": "none",
        "evidence": [],
        "missing_evidence": [],
        "usd_spent": 0.0987,
        "usd_lost": 0.0,
    }


def make_runs(*changes: Mapping[str, Any]) -> pl.DataFrame:
    """Return one usual run for each set of changes, an hour apart, as a frame of the table `runs`."""
    return make_frame(RUNS, *({**usual_run(number), **change} for number, change in enumerate(changes)))


def make_frame(table: Table, *rows: Mapping[str, Any]) -> pl.DataFrame:
    """Return rows (missing columns null) as a frame of a published table, sorted by its key."""
    full = [{**table.empty_row(), **row} for row in rows]
    return conform(pl.DataFrame(full, schema=polars_schema(table)), table)
