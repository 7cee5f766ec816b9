"""Samples of GPUs by a process that may hang, crash or lose its parent; samples of the host."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bench.arrow import table_from_rows
from bench.contract import TELEMETRY
from bench.procfs import CpuTimes, busy_ratio, cpu_times
from bench.telemetry import START_LIMIT_S, GpuSampler, HostSampler
from tests.bench.fake_nvml import build_fake_nvml, environment_with

NOW = datetime(2026, 11, 2, 8, 0, tzinfo=UTC)
INTERVAL_S = 0.05
PATIENCE_S = 20.0

Started = Callable[[str], GpuSampler]


@pytest.fixture(scope="module")
def nvml_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_fake_nvml(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def started(nvml_folder: Path, tmp_path: Path) -> Iterator[Started]:
    """Start samplers of GPUs that behave as named; all are closed in the end."""
    samplers: list[GpuSampler] = []

    def start(behaviour: str) -> GpuSampler:
        sampler = GpuSampler(INTERVAL_S, environment_with(nvml_folder, behaviour))
        samplers.append(sampler)
        sampler.start(tmp_path / "gpu.jsonl")
        return sampler

    yield start
    for sampler in samplers:
        sampler.close()


def rows_of(sampler: GpuSampler, count: int) -> list[dict[str, Any]]:
    """Wait for that many rows at least."""
    rows: list[dict[str, Any]] = []
    deadline_s = time.monotonic() + PATIENCE_S
    while len(rows) < count and time.monotonic() < deadline_s:
        rows += sampler.new_rows()
        time.sleep(INTERVAL_S)
    assert len(rows) >= count
    return rows


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline_s, "it did not come to pass"
        time.sleep(INTERVAL_S)


def test_each_gpu_is_sampled(started: Started) -> None:
    first, second = rows_of(started("good"), 4)[:2]
    assert (first["gpu_index"], second["gpu_index"]) == (0, 1)
    assert (first["gpu_util_ratio"], first["power_w"], first["temperature_c"]) == (0.97, 143.5, 71.0)
    assert (first["sm_clock_mhz"], first["memory_clock_mhz"], first["pcie_gen"], first["pcie_width"]) == (
        2100,
        9001,
        4,
        8,
    )
    assert (first["memory_used_bytes"], first["throttle_reasons"], first["ecc_uncorrected_count"]) == (6 * 2**30, 4, 0)


def test_rows_come_once_and_fit_the_contract(started: Started) -> None:
    rows = rows_of(started("good"), 6)
    keys = [(row["sampled_at"], row["gpu_index"]) for row in rows]
    assert len(set(keys)) == len(keys)
    assert table_from_rows(TELEMETRY, rows).num_rows == len(rows)


def test_figures_out_of_their_range_are_null(started: Started) -> None:
    row = rows_of(started("absurd"), 1)[0]
    measured = {name for name, value in row.items() if value is not None}
    assert measured == {"sampled_at", "gpu_index", "memory_used_bytes"}


def test_figures_that_the_gpu_does_not_have_are_null_without_an_error(started: Started) -> None:
    row = rows_of(started("bare"), 1)[0]
    assert (row["power_w"], row["gpu_util_ratio"], row["temperature_c"], row.get("error")) == (None, None, 71.0, None)


def test_the_error_of_a_lost_gpu_takes_the_place_of_its_sample(started: Started) -> None:
    rows = rows_of(started("lost"), 2)
    assert rows[0].get("error") is None
    assert (rows[1]["gpu_index"], rows[1]["error"], rows[1].get("power_w")) == (1, "GPU is lost", None)


def test_an_xid_stays_with_its_gpu(started: Started) -> None:
    assert [row["xid"] for row in rows_of(started("xid"), 4)[:4]] == [None, 79, None, 79]


def test_without_a_driver_the_process_says_so_and_ends_well(started: Started) -> None:
    sampler = started("no_driver")
    wait_until(lambda: sampler.exit_status() is not None)
    assert (sampler.new_rows(), sampler.exit_status()) == ([], 0)
    assert sampler.unavailable_reason == "NVML: Driver Not Loaded"
    assert not sampler.is_hung(0.0)


def test_a_crash_of_the_library_is_told_by_the_processs_end(started: Started) -> None:
    sampler = started("crash")
    wait_until(lambda: sampler.exit_status() is not None)
    assert sampler.exit_status() == -signal.SIGSEGV
    assert sampler.new_rows() == []


def test_lines_that_a_library_prints_are_passed_over(started: Started) -> None:
    assert {row["gpu_index"] for row in rows_of(started("noisy"), 2)} == {0, 1}


def test_a_library_that_never_answers_is_hung(started: Started) -> None:
    sampler = started("hang")
    assert not sampler.is_hung(100.0)
    assert not sampler.is_hung(100.0 + START_LIMIT_S)
    assert sampler.is_hung(100.1 + START_LIMIT_S)


def test_silence_of_three_intervals_is_hung(started: Started) -> None:
    sampler = started("good")
    rows_of(sampler, 2)
    pid = sampler.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: "\nState:\tT" in Path(f"/proc/{pid}/status").read_text(encoding="ascii"))
    assert not sampler.is_hung(100.0)
    assert not sampler.is_hung(100.0 + 2 * INTERVAL_S)
    assert sampler.is_hung(100.1 + 3 * INTERVAL_S)


def test_stopping_ends_the_process_and_keeps_its_rows(started: Started, tmp_path: Path) -> None:
    sampler = started("good")
    wait_until(lambda: (tmp_path / "gpu.jsonl").stat().st_size > 0)
    sampler.stop()
    assert sampler.exit_status() == -signal.SIGKILL
    assert sampler.new_rows()


def test_rows_outlive_their_folder(started: Started, tmp_path: Path) -> None:
    sampler = started("good")
    rows_of(sampler, 2)
    shutil.rmtree(tmp_path)
    rows_of(sampler, 4)


def test_a_half_written_line_waits_for_its_end(started: Started, tmp_path: Path) -> None:
    sampler = started("no_driver")
    wait_until(lambda: sampler.exit_status() is not None)
    with (tmp_path / "gpu.jsonl").open("ab") as file:
        file.write(b'{"sampled_at": "2026-11-02T08:00:00.000001Z", "gpu_')
        file.flush()
        assert sampler.new_rows() == []
        file.write(b'index": 0, "not_a_column": 1}\n')
    assert sampler.new_rows() == [{"sampled_at": NOW + timedelta(microseconds=1), "gpu_index": 0}]


@pytest.mark.parametrize(
    "line", [b"[]", b"\xff", b'{"gpu_index": 0}', b'{"sampled_at": 5}', b'{"sampled_at": "soon"}', b""]
)
def test_a_line_that_is_no_row_is_passed_over(started: Started, tmp_path: Path, line: bytes) -> None:
    sampler = started("no_driver")
    wait_until(lambda: sampler.exit_status() is not None)
    with (tmp_path / "gpu.jsonl").open("ab") as file:
        file.write(line + b"\n")
    assert sampler.new_rows() == []


def test_a_sampler_that_was_never_started_is_quiet() -> None:
    sampler = GpuSampler()
    sampler.stop()
    assert (sampler.new_rows(), sampler.is_hung(0.0), sampler.exit_status()) == ([], False, None)


@pytest.mark.parametrize("behaviour", ["good", "hang"])
def test_the_process_ends_with_its_parent(nvml_folder: Path, tmp_path: Path, behaviour: str) -> None:
    parent = (
        "import sys; from pathlib import Path; from bench.telemetry import GpuSampler\n"
        f"sampler = GpuSampler({INTERVAL_S}); sampler.start(Path(sys.argv[1])); print(sampler.pid, flush=True)\n"
        "input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", parent, str(tmp_path / "gpu.jsonl")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment_with(nvml_folder, behaviour),
    ) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.kill()
    wait_until(lambda: not is_alive(pid))


def is_alive(pid: int) -> bool:
    """A zombie that nobody has waited for yet is not alive."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_the_host_is_sampled(tmp_path: Path) -> None:
    row = HostSampler(tmp_path).sample(NOW, "benchmark", 3, 1024)
    assert (row["sampled_at"], row["gpu_index"], row["stage"]) == (NOW, None, "benchmark")
    assert (row["proofs_completed"], row["log_bytes"], row["cpu_ratio"]) == (3, 1024, None)
    assert 0 < row["memory_used_bytes"] < row["memory_total_bytes"]
    assert row["disk_free_bytes"] > 0
    assert table_from_rows(TELEMETRY, [row]).num_rows == 1


