"""How a process ended, in words: its code or signal, and who sent the signal."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Any

from bench.contract import EndKind

_EXIT_MEANINGS = {
    101: "a Rust panic of the main thread",
    124: "the word of `timeout`: its time was over",
    126: "a shell's word: found, but could not be started",
    127: "a shell's word: command or library not found",
}
_OWN_FAULTS = {signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP}


def signal_name(number: int) -> str:
    """Return a signal's name with its number: `SIGKILL (9)`; real-time signals have only a number."""
    try:
        return f"{signal.Signals(number).name} ({number})"
    except ValueError:
        return f"signal {number}"


def end_phrase(stage: Mapping[str, Any]) -> str:
    """Return what followed the process's name: `exited with code 1`, `was killed by SIGKILL (9)`."""
    kind = stage["end_kind"]
    if kind == EndKind.NEVER_STARTED:
        return "never started"
    if kind == EndKind.STILL_RUNNING:
        return "was still running at the end of the record"
    if kind == EndKind.LOST:
        return "ended unseen"
    how = _status_phrase(stage)
    if kind == EndKind.TIMED_OUT:
        return f"was stopped at its time limit and {how}"
    if kind == EndKind.STOPPED_BY_RUNNER:
        return f"was stopped by the runner and {how}"
    if kind == EndKind.UNKILLABLE:
        return "could not be killed"
    return how


def _status_phrase(stage: Mapping[str, Any]) -> str:
    if stage["signal"] is not None:
        core = " and left a core dump" if stage["is_core_dumped"] else ""
        return f"was killed by {signal_name(stage['signal'])}{core}"
    if stage["exit_code"] is not None:
        return f"exited with code {stage['exit_code']}"
    return "left no exit status"


def short_end(stage: Mapping[str, Any]) -> str:
    """Return the end for a narrow column: `exit 1`, `SIGKILL (9)`, `never started`."""
    if stage["signal"] is not None:
        return signal_name(stage["signal"])
    if stage["exit_code"] is not None:
        return f"exit {stage['exit_code']}"
    return str(stage["end_kind"]).replace("_", " ")


def end_notes(stage: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what should be known about an end: what its code means, who sent the signal, whether it is hidden."""
    notes = []
    code = stage["exit_code"]
    if code in _EXIT_MEANINGS:
        notes.append(f"Code {code} is {_EXIT_MEANINGS[code]}.")
    elif code is not None and 128 < code <= 192:
        notes.append(f"Code {code} is a shell's word for {signal_name(code - 128)}.")
    if stage["signal"] is not None:
        notes.append(signal_sender(stage))
    if stage["is_end_hidden"]:
        notes.append(f"This end is not the process's own ({_hidden(stage['hidden_end'])}).")
    if stage["error"]:
        notes.append(f"It never started: {stage['error']}")
    return tuple(notes)


def signal_sender(stage: Mapping[str, Any]) -> str:
    """Return one sentence that says who sent the signal that ended the process, or that nobody knows."""
    number = stage["signal"]
    own = [each for each in stage["runner_signals"] or () if each["signal"] == number]
    if own:
        return f"Sent by the runner: {own[-1]['reason']}."
    if number == signal.SIGKILL and stage["oom_kill_count"]:
        return f"Sent by the kernel: the cgroup's out-of-memory counter grew by {stage['oom_kill_count']}."
    if number in _OWN_FAULTS:
        return "Raised by the process's own fault, not sent from outside as far as is known."
    return "Who sent it is not known: neither the runner nor the out-of-memory killer did."


def _hidden(word: str | None) -> str:
    return {
        "pipe": "the last program of a pipe decides the code",
        "shell_128n": "a shell turned a signal into a code",
        "log_tail": "known only from the log",
    }.get(word or "", "a shell stood between")
