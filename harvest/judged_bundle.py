"""The work for one bundle, from the store to a judged row: what an executor's workers run.

A worker reads the store itself, writes the run's detail rows to the staging folder and hands back small rows only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
import pyarrow as pa

from bench.arrow import arrow_schema
from bench.schema import Table
from harvest.bundle import Bundle, nothing_trusted, read_bundle, refused_whole
from harvest.contract import RUN_LOGS, RUN_PROOFS, RUN_STAGES, RUN_TELEMETRY, BundleState, RejectReason
from harvest.dated import DETAIL_TABLES, stage_rows
from harvest.diagnosis.evidence import RunEvidence
from harvest.diagnosis.rules import judge
from harvest.diagnosis.signatures import Signatures, parse_signatures
from harvest.errors import HarvestError
from harvest.fetch import BundleListing, listed_state, settled_at, silence_deadline_s
from harvest.launches import LaunchRecord
from harvest.policy import Policy
from harvest.refusal import Refusal
from harvest.runs import alive_row, never_started_row, run_row
from harvest.store import ObjectStore, open_store
from harvest.tables import empty_frame

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is the same for all bundles of one harvest."""

    store_url: str
    staging: Path
    as_of: datetime
    policy: Policy
    signatures_text: str


@dataclass(frozen=True, slots=True)
class BundleTask:
    """One bundle to be read, with its launch record where there is one."""

    around: Surroundings
    listing: BundleListing
    record: LaunchRecord | None


@dataclass(frozen=True, slots=True)
class JudgedBundle:
    """What came of one bundle. `row` is of `in_flight` where the run is alive, else of `runs`.

    `settled_at` is null where the bundle has to be read again by the next harvest, unchanged or not.
    """

    listing: BundleListing
    is_alive: bool
    row: Mapping[str, Any]
    settled_at: datetime | None
    refusals: tuple[Refusal, ...]
    accepted_count: int


@dataclass(frozen=True, slots=True)
class _Crash:
    detail: str


def judge_bundle(task: BundleTask) -> JudgedBundle:
    """Read a bundle, judge it where the run is over, and stage its rows.

    Raises:
        HarvestError: the store cannot be read or the staging folder cannot be written; nothing about the bundle.
    """
    bundle = _unless_it_crashes(lambda: read_bundle(_store(task.around.store_url), task.listing))
    if isinstance(bundle, _Crash):
        return crashed_bundle(task, bundle.detail)
    longest_interval_s = (bundle.opening or {}).get("longest_interval_s")
    deadline_s = silence_deadline_s(task.around.policy, longest_interval_s)
    settled = settled_at(task.listing, deadline_s)
    state = listed_state(task.listing, deadline_s, task.around.as_of)
    if state is None:
        row = alive_row(task.listing, bundle, task.record)
        return JudgedBundle(task.listing, True, row, None, bundle.refusals, bundle.accepted_count)
    if not bundle.is_trusted:
        return _quarantined(task, bundle, settled)
    return _judged(task, bundle, state, settled)


def _judged(task: BundleTask, bundle: Bundle, state: BundleState, settled: datetime) -> JudgedBundle:
    row = run_row(task.listing, bundle, state, task.record)
    frames = _published_frames(bundle, task.listing.run_id)
    stage_rows(task.around.staging, task.listing.run_id, frames)
    signatures = _signatures(task.around.signatures_text)
    verdict = _unless_it_crashes(lambda: judge(_evidence(row, frames), signatures).as_row())
    if not isinstance(verdict, _Crash):
        return JudgedBundle(task.listing, False, row | verdict, settled, bundle.refusals, bundle.accepted_count)
    unjudged = refused_whole(
        task.listing, RejectReason.READER_CRASH, f"judging it, {verdict.detail}; its rows are kept"
    )
    row |= {"evidence": [], "missing_evidence": ["a verdict: judging this run crashed, see rejects"]}
    return JudgedBundle(task.listing, False, row, None, (*bundle.refusals, unjudged), bundle.accepted_count)


def judged_never_started(record: LaunchRecord, signatures_text: str) -> dict[str, Any]:
    """Return the judged row of a launched rental that never stored anything, under its first run's id."""
    row = never_started_row(record)
    frames = {table.name: empty_frame(table) for table in DETAIL_TABLES}
    return row | judge(_evidence(row, frames), _signatures(signatures_text)).as_row()


def crashed_bundle(task: BundleTask, detail: str) -> JudgedBundle:
    """Return a bundle that its reader did not survive; it is read again by the next harvest."""
    refusal = refused_whole(task.listing, RejectReason.READER_CRASH, detail)
    return _quarantined(task, nothing_trusted(refusal), None)


def _quarantined(task: BundleTask, bundle: Bundle, settled: datetime | None) -> JudgedBundle:
    """Return a bundle of which nothing could be trusted: it has no verdict, and says so."""
    row = run_row(task.listing, bundle, BundleState.QUARANTINED, task.record)
    row |= {"evidence": [], "missing_evidence": ["nothing of the bundle could be trusted, see rejects"]}
    return JudgedBundle(task.listing, False, row, settled, bundle.refusals, 0)


def _unless_it_crashes(work: Callable[[], Result]) -> Result | _Crash:
    """Return what the work gives; one odd bundle must not stop the harvest of all others, so that it may crash."""
    try:
        return work()
    except HarvestError:
        raise
    except (Exception, pl.exceptions.PanicException) as error:  # noqa: BLE001  # told in rejects, read again next time
        return _Crash(f"{type(error).__name__}: {error}")


def _published_frames(bundle: Bundle, run_id: str) -> dict[str, pl.DataFrame]:
    details = (
        (RUN_LOGS, bundle.logs),
        (RUN_TELEMETRY, bundle.telemetry),
        (RUN_STAGES, bundle.stages),
        (RUN_PROOFS, bundle.proofs),
    )
    return {table.name: _published(rows, table, run_id) for table, rows in details}


def _published(rows: pa.Table, table: Table, run_id: str) -> pl.DataFrame:
    """Return a bundle's rows as a frame of the published table: the run's id in front, sorted by its key."""
    run_ids = pa.repeat(pa.scalar(run_id), rows.num_rows)
    named = pa.Table.from_arrays([run_ids, *rows.columns], schema=arrow_schema(table))
    frame = pl.from_arrow(named)
    assert isinstance(frame, pl.DataFrame)  # a table gives a frame; the signature also covers arrays
    return frame.sort(table.key, nulls_last=False, maintain_order=True)  # conformed already, by Arrow's schema


def _evidence(row: Mapping[str, Any], frames: Mapping[str, pl.DataFrame]) -> RunEvidence:
    return RunEvidence(
        run=row,
        stages=frames[RUN_STAGES.name].to_dicts(),
        proofs=frames[RUN_PROOFS.name].to_dicts(),
        logs=frames[RUN_LOGS.name],
        telemetry=frames[RUN_TELEMETRY.name],
    )


@cache
def _signatures(text: str) -> Signatures:
    return parse_signatures(text)


@cache
def _store(url: str) -> ObjectStore:
    """One for a worker's life, so that its connections are kept."""
    return open_store(url)
