"""Objects on their way: sealed by a process, uploaded by a thread: neither a slow store nor a crash stops capture."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench.contract import RunnerFlag
from bench.errors import ObjectExists, StoreError, StoreRefused
from bench.store import Store

SEALER_MODULE = "bench.sealer"
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0
_PACKAGE_PARENT = Path(__file__).resolve().parent.parent


class SealingFailed(Exception):
    """The sealing process did not answer: pyarrow is missing or crashed."""


class Sealer:
    """The sealing process; started anew where it died."""

    def __init__(self, run_id: str, parts_folder: Path, address_key: bytes) -> None:
        self._run_id = run_id
        self._parts_folder = parts_folder
        self._address_key = address_key
        self._process: subprocess.Popen[bytes] | None = None

    def seal(self, job: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
        """Return the object's listing (with redactions) and its bytes. Raises SealingFailed."""
        part = job.get("part")
        name = job["table"] if part is None else f"{job['table']}-{part:05d}"
        path = self._parts_folder / f"{name}.parquet"
        asked = {
            "run_id": self._run_id,
            "address_key": self._address_key.hex(),
            "part": None,
            **job,
            "file": str(path),
        }
        for is_last in (False, True):
            try:
                return self._ask(asked), path.read_bytes()
            except (OSError, ValueError) as error:
                self.close()
                if is_last:
                    raise SealingFailed(f"{name}: the sealing process gave no answer ({error})") from error
        raise AssertionError("unreachable")

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _ask(self, job: Mapping[str, Any]) -> dict[str, Any]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", SEALER_MODULE],
                cwd=_PACKAGE_PARENT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=os.environ,
                start_new_session=True,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job).encode() + b"\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


class Shipper:
    """One thread that seals and uploads, job by job, in order; tries again until it is told to give up."""

    def __init__(self, store: Store, sealer: Sealer, on_failure: Callable[[str], None]) -> None:
        self._store = store
        self._sealer = sealer
        self._on_failure = on_failure
        self._jobs: deque[Mapping[str, Any]] = deque()
        self._news = threading.Condition()
        self._is_busy = False
        self._give_up_at_s: float | None = None
        self.objects: list[dict[str, Any]] = []
        self.redactions: Counter[str] = Counter()
        self.stream_redactions: Counter[str] = Counter()
        self.errors: list[str] = []
        self.flags: set[str] = set()
        threading.Thread(target=self._work, daemon=True, name="shipper").start()

    def ship(self, job: Mapping[str, Any], *, is_first: bool = False) -> None:
        """Queue a job: `table`, `rows` or `chunks`, `part`. `is_first`: before all that waits."""
        with self._news:
            (self._jobs.appendleft if is_first else self._jobs.append)(job)
            self._news.notify_all()

    def wait_until_shipped(self, give_up_at_s: float) -> bool:
        """Wait until nothing is left, at most until that monotonic time; return whether all went up."""
        self._give_up_at_s = give_up_at_s
        with self._news:
            self._news.notify_all()
            return self._news.wait_for(
                lambda: not self._jobs and not self._is_busy, max(0.0, give_up_at_s - time.monotonic()) + 1
            )

    def put(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Seal and store one object now, in the caller's thread, by one try. Raises StoreError, SealingFailed."""
        listing, data = self._sealer.seal(job)
        put_once(self._store, listing["key"], data)
        return listing

    def _work(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: bool(self._jobs))
                job = self._jobs.popleft()
                self._is_busy = True
            self._do(job)
            with self._news:
                self._is_busy = False
                self._news.notify_all()

    def _do(self, job: Mapping[str, Any]) -> None:
        try:
            listing, data = self._sealer.seal(job)
        except SealingFailed as error:
            self.errors.append(str(error))
            self.flags.add(str(RunnerFlag.NO_PARQUET))
            return
        self.redactions.update(listing.pop("redactions"))
        self.stream_redactions.update(listing.pop("stream_redactions"))
        if self._upload(listing["key"], data):
            self.objects.append(listing)

    def _upload(self, key: str, data: bytes) -> bool:
        for try_count in range(1, 1_000_000):
            try:
                put_once(self._store, key, data)
                return True
            except ObjectExists as error:
                self.flags.add(str(RunnerFlag.UPLOAD_CONFLICT))
                self.errors.append(str(error))
                return False
            except StoreError as error:
                self._on_failure(f"{key}, try {try_count}: {error}")
                if not self._pause(try_count, isinstance(error, StoreRefused)):
                    self.errors.append(f"{key} was not stored after {try_count} tries: {error}")
                    return False
        return False

    def _pause(self, try_count: int, is_refused: bool) -> bool:
        """Sleep with full jitter; return whether another try is due. A refusal that lasts is one by the fifth try."""
        pause_s = random.uniform(0.05, min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** min(try_count, 8)))
        over_at_s = self._give_up_at_s
        if over_at_s is not None and (time.monotonic() + pause_s > over_at_s or (is_refused and try_count >= 5)):
            return False
        time.sleep(pause_s)
        return True


def put_once(store: Store, key: str, data: bytes) -> None:
    """Create the object; one that is already there with the same bytes is ours, from a try whose answer was lost.

    Raises:
        ObjectExists: the key holds other bytes.
        StoreError: the store did not take it.
    """
    try:
        store.put_new(key, data)
    except ObjectExists:
        if store.get(key) != data:
            raise
