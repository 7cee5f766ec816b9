"""One id for each kind of failure, the same over machines, builds and time. Pure; nothing is learned or counted.

Recipe `v1`, as the first 12 hex digits of a sha256. With a root record: process, end class of that process, kind of
record, normalised message, source file. Without: how, where and when it ended, and how far it came.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from harvest.contract import Outcome
from harvest.diagnosis.ends import end_class, end_phrase
from harvest.diagnosis.evidence import Origin, Row, RunEvidence
from harvest.diagnosis.normalise import normalised, source_file, versions_and_places
from harvest.diagnosis.progress import Progress
from harvest.diagnosis.records import ErrorRecord, RecordKind

RECIPE = "v1"
MAX_TITLE_LENGTH = 100

DURATIONS: tuple[tuple[timedelta, str], ...] = (
    (timedelta(seconds=10), "within 10 s"),
    (timedelta(minutes=1), "within 1 min"),
    (timedelta(minutes=5), "after 1 to 5 min"),
    (timedelta(minutes=15), "after 5 to 15 min"),
    (timedelta(hours=1), "after 15 to 60 min"),
    (timedelta(hours=4), "after 1 to 4 h"),
)
"""Classes of how long a stage ran, each up to its limit."""

_SHARE_PHRASES: Mapping[str, str] = {
    "none": "no proof completed",
    "some": "some proofs completed",
    "all": "all proofs completed",
    "unasked": "no proofs asked for",
}


class FingerprintKind(StrEnum):
    """From what a fingerprint is made: an error record, or only how the run ended."""

    ROOT = "root"
    SYMPTOM = "symptom"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """`exact_id` keeps versions and source lines, `id` does not; `root_text` is null for a symptom."""

    id: str
    exact_id: str
    kind: FingerprintKind
    title: str
    root_text: str | None


def root_fingerprint(evidence: RunEvidence, record: ErrorRecord, title: str | None) -> Fingerprint:
    """Return the fingerprint of a run whose root record was found; `title` is the cause's, where one is known."""
    message = normalised(record.root.text)
    head = record.lines[0].text if record.kind == RecordKind.PANIC else record.root.text
    process = Origin.DAEMON if record.root.origin == Origin.DAEMON else record.root.origin
    parts = (process, end_class(evidence.stage(process)), record.kind, message, source_file(head))
    return Fingerprint(
        id=_digest(*parts),
        exact_id=_digest(*parts, versions_and_places(f"{head} {record.root.text}")),
        kind=FingerprintKind.ROOT,
        title=(title or message)[:MAX_TITLE_LENGTH],
        root_text=message,
    )


def symptom_fingerprint(evidence: RunEvidence, outcome: Outcome | None, progress: Progress) -> Fingerprint:
    """Return the fingerprint of a run that left no error record: how it ended, where, when, and how far it came."""
    stage = evidence.deciding_stage
    name = "" if stage is None else str(stage.get("stage"))
    plan = str(evidence.run.get("plan_name") or "")
    parts = (str(outcome), end_class(stage), name, progress.share, duration_class(stage), plan)
    exact = str(evidence.run.get("build_id") or "")
    return Fingerprint(
        id=_digest(FingerprintKind.SYMPTOM, *parts),
        exact_id=_digest(FingerprintKind.SYMPTOM, *parts, exact),
        kind=FingerprintKind.SYMPTOM,
        title=_symptom_title(outcome, stage, progress)[:MAX_TITLE_LENGTH],
        root_text=None,
    )


def duration_class(stage: Row | None) -> str:
    """Return how long a stage ran, in classes; `for an unknown time` where it was not measured."""
    wall_s = None if stage is None else stage.get("wall_s")
    if wall_s is None:
        return "for an unknown time"
    return next((words for limit, words in DURATIONS if wall_s < limit.total_seconds()), "after more than 4 h")


def _symptom_title(outcome: Outcome | None, stage: Row | None, progress: Progress) -> str:
    if outcome == Outcome.NEVER_STARTED:
        return "never started"
    if outcome == Outcome.VANISHED:
        where = "" if stage is None else f" during {stage.get('stage')}"
        return f"fell silent{where}, {_SHARE_PHRASES[progress.share]}"
    if stage is None:
        return "no end was recorded"
    when = "" if stage.get("wall_s") is None else f", {duration_class(stage)}"
    slow = "too slow, " if outcome == Outcome.TOO_SLOW else ""
    return f"{slow}{stage.get('stage')} {end_phrase(stage)}, {_SHARE_PHRASES[progress.share]}{when}"


def _digest(*parts: str) -> str:
    text = "\x1f".join((RECIPE, *(str(part) for part in parts)))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
