"""Launch records: their steps become one record a rental, and nothing in them is believed unchecked."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from harvest.contract import RejectReason
from harvest.launch_step import StepRefused, parse_step
from harvest.launches import Launches, read_launches, start_deadline, unstarted
from harvest.store import open_store
from tests.builders import START
from tests.harvest.bundles import POLICY, granted, put_launch, run_id

RENTAL = run_id(50)
OTHER = run_id(51)
RENTED = {"instance_id": 7, "instance_label": "C.7", "rented_at": (START + timedelta(minutes=1)).isoformat()}
ENDED = {"fate": "destroyed", "at": (START + timedelta(hours=1)).isoformat(), "reason": "done"}


def launches_in(folder: Path) -> Launches:
    store = open_store(f"file://{folder}")
    return read_launches(store, store.list("launches/v1/"))


def reasons(found: Launches) -> list[str]:
    return [str(each.reason) for each in found.refusals]


def test_the_steps_of_a_rental_become_one_record(tmp_path: Path) -> None:
    for step, fields in (("granted", granted([run_id(), run_id(1)])), ("rented", RENTED), ("ended", ENDED)):
        put_launch(tmp_path, RENTAL, step, fields)
    found = launches_in(tmp_path)
    record = found.records[RENTAL]
    assert (record.run_ids, record.fate) == ((run_id(), run_id(1)), "destroyed")
    assert (record.rented_at, record.ended_at) == (START + timedelta(minutes=1), START + timedelta(hours=1))
    assert record.identity["machine_id"] == 4242
    assert record.identity["instance_id"] == 7
    assert "host_id" not in record.identity
    assert found.by_run_id[run_id(1)] is record
    assert found.refusals == ()


def test_a_rental_without_its_grant_is_refused_step_by_step(tmp_path: Path) -> None:
    put_launch(tmp_path, RENTAL, "rented", RENTED)
    put_launch(tmp_path, RENTAL, "ended", ENDED)
    found = launches_in(tmp_path)
    assert found.records == {}
    assert reasons(found) == ["missing_object", "missing_object"]


def test_a_run_id_belongs_to_one_rental_only(tmp_path: Path) -> None:
    put_launch(tmp_path, RENTAL, "granted", granted([run_id()]))
    put_launch(tmp_path, OTHER, "granted", granted([run_id()], machine_id=1))
    found = launches_in(tmp_path)
    assert found.by_run_id[run_id()].rental_id == RENTAL
    assert reasons(found) == ["schema_mismatch"]


def test_a_step_that_is_damaged_costs_only_itself(tmp_path: Path) -> None:
    put_launch(tmp_path, RENTAL, "granted", granted([run_id()]))
    put_launch(tmp_path, RENTAL, "ended", ENDED | {"fate": "stolen"})
    found = launches_in(tmp_path)
    assert (found.records[RENTAL].fate, reasons(found)) == (None, ["schema_mismatch"])


def test_keys_and_sizes_that_no_step_has_are_refused_unread(tmp_path: Path) -> None:
    put_launch(tmp_path, RENTAL, "granted", granted([run_id()], note="x" * 70_000))
    put_launch(tmp_path, OTHER, "paid", {})
    assert sorted(reasons(launches_in(tmp_path))) == ["bad_key", "over_limit"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"run_ids": []}, RejectReason.SCHEMA_MISMATCH),
        ({"run_ids": [run_id(), run_id()]}, RejectReason.SCHEMA_MISMATCH),
        ({"run_ids": ["no-uuid"]}, RejectReason.SCHEMA_MISMATCH),
        ({"run_ids": run_id()}, RejectReason.SCHEMA_MISMATCH),
        ({"granted_at": None}, RejectReason.SCHEMA_MISMATCH),
        ({"granted_at": "2026-11-02T08:00:00"}, RejectReason.SCHEMA_MISMATCH),
        ({"granted_at": "1999-11-02T08:00:00Z"}, RejectReason.OUT_OF_RANGE),
        ({"machine_id": "4242"}, RejectReason.SCHEMA_MISMATCH),
        ({"machine_id": True}, RejectReason.SCHEMA_MISMATCH),
        ({"machine_id": -1}, RejectReason.OUT_OF_RANGE),
        ({"machine_id": 2**63}, RejectReason.OUT_OF_RANGE),
        ({"price_usd_per_hour": float("nan")}, RejectReason.OUT_OF_RANGE),
        ({"price_usd_per_hour": -0.1}, RejectReason.OUT_OF_RANGE),
        ({"rental_kind": "stolen"}, RejectReason.SCHEMA_MISMATCH),
        ({"is_simulated": 1}, RejectReason.SCHEMA_MISMATCH),
        ({"gpu_model": "\ud800"}, RejectReason.INVALID_UTF8),
        ({"rental_id": OTHER}, RejectReason.SCHEMA_MISMATCH),
        ({"schema_version": 2}, RejectReason.SCHEMA_NEWER),
        ({"schema_version": "1"}, RejectReason.SCHEMA_NEWER),
    ],
)
def test_a_field_that_cannot_be_is_refused(change: dict[str, Any], reason: RejectReason) -> None:
    with pytest.raises(StepRefused) as caught:
        parse_step(json.dumps(granted([run_id()]) | change).encode(), RENTAL, "granted")
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"{", RejectReason.BAD_JSON),
        (b"[]", RejectReason.BAD_JSON),
        (b"[" * 100_000, RejectReason.OVER_LIMIT),
        (b"[" * 60_000, RejectReason.BAD_JSON),
        (b"\xff\xfe{}", RejectReason.INVALID_UTF8),
        (b"{}", RejectReason.SCHEMA_MISMATCH),
    ],
)
def test_bytes_that_are_no_step_are_refused(data: bytes, reason: RejectReason) -> None:
    with pytest.raises(StepRefused) as caught:
        parse_step(data, RENTAL, "granted")
    assert caught.value.reason == reason


def test_a_field_that_is_not_known_is_passed_over() -> None:
    fields = parse_step(json.dumps(granted([run_id()]) | {"colour": "red"}).encode(), RENTAL, "granted")
    assert "colour" not in fields


def test_a_rental_has_until_two_hours_after_it_was_rented_else_until_its_grant_expires(tmp_path: Path) -> None:
    put_launch(tmp_path, RENTAL, "granted", granted([run_id()]))
    put_launch(tmp_path, RENTAL, "rented", RENTED)
    put_launch(tmp_path, OTHER, "granted", granted([run_id(1)]))
    records = launches_in(tmp_path).records
    assert start_deadline(records[RENTAL], POLICY) == START + timedelta(hours=2, minutes=1)
    assert start_deadline(records[OTHER], POLICY) == START + timedelta(hours=8)


def test_a_rental_of_which_any_run_stored_something_has_started(tmp_path: Path) -> None:
    put_launch(tmp_path, RENTAL, "granted", granted([run_id(), run_id(1)]))
    late = START + timedelta(days=1)
    found = launches_in(tmp_path)
    assert len(unstarted(found, {run_id(5)}, late, POLICY).never_started) == 1
    assert unstarted(found, {run_id(1)}, late, POLICY).never_started == ()
