"""Texts of /proc and /etc/os-release -> figures. Pure; each raises ValueError where its figure is not in the text."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass


@dataclass(frozen=True)
class CpuTimes:
    """Time of all processors since boot, in clock ticks: only differences of two readings mean something."""

    busy: int
    total: int


def cpu_times(stat: str) -> CpuTimes:
    """Return the first line of /proc/stat: user nice system idle iowait irq softirq steal (guest is within user)."""
    name, *fields = stat.partition("\n")[0].split()
    ticks = [int(field) for field in fields[:8]]
    if name != "cpu" or len(ticks) < 4:
        raise ValueError("/proc/stat does not begin with a line 'cpu'")
    return CpuTimes(busy=sum(ticks) - sum(ticks[3:5]), total=sum(ticks))


def busy_ratio(before: CpuTimes | None, now: CpuTimes | None) -> float | None:
    """Return the busy share between two readings; null without two, or where the counters stood still or ran back."""
    if before is None or now is None or now.total <= before.total:
        return None
    ratio = (now.busy - before.busy) / (now.total - before.total)
    return ratio if 0 <= ratio <= 1 else None


def meminfo_bytes(meminfo: str, name: str) -> int:
    """Return one line of /proc/meminfo (`MemTotal`, `MemAvailable`), which counts in KiB."""
    match = re.search(rf"^{name}:\s+(\d+) kB$", meminfo, re.MULTILINE)
    if match is None:
        raise ValueError(f"/proc/meminfo has no line {name!r}")
    return int(match[1]) * 1024


def load_1m(loadavg: str) -> float:
    """Return the load average of one minute, the first figure of /proc/loadavg."""
    return float(loadavg.partition(" ")[0])


def cpu_model(cpuinfo: str) -> str:
    """Return the first `model name` of /proc/cpuinfo; ARM's kernel writes none."""
    match = re.search(r"^model name\s*:\s*(\S.*?)\s*$", cpuinfo, re.MULTILINE)
    if match is None:
        raise ValueError("/proc/cpuinfo has no line 'model name'")
    return match[1]


def os_name(os_release: str) -> str:
    """Return PRETTY_NAME of /etc/os-release, whose values are quoted as a shell does it."""
    for line in os_release.splitlines():
        name, _, value = line.partition("=")
        if name == "PRETTY_NAME" and value:
            return " ".join(shlex.split(value))
    raise ValueError("/etc/os-release has no line 'PRETTY_NAME'")
