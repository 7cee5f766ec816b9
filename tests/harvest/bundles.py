"""Bundles as a runner would have stored them: sealed by `bench.seal`, put by `bench.store`, dated as a test says.

The usual run is that of `tests.builders.usual_run`: 12 of 12 proofs on machine 4242 at $0.296/h. A test seals it,
changes or leaves out what it is about, and puts it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Any

import polars as pl

from bench.contract import SCHEMA_VERSION
from bench.keys import launch_key
from bench.seal import SealedObject, seal_rows
from bench.store import FileStore
from data import FOLDER
from harvest.contract import DATED_TABLES, PUBLISHED_TABLES
from harvest.pipeline import Order, harvest
from harvest.policy import Policy, parse_policy
from harvest.settings import read_signatures
from harvest.steps import Steps
from harvest.summary import Summary
from harvest.tables import read_files
from tests.builders import GPU_MODEL, START, run_id_at

POLICY = parse_policy((FOLDER / "policy.toml").read_text(encoding="utf-8"))
RUN_TIME = timedelta(minutes=20)
"""From the first object of a usual bundle to its last."""
AS_OF = START + timedelta(hours=6)
"""Long after the end of a run that started at START, and its deadlines."""
PLAN = {"name": "cuzk", "stage": [{"name": "daemon"}, {"name": "benchmark"}]}

Changes = Mapping[str, Any]


def run_id(number: int = 0) -> str:
    """Return the id of the usual run that starts `number` hours after START."""
    return run_id_at(START + timedelta(hours=number), number)


def sealed_bundle(
    id_: str,
    *,
    opening: Changes | None = None,
    closing: Changes | None = None,
    stages: Sequence[Changes] | None = None,
    log_parts: Sequence[Sequence[Changes]] | None = None,
    started_at: datetime = START,
) -> list[SealedObject]:
    """Return the objects of a usual bundle with these changes, in the order stored; the closing is the last."""
    told = usual_log_parts(started_at) if log_parts is None else log_parts
    objects = [seal_rows("opening", [usual_opening(id_, started_at) | dict(opening or {})], id_)]
    objects += [seal_rows("logs", rows, id_, part) for part, rows in enumerate(told)]
    objects += [seal_rows("telemetry", [sample(started_at, part)], id_, part) for part in range(2)]
    objects.append(seal_rows("stages", usual_stages(started_at) if stages is None else stages, id_))
    objects.append(seal_rows("proofs", usual_proofs(), id_))
    return [*objects, sealed_closing(id_, objects, started_at, **(closing or {}))]


def sealed_closing(
    id_: str, objects: Iterable[SealedObject], started_at: datetime = START, **changes: Any
) -> SealedObject:
    """Return the closing that lists the objects."""
    row = {
        "schema_version": SCHEMA_VERSION,
        "run_id": id_,
        "ended_at": started_at + RUN_TIME,
        "end_reason": "finished",
        "finished_by": "runner",
        "runner_flags": [],
        "proofs_requested": 12,
        "proofs_completed": 12,
        "proofs_failed": 0,
        "measured_wall_s": 1080.0,
        "rate_proofs_per_hour": 40.0,
        "streams": [],
        "log_bytes": 100,
        "log_line_count": 4,
        "redaction_count": 0,
        "redactions": {},
        "lost_log_bytes": 0,
        "runner_errors": [],
        "objects": [each.listing() for each in objects],
    }
    return seal_rows("closing", [row | changes], id_)


def usual_opening(id_: str, started_at: datetime = START) -> dict[str, Any]:
    """Return the row of an opening: a GPU of the usual model on machine 4242, nothing asked of a launch record."""
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": id_,
        "started_at": started_at,
        "runner_version": "0.1.0",
        "marketplace": "vast.ai",
        "instance_id": 32733029,
        "instance_label": "C.32733029",
        "machine_id": 4242,
        "machine_id_source": "flag",
        "price_usd_per_hour": 0.296,
        "usd_per_proof": 0.008,
        "min_rate_proofs_per_hour": 37.0,
        "min_rate_source": "price",
        "gpu_model": GPU_MODEL,
        "num_gpus": 1,
        "gpus": [],
        "plan_name": "cuzk",
        "plan": json.dumps(PLAN),
        "settings": {"proofs": "12", "concurrency": "3"},
        "versions": {},
        "proof_kind": "porep-32g",
        "settings_asked": {},
        "settings_sources": {},
        "probe_errors": {},
        "identity_claims": [],
        "plan_warnings": [],
        "input_files": [],
        "kernel_log": "denied",
        "store_credential": "file",
    }


def stage_row(index: int, stage: str, started_at: datetime, **changes: Any) -> dict[str, Any]:
    """Return the row of a stage that ran to the run's end and exited with 0."""
    return {
        "stage_index": index,
        "stage": stage,
        "argv": [stage],
        "pid": 100 + index,
        "started_at": started_at,
        "ended_at": started_at + RUN_TIME - timedelta(seconds=30),
        "wall_s": RUN_TIME.total_seconds() - 30,
        "end_kind": "exited",
        "wait_status": 0,
        "exit_code": 0,
        "found_by": "child",
        "is_end_hidden": False,
        "runner_signals": [],
        **changes,
    }


