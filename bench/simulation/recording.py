"""What a simulated run left behind while it lasted: lines, stages, how far it came, as the runner would note them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from bench.contract import RUNNER_STREAM, STAGES, EndKind, FoundBy, RunnerEvent
from bench.simulation.daemon_log import instant_text


@dataclass(frozen=True)
class Line:
    """One line of a stream; `at_s` counts from the start of the run."""

    at_s: float
    stream: str
    text: str


@dataclass(frozen=True)
class ProofWindow:
    """The time in which the daemon worked on one proof: where its ordinary lines belong."""

    job_id: str
    start_s: float
    end_s: float


@dataclass(frozen=True)
class StageEnd:
    """How a process ended. `signals_sent` are (at_s, signal, reason) of what the runner itself sent."""

    kind: EndKind = EndKind.EXITED
    exit_code: int | None = None
    signal: int | None = None
    oom_kill_count: int = 0
    signals_sent: Sequence[tuple[float, int, str]] = ()

    @property
    def wait_status(self) -> int:
        """The end as the kernel gives it to who waits."""
        return (self.exit_code or 0) << 8 | (self.signal or 0)


@dataclass
class Recording:
    """A run as it goes on. Not frozen: the story appends to it, line by line.

    `ended_s` is when the runner was done; `cut_s` is where everything stops in a run that falls silent or is alive.
    """

    started_at: datetime
    lines: list[Line] = field(default_factory=list)
    stages: list[dict[str, Any]] = field(default_factory=list)
    windows: list[ProofWindow] = field(default_factory=list)
    ended_s: float = 0.0
    cut_s: float | None = None
    gpu_lost_s: float | None = None

    def at(self, at_s: float) -> datetime:
        """Return the instant of a time within the run."""
        return self.started_at + timedelta(microseconds=int(at_s * 1e6))

    def text_at(self, at_s: float) -> str:
        return instant_text(self.at(at_s))

    def say(self, at_s: float, stream: str, *texts: str) -> None:
        """Note lines that a stream got at one time."""
        self.lines += [Line(at_s, stream, text) for text in texts]

    def tell(self, at_s: float, event: RunnerEvent, **columns: Any) -> None:
        """Note an event in the runner's own stream."""
        self.say(at_s, RUNNER_STREAM, event_text(event, self.text_at(at_s), columns))

    def is_running(self, stage: str) -> bool:
        """Whether a stage of that name has started and not ended."""
        return any(row["stage"] == stage and row["ended_at"] is None for row in self.stages)

    def start_stage(self, at_s: float, stage: str, argv: Sequence[str], pid: int) -> None:
        """Begin a stage and tell of it."""
        row = STAGES.empty_row() | {
            "stage_index": len(self.stages),
            "stage": stage,
            "argv": list(argv),
            "pid": pid,
            "started_at": self.text_at(at_s),
            "wall_s": -at_s,
            "end_kind": str(EndKind.STILL_RUNNING),
            "found_by": str(FoundBy.CHILD),
            "is_end_hidden": False,
            "runner_signals": [],
        }
        self.stages.append(row)
        told = {name: row[name] for name in ("stage", "stage_index", "argv", "pid")}
        self.tell(at_s, RunnerEvent.STAGE_STARTED, **told)

    def mark_ready(self, at_s: float, stage: str) -> None:
        """Note when a stage's port answered."""
        self._row(stage)["ready_at"] = self.text_at(at_s)

    def end_stage(self, at_s: float, stage: str, end: StageEnd, user_cpu_s: float, max_rss_bytes: int) -> None:
        """End a stage, with its figures, and tell of it."""
        row = self._row(stage)
        for signal_at_s, number, reason in end.signals_sent:
            self.tell(signal_at_s, RunnerEvent.SIGNAL_SENT, signal=number, reason=reason, pid=row["pid"])
        if end.oom_kill_count:
            self.tell(at_s, RunnerEvent.OOM_KILL, count=end.oom_kill_count)
        row |= {
            "ended_at": self.text_at(at_s),
            "wall_s": round(row["wall_s"] + at_s, 6),
            "user_cpu_s": round(user_cpu_s, 3),
            "system_cpu_s": round(user_cpu_s * 0.06, 3),
            "max_rss_bytes": max_rss_bytes,
            "last_output_at": self.text_at(self._last_output_s(stage, at_s)),
            "end_kind": str(end.kind),
            "wait_status": end.wait_status,
            "exit_code": end.exit_code,
            "signal": end.signal,
            "is_core_dumped": False,
            "runner_signals": [
                {"at": self.text_at(sent_s), "signal": number, "reason": reason}
                for sent_s, number, reason in end.signals_sent
            ],
            "oom_kill_count": end.oom_kill_count,
        }
        self.tell(at_s, RunnerEvent.STAGE_ENDED, **row)

    def _row(self, stage: str) -> dict[str, Any]:
        return next(row for row in reversed(self.stages) if row["stage"] == stage)

    def _last_output_s(self, stage: str, ended_s: float) -> float:
        own = (line.at_s for line in self.lines if line.stream.startswith(f"{stage}."))
        return max((at_s for at_s in own if at_s <= ended_s), default=ended_s)


def event_text(event: RunnerEvent, at: str, columns: Mapping[str, Any]) -> str:
    """Return one line of stream `runner`."""
    return json.dumps({"event": str(event), "at": at, **columns}, ensure_ascii=False)
