from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from harvest.contract import MACHINES, RUNS
from harvest.scoring.cohort import cohorts, with_cohort_id
from harvest.scoring.score import machines
from harvest.tables import empty_frame
from tests.harvest.fleets import (
    HARDWARE_FAILURE,
    NO_RATE,
    POLICY,
    SUBJECT,
    UNEXPLAINED_FAILURE,
    Change,
    on_day,
    runs_of,
    scored,
    subject,
    subject_beside_usual,
    usual_machines,
)

SLOW: Change = {"outcome": "too_slow", "rate_proofs_per_hour": 36.0}
MUCH_SLOWER: Change = {"outcome": "too_slow", "rate_proofs_per_hour": 24.0}
PASSED: Change = {}


def state(*changes: Change) -> str:
    """Return the state of the subject with these runs, a day apart, beside six usual machines."""
    return str(subject(scored(subject_beside_usual(*changes)))["state"])


def test_each_run_is_passed_slow_or_failed() -> None:
    runs = subject_beside_usual(PASSED, SLOW, HARDWARE_FAILURE, UNEXPLAINED_FAILURE, {**NO_RATE, "outcome": None})
    row = subject(scored(runs))
    assert (row["run_count"], row["passed_count"], row["slow_count"], row["failed_count"]) == (5, 1, 1, 3)
    assert (row["blamed_failure_count"], row["vanished_count"], row["measured_count"]) == (1, 1, 2)


def test_a_ratio_is_given_from_the_first_measured_rate_on() -> None:
    row = subject(scored(subject_beside_usual({"rate_proofs_per_hour": 30.0})))
    assert (row["rate_ratio"], row["measured_count"], row["state"]) == (0.75, 1, "unknown")


def test_a_missing_rate_is_not_a_rate_of_zero() -> None:
    row = subject(scored(subject_beside_usual(PASSED, *[{**NO_RATE, "outcome": "incomplete", "blame": "none"}] * 4)))
    assert (row["rate_ratio"], row["measured_count"]) == (1.0, 1)


def test_a_machine_without_a_rate_has_no_ratio() -> None:
    assert subject(scored(subject_beside_usual(NO_RATE)))["rate_ratio"] is None


def test_the_median_counts_and_not_the_best_run() -> None:
    assert subject(scored(subject_beside_usual(SLOW, SLOW, PASSED)))["rate_ratio"] == 0.9


def test_what_this_version_does_not_work_out_is_null() -> None:
    row = subject(scored(subject_beside_usual(PASSED, PASSED, PASSED)))
    unknown = ("rate_ratio_low", "rate_ratio_high", "bad_probability", "failure_ratio", "effective_run_count")
    assert {row[name] for name in unknown} == {None}


@pytest.mark.parametrize("run", [PASSED, SLOW, HARDWARE_FAILURE], ids=["passed", "slow", "failed"])
def test_below_three_runs_a_machine_is_unknown(run: Change) -> None:
    assert state(run, run) == "unknown"


def test_three_passed_runs_at_the_usual_rate_are_good() -> None:
    assert state(PASSED, PASSED, PASSED) == "good"


def test_a_machine_that_never_passed_is_not_good() -> None:
    software = {**NO_RATE, "outcome": "failed", "blame": "software"}
    assert state(software, software, software) == "unknown"


def test_a_machine_more_than_five_percent_slow_is_on_watch() -> None:
    assert state(SLOW, SLOW, SLOW) == "watch"


def test_a_machine_far_slower_in_three_runs_is_bad() -> None:
    assert state(MUCH_SLOWER, MUCH_SLOWER, MUCH_SLOWER) == "bad"


def test_two_measured_rates_are_too_few_for_bad() -> None:
    assert state(MUCH_SLOWER, MUCH_SLOWER, {**NO_RATE, "outcome": "failed", "blame": "software"}) == "watch"


def test_two_failures_by_its_fault_a_day_apart_are_bad() -> None:
    assert state(HARDWARE_FAILURE, HARDWARE_FAILURE, PASSED, PASSED) == "bad"


def test_two_failures_by_its_fault_within_a_day_are_one_witness() -> None:
    runs = [on_day(0, **HARDWARE_FAILURE), on_day(0.9, **HARDWARE_FAILURE), PASSED, PASSED]
    assert state(*runs) == "watch"


def test_failures_every_twelve_hours_are_independent_a_day_apart() -> None:
    assert state(*(on_day(day, **HARDWARE_FAILURE) for day in (0, 0.5, 1.0))) == "bad"


def test_the_second_of_two_independent_failures_may_be_any_later_one() -> None:
    assert state(*(on_day(day, **HARDWARE_FAILURE) for day in (0, 0.2, 0.4, 5))) == "bad"


@pytest.mark.parametrize("passed_count", [2, 5])
def test_one_failure_alone_never_lists_a_machine_not_even_by_its_fault(passed_count: int) -> None:
    assert state(HARDWARE_FAILURE, *[PASSED] * passed_count) == "unknown"