def usual_stages(started_at: datetime = START) -> list[dict[str, Any]]:
    """Return a daemon that the runner stopped in the end, and a benchmark that exited with 0."""
    return [
        stage_row(0, "daemon", started_at, end_kind="stopped_by_runner", exit_code=None, signal=15, wait_status=15),
        stage_row(1, "benchmark", started_at + timedelta(minutes=1)),
    ]


def usual_proofs() -> list[dict[str, Any]]:
    """Return twelve completed proofs."""
    return [
        {"proof_index": index, "phase": "measured", "status": "completed", "wall_s": 90.0, "log_seq": 2}
        for index in range(12)
    ]


def line(seq: int, stream: str, text: str, started_at: datetime = START, **changes: Any) -> dict[str, Any]:
    """Return the row of one log line, a second after the one before."""
    captured_at = started_at + timedelta(seconds=seq)
    row = {"seq": seq, "stream": stream, "captured_at": captured_at, "text": text, "terminator": 1}
    return {**row, "is_continued": False, **changes}


def event(seq: int, event_: str, at: datetime = START, **fields: Any) -> dict[str, Any]:
    """Return the runner's line that tells an event."""
    return line(seq, "runner", json.dumps({"event": event_, "at": f"{at:%Y-%m-%dT%H:%M:%S}Z", **fields}), at)


def usual_log_parts(started_at: datetime = START) -> list[list[dict[str, Any]]]:
    """Return two parts of two lines each."""
    first = [
        event(0, "stage_started", started_at, stage="benchmark", stage_index=0),
        line(1, "daemon", "cuzk-daemon starting", started_at),
    ]
    return [first, [line(seq, "benchmark.stdout", f"line {seq}", started_at) for seq in (2, 3)]]


def sample(started_at: datetime, minute: int) -> dict[str, Any]:
    """Return a telemetry row of the host."""
    return {"sampled_at": started_at + timedelta(minutes=minute), "stage": "benchmark", "log_bytes": 10 * minute}


def put(
    store: Path, objects: Sequence[SealedObject], first_at: datetime = START, last_at: datetime | None = None
) -> None:
    """Store the objects, evenly from the first instant to the last (by default as long as a usual run takes)."""
    last_at = last_at or first_at + RUN_TIME
    store.mkdir(exist_ok=True)
    target = FileStore(f"file://{store}", store)
    for index, each in enumerate(objects):
        target.put_new(each.key, each.data, first_at + (last_at - first_at) * index / max(len(objects) - 1, 1))


