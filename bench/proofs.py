"""The benchmark's output -> proofs, rate, and whether a run passed. Pure; the harvest uses the same.

The format is that of `cuzk-bench batch` (filecoin-project/curio, extern/cuzk, commit e0294b0).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from bench.contract import ProofPhase, ProofStatus

_HEADER = re.compile(r"^(proof type|count|concurrency):\s+(\S+)\s*$", re.ASCII)
_PROOF = re.compile(
    r"^\s*\[(?P<index>\d{1,9})/(?P<total>\d{1,9})\]\s+(?P<status>[A-Z]+)\s+\S+\s+(?P<wall_s>[\d.]+)s"
    r"(?:\s+\((?P<details>[^)]*)\))?",
    re.ASCII,
)
_DETAIL = re.compile(r"(prove|queue)=(\d{1,12}) ?ms", re.ASCII)
_SUMMARY = re.compile(r"^(total time|completed|failed|throughput):\s+([\d.]+)(.*)$", re.ASCII)
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_BATCH = "=== Batch Benchmark ==="
_SUMMARY_HEAD = "=== Batch Summary ==="
_FIELDS = {_BATCH: _HEADER, _SUMMARY_HEAD: _SUMMARY}
_NOTHING = re.compile(r"(?!)")


@dataclass(frozen=True)
class Proof:
    """One proof as a line of the output reported it; `line_index` counts the lines given, from 0.

    `phase` is `warmup` for the proofs of every batch but the last.
    """

    status: ProofStatus
    wall_s: float | None
    prove_s: float | None
    queue_s: float | None
    line_index: int
    phase: ProofPhase = ProofPhase.MEASURED


@dataclass(frozen=True)
class BatchOutput:
    """What a batch printed. Every field but `proofs` is null where its line was never printed.

    Where a script ran several batches the figures are the last one's: an earlier success must not stand in for it.
    """

    proof_kind: str | None = None
    requested: int | None = None
    concurrency: int | None = None
    proofs: tuple[Proof, ...] = ()
    completed: int | None = None
    failed: int | None = None
    measured_wall_s: float | None = None
    reported_rate_proofs_per_hour: float | None = None

    @property
    def rate_proofs_per_hour(self) -> float | None:
        """The measured rate; null, never 0, without a completed proof or without the batch's own total."""
        return rate_proofs_per_hour(self.completed, self.measured_wall_s)


def rate_proofs_per_hour(completed: int | None, measured_wall_s: float | None) -> float | None:
    """Return proofs per hour; null where nothing completed or either figure was not measured.

    >>> rate_proofs_per_hour(11, 612.3)
    64.67...
    >>> rate_proofs_per_hour(0, 612.3) is None
    True
    """
    if not completed or not measured_wall_s:
        return None
    return _finite(completed * 3600 / measured_wall_s)


def parse_batch(lines: Iterable[str]) -> BatchOutput:
    """Return what the lines of a benchmark's output say, in their order; lines of other kinds are passed over."""
    found: dict[str, str] = {}
    proofs: list[Proof] = []
    section = ""
    for line_index, raw in enumerate(lines):
        line = _ANSI.sub("", raw).rstrip("\r\n")
        if line.strip() in _FIELDS:
            section = line.strip()
            if section == _BATCH:
                found.clear()
                proofs = [replace(each, phase=ProofPhase.WARMUP) for each in proofs]
        elif section == _BATCH and (match := _PROOF.match(line)):
            proofs.append(_proof(match, line_index))
        elif match := _FIELDS.get(section, _NOTHING).match(line):
            found.setdefault(match[1], match[2])
    per_minute = _number(found.get("throughput"))
    return BatchOutput(
        proof_kind=found.get("proof type"),
        requested=_whole(found.get("count")),
        concurrency=_whole(found.get("concurrency")),
        proofs=tuple(proofs),
        completed=_whole(found.get("completed")),
        failed=_whole(found.get("failed")),
        measured_wall_s=_number(found.get("total time")),
        reported_rate_proofs_per_hour=None if per_minute is None else _finite(per_minute * 60),
    )


def _proof(match: re.Match[str], line_index: int) -> Proof:
    details = {name: float(ms) / 1000 for name, ms in _DETAIL.findall(match["details"] or "")}
    word = match["status"].lower()
    status = ProofStatus(word) if word in set(ProofStatus) else ProofStatus.UNKNOWN
    return Proof(status, _number(match["wall_s"]), details.get("prove"), details.get("queue"), line_index)


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else _finite(float(text))
    except ValueError:  # "1.2.3": a digit-like token that is no number was not measured
        return None


def _finite(number: float) -> float | None:
    """A damaged line can hold 400 digits, and the dataset refuses infinity."""
    return number if math.isfinite(number) else None


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 10 else None


@dataclass(frozen=True)
class RunResult:
    """What decides whether a run passed. Counts are of measured proofs; null means not measured."""

    exit_code: int | None
    is_end_hidden: bool
    proofs_requested: int | None
    proofs_completed: int | None
    proofs_failed: int | None
    rate_proofs_per_hour: float | None
    min_rate_proofs_per_hour: float | None


def run_passed(result: RunResult) -> bool:
    """Return whether a run passed: good news is earned, a missing figure never counts as good.

    The end must be exit 0 by the kernel's word. Where proofs are measured, as many as were asked for must have
    completed and none failed, and the rate must reach the min rate, if there is one. Where nobody asked for proofs
    and none were counted (a plan that measures no proofs), exit 0 is enough.
    """
    if result.exit_code != 0 or result.is_end_hidden:
        return False
    counted = (result.proofs_requested, result.proofs_completed, result.proofs_failed)
    if counted == (None, None, None):
        return True
    if result.proofs_completed is None or result.proofs_completed < (result.proofs_requested or 0):
        return False
    if result.proofs_failed != 0:
        return False
    if result.min_rate_proofs_per_hour is None:
        return True
    rate = result.rate_proofs_per_hour
    return rate is not None and rate >= result.min_rate_proofs_per_hour
