"""NVIDIA's management library, asked: what the GPUs are, and how they do now.

The only module that imports pynvml. It is loaded only in a process of its own (`bench.gpu_process`), because the
library may hang or crash. What a GPU does not offer is null; a figure out of its range is null too, since a
driver in trouble answers 4294967295; any other error of NVML takes the place of the GPU's whole sample.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pynvml

NvmlError = pynvml.NVMLError
Handle = Any
"""A GPU's handle as pynvml has it, or the NvmlError that stands in for one."""

_ABSENT = frozenset(
    {
        pynvml.NVML_ERROR_NOT_SUPPORTED,
        pynvml.NVML_ERROR_NO_PERMISSION,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_INVALID_ARGUMENT,
        pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
    }
)
"""Errors that say "this GPU or driver has no such figure", and nothing about the GPU's health."""

_LARGEST_COUNT = 2**31 - 2
_LARGEST_BYTES = 2**50
_LARGEST_INT64 = 2**63 - 1
_MOST_EVENTS = 64
"""Xid events taken at one sample: a GPU that raises them without end must not stop the sampling."""


@dataclass(frozen=True)
class Metric:
    """One figure of a GPU: how it is asked, its range as NVML gives it (from 0), and NVML's unit in ours."""

    column: str
    ask: Callable[[Handle], int]
    largest: int
    units_each: int | None = None
    """How many of NVML's units make one of ours; null: the figure stays a whole number."""

    def value(self, handle: Handle) -> float | int | None:
        """Return the figure in our unit. Raises NvmlError where the GPU is in trouble."""
        figure: int | None = _asked(self.ask, handle)
        if figure is None or not 0 <= figure <= self.largest:
            return None
        return figure if self.units_each is None else figure / self.units_each


def _clock(kind: int) -> Callable[[Handle], int]:
    return lambda handle: int(pynvml.nvmlDeviceGetClockInfo(handle, kind))


def _ecc_uncorrected(handle: Handle) -> int:
    kind, since = pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
    return int(pynvml.nvmlDeviceGetTotalEccErrors(handle, kind, since))


METRICS = (
    Metric("gpu_util_ratio", lambda handle: pynvml.nvmlDeviceGetUtilizationRates(handle).gpu, 100, 100),
    Metric("memory_used_bytes", lambda handle: pynvml.nvmlDeviceGetMemoryInfo(handle).used, _LARGEST_BYTES),
    Metric("memory_total_bytes", lambda handle: pynvml.nvmlDeviceGetMemoryInfo(handle).total, _LARGEST_BYTES),
    Metric("power_w", pynvml.nvmlDeviceGetPowerUsage, 10_000_000, 1000),
    Metric(
        "temperature_c", lambda handle: pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU), 200, 1
    ),
    Metric("sm_clock_mhz", _clock(pynvml.NVML_CLOCK_SM), 20_000, 1),
    Metric("memory_clock_mhz", _clock(pynvml.NVML_CLOCK_MEM), 50_000, 1),
    Metric("throttle_reasons", pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, _LARGEST_INT64),
    Metric("pcie_gen", pynvml.nvmlDeviceGetCurrPcieLinkGeneration, 16),
    Metric("pcie_width", pynvml.nvmlDeviceGetCurrPcieLinkWidth, 64),
    Metric("ecc_uncorrected_count", _ecc_uncorrected, _LARGEST_COUNT),
)

# At rest a link runs at a lower generation to save power: the opening holds what GPU and slot can do together.
DESCRIPTION = (
    Metric("memory_bytes", lambda handle: pynvml.nvmlDeviceGetMemoryInfo(handle).total, _LARGEST_BYTES),
    Metric("pcie_gen", pynvml.nvmlDeviceGetMaxPcieLinkGeneration, 16),
    Metric("pcie_width", pynvml.nvmlDeviceGetMaxPcieLinkWidth, 64),
    Metric("power_limit_w", pynvml.nvmlDeviceGetEnforcedPowerLimit, 10_000_000, 1000),
)


def _asked(ask: Callable[..., Any], *arguments: Any) -> Any:
    """The answer; null where there is no such figure. Raises NvmlError where the GPU or the driver is in trouble."""
    try:
        return ask(*arguments)
    except NvmlError as error:
        if error.value in _ABSENT:
            return None
        raise
    except UnicodeDecodeError:  # a name of bytes that are no text was not measured
        return None


