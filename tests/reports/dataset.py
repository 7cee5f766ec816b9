"""Small data folders for tests, laid out as a harvest leaves them: generations, `.current`, links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from bench.keys import run_date
from bench.schema import Table
from harvest.contract import (
    BAD_MACHINES,
    COHORTS,
    DATED_TABLES,
    FINGERPRINTS,
    HARVESTS,
    IN_FLIGHT,
    MACHINES,
    RUN_LOGS,
    RUN_PROOFS,
    RUN_STAGES,
    RUN_TELEMETRY,
    RUNS,
    SINGLE_TABLES,
)
from harvest.tables import empty_frame, frame_bytes
from tests.builders import make_frame, run_id_at, usual_run

AS_OF = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
STORY_AT = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
STORY_ID = run_id_at(STORY_AT, 77)
FINGERPRINT_ID = "0123456789ab"
COHORT_ID = "c0ffee123456"
CUDA_LINE = 'cudaGetLastError()@sppark-0.1.14/sppark/ntt/kernels/gs_mixed_radix_wide.cu:220 failed: "an illegal memory access was encountered"'
GIB = 2**30


def write_dataset(folder: Path, frames: Mapping[str, pl.DataFrame], *, is_linked: bool = True) -> Path:
    """Write the tables given (by name), the fleet tables that are not given empty; return the folder."""
    generation = folder / ".generations" / "1" if is_linked else folder
    for table in (*DATED_TABLES, *SINGLE_TABLES):
        _write_table(generation, table, frames.get(table.name, empty_frame(table)))
    if is_linked:
        (folder / ".current").symlink_to(".generations/1")
        for path in generation.iterdir():
            (folder / path.name).symlink_to(f".current/{path.name}")
    return folder


def _write_table(generation: Path, table: Table, frame: pl.DataFrame) -> None:
    if table not in DATED_TABLES:
        write_file(generation / f"{table.name}.parquet", frame, table)
        return
    dated = frame.with_columns(date=pl.Series([run_date(run_id) for run_id in frame["run_id"]], dtype=pl.String))
    for (date,), part in dated.partition_by("date", as_dict=True).items():
        write_file(generation / table.name / f"date={date}" / "0.parquet", part.drop("date"), table)


def write_file(path: Path, frame: pl.DataFrame, table: Table) -> None:
    """Write one file as the harvest does; lists that a test says nothing about are empty."""
    lists = [each.name for each in table.columns if not each.is_nullable and each.type.startswith("list")]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(frame_bytes(frame.with_columns(pl.col(lists).fill_null([])), table, "lastwords test"))


def usual_stage(run_id: str, index: int, stage: str, **change: Any) -> dict[str, Any]:
    """Return a stage that exited with code 0 after 20 minutes."""
    return {
        "run_id": run_id,
        "stage_index": index,
        "stage": stage,
        "argv": ["bash", "benchmark.sh"],
        "pid": 100 + index,
        "started_at": STORY_AT,
        "ended_at": STORY_AT + timedelta(minutes=20),
        "wall_s": 1200.0,
        "user_cpu_s": 800.0,
        "system_cpu_s": 12.0,
        "max_rss_bytes": 3 * GIB,
        "end_kind": "exited",
        "wait_status": 0,
        "exit_code": 0,
        "is_core_dumped": False,
        "found_by": "child",
        "is_end_hidden": False,
        "runner_signals": [],
        "oom_kill_count": 0,
        **change,
    }


def log_rows(run_id: str, lines: Sequence[tuple[str, str]], first_seq: int = 0) -> list[dict[str, Any]]:
    """Return (stream, text) pairs as rows of `logs`, a tenth of a second apart."""
    return [
        {
            "run_id": run_id,
            "seq": seq,
            "stream": stream,
            "captured_at": STORY_AT + timedelta(milliseconds=100 * seq),
            "text": text,
            "terminator": 1,
            "is_continued": False,
        }
        for seq, (stream, text) in enumerate(lines, start=first_seq)
    ]


def story_run(**change: Any) -> dict[str, Any]:
    """Return the run that started the product: a CUDA fault, no rate, a min rate that does not fit the price."""
    ended_at = STORY_AT + timedelta(minutes=10, seconds=20)
    return {
        **usual_run(),
        "run_id": STORY_ID,
        "started_at": STORY_AT,
        "ended_at": ended_at,
        "first_stored_at": STORY_AT,
        "last_stored_at": ended_at,
        "runner_version": "0.1.0",
        "instance_id": 32733029,
        "instance_label": "C.32733029",
        "geolocation": "Texas, US",
        "driver_version": "580.65.06",
        "cuda_version": "13.0",
        "gpus": [
            {
                "index": 0,
                "uuid": "GPU-1111",
                "model": "NVIDIA RTX PRO 4000",
                "memory_bytes": 24 * GIB,
                "pcie_gen": 5,
                "pcie_width": 16,
                "power_limit_w": 145.0,
                "ecc": False,
            }
        ],
        "cpu_model": "AMD EPYC 9354",
        "cpu_count": 64,
        "memory_bytes": 504 * GIB,
        "memory_limit_bytes": 126 * GIB,
        "kernel": "6.8.0-60-generic",
        "os_image": "Ubuntu 24.04.2 LTS",
        "settings": {"proofs": "12", "concurrency": "3", "partition_workers": "16"},
        "settings_asked": {"proofs": "12", "concurrency": "3", "partition_workers": "auto"},
        "settings_sources": {"partition_workers": "cpu_count / 4"},
        "versions": {"daemon": "0.7.2", "bench": "0.7.2"},
        "probe_errors": {"shm_bytes": "no /dev/shm"},
        "plan_warnings": [],
        "min_rate_proofs_per_hour": 29.0,
        "min_rate_source": "flag",
        "is_min_rate_consistent": False,
        "proofs_completed": None,
        "proofs_failed": None,
        "measured_wall_s": None,
        "rate_proofs_per_hour": None,
        "last_stage": "benchmark",
        "outcome": "failed",
        "blame": "software",
        "cause": "cuda_illegal_access",
        "certainty": "inferred",
        "action": "fix_image",
        "fingerprint_id": FINGERPRINT_ID,
        "fingerprint_kind": "root",
        "fingerprint_title": "CUDA: an illegal memory access was encountered",
        "root_text": CUDA_LINE,
        "rule": "cuda-illegal-access",
        "evidence": [
            {"role": "root", "stream": "daemon", "seq": 4, "text": CUDA_LINE},
            {
                "role": "context",
                "stream": "daemon",
                "seq": 3,
                "text": "thread 'gpu-worker' panicked at src/lib.rs:151:9:",
            },
            {"role": "echo", "stream": "benchmark.stderr", "seq": 6, "text": "Error: Prove RPC failed"},
        ],
        "missing_evidence": ["kernel log"],
        "streams": [],
        "cohort_id": COHORT_ID,
        "stored_bytes": 48_123,
        "object_count": 7,
        "bundle_key": f"bundles/v1/2026-11-02/{STORY_ID}/",
        "usd_spent": 0.051,
        "usd_spent_source": "ended_at",
        "usd_lost": 0.051,
        **change,
    }


STORY_LINES = (
    ("benchmark.stdout", "=== Batch Benchmark ==="),
    ("benchmark.stdout", "proof type:  porep-32g"),
    (
        "daemon",
        "\x1b[2m2026-11-02T09:00:00.2Z\x1b[0m \x1b[32m INFO\x1b[0m cuzk-daemon ready, serving on 127.0.0.1:9820",
    ),
    ("daemon", "thread 'gpu-worker' panicked at src/lib.rs:151:9:"),
    ("daemon", CUDA_LINE),
    ("daemon", "\x1b[31mERROR\x1b[0m Once has panicked"),
    ("benchmark.stderr", "Error: Prove RPC failed"),
    ("runner", '{"event": "stage_ended", "stage": "benchmark", "exit_code": 1}'),
)


def story_telemetry(run_id: str = STORY_ID) -> list[dict[str, Any]]:
    """Return a minute-by-minute series: memory that rises to the card's size, and the host's row."""
    rows: list[dict[str, Any]] = []
    for minute in range(11):
        at = STORY_AT + timedelta(minutes=minute)
        gpu = {
            "gpu_index": 0,
            "gpu_util_ratio": 0.1 * (minute % 10),
            "memory_used_bytes": (2 + 2 * minute) * GIB,
            "memory_total_bytes": 24 * GIB,
            "power_w": 60.0 + minute,
            "temperature_c": 41.0 + minute,
            "sm_clock_mhz": 2100.0,
        }
        host = {"cpu_ratio": 0.5, "memory_used_bytes": 90 * GIB, "cgroup_memory_bytes": 60 * GIB, "stage": "benchmark"}
        rows += [{"run_id": run_id, "sampled_at": at, **gpu}, {"run_id": run_id, "sampled_at": at, **host}]
    return rows


def story_frames(**change: Any) -> dict[str, pl.DataFrame]:
    """Return every table of a small fleet: the story's run, three that passed on another machine, a bad machine."""
    passed = [{**usual_run(number), "machine_id": 7, "cohort_id": COHORT_ID} for number in range(3)]
    run_id = passed[0]["run_id"]
    proofs = [
        {
            "run_id": run_id,
            "proof_index": i,
            "phase": "measured",
            "status": "completed",
            "wall_s": 90.0,
            "prove_s": 40.0,
            "log_seq": i,
        }
        for i in range(12)
    ]
    stages = [
        usual_stage(STORY_ID, 0, "daemon", end_kind="stopped_by_runner", exit_code=None, signal=15, wait_status=15,
                    runner_signals=[{"at": STORY_AT, "signal": 15, "reason": "the run is over"}]),
        usual_stage(STORY_ID, 1, "benchmark", exit_code=1, wait_status=256, wall_s=620.4,
                    ended_at=STORY_AT + timedelta(minutes=10, seconds=20)),
        usual_stage(run_id, 0, "benchmark", started_at=passed[0]["started_at"], ended_at=passed[0]["ended_at"]),
    ]  # fmt: skip
    counts = {
        "run_count": 1,
        "passed_count": 0,
        "slow_count": 0,
        "failed_count": 1,
        "blamed_failure_count": 0,
        "vanished_count": 0,
    }
    passed_counts = {**counts, "run_count": 3, "passed_count": 3, "failed_count": 0}
    cohort = {"cohort_id": COHORT_ID, "gpu_model": "NVIDIA RTX PRO 4000", "num_gpus": 1}
    return {
        "runs": make_frame(RUNS, story_run(**change), *passed),
        "stages": make_frame(RUN_STAGES, *stages),
        "proofs": make_frame(RUN_PROOFS, *proofs),
        "logs": make_frame(RUN_LOGS, *log_rows(STORY_ID, STORY_LINES)),
        "telemetry": make_frame(RUN_TELEMETRY, *story_telemetry()),
        "machines": make_frame(
            MACHINES,
            {**cohort, **counts, "machine_id": 4242, "measured_count": 0, "state": "unknown", "last_seen_at": STORY_AT},
            {**cohort, **passed_counts, "machine_id": 7, "measured_count": 3, "state": "good", "last_seen_at": STORY_AT,
             "median_rate_proofs_per_hour": 40.0, "rate_ratio": 1.0},
            {**cohort, **counts, "machine_id": 13, "measured_count": 0, "state": "bad", "last_seen_at": STORY_AT},
        ),
        "cohorts": make_frame(
            COHORTS,
            {**cohort, "proof_kind": "porep-32g", "is_weak": True, "machine_count": 2, "run_count": 4, "measured_count": 3,
             "median_rate_proofs_per_hour": 40.0, "rate_low_proofs_per_hour": 39.0, "rate_high_proofs_per_hour": 41.0,
             "median_price_usd_per_hour": 0.296},
        ),
        "bad_machines": make_frame(
            BAD_MACHINES,
            {**counts, "machine_id": 13, "cohort_id": COHORT_ID, "cohort_count": 1, "state": "bad", "source": "score",
             "reason": "2 failures blamed on the machine within 3 runs", "would_clear": "3 passed runs in a row.",
             "since": STORY_AT, "expires_at": STORY_AT + timedelta(days=120), "run_ids": []},
        ),
        "fingerprints": make_frame(
            FINGERPRINTS,
            {"fingerprint_id": FINGERPRINT_ID, "kind": "root", "title": "CUDA: an illegal memory access was encountered",
             "root_text": CUDA_LINE, "blame": "software", "cause": "cuda_illegal_access", "certainty": "inferred",
             "action": "fix_image", "rule": "cuda-illegal-access", "run_count": 1, "machine_count": 1, "build_count": 1,
             "driver_count": 1, "gpu_model_count": 1, "first_seen_at": STORY_AT, "last_seen_at": STORY_AT, "usd_lost": 0.051,
             "spread": [{"dimension": "machine", "value": "4242", "failed_count": 1, "run_count": 1}]},
        ),
        "in_flight": make_frame(
            IN_FLIGHT,
            {"run_id": run_id_at(AS_OF - timedelta(minutes=5), 5), "machine_id": 99, "gpu_model": "NVIDIA RTX PRO 4000",
             "stage": "benchmark", "proofs_completed": 3, "proofs_requested": 12, "last_stored_at": AS_OF - timedelta(seconds=30)},
        ),
        "harvests": make_frame(HARVESTS, harvest_row()),
    }  # fmt: skip


def harvest_row() -> dict[str, Any]:
    """Return one harvest at AS_OF that found machine 13 newly bad."""
    counts = {column.name: 0 for column in HARVESTS.columns if column.name.endswith("_count")}
    return {
        **counts,
        "harvest_id": run_id_at(AS_OF, 1),
        "as_of": AS_OF,
        "started_at": AS_OF,
        "wall_s": 1.0,
        "producer": "lastwords test",
        "newly_bad_machine_ids": [13],
        "cleared_machine_ids": [],
    }
