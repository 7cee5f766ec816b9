"""How a process ended, as a verdict needs it: the class of its end, who ended it, whether that was a failure. Pure."""

from __future__ import annotations

import signal
from datetime import timedelta

from bench.contract import EndKind
from harvest.diagnosis.evidence import Row, RunEvidence

SHELL_SIGNAL_BASE = 128
"""A shell gives a signalled child's end as 128 + signal: its word, not the kernel's."""

SAME_TIME = timedelta(seconds=2)
"""A daemon's end and its client's error are told apart no finer."""

OWN_ENDS = frozenset({EndKind.EXITED, EndKind.SIGNALLED})
"""The process came to its end by itself, or somebody who is not the runner ended it."""
ENDED_BY_RUNNER = frozenset({EndKind.TIMED_OUT, EndKind.STOPPED_BY_RUNNER, EndKind.UNKILLABLE})
WITHOUT_END = frozenset({EndKind.STILL_RUNNING, EndKind.LOST})


def is_own_end(stage: Row) -> bool:
    """Return whether a process ended, and not by the runner."""
    return stage.get("end_kind") in OWN_ENDS


def ended_badly(stage: Row) -> bool:
    """Return whether a process is known to have ended otherwise than with exit 0, or never to have started."""
    if stage.get("end_kind") in WITHOUT_END:
        return False
    if stage.get("end_kind") not in OWN_ENDS:
        return True
    return stage.get("signal") is not None or stage.get("exit_code") not in (0, None)


def ended_by_signal(stage: Row) -> int | None:
    """Return the signal that ended a process; also one that only a shell's exit code tells; null without."""
    if stage.get("signal") is not None:
        return int(stage["signal"])
    code = stage.get("exit_code")
    if code is not None and SHELL_SIGNAL_BASE < code <= SHELL_SIGNAL_BASE + max(signal.valid_signals()):
        return int(code) - SHELL_SIGNAL_BASE
    return None


def was_signalled_by_runner(stage: Row) -> bool:
    """Return whether the runner had a hand in a process's end."""
    return bool(stage.get("runner_signals")) or stage.get("end_kind") in ENDED_BY_RUNNER


def end_class(stage: Row | None) -> str:
    """Return how a process ended in one word, the same over machines: `exit_1`, `signal_9`, `timed_out`, `unseen`."""
    if stage is None:
        return "unseen"
    if stage.get("end_kind") not in OWN_ENDS:
        return str(stage.get("end_kind") or "unseen")
    number = ended_by_signal(stage)
    if number is not None:
        return f"signal_{number}"
    return "unseen" if stage.get("exit_code") is None else f"exit_{stage['exit_code']}"


def end_phrase(stage: Row | None) -> str:
    """Return how a process ended in words for people: `exited with code 1`."""
    kind, _, number = end_class(stage).rpartition("_")
    if kind == "exit":
        return f"exited with code {number}"
    if kind == "signal":
        return f"was ended by signal {number}"
    return end_class(stage).replace("_", " ") if stage is not None else "left no end"


def failed_stages(evidence: RunEvidence) -> tuple[Row, ...]:
    """Return the stages whose bad end can be why the run ended, the daemon first, the deciding one last.

    A daemon that ended after the deciding stage is left out: it has no client any more.
    """
    deciding = evidence.deciding_stage
    daemon = evidence.stage("daemon")
    first = [daemon] if daemon is not None and _ended_before(daemon, deciding) else []
    others = [each for each in evidence.stages if each is not daemon and each is not deciding]
    last = [deciding] if deciding is not None and deciding is not daemon else []
    return tuple(each for each in (*first, *others, *last) if ended_badly(each))


def _ended_before(stage: Row, other: Row | None) -> bool:
    if other is None or stage is other:
        return True
    first, second = stage.get("ended_at"), other.get("ended_at")
    return first is None or second is None or bool(first <= second + SAME_TIME)