def test_one_failure_of_unknown_cause_among_passes_changes_nothing() -> None:
    assert state(UNEXPLAINED_FAILURE, PASSED, PASSED) == "good"


def test_a_failure_by_its_fault_and_an_unexplained_one_put_it_on_watch() -> None:
    assert state(HARDWARE_FAILURE, UNEXPLAINED_FAILURE, PASSED, PASSED, PASSED) == "watch"


def test_unexplained_failures_in_half_of_its_runs_put_it_on_watch() -> None:
    assert state(UNEXPLAINED_FAILURE, UNEXPLAINED_FAILURE, PASSED, PASSED) == "watch"
    assert state(UNEXPLAINED_FAILURE, UNEXPLAINED_FAILURE, PASSED, PASSED, PASSED) == "good"


@pytest.mark.parametrize("blame", ["software", "configuration", "environment", "benchmark_script", "none"])
def test_failures_that_are_not_its_fault_never_list_a_machine(blame: str) -> None:
    failure = {**NO_RATE, "outcome": "failed", "blame": blame}
    assert state(*[failure] * 9, PASSED) == "good"


def test_a_slow_machine_beside_too_few_others_is_not_listed_and_not_called_good() -> None:
    runs = runs_of(*usual_machines(3), *(on_day(day, rate_proofs_per_hour=8.0) for day in range(4)))
    assert subject(scored(runs))["state"] == "unknown"


@given(st.lists(st.floats(0.1, 1000), min_size=3, max_size=6))
@settings(max_examples=15, deadline=None)
def test_a_machine_alone_in_its_cohort_is_never_listed_on_rate(rates: list[float]) -> None:
    row = subject(scored(runs_of(*({"rate_proofs_per_hour": rate} for rate in rates))))
    assert (row["rate_ratio"], row["state"]) == (1.0, "good")


RUN_KINDS = st.sampled_from([PASSED, SLOW, MUCH_SLOWER, HARDWARE_FAILURE, UNEXPLAINED_FAILURE])
FLEETS = st.lists(st.tuples(st.integers(1, 6), RUN_KINDS), max_size=30)


def fleet(drawn: list[tuple[int, Change]]) -> pl.DataFrame:
    return runs_of(*({**change, "machine_id": machine_id} for machine_id, change in drawn))


@given(FLEETS, st.randoms())
@settings(max_examples=15, deadline=None)
def test_the_order_of_the_runs_changes_nothing(drawn: list[tuple[int, Change]], random: Any) -> None:
    runs = fleet(drawn)
    order = random.sample(range(runs.height), runs.height)
    assert_frame_equal(scored(runs[order]), scored(runs), check_exact=True)


@given(FLEETS, st.floats(0.01, 100))
@settings(max_examples=15, deadline=None)
def test_multiplying_all_rates_of_a_cohort_changes_no_ratio_and_no_state(
    drawn: list[tuple[int, Change]], factor: float
) -> None:
    runs = fleet(drawn)
    faster = runs.with_columns(pl.col("rate_proofs_per_hour") * factor)
    told = ("machine_id", "rate_ratio", "state")
    assert_frame_equal(scored(faster).select(told), scored(runs).select(told), check_exact=True)


@given(FLEETS, st.integers(1, 3))
@settings(max_examples=15, deadline=None)
def test_who_owns_the_machines_plays_no_part(drawn: list[tuple[int, Change]], host_count: int) -> None:
    runs = fleet(drawn)
    owned = runs.with_columns(host_id=pl.col("machine_id") % host_count)
    assert_frame_equal(scored(owned).drop("host_id"), scored(runs).drop("host_id"), check_exact=True)


def test_runs_of_an_unknown_machine_are_nobodys() -> None:
    assert scored(runs_of({"machine_id": None})).is_empty()


def test_runs_that_are_not_scored_count_nowhere() -> None:
    row = subject(scored(subject_beside_usual(PASSED, {**HARDWARE_FAILURE, "is_scored": False})))
    assert (row["run_count"], row["failed_count"]) == (1, 0)


def test_a_machine_has_a_row_for_each_of_its_cohorts() -> None:
    rows = scored(runs_of({}, {"num_gpus": 2}))
    assert rows["machine_id"].to_list() == [SUBJECT, SUBJECT]


def test_what_is_told_of_a_machine_is_its_newest_run_s() -> None:
    row = subject(scored(runs_of({"host_id": 1, "geolocation": "SE"}, {"host_id": 2, "geolocation": "NO"})))
    assert (row["host_id"], row["geolocation"]) == (2, "NO")


def test_a_run_of_which_nothing_was_stored_is_seen_at_the_time_of_its_id() -> None:
    row = subject(scored(runs_of({"first_stored_at": None, "last_stored_at": None})))
    assert row["first_seen_at"] == row["last_seen_at"] == runs_of({})["started_at"][0]


def test_no_runs_give_no_machines() -> None:
    runs = with_cohort_id(empty_frame(RUNS))
    assert_frame_equal(machines(runs, cohorts(runs, POLICY), POLICY), empty_frame(MACHINES))
