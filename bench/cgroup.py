"""What the cgroup of this process grants and counts: memory, processors, OOM kills. Versions 1 and 2.

The texts of the kernel's files are parsed by pure functions; `CgroupReader` finds the files and reads them. Where
the host mixes both versions, a controller that version 1 holds is read there. In a container the path that
/proc/self/cgroup gives is often the host's and does not exist here: then the folder's nearest parent is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

Figure = TypeVar("Figure")

_UNLIMITED_V1_BYTES = 2**60
"""Version 1 writes "no limit" as the largest multiple of a page below 2**63; no host has an exbibyte."""


def memory_limit(text: str) -> int | None:
    """Return the bytes of `memory.max` (v2) or `memory.limit_in_bytes` (v1); null when unlimited.

    Raises:
        ValueError: the text is neither a number nor `max`.
    """
    if text.strip() == "max":
        return None
    limit_bytes = int(text)
    return None if limit_bytes >= _UNLIMITED_V1_BYTES else limit_bytes


def cpu_quota_v2(text: str) -> float | None:
    """Return the processors that `cpu.max` grants (`150000 100000` is 1.5); null when unlimited."""
    quota, period = text.split()
    return None if quota == "max" else _processors(int(quota), int(period))


def cpu_quota_v1(quota_text: str, period_text: str) -> float | None:
    """Return the processors that `cpu.cfs_quota_us` over `cpu.cfs_period_us` grants; null when unlimited."""
    quota = int(quota_text)
    return None if quota < 0 else _processors(quota, int(period_text))


def _processors(quota: int, period: int) -> float:
    if period <= 0:
        raise ValueError(f"a period of {period} us")
    return quota / period


def oom_kills(text: str) -> int:
    """Return the counter `oom_kill` of `memory.events` (v2) or `memory.oom_control` (v1).

    Raises:
        ValueError: there is no such line (kernels before 4.13).
    """
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == "oom_kill":
            return int(value)
    raise ValueError("no line 'oom_kill'")


def own_paths(membership: str) -> dict[str, str]:
    """Return /proc/self/cgroup as controller -> path; the unified hierarchy (v2) stands under the empty name."""
    paths: dict[str, str] = {}
    for line in membership.splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        paths.update(dict.fromkeys(controllers.split(","), path))
    return paths


@dataclass(frozen=True)
class _Hierarchy:
    """Where one controller's files lie: the process's own folder first, then its parents up to the mount."""

    folders: tuple[Path, ...]
    is_v1: bool


class CgroupReader:
    """Reads the cgroup of this process. Every figure is null where its file cannot be read, or says "unlimited".

    A limit holds for all below it, so the smallest of the folder's and its parents' counts; counters are the
    folder's own. `system_root` is another folder than `/` only in tests.
    """

    def __init__(self, system_root: Path = Path("/")) -> None:
        self._mount = system_root / "sys/fs/cgroup"
        paths = _figure(own_paths, system_root / "proc/self/cgroup") or {}
        self._memory = _hierarchy(self._mount, paths, "memory")
        self._cpu = _hierarchy(self._mount, paths, "cpu")

    def memory_limit_bytes(self) -> int | None:
        name = self._memory_limit_name()
        limits = [_figure(memory_limit, folder / name) for folder in self._memory.folders]
        return min((limit for limit in limits if limit is not None), default=None)

    def cpu_quota_count(self) -> float | None:
        parse = cpu_quota_v1 if self._cpu.is_v1 else cpu_quota_v2
        quotas = [_figure(parse, *(folder / name for name in self._cpu_quota_names())) for folder in self._cpu.folders]
        return min((quota for quota in quotas if quota is not None), default=None)

    def memory_current_bytes(self) -> int | None:
        name = "memory.usage_in_bytes" if self._memory.is_v1 else "memory.current"
        return _figure(int, self._memory.folders[0] / name)

    def oom_kill_count(self) -> int | None:
        name = "memory.oom_control" if self._memory.is_v1 else "memory.events"
        return _figure(oom_kills, self._memory.folders[0] / name)

    def missing_memory_reason(self) -> str | None:
        """Return why `memory_limit_bytes` gives null, where that does not mean "unlimited"."""
        return self._missing_reason(self._memory, self._memory_limit_name())

    def missing_cpu_reason(self) -> str | None:
        """Return why `cpu_quota_count` gives null, where that does not mean "unlimited"."""
        return self._missing_reason(self._cpu, self._cpu_quota_names()[0])

    def _missing_reason(self, hierarchy: _Hierarchy, name: str) -> str | None:
        if any(_figure(str, folder / name) is not None for folder in hierarchy.folders):
            return None
        return f"no readable {name} in this process's cgroup under {self._mount}"

    def _memory_limit_name(self) -> str:
        return "memory.limit_in_bytes" if self._memory.is_v1 else "memory.max"

    def _cpu_quota_names(self) -> tuple[str, ...]:
        return ("cpu.cfs_quota_us", "cpu.cfs_period_us") if self._cpu.is_v1 else ("cpu.max",)


def _hierarchy(mount: Path, paths: Mapping[str, str], controller: str) -> _Hierarchy:
    """Version 1's folder where that version holds the controller; else version 2's, also beside version 1's."""
    if controller in paths and (mount / controller).is_dir():
        return _Hierarchy(_folders(mount / controller, paths[controller]), is_v1=True)
    unified = mount / "unified"
    return _Hierarchy(_folders(unified if unified.is_dir() else mount, paths.get("", "/")), is_v1=False)


def _folders(mount: Path, path: str) -> tuple[Path, ...]:
    """Those of the path's folders that exist here, deepest first; the mount itself always, last."""
    parts = [part for part in path.split("/") if part]
    if ".." in parts:  # the process stands outside its own namespace's root: nothing below the mount is its own
        parts = []
    below = [mount.joinpath(*parts[:depth]) for depth in range(len(parts), 0, -1)]
    return (*(folder for folder in below if folder.is_dir()), mount)


def _figure(parse: Callable[..., Figure | None], *paths: Path) -> Figure | None:
    """What the texts of the files say, null where one cannot be read or says something else."""
    try:
        return parse(*(path.read_text(encoding="ascii", errors="replace") for path in paths))
    except (OSError, ValueError):
        return None
