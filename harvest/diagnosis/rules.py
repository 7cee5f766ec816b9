"""The verdict on one run: outcome, blame, cause, and the lines they rest on. Pure: no file, no clock.

The rules stand in order in `RULES` (bottom of this page), the first that speaks wins: what the kernel and the runner
know of the ends, then the earliest error record of the daemon before the benchmark's, then `unknown`. A rule
speaks only from evidence that is there.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import polars as pl

from bench.contract import EndKind, EndReason
from harvest.contract import Action, Blame, Certainty, Outcome
from harvest.diagnosis.ends import ended_by_signal, failed_stages, was_signalled_by_runner
from harvest.diagnosis.evidence import EvidenceLine, Origin, Row, RunEvidence
from harvest.diagnosis.excerpt import excerpt_of_end, excerpt_of_record
from harvest.diagnosis.fingerprint import Fingerprint, root_fingerprint, symptom_fingerprint
from harvest.diagnosis.lines import log_lines
from harvest.diagnosis.missing import missing_evidence
from harvest.diagnosis.outcome import outcome_of
from harvest.diagnosis.progress import Progress, completed_before, progress_of
from harvest.diagnosis.records import ErrorRecord, RecordKind, error_records
from harvest.diagnosis.roots import root_record
from harvest.diagnosis.signatures import Meaning, Signatures

SHELL_ERRORS = frozenset({126, 127})
"""A shell could not run, or did not find, what it was told to start."""
CRASH_SIGNALS: dict[int, tuple[str, str]] = {
    signal.SIGSEGV: ("segfault", "Segmentation fault"),
    signal.SIGILL: ("cpu_isa_mismatch", "Illegal instruction"),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict columns of the table `runs`."""

    outcome: Outcome | None
    blame: Blame
    cause: str | None
    certainty: Certainty | None
    action: Action
    fingerprint_id: str | None
    fingerprint_exact_id: str | None
    fingerprint_kind: str | None
    fingerprint_title: str | None
    root_text: str | None
    rule: str
    evidence: tuple[EvidenceLine, ...]
    missing_evidence: tuple[str, ...]
    proofs_completed_by_daemon: int | None

    def as_row(self) -> dict[str, Any]:
        """Return the verdict by column name, with plain text, lists and mappings."""
        row = {each.name: getattr(self, each.name) for each in fields(self)}
        words = {name: None if row[name] is None else str(row[name]) for name in _WORDS}
        quoted = [{"role": str(e.role), "stream": e.stream, "seq": e.seq, "text": e.text} for e in self.evidence]
        return row | words | {"evidence": quoted, "missing_evidence": list(self.missing_evidence)}


_WORDS = ("outcome", "blame", "certainty", "action", "fingerprint_kind")


@dataclass(frozen=True, slots=True)
class Case:
    """One run with what was found in it: what every rule looks at."""

    evidence: RunEvidence
    signatures: Signatures
    lines: pl.DataFrame
    records: tuple[ErrorRecord, ...]
    progress: Progress
    outcome: Outcome | None
    root: ErrorRecord | None
    failed_stages: tuple[Row, ...]

    def meaning(self, record: ErrorRecord) -> Meaning:
        """Return what the signature of an explained record says, given the proofs completed before it."""
        assert record.signature_id is not None
        completed = completed_before(self.evidence, self.lines, record.root.row, record.root.seq)
        return self.signatures.get(record.signature_id).meaning_after(completed)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule says. `record` is the root where a line tells it, else `stage` names whose end it is."""

    rule: str
    meaning: Meaning
    record: ErrorRecord | None = None
    stage: str | None = None


def judge(evidence: RunEvidence, signatures: Signatures) -> Verdict:
    """Return the verdict on a run. Never raises on what a run left, however odd."""
    case = _case(evidence, signatures)
    finding = next(each for rule in RULES if (each := rule(case)) is not None)
    mark = _fingerprint(case, finding)
    return Verdict(
        outcome=case.outcome,
        blame=finding.meaning.blame,
        cause=finding.meaning.cause or None,
        certainty=finding.meaning.certainty,
        action=finding.meaning.action,
        fingerprint_id=mark.id if mark else None,
        fingerprint_exact_id=mark.exact_id if mark else None,
        fingerprint_kind=mark.kind if mark else None,
        fingerprint_title=mark.title if mark else None,
        root_text=mark.root_text if mark else None,
        rule=finding.rule,
        evidence=_excerpt(case, finding),
        missing_evidence=missing_evidence(evidence, case.lines),
        proofs_completed_by_daemon=case.progress.by_daemon,
    )


def _case(evidence: RunEvidence, signatures: Signatures) -> Case:
    lines = log_lines(evidence)
    records = error_records(lines, signatures)
    progress = progress_of(evidence, lines)
    return Case(
        evidence=evidence,
        signatures=signatures,
        lines=lines,
        records=records,
        progress=progress,
        outcome=outcome_of(evidence, progress),
        root=root_record(evidence, records),
        failed_stages=failed_stages(evidence),
    )


def _fingerprint(case: Case, finding: Finding) -> Fingerprint | None:
    """A passed run has none; one whose root is a line has that line's; any other its symptom's."""
    if case.outcome in (Outcome.PASSED, None):
        return None
    if finding.record is not None:
        return root_fingerprint(case.evidence, finding.record, finding.meaning.title)
    return symptom_fingerprint(case.evidence, case.outcome, case.progress)


def _excerpt(case: Case, finding: Finding) -> tuple[EvidenceLine, ...]:
    if case.outcome == Outcome.PASSED:
        return ()
    if finding.record is None:
        return excerpt_of_end(case.lines, finding.stage, case.records)
    others = [each for each in case.records if each is not finding.record]
    return excerpt_of_record(case.lines, finding.record, others)


def _unknown(cause: str) -> Meaning:
    return Meaning(Blame.UNKNOWN, cause, None, Action.INVESTIGATE, "")


def _passed(case: Case) -> Finding | None:
    if case.outcome != Outcome.PASSED:
        return None
    return Finding("passed", Meaning(Blame.NONE, "", None, Action.NONE, ""))


def _without_run(case: Case) -> Finding | None:
    """Nothing trusted, or nothing there: no rule can speak."""
    if case.outcome is None:
        return Finding("nothing_trusted", _unknown("no_evidence"))
    return Finding("never_started", _unknown("no_heartbeat")) if case.outcome == Outcome.NEVER_STARTED else None


def _too_slow(case: Case) -> Finding | None:
    """Every proof completed: why so slowly, the rates of the cohort have to say, not one run."""
    return Finding("too_slow", _unknown("no_evidence")) if case.outcome == Outcome.TOO_SLOW else None


def _kernel_named_hardware(case: Case) -> Finding | None:
    for record in case.records:
        if record.signature_id is not None and case.meaning(record).blame == Blame.MACHINE:
            is_kernels = record.root.origin == Origin.KERNEL
            if is_kernels:
                return Finding(record.signature_id, case.meaning(record), record)
    return None


def _oom_kill(case: Case) -> Finding | None:
    """The cgroup's counter grew while a process was killed: its limit was too small for these settings."""
    for stage in case.failed_stages:
        killed = ended_by_signal(stage) == signal.SIGKILL and not was_signalled_by_runner(stage)
        if killed and (stage.get("oom_kill_count") or 0) > 0:
            title = "Killed by the cgroup's memory limit"
            meaning = Meaning(Blame.CONFIGURATION, "cgroup_oom", Certainty.DIRECT, Action.FIX_SCRIPT, title)
            return Finding("oom_kill", meaning, stage=stage.get("stage"))
    return None


