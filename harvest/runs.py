"""The rows of `runs` and `in_flight`: what is known of each run before it is judged, and all of them as a frame. Pure.

Where the operator left a launch record, it is the truth about identity and price; the bundle's own word is only
compared with it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from bench.arrow import table_from_rows
from bench.contract import ProofPhase, ProofStatus
from bench.schema import Table
from harvest.bundle import Bundle
from harvest.contract import IN_FLIGHT, RUNS, BundleState
from harvest.fetch import BundleListing
from harvest.launches import LaunchRecord
from harvest.tables import conform

BENCHMARK_STAGE = "benchmark"
_FILLED_ONLY = frozenset({"gpu_model", "usd_per_proof", "min_rate_proofs_per_hour"})
"""Measured on the machine, or in force for the run: the record speaks only where the bundle does not."""
_OWN_NAMES = {"num_gpus": "num_gpus_rented"}
"""A record's field -> the column of what the marketplace promised; `num_gpus` is what was really seen."""
EXCLUDING_FLAGS = (
    "time_travel",
    "duplicate_conflict",
    "too_fast",
    "framing",
    "same_gpu_elsewhere",
    "best_of_many",
    "no_benchmark",
)
"""A run with one of these does not move its machine's score."""


def run_row(listing: BundleListing, bundle: Bundle, state: BundleState, record: LaunchRecord | None) -> dict[str, Any]:
    """Return the columns of `runs` that are known without judging, for a run that is over. Others are null."""
    row = RUNS.empty_row() | dict(bundle.opening or {}) | dict(bundle.closing or {})
    row |= {
        "run_id": listing.run_id,
        "bundle_state": str(state),
        "bad_tables": sorted({each.table for each in bundle.refusals if each.table}),
        "last_stage": last_stage(bundle.stages),
        "first_stored_at": listing.first_stored_at,
        "last_stored_at": listing.last_stored_at,
        "stored_bytes": listing.stored_bytes,
        "object_count": listing.object_count,
        "bundle_key": listing.prefix,
    }
    if row["proofs_requested"] is None:
        row["proofs_requested"] = planned_proof_count(bundle.opening)
    row["flags"] = _flags(row, bundle.stages, record)
    return with_identity(row, record)


def with_identity(row: Mapping[str, Any], record: LaunchRecord | None) -> dict[str, Any]:
    """Return the row with what the launch record knows of identity and price."""
    if record is None:
        return {**row, "is_identity_verified": False}
    known = {_OWN_NAMES.get(name, name): value for name, value in record.identity.items()}
    told = {name: value for name, value in known.items() if name not in _FILLED_ONLY or row.get(name) is None}
    if row.get("num_gpus") is None and "num_gpus" in record.identity:
        told["num_gpus"] = record.identity["num_gpus"]
    has_machine = "machine_id" in record.identity
    if has_machine:
        told["machine_id_source"] = "grant"
    return {**row, **told, "rental_id": record.rental_id, "is_identity_verified": has_machine}


def never_started_row(record: LaunchRecord) -> dict[str, Any]:
    """Return the row of a rental's first run that never stored anything."""
    row = RUNS.empty_row() | {
        "run_id": record.run_ids[0],
        "bundle_state": str(BundleState.NEVER_STARTED),
        "bad_tables": [],
        "flags": [],
        "stored_bytes": 0,
        "object_count": 0,
    }
    return with_identity(row, record)


def alive_row(listing: BundleListing, bundle: Bundle, record: LaunchRecord | None) -> dict[str, Any]:
    """Return the row of `in_flight` of a run that may be alive."""
    known = with_identity(dict(bundle.opening or {}), record)
    row = {name: known.get(name) for name in IN_FLIGHT.column_names}
    return row | {
        "run_id": listing.run_id,
        "last_stored_at": listing.last_stored_at,
        "stage": running_stage(bundle.stages),
        "proofs_completed": completed_count(bundle.proofs),
        "proofs_requested": planned_proof_count(bundle.opening),
        "log_bytes": log_bytes(bundle.logs),
    }


def not_yet_started_row(record: LaunchRecord) -> dict[str, Any]:
    """Return the row of `in_flight` of a launched rental of which nothing has arrived yet."""
    known = with_identity({}, record)
    return {name: known.get(name) for name in IN_FLIGHT.column_names} | {"run_id": record.run_ids[0]}


