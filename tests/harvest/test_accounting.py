"""Every run in exactly one place: what does not add up is named, and nothing is published."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import polars as pl
import pytest

from harvest.accounting import check_accounts, check_not_emptied, unlaunched_count
from harvest.contract import IN_FLIGHT
from harvest.errors import EXIT_UNACCOUNTED, StoreUnreadable, UnaccountedRuns
from harvest.fetch import Listing
from harvest.launches import Launches, LaunchRecord
from tests.builders import START, make_frame, make_runs
from tests.harvest.bundles import run_id

RECORD = LaunchRecord(run_id(9), (run_id(0), run_id(1)), START, START + timedelta(hours=8))


def launched(*records: LaunchRecord) -> Launches:
    by_run_id = {each: record for record in records for each in record.run_ids}
    return Launches({each.rental_id: each for each in records}, by_run_id)


def in_flight(*run_ids: str) -> pl.DataFrame:
    return make_frame(IN_FLIGHT, *({"run_id": each} for each in run_ids))


def runs(*run_ids: str) -> pl.DataFrame:
    return make_runs(*({"run_id": each} for each in run_ids))


def test_runs_that_are_over_and_alive_add_up_to_what_is_stored_and_launched() -> None:
    check_accounts(runs(run_id(0)), in_flight(run_id(2)), [run_id(0), run_id(2)], launched(RECORD))
    check_accounts(runs(run_id(0)), in_flight(), [], launched(RECORD))
    check_accounts(runs(run_id(1)), in_flight(), [run_id(1)], launched(RECORD))


@pytest.mark.parametrize(
    ("over", "alive", "stored", "problem"),
    [
        ([0], [], [0, 2], f"in no place: {run_id(2)}"),
        ([0, 2], [2], [0, 2], f"in two places: {run_id(2)}"),
        ([0, 3], [], [0], f"neither stored nor launched: {run_id(3)}"),
        ([3], [], [3], f"a launched rental without a run: {run_id(9)}"),
    ],
)
def test_what_does_not_add_up_is_named(over: list[int], alive: list[int], stored: list[int], problem: str) -> None:
    with pytest.raises(UnaccountedRuns, match=problem) as caught:
        check_accounts(runs(*map(run_id, over)), in_flight(*map(run_id, alive)), map(run_id, stored), launched(RECORD))
    assert caught.value.exit_code == EXIT_UNACCOUNTED
    assert "Nothing was switched" in str(caught.value)


def test_many_ids_are_cut_short() -> None:
    with pytest.raises(UnaccountedRuns, match="and 3 more"):
        check_accounts(runs(), in_flight(), map(run_id, range(8)), launched())


def test_runs_without_a_record_are_counted_apart() -> None:
    assert unlaunched_count(map(run_id, range(4)), launched(RECORD)) == 2


def test_only_a_store_that_lost_everything_is_suspected() -> None:
    empty = Listing(START, {}, (), (), all_object_count=0)
    without_bundles = runs(run_id(0))
    with_bundles = make_runs({"bundle_key": "bundles/v1/x/"})
    check_not_emptied(empty, without_bundles, "file:///s")
    check_not_emptied(replace(empty, all_object_count=1), with_bundles, "file:///s")
    with pytest.raises(StoreUnreadable, match="file:///s holds nothing now"):
        check_not_emptied(empty, with_bundles, "file:///s")
