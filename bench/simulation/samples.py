"""Telemetry of a simulated run: a row a minute for the host and for each GPU. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from random import Random
from typing import Any

from bench.simulation.facts import RunFacts
from bench.simulation.fleet import GIB
from bench.simulation.recording import Recording

SAMPLE_INTERVAL_S = 60.0
_BUSY_STAGES = ("warmup", "benchmark")
_POWER_CAP = 0x4
"""NVML's bit for a clock held down by the power limit: usual under load."""


def samples(facts: RunFacts, recording: Recording, until_s: float) -> list[tuple[float, dict[str, Any]]]:
    """Return (at_s, row) of every sample up to a time, the host's row of each instant first."""
    random = facts.random("telemetry")
    host = _host_sampler(facts, recording)
    rows: list[tuple[float, dict[str, Any]]] = []
    for minute in range(int(until_s / SAMPLE_INTERVAL_S) + 1):
        at_s = 2.0 + minute * SAMPLE_INTERVAL_S
        if at_s > until_s:
            break
        stage = _stage_at(recording, at_s)
        rows.append((at_s, host(random, at_s, stage)))
        for gpu_index in range(facts.machine.num_gpus):
            row = _gpu_row(facts, recording, random, at_s, gpu_index, stage in _BUSY_STAGES)
            rows.append((at_s, row))
    return rows


def _stage_at(recording: Recording, at_s: float) -> str | None:
    """The newest stage that runs; while none does, the daemon or nothing."""
    now = recording.text_at(at_s)
    running = [
        row["stage"]
        for row in recording.stages
        if row["started_at"] <= now and (row["ended_at"] is None or row["ended_at"] > now)
    ]
    return running[-1] if running else None


def _host_sampler(facts: RunFacts, recording: Recording) -> Callable[[Random, float, str | None], dict[str, Any]]:
    """Return a function from an instant to the host's row; it looks lines up by time."""
    lines = sorted(recording.lines, key=lambda line: line.at_s)
    times_s = [line.at_s for line in lines]
    bytes_before = [0]
    for line in lines:
        bytes_before.append(bytes_before[-1] + len(line.text) + 1)
    proof_times_s = [line.at_s for line in lines if line.stream == "benchmark.stdout" and "] COMPLETED" in line.text]
    kills_s = [line.at_s for line in lines if line.stream == "runner" and '"oom_kill", ' in line.text]
    machine = facts.machine

    def row(random: Random, at_s: float, stage: str | None) -> dict[str, Any]:
        is_busy = stage in _BUSY_STAGES
        used_bytes = int((facts.budget_bytes if is_busy else 18 * GIB) * random.uniform(0.55, 0.62 if is_busy else 0.7))
        cgroup_bytes = min(used_bytes, machine.memory_limit_bytes or used_bytes)
        return {
            "sampled_at": recording.at(at_s),
            "cpu_ratio": None if at_s < SAMPLE_INTERVAL_S else random.uniform(0.4, 0.8) if is_busy else 0.08,
            "memory_total_bytes": machine.memory_bytes,
            "memory_used_bytes": used_bytes,
            "cgroup_memory_bytes": cgroup_bytes,
            "oom_kill_count": bisect_right(kills_s, at_s),
            "disk_free_bytes": 212 * GIB - int(at_s) * 2**16,
            "load_1m": round(random.uniform(22.0, 48.0) if is_busy else random.uniform(0.5, 2.0), 2),
            "stage": stage,
            "proofs_completed": bisect_right(proof_times_s, at_s),
            "log_bytes": bytes_before[bisect_right(times_s, at_s)],
        }

    return row


def _gpu_row(
    facts: RunFacts, recording: Recording, random: Random, at_s: float, gpu_index: int, is_busy: bool
) -> dict[str, Any]:
    model = facts.machine.model
    at = {"sampled_at": recording.at(at_s), "gpu_index": gpu_index}
    is_hurt = gpu_index == 0 and recording.gpu_lost_s is not None and at_s >= recording.gpu_lost_s
    xid = facts.scenario.xid if is_hurt else None
    if xid == 79:
        return at | {"error": "GPU is lost", "xid": xid}
    return at | {
        "gpu_util_ratio": random.uniform(0.9, 1.0) if is_busy else 0.0,
        "memory_used_bytes": int(model.memory_bytes * (random.uniform(0.66, 0.78) if is_busy else 0.02)),
        "memory_total_bytes": model.memory_bytes,
        "power_w": round(model.power_limit_w * (random.uniform(0.86, 0.98) if is_busy else 0.09), 1),
        "temperature_c": float(random.randrange(61, 74) if is_busy else 36),
        "sm_clock_mhz": round(model.sm_clock_mhz * (facts.machine.rate_ratio if is_busy else 0.2)),
        "memory_clock_mhz": model.memory_clock_mhz,
        "throttle_reasons": _POWER_CAP if is_busy else 1,
        "pcie_gen": model.pcie_gen,
        "pcie_width": 16,
        "other_process_count": 0,
        "other_memory_used_bytes": 0,
        "ecc_uncorrected_count": (2 if xid == 48 else 0) if model.has_ecc else None,
        "xid": xid,
    }