def _flags(claimed: Mapping[str, Any], stages: pa.Table, record: LaunchRecord | None) -> list[str]:
    """Return what is odd about a run, from its row as the bundle alone has it."""
    machine_id, recorded_id = claimed["machine_id"], record.identity.get("machine_id") if record else None
    requested, completed = claimed["proofs_requested"], claimed["proofs_completed"]
    found = {
        "identity_mismatch": None not in (machine_id, recorded_id) and machine_id != recorded_id,
        "few_proofs": None not in (requested, completed) and 2 * completed < requested,
        "no_benchmark": _has_no_benchmark(claimed["plan"], stages),
    }
    return sorted(name for name, is_so in found.items() if is_so)


def _has_no_benchmark(plan_json: str | None, stages: pa.Table) -> bool:
    """Whether the plan asks for no benchmark. A run that died before its benchmark had one; so has an unknown plan."""
    names = planned_stages(plan_json) | set(stages["stage"].to_pylist())
    return bool(names) and BENCHMARK_STAGE not in names


def planned_stages(plan_json: str | None) -> set[str]:
    """Return the names of the stages that a resolved plan lists; none where it cannot be read."""
    try:
        plan = json.loads(plan_json or "null")
    except (ValueError, RecursionError):
        return set()
    stages = plan.get("stage") if isinstance(plan, dict) else None
    named = [each.get("name") for each in stages or [] if isinstance(each, dict)] if isinstance(stages, list) else []
    return {each for each in named if isinstance(each, str)}


def planned_proof_count(opening: Mapping[str, Any] | None) -> int | None:
    """Return how many measured proofs the plan's settings ask for; null where they do not say."""
    text = str(((opening or {}).get("settings") or {}).get("proofs", ""))
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def last_stage(stages: pa.Table) -> str | None:
    """Return the stage that started last, in order of start; null where none did."""
    started = [row["stage"] for row in _ends(stages) if row["started_at"] is not None]
    return started[-1] if started else None


def running_stage(stages: pa.Table) -> str | None:
    """Return the newest stage that has not ended, else the one that ended last; null where none started."""
    running = [row["stage"] for row in _ends(stages) if row["started_at"] is not None and row["ended_at"] is None]
    return running[-1] if running else last_stage(stages)


def _ends(stages: pa.Table) -> Sequence[Mapping[str, Any]]:
    rows: list[dict[str, Any]] = stages.select(["stage_index", "stage", "started_at", "ended_at"]).to_pylist()
    return sorted(rows, key=lambda row: row["stage_index"])


def completed_count(proofs: pa.Table) -> int:
    """Return how many measured proofs completed."""
    is_measured = pc.equal(proofs["phase"], str(ProofPhase.MEASURED))
    is_completed = pc.equal(proofs["status"], str(ProofStatus.COMPLETED))
    return int(pc.sum(pc.and_(is_measured, is_completed).cast(pa.int64())).as_py() or 0)


def log_bytes(logs: pa.Table) -> int:
    """Return how many bytes the lines have, with their terminators."""
    text_bytes = pc.binary_length(pc.coalesce(logs["raw"], logs["text"].cast(pa.binary())))
    terminator_bytes = pc.if_else(pc.equal(logs["terminator"], 3), 2, pc.min_element_wise(logs["terminator"], 1))
    return sum(int(pc.sum(each).as_py() or 0) for each in (text_bytes, terminator_bytes))


def frame_of(table: Table, rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Return rows (maps as dicts, instants as aware datetimes) as a frame of a published table."""
    frame = pl.from_arrow(table_from_rows(table, rows))
    assert isinstance(frame, pl.DataFrame)  # a table gives a frame; the signature also covers arrays
    return conform(frame, table)


def all_runs(kept: pl.DataFrame, rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Return kept and new rows as one frame of RUNS, each with whether it is scored."""
    return pl.concat([kept, frame_of(RUNS, rows)]).pipe(with_is_scored).pipe(conform, RUNS)


def with_is_scored(runs: pl.DataFrame) -> pl.DataFrame:
    """Fill `is_scored`: the machine and the outcome are known, and nothing odd keeps the run out."""
    is_odd = pl.col("flags").list.set_intersection(list(EXCLUDING_FLAGS)).list.len() > 0
    return runs.with_columns(
        is_scored=pl.col("machine_id").is_not_null()
        & pl.col("outcome").is_not_null()
        & ~is_odd
        & (pl.col("bundle_state") != str(BundleState.IMPORTED))
    )
