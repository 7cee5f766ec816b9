"""Which evidence would have helped and is not there. What is missing never votes. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from bench.contract import KernelLog
from harvest.diagnosis.evidence import Origin, RunEvidence
from harvest.diagnosis.progress import has_lost_lines


def missing_evidence(evidence: RunEvidence, lines: pl.DataFrame) -> tuple[str, ...]:
    """Return the names of what is absent or known to be lost, the most telling first.

    `daemon log`, `benchmark log`, `some log lines` `exit record`, `cgroup counters`, `closing`,
    `telemetry`, `GPU telemetry`, `kernel log`.
    """
    return tuple(_missing(evidence, lines))


def _missing(evidence: RunEvidence, lines: pl.DataFrame) -> Iterator[str]:
    stage, telemetry = evidence.deciding_stage or {}, evidence.telemetry
    if lines.filter(pl.col("origin") == Origin.DAEMON).is_empty():
        yield "daemon log"
    if lines.filter(pl.col("origin").is_in([Origin.BENCHMARK, Origin.STAGE])).is_empty():
        yield "benchmark log"
    if has_lost_lines(evidence, lines):
        yield "some log lines"
    if all(stage.get(name) is None for name in ("wait_status", "exit_code", "signal")):
        yield "exit record"
    if stage.get("oom_kill_count") is None:
        yield "cgroup counters"
    if evidence.run.get("end_reason") is None:
        yield "closing"
    if telemetry.is_empty():
        yield "telemetry"
    if telemetry.is_empty() or _gpu_samples(telemetry).is_empty():
        yield "GPU telemetry"
    if evidence.run.get("kernel_log") != KernelLog.READABLE:
        yield "kernel log"


def _gpu_samples(telemetry: pl.DataFrame) -> pl.DataFrame:
    return telemetry.filter(pl.col("gpu_index").is_not_null() & pl.col("error").is_null())
