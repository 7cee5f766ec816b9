"""How far a run came: which proofs are known to have completed or failed, by whose word. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from bench.contract import ProofPhase, ProofStatus
from harvest.diagnosis.evidence import Origin, Row, RunEvidence
from harvest.diagnosis.lines import daemon_completed

DAEMON_START = "cuzk-daemon starting"
"""The daemon's first line: with it, its log is there from the beginning."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts of proofs. Null means not measured.

    `completed` and `failed` are of measured proofs and lower bounds, by the best word there is; `by_daemon` counts all
    that the daemon's log names, warm-up too.
    """

    requested: int | None
    completed: int
    failed: int
    by_daemon: int | None

    @property
    def share(self) -> str:
        """Return how much of the batch completed in one word: `none`, `some`, `all`; `unasked` without a batch."""
        if self.requested is None and not (self.completed or self.failed):
            return "unasked"
        if not self.completed:
            return "none"
        return "all" if self.requested is not None and self.completed >= self.requested else "some"


def progress_of(evidence: RunEvidence, lines: pl.DataFrame) -> Progress:
    """Return how far the run came, from the batch's summary, the proofs it reported and the daemon's log."""
    has_daemon_log = not lines.filter(pl.col("origin") == Origin.DAEMON).is_empty()
    reported = [each for each in evidence.proofs if each.get("phase") == ProofPhase.MEASURED]
    completed = sum(_is_completed(each) for each in reported)
    return Progress(
        requested=evidence.run.get("proofs_requested"),
        completed=max(evidence.run.get("proofs_completed") or 0, completed, _measured_by_daemon(evidence, lines)),
        failed=max(evidence.run.get("proofs_failed") or 0, len(reported) - completed),
        by_daemon=daemon_completed(lines).height if has_daemon_log else None,
    )


def completed_before(evidence: RunEvidence, lines: pl.DataFrame, row: int, seq: int) -> int | None:
    """Return how many proofs, warm-up too, had completed before a line; null where that cannot be known.

    At least one is known as soon as one is seen. None is known only from a whole log: nothing lost, and either a batch
    that was asked for or the daemon's first line is there.
    """
    by_daemon = daemon_completed(lines).filter(pl.col("row") < row).height
    reported = sum(_is_completed(each) and (each.get("log_seq") or 0) < seq for each in evidence.proofs)
    count = max(int(by_daemon), int(reported))
    if count or _is_whole_from_start(evidence, lines):
        return count
    return None


def has_lost_lines(evidence: RunEvidence, lines: pl.DataFrame) -> bool:
    """Return whether a part of the log is known to be missing: bytes that were lost, or a gap in the numbers."""
    if evidence.run.get("lost_log_bytes"):
        return True
    seqs = evidence.logs["seq"] if "seq" in evidence.logs.columns else pl.Series([], dtype=pl.Int64)
    last = seqs.max()
    return isinstance(last, int) and not lines.is_empty() and last + 1 > seqs.n_unique()


def _is_whole_from_start(evidence: RunEvidence, lines: pl.DataFrame) -> bool:
    if has_lost_lines(evidence, lines):
        return False
    has_start = pl.col("text").str.contains(DAEMON_START, literal=True).any()
    return evidence.run.get("proofs_requested") is not None or bool(lines.select(has_start).item())


def _is_completed(proof: Row) -> bool:
    return proof.get("status") == ProofStatus.COMPLETED


def _measured_by_daemon(evidence: RunEvidence, lines: pl.DataFrame) -> int:
    """Count the daemon's completed proofs that cannot be of a warm-up: those after it, or all of a run without one."""
    warmup_seqs = (each.get("log_seq") or 0 for each in evidence.proofs if each.get("phase") == ProofPhase.WARMUP)
    completed = daemon_completed(lines).filter(pl.col("seq") > max(warmup_seqs, default=-1))
    if evidence.stage("warmup") is None:
        return completed.height
    benchmark = evidence.stage("benchmark") or {}
    if benchmark.get("started_at") is None:
        return 0
    return completed.filter(pl.col("captured_at") >= benchmark["started_at"]).height
