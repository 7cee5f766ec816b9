"""A simulated run as the objects that a runner would have stored, each with its time. Pure: the store is another's.

The same code seals as in a real run (`bench.seal`), and the same tables are there: the closing lists all others.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bench.contract import SCHEMA_VERSION, EndReason, FinishedBy
from bench.seal import SealedObject, seal_rows
from bench.simulation.facts import PROOFS_REQUESTED, RunFacts
from bench.simulation.numbering import NumberedLogs, numbered_logs
from bench.simulation.opening import opening_row
from bench.simulation.recording import Recording
from bench.simulation.samples import samples

LOG_PART_S = 600.0
TELEMETRY_PART_S = 300.0
"""A real runner stores parts more often; what matters here is a sign of life well within every deadline."""
_UPLOAD_S = 0.25


@dataclass(frozen=True)
class DatedObject:
    """One object and when the store got it."""

    key: str
    data: bytes
    stored_at: datetime


@dataclass(frozen=True)
class SimulatedBundle:
    """All objects of a run in the order stored, and what its output said of the batch, as far as it came."""

    objects: list[DatedObject]
    logs: NumberedLogs


def simulated_bundle(facts: RunFacts, recording: Recording, store_credential: str) -> SimulatedBundle:
    """Return a run's objects: with a closing where it ended, without where it fell silent or is alive."""
    until_s = recording.ended_s if recording.cut_s is None else recording.cut_s
    logs = numbered_logs(recording, until_s)
    sealed = [(1.0, seal_rows("opening", [opening_row(facts, store_credential)], facts.run_id))]
    sealed += _parts("logs", logs.times_s, logs.rows, LOG_PART_S, until_s, facts.run_id)
    sampled = samples(facts, recording, until_s)
    times_s, rows = [at_s for at_s, _ in sampled], [row for _, row in sampled]
    sealed += _parts("telemetry", times_s, rows, TELEMETRY_PART_S, until_s, facts.run_id)
    if recording.cut_s is None:
        sealed.append((until_s + 0.3, seal_rows("stages", recording.stages, facts.run_id)))
        sealed.append((until_s + 0.5, seal_rows("proofs", logs.proofs, facts.run_id)))
        closing = _closing_row(recording, logs, [each for _, each in sealed], facts)
        sealed.append((until_s + 1.5, seal_rows("closing", [closing], facts.run_id)))
    objects = [
        DatedObject(each.key, each.data, recording.at(at_s + _UPLOAD_S))
        for at_s, each in sorted(sealed, key=lambda pair: pair[0])
    ]
    return SimulatedBundle(objects, logs)


def _parts(
    table: str, times_s: Sequence[float], rows: Sequence[dict[str, Any]], every_s: float, until_s: float, run_id: str
) -> Iterator[tuple[float, SealedObject]]:
    """Yield (at_s, part) for each interval with rows; the last one ends with the run."""
    by_interval: dict[int, list[dict[str, Any]]] = {}
    for at_s, row in zip(times_s, rows, strict=True):
        by_interval.setdefault(int(at_s / every_s), []).append(row)
    for part, (interval, part_rows) in enumerate(by_interval.items()):
        sealed_s = min((interval + 1) * every_s, math.nextafter(until_s, math.inf))
        yield sealed_s, seal_rows(table, part_rows, run_id, part)


def _closing_row(
    recording: Recording, logs: NumberedLogs, sealed: Sequence[SealedObject], facts: RunFacts
) -> dict[str, Any]:
    batch = logs.batch
    streams = _stream_rows(logs.rows)
    has_summary = batch.completed is not None
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": facts.run_id,
        "ended_at": recording.at(recording.ended_s + 1.0),
        "end_reason": str(EndReason.FINISHED),
        "finished_by": str(FinishedBy.RUNNER),
        "closing_boot_id": str(facts.random("boot").getrandbits(64)),
        "runner_flags": [],
        "proofs_requested": batch.requested if batch.requested is not None else PROOFS_REQUESTED,
        "proofs_completed": batch.completed,
        "proofs_failed": batch.failed if has_summary else None,
        "measured_wall_s": batch.measured_wall_s,
        "rate_proofs_per_hour": batch.rate_proofs_per_hour,
        "reported_rate_proofs_per_hour": batch.reported_rate_proofs_per_hour,
        "streams": streams,
        "log_bytes": sum(each["raw_bytes"] for each in streams),
        "log_line_count": len(logs.rows),
        "redaction_count": 0,
        "redactions": {},
        "lost_log_bytes": 0,
        "runner_errors": [],
        "objects": [each.listing() for each in sealed],
    }


def _stream_rows(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    texts: dict[str, list[str]] = {}
    for row in rows:
        texts.setdefault(row["stream"], []).append(row["text"])
    return [_stream_row(stream, lines) for stream, lines in sorted(texts.items())]


def _stream_row(stream: str, lines: Sequence[str]) -> dict[str, Any]:
    raw = "".join(f"{line}\n" for line in lines).encode()
    return {
        "stream": stream,
        "raw_bytes": len(raw),
        "raw_sha256": hashlib.sha256(raw).hexdigest(),
        "line_count": len(lines),
        "redaction_count": 0,
        "lost_bytes": 0,
        "truncation_count": 0,
        "rotation_count": 0,
    }
