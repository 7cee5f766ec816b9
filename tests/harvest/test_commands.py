"""`harvest run` as an operator meets it: a process, its exit code, what it prints where, and what it left alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from data import FOLDER
from harvest.lock import data_lock
from harvest.steps import Progress, ProgressText, StepDone, Steps
from tests.builders import START
from tests.harvest.bundles import (
    AS_OF,
    altered,
    file_bytes,
    granted,
    harvest_once,
    published,
    put,
    put_launch,
    put_usual,
    run_id,
    sealed_bundle,
    stage_row,
    without,
)

PACKAGE_PARENT = Path(__file__).resolve().parents[2]


def command(store: Path | str, data: Path, *arguments: str, as_of: datetime = AS_OF) -> list[str]:
    url = store if isinstance(store, str) else f"file://{store}"
    given = ["--store", url, "--data", str(data), "--as-of", as_of.isoformat(), *arguments]
    return [sys.executable, "-m", "harvest", "run", *given]


def run(argv: list[str], code: int, **options: object) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; check its code, and that no operator ever sees a traceback."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=100, cwd=PACKAGE_PARENT, check=False, **options)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def test_a_harvest_says_what_came_in_on_stdout_and_its_steps_on_stderr(tmp_path: Path) -> None:
    put_usual(tmp_path / "s", 0)
    failed = [stage_row(0, "benchmark", START, exit_code=1, wait_status=256)]
    put_usual(tmp_path / "s", 1, stages=failed, closing={"proofs_completed": 3, "rate_proofs_per_hour": None})
    done = run(command(tmp_path / "s", tmp_path / "d"), 0)
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"Harvest of file://{tmp_path}/s as of 2026-11-02 14:00:00 UTC, done in ")
    assert lines[1:3] == [
        "  Judged now: 2 runs: 1 passed, 1 partial.",
        "  In all: 2 runs: 1 passed, 1 partial; 0 in flight.",
    ]
    assert lines[-1] == f"  Tables: {tmp_path}/d. Next: reports build --data {tmp_path}/d --site SITE"
    steps = [line.split(":")[1].strip() for line in done.stderr.splitlines()]
    assert steps == ["fetch", "judge", "keep", "score", "publish"]
    assert "\x1b" not in done.stderr


def test_the_same_is_there_as_json_for_machines_also_in_a_file(tmp_path: Path) -> None:
    put_usual(tmp_path / "s")
    done = run(command(tmp_path / "s", tmp_path / "d", "--json", "--summary", str(tmp_path / "summary.json")), 0)
    found = json.loads(done.stdout)
    assert json.loads((tmp_path / "summary.json").read_text()) == found
    assert (found["exit_code"], found["run_count"], found["judged_now"]) == (0, 1, {"passed": 1})
    assert (found["harvest"]["as_of"], found["harvest"]["accepted_count"]) == ("2026-11-02T14:00:00.000000Z", 8)
    assert [each["step"] for each in found["harvest"]["steps"]] == ["fetch", "judge", "keep", "score"]


def test_what_was_refused_is_named_with_its_reason_and_gives_3(tmp_path: Path) -> None:
    put(tmp_path / "s", altered(sealed_bundle(run_id()), "logs-00001", b"PAR1 torn"))
    done = run(command(tmp_path / "s", tmp_path / "d"), 3)
    assert "Quarantined: 1 refusals (1 new): 1 sha mismatch." in done.stdout
    assert f"{run_id()}/logs-00001.parquet: sha_mismatch: 9 bytes; the closing lists " in done.stdout
    again = run(command(tmp_path / "s", tmp_path / "d"), 3)
    assert "Quarantined: 1 refusals (0 new)" in again.stdout


def test_a_machine_that_becomes_bad_is_named_with_its_reason(tmp_path: Path) -> None:
    broken = {
        "log_parts": [[_xid_line()]],
        "stages": [stage_row(0, "benchmark", START, exit_code=1, wait_status=256)],
        "closing": {"proofs_completed": None, "proofs_failed": None, "rate_proofs_per_hour": None},
    }
    for number in (0, 30, 60):
        put_usual(tmp_path / "s", number, **broken)
    done = run(command(tmp_path / "s", tmp_path / "d", as_of=START + timedelta(days=4)), 0)
    assert "Machine list: 1 bad, 0 to watch." in done.stdout
    assert "new: machine 4242, bad: " in done.stdout
    assert (tmp_path / "d" / "bad_machines.csv").read_text().count("\n") == 2
    assert json.loads((tmp_path / "d" / "bad_machines.json").read_text())["machines"][0]["machine_id"] == 4242
    again = run(command(tmp_path / "s", tmp_path / "d", as_of=START + timedelta(days=4)), 0)
    assert "new: machine" not in again.stdout


def _xid_line() -> dict[str, object]:
    text = "NVRM: Xid (PCI:0000:65:00): 79, pid=1234, GPU has fallen off the bus."
    return {"seq": 0, "stream": "kernel", "captured_at": START, "text": text, "terminator": 1, "is_continued": False}


def test_an_empty_store_is_told_and_gives_0(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    assert (
        "The store is empty: no bundle and no launch record." in run(command(tmp_path / "s", tmp_path / "d"), 0).stdout
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--polcy", "x"], "unrecognized arguments"),
        (["--as-of", "yesterday"], "'yesterday' is not an instant like 2026-12-01T05:00:00Z"),
        (["--as-of", "2026-12-01T05:00:00"], "has no zone"),
        (["--store", "ftp://x"], "is neither file:///FOLDER nor s3://BUCKET/PREFIX"),
        (["--engine", "cloud"], "invalid choice: 'cloud'"),
        (["--policy", "/nowhere.toml"], "policy /nowhere.toml cannot be read"),
        (["--summary", "/nowhere/summary.json"], "name a file in a folder that is there"),
    ],
)
def test_what_cannot_be_asked_for_is_a_usage_error_before_anything_is_made(
    tmp_path: Path, arguments: list[str], said: str
) -> None:
    put_usual(tmp_path / "s")
    done = run(command(tmp_path / "s", tmp_path / "d", *arguments), 2)
    assert said in done.stderr
    assert not (tmp_path / "d").exists()


def test_a_policy_with_a_typo_is_named_with_its_file(tmp_path: Path) -> None:
    put_usual(tmp_path / "s")
    policy = tmp_path / "policy.toml"
    text = (FOLDER / "policy.toml").read_text(encoding="utf-8")
    policy.write_text(text.replace("min_run_count", "min_run_cuont"), encoding="utf-8")
    done = run(command(tmp_path / "s", tmp_path / "d", "--policy", str(policy)), 2)
    assert f"{policy}: policy: unknown key 'min_run_cuont', missing key 'min_run_count'" in done.stderr


def test_the_data_folders_own_policy_is_taken_where_none_is_given(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "policy.toml").write_text("typo = 1", encoding="utf-8")
    put_usual(tmp_path / "s")
    assert "unknown key 'typo'" in run(command(tmp_path / "s", tmp_path / "d"), 2).stderr


def test_a_store_that_is_not_there_changes_nothing(tmp_path: Path) -> None:
    put_usual(tmp_path / "s")
    harvest_once(tmp_path / "s", tmp_path / "d")
    before = file_bytes(tmp_path / "d")
    done = run(command(tmp_path / "elsewhere", tmp_path / "d"), 4)
    assert "is not a folder on this machine. Nothing was changed; check --store" in done.stderr
    assert file_bytes(tmp_path / "d") == before


def test_a_bucket_that_does_not_answer_changes_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_ACCESS_KEY_ID": "a"}
    argv = [each for each in command("s3://bucket", tmp_path / "d") if not each.startswith(("--as-of", "2026"))]
    done = run(argv, 4, env={**environment, "AWS_SECRET_ACCESS_KEY": "b"})
    assert "http://127.0.0.1:9 did not tell its time" in done.stderr


def test_a_harvest_beside_another_one_changes_nothing(tmp_path: Path) -> None:
    put_usual(tmp_path / "s")
    with data_lock(tmp_path / "d", datetime.now(UTC)):
        done = run(command(tmp_path / "s", tmp_path / "d"), 4)
    assert f"is being written by another harvest (pid {os.getpid()} on " in done.stderr


def test_a_data_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "file").touch()
    assert f"{tmp_path}/file/d cannot be written" in run(command(tmp_path / "s", tmp_path / "file" / "d"), 4).stderr


def test_a_disk_that_fills_up_while_publishing_changes_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    put_usual(tmp_path / "s", 0)
    harvest_once(tmp_path / "s", tmp_path / "d")
    before = file_bytes(tmp_path / "d")
    for number in range(1, 4):
        put_usual(tmp_path / "s", number)

    limited = ["bash", "-c", 'ulimit -f 20 && exec "$@"', "bash", *command(tmp_path / "s", tmp_path / "d")]
    done = run(limited, 4)
    assert "The published tables are as before; make room" in done.stderr
    assert file_bytes(tmp_path / "d") == before
    assert [path.name for path in (tmp_path / "d" / ".generations").iterdir()] == ["1"]
    run(command(tmp_path / "s", tmp_path / "d"), 0)
    assert published(tmp_path / "d", "runs").height == 4


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Give a folder that is a disk of 300 KiB of its own."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_real_disk_that_is_full_changes_nothing(tmp_path: Path, small_disk: Path) -> None:
    put_usual(tmp_path / "s", 0)
    harvest_once(tmp_path / "s", small_disk / "d")
    before = file_bytes(small_disk / "d")
    for number in range(1, 30):
        put_usual(tmp_path / "s", number)
    done = run(command(tmp_path / "s", small_disk / "d", as_of=START + timedelta(days=3)), 4)
    assert "No space left on device" in done.stderr
    assert file_bytes(small_disk / "d") == before


def test_a_harvest_that_is_killed_leaves_the_old_tables_and_no_process_behind(tmp_path: Path) -> None:
    put_usual(tmp_path / "s", 0)
    harvest_once(tmp_path / "s", tmp_path / "d")
    before = file_bytes(tmp_path / "d")
    for number in range(1, 40):
        put_usual(tmp_path / "s", number)
    argv = command(tmp_path / "s", tmp_path / "d", as_of=START + timedelta(days=3))
    victim = subprocess.Popen(argv, cwd=PACKAGE_PARENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: any((tmp_path / "d" / ".generations" / "2.new" / ".staging").glob("*/*")))
    workers = children_of(victim.pid)
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    assert file_bytes(tmp_path / "d") == before
    assert workers
    wait_until(lambda: not any(is_running(each) for each in workers))
    run(argv, 0)
    assert published(tmp_path / "d", "runs").height == 40


def wait_until(condition: object, limit_s: float = 30) -> None:
    end_s = time.monotonic() + limit_s
    while not condition():  # type: ignore[operator]  # tests are not type-checked
        assert time.monotonic() < end_s, "waited in vain"
        time.sleep(0.005)


def children_of(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_launch_records_may_lie_in_a_store_of_their_own(tmp_path: Path) -> None:
    put_usual(tmp_path / "s")
    put_launch(tmp_path / "l", run_id(9), "granted", granted([run_id()]))
    done = run(command(tmp_path / "s", tmp_path / "d", "--launches", f"file://{tmp_path}/l"), 0)
    assert "Without a launch record" not in done.stdout
    without_records = run(command(tmp_path / "s", tmp_path / "d"), 0)
    assert "Without a launch record: 1; their machine is their own word." in without_records.stdout


def test_the_help_says_all_options_and_exit_codes() -> None:
    done = run([sys.executable, "-m", "harvest", "run", "--help"], 0)
    for word in ("--store", "--data", "--launches", "--policy", "--summary", "--engine", "--as-of", "--json", "70"):
        assert word in done.stdout


def test_a_run_in_flight_is_counted_and_not_judged(tmp_path: Path) -> None:
    put(tmp_path / "s", without(sealed_bundle(run_id()), "closing"), AS_OF - timedelta(minutes=9), AS_OF)
    done = run(command(tmp_path / "s", tmp_path / "d"), 0)
    assert "  Judged now: nothing" in done.stdout
    assert "In all: 0 runs: none; 1 in flight." in done.stdout


def test_steps_are_measured_and_progress_is_told_now_and_then_in_a_log_and_over_one_line_on_a_terminal() -> None:
    now_s = [0.0]
    heard: list[StepDone | Progress] = []
    steps = Steps(lambda: now_s[0], heard.append)
    with steps.step("judge", "bundles read") as step:
        for _ in step.each(range(3), 3):
            now_s[0] += 6
    assert heard == [
        *(Progress("judge", "bundles read", done, 3) for done in (1, 2, 3)),
        StepDone("judge", "bundles read", 18.0, 3),
    ]
    now_s[0] = 0.0
    texts = {}
    for is_terminal in (False, True):
        text = ProgressText(is_terminal, lambda: now_s[0])
        texts[is_terminal] = []
        for number, each in enumerate(heard, 1):
            now_s[0] = 6.0 * number
            texts[is_terminal].append(text.text_of(each))
        now_s[0] = 0.0
    done = "harvest: judge: 3 bundles read, 18.0 s\n"
    assert texts[False] == ["", "harvest: judge: 2 of 3 bundles read\n", "", done]
    assert texts[True] == [*(f"\r\x1b[Kharvest: judge: {n} of 3 bundles read" for n in (1, 2, 3)), f"\r\x1b[K{done}"]
