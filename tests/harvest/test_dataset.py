"""The data folder: one switch from a whole set of tables to the next, whatever dies when."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bench import PRODUCER
from bench.arrow import parquet_bytes
from harvest.contract import REJECTS, RUNS
from harvest.dataset import current_generation, dated_files, dates_of, new_generation, publish, writing
from harvest.errors import EXIT_NOTHING_CHANGED, DataBusy, DataNewer, DataUnwritable
from harvest.lock import data_lock
from harvest.tables import empty_frame, frame_bytes
from tests.builders import make_frame, make_runs

NOW = datetime(2026, 12, 1, tzinfo=UTC)
DATE = "2026-11-02"


def rejects(detail: str) -> bytes:
    return frame_bytes(make_frame(REJECTS, {"key": "k", "reason": "bad_key", "detail": detail}), REJECTS, PRODUCER)


def runs_file(rate: float) -> bytes:
    return frame_bytes(make_runs({"rate_proofs_per_hour": rate}), RUNS, PRODUCER)


def publish_once(folder: Path, detail: str, rate: float = 40.0, kept_count: int = 3) -> None:
    """Publish a generation of two files."""
    with new_generation(folder, current_generation(folder)) as new:
        new.write("rejects.parquet", rejects(detail))
        new.write_dated("runs", DATE, runs_file(rate))
        publish(folder, new, kept_count)


def generations(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / ".generations").iterdir())


def test_a_publish_is_seen_through_links_and_the_next_one_takes_its_place(tmp_path: Path) -> None:
    publish_once(tmp_path, "first")
    assert (tmp_path / "rejects.parquet").read_bytes() == rejects("first")
    publish_once(tmp_path, "second")
    assert (tmp_path / "rejects.parquet").read_bytes() == rejects("second")
    assert os.readlink(tmp_path / ".current") == ".generations/2"
    assert os.readlink(tmp_path / "runs") == ".current/runs"
    assert (tmp_path / "logs").is_dir()
    assert generations(tmp_path) == ["1", "2"]


def test_a_file_of_a_date_that_did_not_change_is_the_same_file(tmp_path: Path) -> None:
    publish_once(tmp_path, "first")
    (before,) = dated_files(current_generation(tmp_path), "runs", DATE)
    publish_once(tmp_path, "second")
    (after,) = dated_files(current_generation(tmp_path), "runs", DATE)
    assert before.stat().st_ino == after.stat().st_ino
    publish_once(tmp_path, "third", rate=41.0)
    (changed,) = dated_files(current_generation(tmp_path), "runs", DATE)
    assert changed.name != after.name


def test_the_files_of_a_date_can_be_taken_over_unread(tmp_path: Path) -> None:
    publish_once(tmp_path, "first")
    with new_generation(tmp_path, current_generation(tmp_path)) as new:
        new.keep_dated("runs", DATE)
        assert dates_of(new.folder, "runs") == {DATE}
        publish(tmp_path, new, 3)
    assert [path.read_bytes() for path in dated_files(current_generation(tmp_path), "runs")] == [runs_file(40.0)]


def test_only_as_many_generations_stay_as_the_policy_says(tmp_path: Path) -> None:
    for number in range(5):
        publish_once(tmp_path, str(number), kept_count=2)
    assert generations(tmp_path) == ["4", "5"]


def test_a_generation_that_is_not_published_leaves_nothing(tmp_path: Path) -> None:
    publish_once(tmp_path, "first")
    with pytest.raises(DataUnwritable, match="No space left"):
        publish_half(tmp_path)
    assert generations(tmp_path) == ["1"]
    assert (tmp_path / "rejects.parquet").read_bytes() == rejects("first")


def publish_half(folder: Path) -> None:
    """Fill a generation until the disk is full."""
    with writing(folder), new_generation(folder, current_generation(folder)) as new:
        new.write("rejects.parquet", b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_table_of_a_newer_version_is_not_overwritten(tmp_path: Path) -> None:
    publish_once(tmp_path, "first")
    path = (tmp_path / "rejects.parquet").resolve()
    table = pq.read_table(path)
    path.write_bytes(parquet_bytes(table, {"schema_version": "2", "table": "rejects", "producer": "lastwords 9"}))
    with pytest.raises(DataNewer, match="is of schema version 2; this program knows 1") as caught:
        current_generation(tmp_path)
    assert caught.value.exit_code == EXIT_NOTHING_CHANGED


def test_a_table_that_is_damaged_is_named(tmp_path: Path) -> None:
    publish_once(tmp_path, "first")
    (damaged,) = dated_files(current_generation(tmp_path), "runs")
    damaged.write_bytes(b"PAR1 torn")
    with pytest.raises(DataUnwritable, match=damaged.name):
        current_generation(tmp_path)


def test_a_current_link_that_leads_nowhere_is_named_and_a_new_folder_has_none(tmp_path: Path) -> None:
    assert current_generation(tmp_path) is None
    (tmp_path / ".current").symlink_to(".generations/7")
    with pytest.raises(DataUnwritable, match=r"\.generations/7, which is not there"):
        current_generation(tmp_path)


def test_a_second_harvest_in_the_same_folder_is_told_who_holds_it(tmp_path: Path) -> None:
    holder = f"pid {os.getpid()} on .* since 2026-12-01T00:00:00"
    with data_lock(tmp_path, NOW), pytest.raises(DataBusy, match=holder), data_lock(tmp_path, NOW):
        pass
    with data_lock(tmp_path, NOW):
        pass


def test_a_data_folder_that_cannot_be_made_is_an_error_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataUnwritable, match="cannot be written"), data_lock(tmp_path / "file" / "d", NOW):
        pass


KILLED_AT_EACH_STEP = """
import json, os, shutil, signal, sys
from pathlib import Path
from harvest.dataset import current_generation, new_generation, publish

