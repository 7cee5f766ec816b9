"""Dollars of runs: thresholds worked out, fates, and what each run cost and lost."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import polars as pl
import pytest

from harvest.contract import IN_FLIGHT, RUN_STAGES
from harvest.launches import Launches, LaunchRecord
from harvest.money import with_costs, with_fate, with_thresholds
from harvest.rentals import rentals
from tests.builders import START, make_frame, make_runs
from tests.harvest.bundles import run_id

FAILED = {"outcome": "failed", "rate_proofs_per_hour": None}


def record(*run_ids: str, **changes: Any) -> Launches:
    found = LaunchRecord(
        run_id(9),
        run_ids,
        granted_at=START,
        expires_at=START + timedelta(hours=8),
        **{"rented_at": START, "ended_at": START + timedelta(hours=10), **changes},
    )
    return Launches({found.rental_id: found}, dict.fromkeys(run_ids, found))


def costs(runs: pl.DataFrame, launches: Launches | None = None) -> list[tuple[Any, ...]]:
    """Return (usd_spent, usd_spent_source, usd_lost) of each run."""
    rented = rentals(runs, make_frame(IN_FLIGHT), make_frame(RUN_STAGES), launches or Launches())
    return with_costs(runs, rented).select("usd_spent", "usd_spent_source", "usd_lost").rows()


def threshold(**changes: Any) -> Mapping[str, Any]:
    (row,) = with_thresholds(make_runs(changes), usd_per_proof=0.01).to_dicts()
    return row


def test_the_storys_threshold_is_37_and_was_judged_against_29() -> None:
    row = threshold(min_rate_proofs_per_hour=29.0, min_rate_source="flag", rate_proofs_per_hour=None)
    assert row["min_rate_from_price_proofs_per_hour"] == pytest.approx(37.0)
    assert (row["is_min_rate_consistent"], row["usd_per_proof_achieved"]) == (False, None)


@pytest.mark.parametrize(
    ("min_rate", "is_consistent"),
    [(37.0, True), (37.37, True), (36.63, True), (37.4, False), (None, None), (0.0, False)],
)
def test_one_per_cent_is_rounding_and_more_is_a_contradiction(
    min_rate: float | None, is_consistent: bool | None
) -> None:
    assert threshold(min_rate_proofs_per_hour=min_rate)["is_min_rate_consistent"] is is_consistent


def test_the_policys_earning_counts_where_the_run_says_none() -> None:
    assert threshold(usd_per_proof=None)["min_rate_from_price_proofs_per_hour"] == pytest.approx(29.6)


def test_without_a_price_there_is_no_threshold_from_it() -> None:
    row = threshold(price_usd_per_hour=None)
    names = ("min_rate_from_price_proofs_per_hour", "is_min_rate_consistent", "usd_per_proof_achieved")
    assert [row[name] for name in names] == [None] * 3


def test_a_cost_per_proof_is_price_over_rate() -> None:
    assert threshold()["usd_per_proof_achieved"] == pytest.approx(0.0074)


def test_a_fate_is_the_records_else_assumed_where_a_closing_shows_the_end() -> None:
    runs = make_runs({}, {}, FAILED, {**FAILED, "bundle_state": "vanished"}, {"outcome": None})
    found = with_fate(runs, record(run_id(0), fate="outbid")).select("fate", "fate_source").rows()
    assert found[:3] == [("outbid", "record"), ("kept", "exit_code"), ("destroyed", "exit_code")]
    assert found[3] == (None, None)


def test_a_run_without_a_record_costs_its_own_hours() -> None:
    silent = {**FAILED, "ended_at": None, "last_stored_at": START + timedelta(hours=2)}
    assert costs(make_runs({}, {**silent, "started_at": START})) == [
        (pytest.approx(0.296 / 3), "ended_at", 0.0),
        (pytest.approx(0.592), "last_stored_at", pytest.approx(0.592)),
    ]


def test_the_runs_of_a_rental_share_its_dollars_by_their_time() -> None:
    runs = make_runs({}, {**FAILED, "ended_at": START + timedelta(hours=2)})  # 20 minutes and an hour
    assert costs(runs, record(run_id(0), run_id(1))) == [
        (pytest.approx(2.96 / 4), "rental", 0.0),
        (pytest.approx(2.96 * 3 / 4), "rental", pytest.approx(2.96 * 3 / 4)),
    ]


def test_a_rental_that_never_started_costs_its_run_all_of_it() -> None:
    nothing = {"started_at": None, "ended_at": None, "last_stored_at": None, "outcome": "never_started"}
    assert costs(make_runs(nothing), record(run_id(0))) == [(pytest.approx(2.96), "rental", pytest.approx(2.96))]


def test_a_rental_whose_end_nobody_recorded_is_not_shared_out() -> None:
    assert costs(make_runs({}), record(run_id(0), ended_at=None)) == [(pytest.approx(0.296 / 3), "ended_at", 0.0)]


@pytest.mark.parametrize("change", [{"price_usd_per_hour": None}, {"started_at": None}])
def test_without_a_price_or_a_time_no_dollars_are_known_lost_or_not(change: Mapping[str, Any]) -> None:
    assert costs(make_runs(change)) == [(None, None, None)]
