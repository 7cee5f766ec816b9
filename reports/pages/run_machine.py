"""What the run ran with and on: settings, versions, hardware, and what looked wrong before the start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reports import format as fmt
from reports import paths
from reports.parts import Cell, Fact, Grid, headings, keyed_rows

Row = Mapping[str, Any]


def settings_grid(run: Row) -> Grid:
    """Return each setting with what the plan asked for and from what it was worked out."""
    settings, asked, sources = (run[name] or {} for name in ("settings", "settings_asked", "settings_sources"))
    rows = tuple(
        (Cell(name), Cell(settings.get(name, "")), Cell(asked.get(name, "")), Cell(sources.get(name, "")))
        for name in sorted({*settings, *asked})
    )
    return Grid(
        "settings",
        "Settings of the plan",
        headings("Setting", "Value:code", "Asked for:code", "Worked out from"),
        rows,
        "The plan has no settings that are compared.",
    )


def software_facts(run: Row) -> tuple[Fact, ...]:
    """Return plan, build and versions of what was measured."""
    versions = sorted((run["versions"] or {}).items())
    return keyed_rows(
        (
            Fact("Plan", run["plan_name"] or ""),
            Fact("Proof kind", run["proof_kind"] or ""),
            Fact("Build", run["build_id"] or ""),
            *(Fact(name, value) for name, value in versions),
            Fact("Container image", run["container_image"] or ""),
        )
    )


def hardware_facts(run: Row) -> tuple[Fact, ...]:
    """Return the machine as the run's probes saw it; a probe that failed says why."""
    errors = run["probe_errors"] or {}
    return (
        Fact("GPUs", *_value_or_reason(_gpus(run), errors.get("gpus") or errors.get("num_gpus"))),
        Fact("Driver", *_value_or_reason(run["driver_version"], errors.get("driver_version"))),
        Fact("CUDA of the driver", *_value_or_reason(run["cuda_version"], errors.get("cuda_version"))),
        Fact("Processor", *_value_or_reason(run["cpu_model"], errors.get("cpu_model"))),
        Fact("Processors", *_value_or_reason(_processors(run), errors.get("cpu_count"))),
        Fact("Memory of the host", *_value_or_reason(_bytes(run["memory_bytes"]), errors.get("memory_bytes"))),
        Fact("Memory limit of the container", _bytes(run["memory_limit_bytes"]) or _unlimited(errors)),
        Fact("Shared memory", *_value_or_reason(_bytes(run["shm_bytes"]), errors.get("shm_bytes"))),
        Fact(
            "Free disk at the start", *_value_or_reason(_bytes(run["disk_free_bytes"]), errors.get("disk_free_bytes"))
        ),
        Fact("System", ", ".join(part for part in (run["os_image"], run["kernel"]) if part) or fmt.NOT_KNOWN),
        Fact("Place", run["geolocation"] or fmt.NOT_KNOWN),
    )


def _gpus(run: Row) -> str:
    if run["gpu_model"] is None:
        return ""
    seen = fmt.gpus_text(run["gpu_model"], run["num_gpus"])
    rented = run["num_gpus_rented"]
    return seen if rented in (None, run["num_gpus"]) else f"{seen}, but {fmt.counted(rented, 'GPU')} rented"


def _processors(run: Row) -> str:
    if run["cpu_count"] is None:
        return ""
    quota = run["cpu_quota_count"]
    return fmt.count(run["cpu_count"]) + ("" if quota is None else f", of which {quota:g} granted")


def _bytes(value: int | None) -> str:
    return "" if value is None else fmt.bytes_text(value)


def _unlimited(errors: Mapping[str, str]) -> str:
    reason = errors.get("memory_limit_bytes")
    return f"{fmt.NOT_KNOWN}: {reason}" if reason else "none"


def _value_or_reason(value: str | None, reason: str | None) -> tuple[str, str]:
    """Return a value without a note, or `not known` with the reason as its note."""
    return (value, "") if value else (fmt.NOT_KNOWN, reason or "")


def gpus_grid(run: Row) -> Grid:
    """Return each GPU as NVML described it at the start."""
    rows = tuple(
        (
            Cell(str(gpu["index"])),
            Cell(gpu["model"] or fmt.NOT_KNOWN),
            Cell(fmt.bytes_text(gpu["memory_bytes"]), sort=str(gpu["memory_bytes"] or "")),
            Cell(_link(gpu)),
            Cell(fmt.NOT_KNOWN if gpu["power_limit_w"] is None else f"{gpu['power_limit_w']:.0f} W"),
            Cell({True: "on", False: "off"}.get(gpu["ecc"], fmt.NOT_KNOWN)),
            Cell(gpu["uuid"] or fmt.NOT_KNOWN),
        )
        for gpu in run["gpus"] or ()
    )
    titles = headings("GPU:number", "Model", "Memory:number", "PCIe", "Power limit:number", "ECC", "UUID:code")
    return Grid("gpus", "GPUs at the start", titles, rows, "No GPU was described; the probe's reason stands above.")


def _link(gpu: Row) -> str:
    if gpu["pcie_gen"] is None or gpu["pcie_width"] is None:
        return fmt.NOT_KNOWN
    return f"gen {gpu['pcie_gen']}, {gpu['pcie_width']} lanes"


def plan_warnings(run: Row) -> tuple[str, ...]:
    """Return what looked wrong before the start, as the runner wrote it."""
    return tuple(warning["text"] or fmt.words(warning["code"]) for warning in run["plan_warnings"] or ())


def identity_facts(run: Row) -> tuple[Fact, ...]:
    """Return who and where: the marketplace's ids, and whether anybody but the run itself says so."""
    machine_id = run["machine_id"]
    verified = "a launch record agrees" if run["is_identity_verified"] else "the run's own word"
    machine = Fact("Machine", fmt.NOT_KNOWN)
    if machine_id is not None:
        machine = Fact("Machine", str(machine_id), verified, href=paths.machine_page(machine_id))
    return keyed_rows(
        (
            machine,
            Fact("Instance", "" if run["instance_id"] is None else str(run["instance_id"])),
            Fact("Label", run["instance_label"] or ""),
            Fact("Host", "" if run["host_id"] is None else str(run["host_id"])),
            Fact("Marketplace", run["marketplace"] or ""),
            Fact("Rental", run["rental_id"] or ""),
        )
    )
