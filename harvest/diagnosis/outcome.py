"""What happened to a run: the first rule that holds, in the contract's order. Pure.

Good news is earned: `passed` has its own condition (`bench.proofs.run_passed`, the runner's own), and what no rule
explains is `incomplete`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from bench.contract import EndKind, EndReason
from bench.proofs import RunResult, run_passed
from harvest.contract import BundleState, Outcome
from harvest.diagnosis.ends import ended_badly, is_own_end
from harvest.diagnosis.evidence import RunEvidence
from harvest.diagnosis.progress import Progress

BROKEN_OFF = frozenset({EndReason.TERMINATED, EndReason.RUNNER_KILLED, EndReason.HOST_RESTARTED})


@dataclass(frozen=True, slots=True)
class Course:
    """A run and how far it came: what the rules look at."""

    evidence: RunEvidence
    progress: Progress

    @property
    def bundle_state(self) -> str | None:
        return self.evidence.run.get("bundle_state")


def _never_started(course: Course) -> bool:
    return course.bundle_state == BundleState.NEVER_STARTED


def _vanished(course: Course) -> bool:
    return course.bundle_state == BundleState.VANISHED


def _timed_out(course: Course) -> bool:
    stages = (course.evidence.stage("benchmark"), course.evidence.stage("daemon"))
    return any(each is not None and each.get("end_kind") == EndKind.TIMED_OUT for each in stages)


def _interrupted(course: Course) -> bool:
    if course.bundle_state == BundleState.CLOSING_PARTIAL:
        return True
    stage = course.evidence.deciding_stage
    return course.evidence.run.get("end_reason") in BROKEN_OFF and (stage is None or not is_own_end(stage))


def _partial(course: Course) -> bool:
    progress, stage = course.progress, course.evidence.deciding_stage
    is_short = progress.requested is not None and progress.completed < progress.requested
    return progress.completed > 0 and (progress.failed > 0 or is_short or (stage is not None and ended_badly(stage)))


def _failed(course: Course) -> bool:
    stage = course.evidence.deciding_stage
    every_proof_failed = course.progress.failed > 0 and course.progress.completed == 0
    return every_proof_failed or (stage is not None and ended_badly(stage))


def _incomplete(course: Course) -> bool:
    """What was asked for is not all there. A rate is asked for where proofs are measured and there is a min rate."""
    result = run_result(course.evidence)
    has_rate = result.rate_proofs_per_hour is not None
    counted = (result.proofs_requested, result.proofs_completed, result.proofs_failed)
    is_rate_asked = result.min_rate_proofs_per_hour is not None and counted != (None, None, None)
    run = course.evidence.run
    is_closing_lost = run.get("end_reason") is None and "closing" in (run.get("bad_tables") or ())
    return is_closing_lost or not run_passed(_without_min_rate(result)) or (is_rate_asked and not has_rate)


def _too_slow(course: Course) -> bool:
    result = run_result(course.evidence)
    rate, least = result.rate_proofs_per_hour, result.min_rate_proofs_per_hour
    return rate is not None and least is not None and rate < least


def _passed(course: Course) -> bool:
    return run_passed(run_result(course.evidence))


OUTCOME_RULES: tuple[tuple[Outcome, Callable[[Course], bool]], ...] = (
    (Outcome.NEVER_STARTED, _never_started),
    (Outcome.VANISHED, _vanished),
    (Outcome.TIMED_OUT, _timed_out),
    (Outcome.INTERRUPTED, _interrupted),
    (Outcome.PARTIAL, _partial),
    (Outcome.FAILED, _failed),
    (Outcome.INCOMPLETE, _incomplete),
    (Outcome.TOO_SLOW, _too_slow),
    (Outcome.PASSED, _passed),
)


def outcome_of(evidence: RunEvidence, progress: Progress) -> Outcome | None:
    """Return what happened; null where nothing of the bundle could be trusted."""
    if evidence.run.get("bundle_state") == BundleState.QUARANTINED:
        return None
    course = Course(evidence, progress)
    return next((outcome for outcome, holds in OUTCOME_RULES if holds(course)), Outcome.INCOMPLETE)


def run_result(evidence: RunEvidence) -> RunResult:
    """Return what decides whether the run passed, by the batch's own summary and the deciding stage's end."""
    run, stage = evidence.run, evidence.deciding_stage or {}
    is_seen_to_exit = stage.get("end_kind") == EndKind.EXITED
    return RunResult(
        exit_code=stage.get("exit_code") if is_seen_to_exit else None,
        is_end_hidden=bool(stage.get("is_end_hidden")),
        proofs_requested=run.get("proofs_requested"),
        proofs_completed=run.get("proofs_completed"),
        proofs_failed=run.get("proofs_failed"),
        rate_proofs_per_hour=run.get("rate_proofs_per_hour"),
        min_rate_proofs_per_hour=run.get("min_rate_proofs_per_hour"),
    )


def _without_min_rate(result: RunResult) -> RunResult:
    return replace(result, min_rate_proofs_per_hour=None)