def put_usual(store: Path, number: int = 0, **changes: Any) -> str:
    """Store a usual bundle that starts `number` hours after START; return its run id."""
    started_at = START + timedelta(hours=number)
    put(store, sealed_bundle(run_id(number), started_at=started_at, **changes), started_at)
    return run_id(number)


def without(objects: Iterable[SealedObject], *names: str) -> list[SealedObject]:
    """Return the objects but for those whose file names begin so, as in `logs-00001`."""
    return [each for each in objects if not each.key.rsplit("/", 1)[1].startswith(names)]


def altered(objects: Iterable[SealedObject], name: str, data: bytes) -> list[SealedObject]:
    """Return the objects with other bytes in the one whose file name begins so; the closing is as it was."""
    return [replace(each, data=data) if each.key.rsplit("/", 1)[1].startswith(name) else each for each in objects]


def object_named(objects: Iterable[SealedObject], name: str) -> SealedObject:
    """Return the one object whose file name begins so."""
    (found,) = (each for each in objects if each.key.rsplit("/", 1)[1].startswith(name))
    return found


def put_launch(store: Path, rental_id: str, step: str, fields: Changes, stored_at: datetime = START) -> None:
    """Store one step of a launch record."""
    store.mkdir(exist_ok=True)
    FileStore(f"file://{store}", store).put_new(launch_key(rental_id, step), json.dumps(fields).encode(), stored_at)


def granted(run_ids: Sequence[str], **changes: Any) -> dict[str, Any]:
    """Return the step `granted` of a rental of machine 4242 at $0.296/h, valid for 8 hours from START."""
    return {
        "schema_version": SCHEMA_VERSION,
        "run_ids": list(run_ids),
        "granted_at": START.isoformat(),
        "expires_at": (START + timedelta(hours=8)).isoformat(),
        "marketplace": "vast.ai",
        "machine_id": 4242,
        "price_usd_per_hour": 0.296,
        **changes,
    }


def one_thread(worker_count: int) -> Executor:
    """Make the executor of most tests: what starts processes is tested through the command."""
    return ThreadPoolExecutor(1)


def harvest_once(
    store: Path,
    data: Path,
    as_of: datetime | None = AS_OF,
    *,
    launches: Path | None = None,
    policy: Policy = POLICY,
    signatures_text: str | None = None,
) -> Summary:
    """Do one harvest from a folder, in this process."""
    store.mkdir(exist_ok=True)
    order = Order(
        store_url=f"file://{store}",
        launches_url=f"file://{launches}" if launches else None,
        data=data,
        as_of=as_of,
        policy=policy,
        signatures_text=read_signatures() if signatures_text is None else signatures_text,
    )
    return harvest(order, one_thread, Steps(monotonic, lambda event: None))


def published(data: Path, table: str) -> pl.DataFrame:
    """Return the rows of a published table, found as a reader finds them: through the links in the data folder."""
    is_dated = any(table == each.name for each in DATED_TABLES)
    paths = sorted((data / table).glob("date=*/*.parquet")) if is_dated else [data / f"{table}.parquet"]
    return read_files(PUBLISHED_TABLES[table], paths)


def only_run(data: Path) -> dict[str, Any]:
    """Return the row of the one run that is published."""
    (row,) = published(data, "runs").to_dicts()
    return row


def reject_reasons(data: Path) -> list[tuple[str, str]]:
    """Return (file name, reason) of everything refused."""
    rejects = published(data, "rejects")
    return [(key.rsplit("/", 1)[1], reason) for key, reason in rejects.select("key", "reason").iter_rows()]


def file_bytes(data: Path) -> dict[str, bytes]:
    """Return the bytes of every published file by its path, but for the harvests, which tell when they were."""
    current = (data / ".current").resolve()
    paths = (path for path in sorted(current.rglob("*")) if path.is_file() and path.name != "harvests.parquet")
    return {str(path.relative_to(current)): path.read_bytes() for path in paths}
