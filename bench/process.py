"""A child to its end: outputs by descriptor, the end from the kernel, stopped by TERM and then by KILL."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.contract import STAGES, EndKind, FoundBy

KILL_AFTER_S = 10.0
GIVE_UP_AFTER_S = 5.0
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ash", "ksh", "busybox"})


@dataclass
class Child:
    """One process that the runner started, or tried to. Not frozen: it lives."""

    stage_index: int
    stage: str
    argv: Sequence[str]
    started_at: str
    started_s: float
    process: subprocess.Popen[bytes] | None = None
    error: str | None = None
    ready_at: str | None = None
    stop_kind: EndKind | None = None
    signals: list[dict[str, Any]] = field(default_factory=list)
    oom_kills_before: int | None = None
    end: dict[str, Any] = field(default_factory=dict)
    _next_step_s: float = 0.0

    @property
    def is_over(self) -> bool:
        return bool(self.end)

    @property
    def exit_code(self) -> int | None:
        """The exit code; null while it runs, after a signal, and where it never started."""
        code: int | None = self.end.get("exit_code")
        return code

    def start(self, outputs: tuple[int, int], environment: Mapping[str, str]) -> None:
        """Start the process in a session of its own; what the kernel refuses is kept as its end, not raised."""
        try:
            self.process = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=outputs[0],
                stderr=outputs[1],
                env=dict(environment),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            self.error = f"{self.argv[0]}: {getattr(error, 'strerror', None) or error}"
            self.end = {"end_kind": str(EndKind.NEVER_STARTED)}

    def poll(self, at: str, now_s: float) -> bool:
        """Look whether it ended; return whether it is over. The status is the kernel's own word."""
        if self.is_over or self.process is None:
            return True
        pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
        if pid == 0:
            return False
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.end = {
            **_decoded(status),
            "ended_at": at,
            "wall_s": round(now_s - self.started_s, 6),
            "user_cpu_s": usage.ru_utime,
            "system_cpu_s": usage.ru_stime,
            "max_rss_bytes": usage.ru_maxrss * 1024,
        }
        self.end["end_kind"] = str(self.stop_kind or self.end["end_kind"])
        return True

    def begin_stop(self, kind: EndKind, reason: str, at: str, now_s: float) -> dict[str, Any] | None:
        """Send TERM to the process and its group, once; return the signal sent."""
        if self.is_over or self.stop_kind is not None:
            return None
        self.stop_kind = kind
        self._next_step_s = now_s + KILL_AFTER_S
        return self._send(signal.SIGTERM, reason, at)

    def go_on_stopping(self, at: str, now_s: float) -> dict[str, Any] | None:
        """Send KILL when TERM had its time; book the process as unkillable when KILL had its own."""
        if self.is_over or self.stop_kind is None or now_s < self._next_step_s:
            return None
        self._next_step_s = now_s + GIVE_UP_AFTER_S
        if all(sent["signal"] != signal.SIGKILL for sent in self.signals):
            return self._send(signal.SIGKILL, "still there 10 s after SIGTERM", at)
        self.end = {"end_kind": str(EndKind.UNKILLABLE), "wall_s": round(now_s - self.started_s, 6)}
        return None

    def kill_leftovers(self) -> None:
        """Kill what is left of its group after its end: nothing of a run outlives it."""
        if self.process is not None:
            _signal_group(self.process.pid, signal.SIGKILL)

    def as_row(self, last_output_at: str | None, oom_kills_now: int | None) -> dict[str, Any]:
        """Return its row of `stages`."""
        grown = None
        if self.oom_kills_before is not None and oom_kills_now is not None:
            grown = oom_kills_now - self.oom_kills_before
        hidden = self._hidden_end()
        return STAGES.empty_row() | {
            "stage_index": self.stage_index,
            "stage": self.stage,
            "argv": list(self.argv),
            "pid": self.process.pid if self.process else None,
            "started_at": self.started_at if self.process else None,
            "ready_at": self.ready_at,
            "last_output_at": last_output_at,
            "end_kind": str(EndKind.STILL_RUNNING),
            "found_by": str(FoundBy.CHILD),
            "is_end_hidden": hidden is not None,
            "hidden_end": hidden,
            "runner_signals": list(self.signals),
            "oom_kill_count": grown,
            "error": self.error,
            **self.end,
        }

    def _hidden_end(self) -> str | None:
        """A shell says 128 + n for a signal n of its own child; only a direct child's signal is the kernel's word."""
        is_shell = os.path.basename(self.argv[0]) in _SHELLS
        return "shell_128n" if is_shell and (self.exit_code or 0) > 128 else None

    def _send(self, number: int, reason: str, at: str) -> dict[str, Any]:
        sent = {"at": at, "signal": int(number), "reason": reason}
        self.signals.append(sent)
        if self.process is not None:
            _signal_group(self.process.pid, number)
        return sent


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return


def _decoded(status: int) -> dict[str, Any]:
    is_signalled = os.WIFSIGNALED(status)
    return {
        "end_kind": str(EndKind.SIGNALLED if is_signalled else EndKind.EXITED),
        "wait_status": status,
        "exit_code": None if is_signalled else os.WEXITSTATUS(status),
        "signal": os.WTERMSIG(status) if is_signalled else None,
        "is_core_dumped": os.WCOREDUMP(status),
    }


def is_answering(address: str) -> bool:
    """Return whether something takes a connection at `HOST:PORT` right now."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=0.5):
            return True
    except OSError:
        return False