EVENTS = {"open", "os.rename", "os.mkdir", "os.link", "os.symlink", "os.remove", "os.rmdir", "shutil.rmtree"}

def publish_or_die(folder, dies_at):
    seen = 0
    def count(event, arguments):
        nonlocal seen
        if event in EVENTS:
            seen += 1
            if seen == dies_at:
                os.kill(os.getpid(), signal.SIGKILL)
    previous = current_generation(folder)
    sys.addaudithook(count)
    with new_generation(folder, previous) as new:
        new.write("rejects.parquet", NEW)
        new.keep_dated("runs", DATE)
        publish(folder, new, 1)

start, work, DATE, NEW = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4]).read_bytes()
for dies_at in range(1, 1000):
    folder = work / str(dies_at)
    shutil.copytree(start, folder, symlinks=True)
    child = os.fork()
    if child == 0:
        publish_or_die(folder, dies_at)
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        print(json.dumps(dies_at))
        break
"""


def test_a_kill_at_any_step_of_a_publish_leaves_the_old_generation_or_the_new_one_whole(tmp_path: Path) -> None:
    publish_once(tmp_path / "start", "old")
    (tmp_path / "new").write_bytes(rejects("new"))
    (tmp_path / "work").mkdir()
    arguments = [tmp_path / "start", tmp_path / "work", DATE, tmp_path / "new"]
    done = subprocess.run(
        [sys.executable, "-c", KILLED_AT_EACH_STEP, *map(str, arguments)], capture_output=True, timeout=100, check=True
    )
    step_count = json.loads(done.stdout)
    assert step_count > 20
    seen = []
    for number in range(1, step_count):
        folder = tmp_path / "work" / str(number)
        seen.append((folder / "rejects.parquet").read_bytes())
        assert (folder / "runs" / f"date={DATE}").is_dir()
        publish_once(folder, "after", kept_count=1)
        assert (folder / "rejects.parquet").read_bytes() == rejects("after")
        assert len(generations(folder)) == 1, "what the dead one left is removed"
    assert seen == sorted(seen, key=[rejects("old"), rejects("new")].index), "one switch, from old to new"
    assert set(seen) == {rejects("old"), rejects("new")}


def test_an_empty_table_is_a_file_too() -> None:
    assert frame_bytes(empty_frame(REJECTS), REJECTS, PRODUCER).startswith(b"PAR1")