def test_a_system_that_tells_nothing_gives_nulls(tmp_path: Path) -> None:
    row = HostSampler(tmp_path / "gone", system_root=tmp_path).sample(NOW, None, None, 0)
    assert {name for name, value in row.items() if value is not None} == {"sampled_at", "log_bytes"}


def test_the_second_sample_knows_how_busy_the_processors_were(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    sampler = HostSampler(tmp_path, system_root=tmp_path)
    (tmp_path / "proc/stat").write_text("cpu  100 0 100 800 0 0 0 0 0 0\n", encoding="ascii")
    sampler.sample(NOW, None, None, 0)
    (tmp_path / "proc/stat").write_text("cpu  160 0 115 820 5 0 0 0 0 0\n", encoding="ascii")
    assert sampler.sample(NOW, None, None, 0)["cpu_ratio"] == 0.75


def test_waiting_for_a_disk_is_not_busy() -> None:
    assert cpu_times("cpu  10 1 5 70 20 2 1 3 9 9\ncpu0 1 1\n") == CpuTimes(busy=22, total=112)


@pytest.mark.parametrize("later", [CpuTimes(10, 100), CpuTimes(5, 90), CpuTimes(5, 110), CpuTimes(200, 110)])
def test_counters_that_stand_still_or_run_back_give_no_share(later: CpuTimes) -> None:
    assert busy_ratio(CpuTimes(10, 100), later) is None
