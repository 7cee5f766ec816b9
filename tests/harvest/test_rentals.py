"""Rentals: which runs make one, how long each phase took, and the GPU's dollars."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import polars as pl
import pytest

from harvest.contract import IN_FLIGHT, RENTALS, RUN_STAGES
from harvest.launches import Launches, LaunchRecord
from harvest.rentals import rentals
from tests.builders import START, make_frame, make_runs
from tests.harvest.bundles import run_id, stage_row

RECORD = LaunchRecord(
    run_id(9),
    (run_id(0), run_id(1), run_id(2)),
    granted_at=START - timedelta(minutes=5),
    expires_at=START + timedelta(hours=8),
    rented_at=START - timedelta(minutes=4),
    ended_at=START + timedelta(hours=2),
    fate="destroyed",
    identity={"rental_kind": "on_demand"},
)
NO_RECORD = Launches()


def launched(*records: LaunchRecord) -> Launches:
    by_run_id = {each: record for record in records for each in record.run_ids}
    return Launches({each.rental_id: each for each in records}, by_run_id)


def stages(*rows: Mapping[str, Any]) -> pl.DataFrame:
    return make_frame(RUN_STAGES, *rows)


def in_flight(*rows: Mapping[str, Any]) -> pl.DataFrame:
    return make_frame(IN_FLIGHT, *rows)


def test_a_recorded_rental_has_its_times_and_its_dollars_from_the_record() -> None:
    runs = make_runs({"instance_id": 7}, {"instance_id": 7})
    benchmark = stage_row(1, "benchmark", START + timedelta(minutes=3), wall_s=900.0)
    (row,) = rentals(runs, in_flight(), stages({"run_id": run_id(0), **benchmark}), launched(RECORD)).to_dicts()
    assert (row["rental_id"], row["run_ids"], row["instance_id"]) == (RECORD.rental_id, [run_id(0), run_id(1)], 7)
    assert (row["rented_at"], row["running_at"], row["ended_at"]) == (RECORD.rented_at, START, RECORD.ended_at)
    assert (row["ended_source"], row["rental_kind"]) == ("record", "on_demand")
    # the second run has no benchmark: all of its 20 minutes are setup
    assert (row["loading_s"], row["setup_s"], row["benchmark_s"]) == (240.0, 180.0 + 1200.0, 900.0)
    assert row["gpu_usd"] == pytest.approx(0.296 * 124 / 60)
    assert row["usd_spent"] == row["gpu_usd"]
    assert (row["storage_usd"], row["is_still_billing"]) == (None, None)


def test_without_a_record_a_rental_is_the_runs_of_an_instance_else_one_run() -> None:
    runs = make_runs({"instance_id": 7}, {"instance_id": 7}, {}, {})
    found = rentals(runs, in_flight(), stages(), NO_RECORD)
    assert found["run_ids"].to_list() == [[run_id(0), run_id(1)], [run_id(2)], [run_id(3)]]
    assert found["rental_id"].to_list() == [run_id(0), run_id(2), run_id(3)]
    assert found["ended_source"].to_list() == ["run"] * 3
    assert found["gpu_usd"].to_list() == pytest.approx([0.296 * 80 / 60, 0.296 / 3, 0.296 / 3])


def test_a_rental_with_a_run_in_flight_has_not_ended() -> None:
    alive = in_flight({"run_id": run_id(1), "instance_id": 7, "started_at": START, "price_usd_per_hour": 0.3})
    (row,) = rentals(make_runs({"instance_id": 7}), alive, stages(), NO_RECORD).to_dicts()
    assert (row["ended_at"], row["ended_source"], row["gpu_usd"]) == (None, None, None)
    assert row["run_ids"] == [run_id(0), run_id(1)]


def test_what_was_not_measured_is_null_and_not_zero() -> None:
    runs = make_runs({"price_usd_per_hour": None, "started_at": None, "ended_at": None, "last_stored_at": None})
    (row,) = rentals(runs, in_flight(), stages(), NO_RECORD).to_dicts()
    names = ("running_at", "ended_at", "loading_s", "setup_s", "benchmark_s", "gpu_usd", "usd_spent")
    assert [row[name] for name in names] == [None] * len(names)


def test_an_end_before_the_start_gives_no_negative_dollars() -> None:
    runs = make_runs({"ended_at": START - timedelta(hours=1)})
    (row,) = rentals(runs, in_flight(), stages(), NO_RECORD).to_dicts()
    assert (row["setup_s"], row["gpu_usd"]) == (None, None)


def test_no_runs_are_no_rentals() -> None:
    found = rentals(make_runs(), in_flight(), stages(), NO_RECORD)
    assert (found.height, found.columns) == (0, list(RENTALS.column_names))
