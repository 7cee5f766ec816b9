"""Listings sorted into bundles, and the store itself: a folder, and what it says when it cannot be read."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bench.keys import bundle_prefix, object_key
from harvest.contract import BundleState
from harvest.errors import ObjectMissing, StoreUnreadable, UsageError
from harvest.fetch import (
    BundleListing,
    bundles_by_run,
    list_stores,
    listed_state,
    run_id_of_folder,
    settled_at,
    silence_deadline_s,
)
from harvest.store import StoredObject, open_store
from tests.builders import START
from tests.harvest.bundles import POLICY, put_launch, put_usual, run_id

ID = run_id()


def listing(*tables: str) -> BundleListing:
    """Return the listing of a run with these tables, a minute apart."""
    objects = [
        StoredObject(object_key(ID, table), 100, START + timedelta(minutes=minute))
        for minute, table in enumerate(tables)
    ]
    return bundles_by_run(objects)[0][ID]


def test_a_listing_tells_size_count_and_times_of_a_bundle_without_opening_it() -> None:
    found = listing("opening", "stages", "closing")
    assert (found.object_count, found.stored_bytes) == (3, 300)
    assert (found.first_stored_at, found.last_stored_at) == (START, START + timedelta(minutes=2))


@pytest.mark.parametrize(
    ("tables", "minutes", "state"),
    [
        (("opening",), 10, None),
        (("opening",), 10.1, BundleState.VANISHED),
        (("opening", "closing-partial"), 10, None),
        (("opening", "closing-partial"), 12, BundleState.CLOSING_PARTIAL),
        (("opening", "closing-partial", "closing"), 3, BundleState.FINISHED),
        (("closing",), 0, BundleState.FINISHED),
    ],
)
def test_the_state_of_a_bundle_follows_from_its_listing_and_the_stores_clock(
    tables: tuple[str, ...], minutes: float, state: BundleState | None
) -> None:
    assert listed_state(listing(*tables), 600, START + timedelta(minutes=minutes)) == state


def test_a_bundle_with_a_closing_is_settled_and_another_one_when_its_deadline_is_over() -> None:
    assert settled_at(listing("opening", "closing"), 600) == START + timedelta(minutes=1)
    assert settled_at(listing("opening"), 600) == START + timedelta(minutes=10)


@pytest.mark.parametrize(("interval_s", "deadline_s"), [(None, 600), (60.0, 600), (900.0, 1800), (5000.0, 3600)])
def test_a_long_interval_lengthens_the_deadline_up_to_an_hour(interval_s: float | None, deadline_s: float) -> None:
    assert silence_deadline_s(POLICY, interval_s) == deadline_s


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (f"{bundle_prefix(ID)}raw-daemon-00000.gz", ID),
        (f"{bundle_prefix(ID)}deep/er/opening.parquet", ID),
        (bundle_prefix(ID).replace("2026-11-02", "2026-11-03") + "x", None),
        (f"bundles/v2/2026-11-02/{ID}/opening.parquet", None),
        (f"bundles/v1/2026-11-02/{ID.upper()}/opening.parquet", None),
        ("bundles/v1/readme.txt", None),
        (bundle_prefix(ID).rstrip("/"), None),
    ],
)
def test_a_stray_object_belongs_to_the_run_in_whose_folder_it_lies(key: str, expected: str | None) -> None:
    assert run_id_of_folder(key) == expected


def test_a_stray_object_counts_as_a_sign_of_the_run_but_is_refused() -> None:
    bundles, refusals = bundles_by_run([StoredObject(f"{bundle_prefix(ID)}core.dump", 5, START)])
    assert (bundles[ID].objects, bundles[ID].object_count, bundles[ID].last_stored_at) == ((), 1, START)
    assert [(each.run_id, str(each.reason)) for each in refusals] == [(ID, "bad_key")]


def test_what_was_stored_after_as_of_is_not_listed_in_either_store(tmp_path: Path) -> None:
    put_usual(tmp_path)
    put_launch(tmp_path, run_id(9), "granted", {}, START + timedelta(hours=1))
    store = open_store(f"file://{tmp_path}")
    early = list_stores(store, store, START + timedelta(minutes=1))
    late = list_stores(store, store, None)
    assert (early.bundles[ID].object_count, len(early.launches)) == (1, 0)
    assert (late.bundles[ID].object_count, len(late.launches)) == (8, 1)
    assert abs(late.as_of - datetime.now(UTC)) < timedelta(minutes=1)


def test_a_folders_files_are_objects_by_key_with_the_time_they_were_stored(tmp_path: Path) -> None:
    (tmp_path / "bundles" / "b").mkdir(parents=True)
    (tmp_path / "bundles" / "b" / "two").write_bytes(b"22")
    (tmp_path / "bundles" / "one").write_bytes(b"1")
    (tmp_path / "bundles" / ".new-abc").write_bytes(b"not an object yet")
    (tmp_path / "bundles" / "link").symlink_to("/etc/passwd")
    os.utime(tmp_path / "bundles" / "one", ns=(0, 1_700_000_000_123_456_789))
    found = open_store(f"file://{tmp_path}").list("bundles/")
    assert [(each.key, each.bytes) for each in found] == [("bundles/b/two", 2), ("bundles/one", 1)]
    assert found[1].stored_at == datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=UTC)


def test_a_folder_that_is_not_there_is_no_empty_store(tmp_path: Path) -> None:
    with pytest.raises(StoreUnreadable, match=r"is not a folder on this machine\. Nothing was changed"):
        open_store(f"file://{tmp_path}/nowhere").list("bundles/")


def test_an_object_that_is_gone_is_told_from_one_that_cannot_be_read(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("/etc/passwd")
    with pytest.raises(ObjectMissing):
        store.get("gone")
    for key in ("folder", "link"):
        with pytest.raises(StoreUnreadable, match=key):
            store.get(key)


@pytest.mark.parametrize(
    "url", ["/var/lib/store", "http://x/y", "file://host/x", "file:relative", "s3://", "", "gs://b"]
)
def test_a_url_that_names_no_store_is_a_usage_error(url: str) -> None:
    with pytest.raises(UsageError, match="store"):
        open_store(url)