def _interrupted(case: Case) -> Finding | None:
    """Somebody stopped the run from outside: what the logs say after that is no cause."""
    if case.outcome != Outcome.INTERRUPTED or case.evidence.run.get("end_reason") != EndReason.TERMINATED:
        return None
    meaning = Meaning(Blame.NONE, "destroyed_by_us", Certainty.INFERRED, Action.RETRY, "Stopped from outside")
    return Finding("terminated", meaning)


def _known_line(case: Case) -> Finding | None:
    root = case.root
    if root is None or root.signature_id is None:
        return None
    return Finding(root.signature_id, case.meaning(root), root)


def _crash_signal(case: Case) -> Finding | None:
    for stage in case.failed_stages:
        if was_signalled_by_runner(stage) or ended_by_signal(stage) not in CRASH_SIGNALS:
            continue
        cause, title = CRASH_SIGNALS[ended_by_signal(stage) or 0]
        meaning = Meaning(Blame.SOFTWARE, cause, Certainty.INFERRED, Action.FIX_IMAGE, title)
        return Finding("crash_signal", meaning, case.root, stage.get("stage"))
    return None


def _crash_record(case: Case) -> Finding | None:
    """A panic or a failed assertion that no signature knows: software stopped itself, why is not known."""
    root = case.root
    if root is None or root.is_echo or root.kind not in (RecordKind.PANIC, RecordKind.ASSERT):
        return None
    cause = "panic" if root.kind == RecordKind.PANIC else "assert"
    meaning = Meaning(Blame.SOFTWARE, cause, Certainty.INFERRED, Action.INVESTIGATE, "")
    return Finding(f"unknown_{cause}", meaning, root)


def _shell_error(case: Case) -> Finding | None:
    for stage in case.failed_stages:
        never_started = stage.get("end_kind") == EndKind.NEVER_STARTED
        if never_started or stage.get("exit_code") in SHELL_ERRORS:
            title = "A program of the script could not be run"
            meaning = Meaning(Blame.BENCHMARK_SCRIPT, "shell_error", Certainty.INFERRED, Action.FIX_SCRIPT, title)
            return Finding("shell_error", meaning, case.root, stage.get("stage"))
    return None


def _unexplained_kill(case: Case) -> Finding | None:
    """SIGKILL by nobody who left a trace: neither the runner nor the OOM counter."""
    for stage in case.failed_stages:
        if ended_by_signal(stage) == signal.SIGKILL and not was_signalled_by_runner(stage):
            return Finding("sigkill_sender", _unknown("sigkill_sender"), stage=stage.get("stage"))
    return None


def _unexplained_line(case: Case) -> Finding | None:
    return None if case.root is None else Finding("new_fingerprint", _unknown("new_fingerprint"), case.root)


def _nothing(case: Case) -> Finding:
    stage = case.failed_stages[0].get("stage") if case.failed_stages else None
    return Finding("no_evidence", _unknown("no_evidence"), stage=stage)


RULES: Sequence[Callable[[Case], Finding | None]] = (
    _without_run,
    _passed,
    _too_slow,
    _kernel_named_hardware,
    _interrupted,
    _oom_kill,
    _known_line,
    _crash_signal,
    _crash_record,
    _unexplained_kill,
    _shell_error,
    _unexplained_line,
    _nothing,
)
"""In this order; the first that speaks gives the verdict."""