def start_nvml() -> None:
    """Start the library. Raises NvmlError where there is none, or no driver."""
    pynvml.nvmlInit()


def gpu_handles() -> dict[int, Handle]:
    """Return each GPU's handle by its index, or the error that stands in for it. Raises NvmlError."""
    return {index: _handle(index) for index in range(_gpu_count())}


def _handle(index: int) -> Handle:
    try:
        return pynvml.nvmlDeviceGetHandleByIndex(index)
    except NvmlError as error:
        return error


def _gpu_count() -> int:
    count = int(pynvml.nvmlDeviceGetCount())
    if not 0 <= count <= 1024:
        raise NvmlError(pynvml.NVML_ERROR_UNKNOWN)
    return count


def gpu_sample(handle: Handle) -> dict[str, Any]:
    """Return one GPU's columns of `telemetry`; `error` alone where NVML gave one."""
    if isinstance(handle, NvmlError):
        return {"error": str(handle)}
    try:
        return {metric.column: metric.value(handle) for metric in METRICS}
    except NvmlError as error:
        return {"error": str(error)}


def describe_gpus() -> dict[str, Any]:
    """Return the opening's columns that NVML knows; what it would not say stands in `probe_errors` by column."""
    row: dict[str, Any] = {"gpus": [], "probe_errors": {}}
    asked = {"driver_version": pynvml.nvmlSystemGetDriverVersion, "cuda_version": _cuda_version, "num_gpus": _gpu_count}
    for column, ask in asked.items():
        try:
            row[column] = ask()
        except NvmlError as error:
            row["probe_errors"][column] = f"NVML: {error}"
    for index in range(row.get("num_gpus", 0)):
        try:
            row["gpus"].append(_description(index, pynvml.nvmlDeviceGetHandleByIndex(index)))
        except NvmlError as error:
            row["probe_errors"]["gpus"] = f"NVML about GPU {index}: {error}"
    return row


def _description(index: int, handle: Handle) -> dict[str, Any]:
    ecc, _ = _asked(pynvml.nvmlDeviceGetEccMode, handle) or (None, None)
    return {
        "index": index,
        "uuid": _asked(pynvml.nvmlDeviceGetUUID, handle),
        "model": _asked(pynvml.nvmlDeviceGetName, handle),
        **{metric.column: metric.value(handle) for metric in DESCRIPTION},
        "ecc": {pynvml.NVML_FEATURE_DISABLED: False, pynvml.NVML_FEATURE_ENABLED: True}.get(ecc),
    }


def _cuda_version() -> str:
    """NVML counts 1000 * major + 10 * minor."""
    version = int(pynvml.nvmlSystemGetCudaDriverVersion())
    return f"{version // 1000}.{version % 1000 // 10}"


class XidWatch:
    """Remembers the newest Xid of each GPU since it was made; silent where the driver tells no events."""

    def __init__(self, handles: Mapping[int, Handle]) -> None:
        self._newest: dict[int, int] = {}
        self._events = _asked_or_none(pynvml.nvmlEventSetCreate)
        for handle in handles.values():
            if self._events is not None and not isinstance(handle, NvmlError):
                _asked_or_none(
                    pynvml.nvmlDeviceRegisterEvents, handle, pynvml.nvmlEventTypeXidCriticalError, self._events
                )

    def newest(self) -> Mapping[int, int]:
        """Return GPU index -> number of its newest Xid, after a look at what happened meanwhile."""
        for _ in range(_MOST_EVENTS if self._events is not None else 0):
            event = _asked_or_none(pynvml.nvmlEventSetWait_v2, self._events, 0)
            if event is None:
                break
            index = _asked_or_none(pynvml.nvmlDeviceGetIndex, event.device)
            if index is not None and 0 < event.eventData <= _LARGEST_COUNT:
                self._newest[index] = int(event.eventData)
        return self._newest


def _asked_or_none(ask: Callable[..., Any], *arguments: Any) -> Any:
    """For what is worth having but must not cost the sample: any error (a timeout means "no event") is null."""
    try:
        return ask(*arguments)
    except NvmlError:
        return None
