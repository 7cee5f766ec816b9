"""Samples while the run lasts: of each GPU by a process of its own, of the host from /proc and the cgroup.

Rows are those of the contract's table `telemetry`; a missing column is null.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from bench import gpu_process, procfs
from bench.cgroup import CgroupReader
from bench.contract import TELEMETRY
from bench.hardware import disk_free_bytes
from bench.module_process import end_process, start_module

START_LIMIT_S = 30.0
"""How long the first line may take: starting NVML takes seconds for each GPU."""

_SILENT_INTERVALS = 3
_COLUMNS = frozenset(TELEMETRY.column_names)
Figure = TypeVar("Figure")


class GpuSampler:
    """The process that samples the GPUs: start it once, take its new rows now and then, stop it, close it.

    Its lines go to a file by an O_APPEND descriptor and are read back by a descriptor of ours, so that they
    outlive a removed folder. Where there is no NVML the process ends by itself and `unavailable_reason` says why.
    """

    def __init__(self, interval_s: float = 1.0, environment: Mapping[str, str] | None = None) -> None:
        self._interval_s = interval_s
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._descriptor = -1
        self._read_bytes = 0
        self._seen_bytes = 0
        self._news_at_s: float | None = None
        self.unavailable_reason: str | None = None

    def start(self, output_file: Path) -> None:
        """Start sampling into the file. Raises OSError where the file or the process cannot be made."""
        self._descriptor = os.open(output_file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._read_bytes = self._seen_bytes = os.fstat(self._descriptor).st_size
        arguments = ["sample", "--interval-s", str(self._interval_s), "--parent-pid", str(os.getpid())]
        self._process = start_module(gpu_process.MODULE, arguments, self._descriptor, self._environment)

    def new_rows(self) -> list[dict[str, Any]]:
        """Return the rows of all lines that became complete since the last call; other lines are passed over."""
        if self._descriptor < 0:
            return []
        size = os.fstat(self._descriptor).st_size
        news = os.pread(self._descriptor, size - self._read_bytes, self._read_bytes)
        complete = news[: news.rfind(b"\n") + 1]
        self._read_bytes += len(complete)
        parsed = [_parsed(line) for line in complete.splitlines()]
        reasons = [line[gpu_process.NO_NVML] for line in parsed if gpu_process.NO_NVML in line]
        self.unavailable_reason = next(iter(reasons), self.unavailable_reason)
        return [row for row in map(_row, parsed) if row is not None]

    def is_hung(self, now_s: float) -> bool:
        """Return whether the process lives and has written nothing for three intervals.

        `now_s` is the monotonic clock. Ask about once an interval: news count from the call that saw them.
        """
        if self._process is None or self._process.poll() is not None:
            return False
        size = os.fstat(self._descriptor).st_size
        if self._news_at_s is None or size != self._seen_bytes:
            self._news_at_s, self._seen_bytes = now_s, size
        limit_s = _SILENT_INTERVALS * self._interval_s if self._seen_bytes else START_LIMIT_S
        return now_s - self._news_at_s > limit_s

    @property
    def pid(self) -> int | None:
        """The process's id; null before it was started."""
        return None if self._process is None else self._process.pid

    def exit_status(self) -> int | None:
        """Return how the process ended (as Popen has it: -11 for signal 11); null while it lives or never began."""
        return None if self._process is None else self._process.poll()

    def stop(self) -> None:
        """End the process; what it wrote can still be taken by `new_rows`. It holds nothing, so it is just killed."""
        if self._process is not None and self._process.poll() is None:
            end_process(self._process)

    def close(self) -> None:
        """Stop, and give the descriptor back: no rows can be taken any more."""
        self.stop()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(line)
    except ValueError:  # also bytes that are no UTF-8: a driver's library printed something of its own
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _row(parsed: Mapping[str, Any]) -> dict[str, Any] | None:
    try:
        sampled_at = datetime.fromisoformat(parsed["sampled_at"].replace("Z", "+00:00"))
    except (KeyError, AttributeError, ValueError):
        return None
    return {**{name: value for name, value in parsed.items() if name in _COLUMNS}, "sampled_at": sampled_at}


class HostSampler:
    """Samples the host and the cgroup. Remembers the last processor times: the first sample's `cpu_ratio` is null."""

    def __init__(self, spool: Path, cgroup: CgroupReader | None = None, system_root: Path = Path("/")) -> None:
        self._spool = spool
        self._root = system_root
        self._cgroup = CgroupReader(system_root) if cgroup is None else cgroup
        self._cpu_times: procfs.CpuTimes | None = None

    def sample(self, now: datetime, stage: str | None, proofs_completed: int | None, log_bytes: int) -> dict[str, Any]:
        """Return the host's row (`gpu_index` null). A figure that cannot be read is null."""
        before, self._cpu_times = self._cpu_times, self._figure(procfs.cpu_times, "stat")
        total = self._figure(lambda text: procfs.meminfo_bytes(text, "MemTotal"), "meminfo")
        available = self._figure(lambda text: procfs.meminfo_bytes(text, "MemAvailable"), "meminfo")
        return {
            **TELEMETRY.empty_row(),
            "sampled_at": now,
            "cpu_ratio": procfs.busy_ratio(before, self._cpu_times),
            "memory_total_bytes": total,
            "memory_used_bytes": None if total is None or available is None else total - available,
            "cgroup_memory_bytes": self._cgroup.memory_current_bytes(),
            "oom_kill_count": self._cgroup.oom_kill_count(),
            "disk_free_bytes": self._disk_free_bytes(),
            "load_1m": self._figure(procfs.load_1m, "loadavg"),
            "stage": stage,
            "proofs_completed": proofs_completed,
            "log_bytes": log_bytes,
        }

    def _figure(self, parse: Callable[[str], Figure], name: str) -> Figure | None:
        try:
            return parse((self._root / "proc" / name).read_text(encoding="ascii", errors="replace"))
        except (OSError, ValueError):
            return None

    def _disk_free_bytes(self) -> int | None:
        try:
            return disk_free_bytes(self._spool)
        except OSError:
            return None
