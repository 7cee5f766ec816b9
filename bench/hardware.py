"""What this machine is: processors, memory, cgroup, disk, system, GPUs.

Each probe stands alone. One that fails gives null and its reason in `probe_errors`, never a zero and never a crash.
An unlimited cgroup is null without a reason: it was measured, there is no limit.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench import gpu_process, procfs
from bench.cgroup import CgroupReader
from bench.contract import KernelLog
from bench.module_process import end_process, start_module

NVML_LIMIT_S = 30.0
"""Starting NVML takes seconds for each GPU where no other process holds the driver open."""

_GPU_COLUMNS = ("gpu_model", "driver_version", "cuda_version", "num_gpus", "gpus")
_IMAGE_VARIABLES = ("LASTWORDS_CONTAINER_IMAGE", "CONTAINER_IMAGE")


class ProbeFailed(ValueError):
    """One probe has no answer; the text says why."""


@dataclass(frozen=True)
class Hardware:
    """Columns of the opening, named as there; null where not measured, with the reason in `probe_errors`."""

    gpu_model: str | None = None
    driver_version: str | None = None
    cuda_version: str | None = None
    num_gpus: int | None = None
    gpus: list[dict[str, Any]] = field(default_factory=list)
    cpu_model: str | None = None
    cpu_count: int | None = None
    cpu_quota_count: float | None = None
    memory_bytes: int | None = None
    memory_limit_bytes: int | None = None
    shm_bytes: int | None = None
    disk_free_bytes: int | None = None
    kernel: str | None = None
    os_image: str | None = None
    container_image: str | None = None
    kernel_log: str = KernelLog.ABSENT.value
    boot_id: str | None = None
    probe_errors: dict[str, str] = field(default_factory=dict)

    def as_row(self) -> dict[str, Any]:
        """Return the columns by name, ready for the opening."""
        return asdict(self)


def probe_hardware(
    spool: Path,
    environment: Mapping[str, str],
    system_root: Path = Path("/"),
    nvml_limit_s: float = NVML_LIMIT_S,
) -> Hardware:
    """Return what this machine is. Takes as long as NVML does, at most about `nvml_limit_s`.

    Args:
        spool: an existing folder; its disk is the one that `disk_free_bytes` is about.
        environment: also what the process that asks NVML gets.
        system_root: another folder than `/` only in tests.
    """
    values: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for column, probe in _host_probes(spool, environment, system_root).items():
        try:
            values[column] = probe()
        except (OSError, ValueError) as error:
            errors[column] = str(error)
    gpu_values, gpu_errors = _gpu_facts(environment, nvml_limit_s)
    return Hardware(**values, **gpu_values, probe_errors={**errors, **gpu_errors})


def _host_probes(spool: Path, environment: Mapping[str, str], root: Path) -> dict[str, Callable[[], Any]]:
    cgroup = CgroupReader(root)
    return {
        "cpu_model": lambda: procfs.cpu_model(_text(root / "proc/cpuinfo")),
        "cpu_count": _cpu_count,
        "cpu_quota_count": lambda: _limit(cgroup.cpu_quota_count(), cgroup.missing_cpu_reason()),
        "memory_bytes": lambda: procfs.meminfo_bytes(_text(root / "proc/meminfo"), "MemTotal"),
        "memory_limit_bytes": lambda: _limit(cgroup.memory_limit_bytes(), cgroup.missing_memory_reason()),
        "shm_bytes": lambda: _disk_bytes(root / "dev/shm"),
        "disk_free_bytes": lambda: disk_free_bytes(spool),
        "kernel": lambda: os.uname().release,
        "os_image": lambda: procfs.os_name(_text(root / "etc/os-release")),
        "container_image": lambda: _container_image(environment),
        "kernel_log": lambda: _kernel_log(root / "dev/kmsg"),
        "boot_id": lambda: _text(root / "proc/sys/kernel/random/boot_id").strip(),
    }


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _cpu_count() -> int:
    count = os.cpu_count()
    if count is None:
        raise ProbeFailed("the kernel does not tell the number of processors")
    return count


def _limit(figure: float | None, missing_reason: str | None) -> float | None:
    if figure is None and missing_reason is not None:
        raise ProbeFailed(missing_reason)
    return figure


def disk_free_bytes(folder: Path) -> int:
    """Return the bytes that an ordinary user may still write on the folder's disk. Raises OSError."""
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


def _disk_bytes(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_blocks * status.f_frsize


def _container_image(environment: Mapping[str, str]) -> str:
    for name in _IMAGE_VARIABLES:
        if image := environment.get(name, "").strip():
            return image.encode("utf-8", "backslashreplace").decode("utf-8")
    raise ProbeFailed(f"neither {' nor '.join(_IMAGE_VARIABLES)} is set")


def _kernel_log(path: Path) -> str:
    """Read one record without waiting: opening alone is allowed where reading is not."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return KernelLog.ABSENT.value
    except PermissionError:
        return KernelLog.DENIED.value
    try:
        os.read(descriptor, 8192)
    except PermissionError:
        return KernelLog.DENIED.value
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EPIPE):  # no record yet, or one was overwritten: both readable
            raise
    finally:
        os.close(descriptor)
    return KernelLog.READABLE.value


def _gpu_facts(environment: Mapping[str, str], limit_s: float) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the GPU columns that NVML told, and why the others are null."""
    try:
        told = _ask_nvml(environment, limit_s)
    except (OSError, ValueError) as error:
        return {}, dict.fromkeys(_GPU_COLUMNS, str(error))
    errors: dict[str, str] = told.pop("probe_errors")
    first = next((gpu for gpu in told["gpus"] if gpu["index"] == 0), None)
    told["gpu_model"] = None if first is None else first["model"]
    if told["gpu_model"] is None:
        errors["gpu_model"] = errors.get("gpus", "NVML tells no model of GPU 0")
    return told, errors


def _ask_nvml(environment: Mapping[str, str], limit_s: float) -> dict[str, Any]:
    """Return what the process that asks NVML printed. Raises OSError or ProbeFailed; a hung one is left behind."""
    with tempfile.TemporaryFile() as output:
        process = start_module(gpu_process.MODULE, ["describe"], output.fileno(), environment)
        try:
            status = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            end_process(process)
            raise ProbeFailed(f"NVML did not answer within {limit_s:g} s") from None
        output.seek(0)
        printed = output.read()
    if status < 0:
        raise ProbeFailed(f"the process that asked NVML was ended by signal {-status}")
    return _parsed_answer(status, printed)


def _parsed_answer(status: int, printed: bytes) -> dict[str, Any]:
    """The answer is the last line: a driver's library may print lines of its own before it."""
    last_line = printed.decode("utf-8", "replace").strip().rpartition("\n")[2]
    try:
        told = json.loads(last_line)
    except ValueError:
        told = None
    if status != 0 or not isinstance(told, dict):
        raise ProbeFailed(f"the process that asked NVML ended with {status}: {last_line[:200]}")
    if gpu_process.NO_NVML in told:
        raise ProbeFailed(told[gpu_process.NO_NVML])
    return told
