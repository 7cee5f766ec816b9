"""The operator's launch records: the truth about who rented what at which price, and what became of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from bench.keys import parse_launch_key
from harvest.contract import RejectReason
from harvest.errors import ObjectMissing
from harvest.launch_step import StepRefused, parse_step
from harvest.limits import MAX_LAUNCH_STEP_BYTES
from harvest.policy import Policy
from harvest.refusal import Refusal, refused_object
from harvest.store import ObjectStore, StoredObject

_READER_COUNT = 16
_IDENTITY = (
    "marketplace",
    "instance_id",
    "instance_label",
    "machine_id",
    "host_id",
    "gpu_model",
    "num_gpus",
    "gpu_frac",
    "geolocation",
    "rental_kind",
    "price_usd_per_hour",
    "usd_per_proof",
    "min_rate_proofs_per_hour",
)


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """All steps of one rental's record. What a step that is not there would say is null."""

    rental_id: str
    run_ids: tuple[str, ...]
    granted_at: datetime
    expires_at: datetime
    rented_at: datetime | None = None
    ended_at: datetime | None = None
    fate: str | None = None
    identity: Mapping[str, Any] = field(default_factory=dict)
    """Who, where and at what price, by the names of the opening's columns; only what is known."""

    def identity_digest(self) -> str:
        """Return a digest of what a run's row takes from this record before it is judged."""
        return sha256(json.dumps([self.rental_id, dict(self.identity)], sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Launches:
    """The records by rental id, in its order, the record of each run id, and what was refused."""

    records: Mapping[str, LaunchRecord] = field(default_factory=dict)
    by_run_id: Mapping[str, LaunchRecord] = field(default_factory=dict)
    refusals: tuple[Refusal, ...] = ()


def read_launches(store: ObjectStore, objects: Iterable[StoredObject]) -> Launches:
    """Return the launch records that the listed objects hold.

    Raises:
        StoreUnreadable: the store did not give an object.
    """
    ordered = sorted(objects, key=lambda each: each.key)
    with ThreadPoolExecutor(_READER_COUNT) as readers:
        steps = list(readers.map(lambda each: _read_step(store, each), ordered))
    refused = [each for each in steps if isinstance(each, Refusal)]
    by_rental: dict[str, dict[str, _Step]] = {}
    for each in steps:
        if isinstance(each, _Step):
            by_rental.setdefault(each.rental_id, {})[each.step] = each
    return _launches(by_rental, refused)


@dataclass(frozen=True, slots=True)
class Unstarted:
    """Rentals without an object, each by its first run's id, in its order."""

    waiting: tuple[LaunchRecord, ...] = ()
    never_started: tuple[LaunchRecord, ...] = ()


def unstarted(launches: Launches, stored_run_ids: Set[str], as_of: datetime, policy: Policy) -> Unstarted:
    """Return the rentals none of whose runs has stored anything, by whether their deadline is over."""
    silent = [each for each in launches.records.values() if stored_run_ids.isdisjoint(each.run_ids)]
    return Unstarted(
        waiting=tuple(each for each in silent if as_of <= start_deadline(each, policy)),
        never_started=tuple(each for each in silent if as_of > start_deadline(each, policy)),
    )


def start_deadline(record: LaunchRecord, policy: Policy) -> datetime:
    """Return when a rental should have stored its opening: some time after it was rented, else at its expiry."""
    if record.rented_at is None:
        return record.expires_at
    return record.rented_at + timedelta(seconds=policy.never_started_after_s)


@dataclass(frozen=True, slots=True)
class _Step:
    rental_id: str
    step: str
    fields: Mapping[str, Any]
    stored: StoredObject


def _read_step(store: ObjectStore, stored: StoredObject) -> _Step | Refusal:
    name = parse_launch_key(stored.key)
    if name is None:
        return refused_object(stored, RejectReason.BAD_KEY, "not the key of a step of a launch record")
    if stored.bytes > MAX_LAUNCH_STEP_BYTES:
        return refused_object(
            stored, RejectReason.OVER_LIMIT, f"{stored.bytes} bytes; a step has at most {MAX_LAUNCH_STEP_BYTES}"
        )
    try:
        data = store.get(stored.key)
        return _Step(*name, parse_step(data, *name), stored)
    except ObjectMissing as error:
        return refused_object(stored, RejectReason.MISSING_OBJECT, str(error))
    except StepRefused as error:
        return refused_object(stored, error.reason, error.detail)


def _launches(by_rental: Mapping[str, Mapping[str, _Step]], refused: list[Refusal]) -> Launches:
    records: dict[str, LaunchRecord] = {}
    by_run_id: dict[str, LaunchRecord] = {}
    for rental_id, steps in sorted(by_rental.items()):
        granted = steps.get("granted")
        problem = _problem(granted, by_run_id)
        if granted is None or problem is not None:
            refused += [refused_object(each.stored, *(problem or _NO_GRANT)) for each in steps.values()]
            continue
        record = _record(granted, steps)
        records[rental_id] = record
        by_run_id.update(dict.fromkeys(record.run_ids, record))
    return Launches(records, by_run_id, tuple(refused))


_NO_GRANT = (RejectReason.MISSING_OBJECT, "the rental's step `granted` is not there, or was refused")


def _problem(granted: _Step | None, by_run_id: Mapping[str, LaunchRecord]) -> tuple[RejectReason, str] | None:
    """Return why a rental cannot be believed: a run id belongs to one rental, the first by its id."""
    if granted is None:
        return _NO_GRANT
    taken = [run_id for run_id in granted.fields["run_ids"] if run_id in by_run_id]
    if taken:
        return RejectReason.SCHEMA_MISMATCH, f"run {taken[0]} is already that of rental {by_run_id[taken[0]].rental_id}"
    return None


def _record(granted: _Step, steps: Mapping[str, _Step]) -> LaunchRecord:
    rented = steps["rented"].fields if "rented" in steps else {}
    ended = steps["ended"].fields if "ended" in steps else {}
    known = {**granted.fields, **rented}
    return LaunchRecord(
        rental_id=granted.rental_id,
        run_ids=granted.fields["run_ids"],
        granted_at=granted.fields["granted_at"],
        expires_at=granted.fields["expires_at"],
        rented_at=rented.get("rented_at"),
        ended_at=ended.get("at"),
        fate=ended.get("fate"),
        identity={name: known[name] for name in _IDENTITY if name in known},
    )
