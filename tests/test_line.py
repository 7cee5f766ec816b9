"""The whole line with real programs: from a dying process to the sentence on its page."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

CUDA_LINE = (
    'cudaGetLastError()@sppark-0.1.14/.../gs_mixed_radix_wide.cu:220 failed: "an illegal memory access was encountered"'
)
SECONDS = 60


def program(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m ...` in the folder."""
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)


def run_arguments(folder: Path) -> list[str]:
    return ["bench", "run", "--store", f"file://{folder}/S", "--spool", f"{folder}/spool"]


def harvest_and_build(folder: Path) -> None:
    harvested = program(folder, "harvest", "run", "--store", f"file://{folder}/S", "--data", f"{folder}/DATA")
    assert harvested.returncode == 0, harvested.stderr
    built = program(folder, "reports", "build", "--data", f"{folder}/DATA", "--site", f"{folder}/SITE")
    assert built.returncode == 0, built.stderr


def only_run(folder: Path) -> dict[str, object]:
    rows = pl.concat([pl.read_parquet(path) for path in (folder / "DATA" / "runs").rglob("*.parquet")]).to_dicts()
    assert len(rows) == 1
    return rows[0]


def run_page(folder: Path, run: dict[str, object]) -> str:
    (page,) = (folder / "SITE" / "runs").rglob(f"{run['run_id']}.html")
    return page.read_text(encoding="utf-8")


def test_the_story_is_told_from_the_dying_process_to_the_page(tmp_path: Path) -> None:
    script = f"""printf '=== Batch Benchmark ===\\nproof type:  porep\\ncount:       12\\nconcurrency: 3\\n\\n'
cat >> D <<'END'

thread '<unnamed>' panicked at src/prover.rs:412:9:
GPU prove failed: {CUDA_LINE}
END
echo 'Error: Prove RPC failed' >&2
exit 1
"""
    (tmp_path / "script").write_text(script, encoding="utf-8")
    flags = ["--machine-id", "4242", "--price-usd-per-hour", "0.296", "--min-rate", "29.0"]
    ran = program(tmp_path, *run_arguments(tmp_path), "--log", "daemon=D", *flags, "--", "bash", "script")
    assert ran.returncode == 1, ran.stderr
    harvest_and_build(tmp_path)
    run = only_run(tmp_path)
    assert run["rate_proofs_per_hour"] is None
    assert (run["outcome"], run["is_min_rate_consistent"]) == ("failed", False)
    assert run["blame"] != "machine"
    assert run["min_rate_from_price_proofs_per_hour"] == pytest.approx(37.0)
    assert CUDA_LINE in run["evidence"][0]["text"]  # type: ignore[index]
    assert pl.read_parquet(tmp_path / "DATA" / "bad_machines.parquet").is_empty()
    logs = pl.concat([pl.read_parquet(path) for path in (tmp_path / "DATA" / "logs").rglob("*.parquet")])
    daemon = logs.filter(pl.col("stream") == "daemon").sort("seq")["text"].to_list()
    assert "\n".join([*daemon, ""]) == (tmp_path / "D").read_text(encoding="utf-8")
    page = run_page(tmp_path, run)
    for told in (
        "illegal memory access",
        "exited with code 1",
        "$0.296/h / $0.008 = 37.0 proofs/h; this run was judged against 29.0",
        "not measured",
        "Prove RPC failed",
    ):
        assert told in page


def test_a_second_harvest_at_the_same_time_changes_no_byte(tmp_path: Path) -> None:
    program(tmp_path, *run_arguments(tmp_path), "--machine-id", "4242", "--", "false")
    as_of = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 5))
    found = []
    for _ in range(2):
        done = program(
            tmp_path, "harvest", "run", "--store", f"file://{tmp_path}/S", "--data", "DATA", "--as-of", as_of
        )
        assert done.returncode == 0, done.stderr
        tables = sorted((tmp_path / "DATA" / ".current").resolve().rglob("*"))
        current = (tmp_path / "DATA" / ".current").resolve()
        found.append({str(p.relative_to(current)): p.read_bytes() for p in tables if p.is_file()})
    assert {n: b for n, b in found[0].items() if "harvests" not in n} == {
        n: b for n, b in found[1].items() if "harvests" not in n
    }


@pytest.mark.redis
def test_a_real_daemon_and_benchmark_pass_under_the_runner(tmp_path: Path) -> None:
    ran = program(tmp_path, *run_arguments(tmp_path), "--plan", "redis", "--set", "port=6401", "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["is_passed"] is True


@pytest.mark.redis
def test_a_real_benchmark_killed_in_mid_run_is_explained_on_its_page(tmp_path: Path) -> None:
    settings = ["--set", "port=6402", "--set", "requests=500000000"]
    command = [sys.executable, "-m", *run_arguments(tmp_path), "--plan", "redis", *settings]
    runner = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
    os.kill(benchmark_pid(runner.pid), signal.SIGKILL)
    assert runner.wait(SECONDS) == 1
    harvest_and_build(tmp_path)
    run = only_run(tmp_path)
    assert (run["outcome"], run["blame"], run["cause"]) == ("failed", "unknown", "sigkill_sender")
    page = run_page(tmp_path, run)
    assert "signal 9" in page or "SIGKILL" in page


def benchmark_pid(runner_pid: int) -> int:
    limit_s = time.monotonic() + 20
    while time.monotonic() < limit_s:
        children = Path(f"/proc/{runner_pid}/task/{runner_pid}/children").read_text().split()
        for child in children:
            if b"redis-benchmark" in Path(f"/proc/{child}/cmdline").read_bytes():
                time.sleep(0.3)
                return int(child)
        time.sleep(0.05)
    raise AssertionError("redis-benchmark did not start")
