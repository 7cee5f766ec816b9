"""`bench run` with real children: what ended them, what they wrote, what is stored."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.bench.runs import Ran, bench_run, run_arguments

CUDA_LINE = (
    "GPU prove failed: cudaGetLastError()@sppark-0.1.14/kernels/gs_mixed_radix_wide.cu:220 failed: "
    '"an illegal memory access was encountered"'
)
PASSING_BATCH = r"""printf '=== Batch Benchmark ===\nproof type:  porep\ncount:       2\nconcurrency: 1\n\n'
printf '  [1/2] COMPLETED — 30.0s (prove=4210 ms, queue=12 ms)\n'
printf '  [2/2] COMPLETED — 30.0s (prove=4210 ms, queue=12 ms)\n'
printf '\n=== Batch Summary ===\ntotal time:    60.0s\ncompleted:     2\nfailed:        0\n'
"""


def bash(folder: Path, script: str, *arguments: str) -> Ran:
    (folder / "script").write_text(script, encoding="utf-8")
    return bench_run(folder, *arguments, "--", "bash", "script")


def test_the_story_is_stored_whole_and_told_on_stderr(tmp_path: Path) -> None:
    daemon_log = tmp_path / "daemon.log"
    script = f"""printf '=== Batch Benchmark ===\\nproof type:  porep\\ncount:       12\\nconcurrency: 3\\n\\n'
cat >> {daemon_log} <<'END'

thread '<unnamed>' panicked at src/prover.rs:10:5:
{CUDA_LINE}
END
echo 'Error: Prove RPC failed' >&2
exit 1
"""
    price = ["--machine-id", "4242", "--price-usd-per-hour", "0.296", "--min-rate", "29.0"]
    ran = bash(tmp_path, script, "--log", f"daemon={daemon_log}", *price)
    assert ran.exit_code == 1
    assert ran.bundle.faults() == []
    assert ran.stream("daemon") == daemon_log.read_bytes()
    assert ran.stream("benchmark.stderr") == b"Error: Prove RPC failed\n"
    assert ran.stages["benchmark"]["exit_code"] == 1
    assert (ran.closing["rate_proofs_per_hour"], ran.closing["proofs_requested"]) == (None, 12)
    for told in ("exited with code 1", "not measured", "min rate: 29.0 proofs/h", CUDA_LINE, "Prove RPC failed"):
        assert told in ran.err


def test_a_batch_that_reaches_its_min_rate_passes(tmp_path: Path) -> None:
    ran = bash(tmp_path, PASSING_BATCH, "--price-usd-per-hour", "0.296")
    assert ran.exit_code == 0
    assert ran.closing["rate_proofs_per_hour"] == 120.0
    assert ran.bundle.rows("opening")[0]["min_rate_proofs_per_hour"] == 37.0
    assert [row["prove_s"] for row in ran.bundle.rows("proofs")] == [4.21, 4.21]


def test_a_batch_below_its_min_rate_does_not_pass(tmp_path: Path) -> None:
    assert bash(tmp_path, PASSING_BATCH, "--min-rate", "120.1").exit_code == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGABRT])
def test_a_signal_is_the_kernels_word(tmp_path: Path, number: signal.Signals) -> None:
    ran = bench_run(tmp_path, "--", "python3", "-c", f"import os; os.kill(os.getpid(), {int(number)})")
    row = ran.stages["benchmark"]
    assert (ran.exit_code, row["end_kind"], row["signal"], row["exit_code"]) == (1, "signalled", number, None)


def test_a_shells_137_is_marked_as_hidden(tmp_path: Path) -> None:
    row = bash(tmp_path, "exit 137").stages["benchmark"]
    assert (row["exit_code"], row["is_end_hidden"], row["hidden_end"]) == (137, True, "shell_128n")


def test_a_command_that_is_not_there_never_started(tmp_path: Path) -> None:
    ran = bench_run(tmp_path, "--", "/no/such/program")
    assert (ran.exit_code, ran.stages["benchmark"]["end_kind"]) == (1, "never_started")
    assert "No such file" in ran.stages["benchmark"]["error"]


def test_a_run_past_its_limit_is_stopped_and_booked_as_timed_out(tmp_path: Path) -> None:
    ran = bench_run(tmp_path, "--timeout-s", "0.5", "--", "sleep", "60")
    row = ran.stages["benchmark"]
    assert (ran.exit_code, row["end_kind"], row["signal"]) == (1, "timed_out", signal.SIGTERM)
    assert [sent["signal"] for sent in row["runner_signals"]] == [signal.SIGTERM]
    assert ran.closing["end_reason"] == "timeout"


def test_any_bytes_come_back_exactly(tmp_path: Path) -> None:
    ran = bash(tmp_path, r"printf 'a\0b\xff\r\nprogress\rdone\r'; head -c 200000 /dev/zero | tr '\0' x; printf '\nend'")
    expected = b"a\0b\xff\r\nprogress\rdone\r" + b"x" * 200_000 + b"\nend"
    assert ran.stream("benchmark.stdout") == expected


def test_a_stop_of_the_runner_leaves_partial_and_whole_closing(tmp_path: Path) -> None:
    runner = subprocess.Popen(run_arguments(tmp_path, "--", "bash", "-c", "echo begun; sleep 60"), cwd=tmp_path)
    wait_for(tmp_path / "store")
    time.sleep(0.5)
    runner.terminate()
    assert runner.wait(30) == 1
    ran = Ran(1, "", "", tmp_path / "store")
    assert (ran.closing["end_reason"], ran.closing["end_signal"]) == ("terminated", signal.SIGTERM)
    assert "closing-partial" in ran.bundle.objects
    assert ran.stream("benchmark.stdout") == b"begun\n"


def test_an_opening_that_cannot_be_stored_starts_nothing(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file, not a folder", encoding="utf-8")
    ran = bench_run(tmp_path, "--", "touch", str(tmp_path / "started"))
    assert ran.exit_code == 4
    assert "nothing was started" in ran.err
    assert "Traceback" not in ran.err
    assert not (tmp_path / "started").exists()


def test_random_kills_of_a_benchmark_lose_no_byte(tmp_path: Path) -> None:
    """The program writes numbered lines by write(2) and dies by its own SIGKILL at a random one."""
    chance = random.Random(20261205)
    for trial in range(30):
        folder = tmp_path / str(trial)
        folder.mkdir()
        count = chance.randrange(1, 20_000)
        program = f"""import os, signal
for each in range({count}):
    os.write(1, b"%d a line of the log\\n" % each)
os.kill(os.getpid(), signal.SIGKILL)"""
        ran = bench_run(folder, "--", "python3", "-c", program)
        assert ran.stages["benchmark"]["signal"] == signal.SIGKILL, f"trial {trial}"
        expected = b"".join(b"%d a line of the log\n" % each for each in range(count))
        assert ran.stream("benchmark.stdout") == expected, f"trial {trial}"


def wait_for(path: Path) -> None:
    limit_s = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < limit_s, f"{path} did not appear"
        time.sleep(0.02)
