from __future__ import annotations

import csv
import io
import json
from datetime import timedelta
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from harvest.contract import BAD_MACHINES, RUNS
from harvest.scoring.badlist import badlist_csv, badlist_json
from harvest.scoring.cohort import with_cohort_id
from harvest.scoring.reason import two_decimals
from harvest.tables import conform, empty_frame, frame_bytes
from tests.builders import START, make_frame
from tests.harvest.fleets import (
    AS_OF,
    HARDWARE_FAILURE,
    POLICY,
    SUBJECT,
    UNEXPLAINED_FAILURE,
    Change,
    bad_list,
    on_day,
    runs_of,
    subject,
    subject_beside_usual,
    usual_machines,
)

SLOW: Change = {"outcome": "too_slow", "rate_proofs_per_hour": 28.4}
PASSED: Change = {}


def row(*changes: Change) -> dict[str, Any]:
    """Return the subject's row of the list with these runs, a day apart, beside six usual machines."""
    return subject(bad_list(subject_beside_usual(*changes)))


def test_only_bad_machines_and_those_on_watch_are_listed() -> None:
    bad = [on_day(day, **HARDWARE_FAILURE) for day in (0, 1, 2)]
    watched = [{"machine_id": 77, **SLOW}] * 3
    listed = bad_list(runs_of(*usual_machines(), *bad, *watched))
    assert listed.select("machine_id", "state").rows() == [(77, "watch"), (SUBJECT, "bad")]


def test_one_failure_alone_lists_nobody() -> None:
    assert bad_list(subject_beside_usual(HARDWARE_FAILURE, PASSED, PASSED)).is_empty()


def test_a_listed_failure_is_told_with_its_numbers() -> None:
    assert row(HARDWARE_FAILURE, HARDWARE_FAILURE, *[PASSED] * 4)["reason"] == (
        "2 of 6 runs failed by the machine's fault (gpu_fell_off_bus); median rate 1.00 of its cohort's,"
        " 4 measured runs."
    )


def test_a_slow_machine_is_told_with_its_ratio() -> None:
    assert row(SLOW, SLOW, SLOW)["reason"] == "Median rate 0.71 of its cohort's, 3 measured runs."


def test_unexplained_failures_are_not_told_as_the_machine_s_fault() -> None:
    assert row(UNEXPLAINED_FAILURE, UNEXPLAINED_FAILURE, PASSED)["reason"] == (
        "2 of 3 runs failed and nothing explains why; median rate 1.00 of its cohort's, 1 measured run."
    )


def test_a_machine_that_was_never_measured_is_told_so() -> None:
    assert row(*[HARDWARE_FAILURE] * 3)["reason"].endswith("; no rate was measured.")


def test_a_blamed_failure_without_a_cause_is_told_so() -> None:
    assert "(cause not known)" in row(*[{**HARDWARE_FAILURE, "cause": None}] * 3)["reason"]


def test_a_weak_cohort_is_told_beside_the_ratio() -> None:
    listed = subject(bad_list(runs_of(*(on_day(day, **HARDWARE_FAILURE) for day in range(3)), on_day(4))))
    assert listed["reason"].endswith("1 measured run, in a cohort of too few machines to judge by.")


def test_since_is_when_the_second_independent_failure_was_stored() -> None:
    days = (0, 0.5, 1.5, 7)
    listed = row(*(on_day(day, **HARDWARE_FAILURE) for day in days))
    assert listed["since"] == START + timedelta(days=1.5, minutes=20)


def test_since_of_a_slow_machine_is_when_it_had_runs_enough() -> None:
    assert row(SLOW, SLOW, SLOW, SLOW)["since"] == START + timedelta(days=2, minutes=20)


def test_it_expires_after_its_newest_evidence_and_not_after_its_newest_run() -> None:
    listed = row(HARDWARE_FAILURE, HARDWARE_FAILURE, PASSED, PASSED)
    assert listed["expires_at"] == START + timedelta(days=1, minutes=20) + timedelta(days=POLICY.listing_days)


def test_a_machine_leaves_the_list_at_the_time_it_was_told() -> None:
    runs = subject_beside_usual(HARDWARE_FAILURE, HARDWARE_FAILURE, PASSED)
    expires_at = subject(bad_list(runs))["expires_at"]
    assert bad_list(runs, expires_at - timedelta(seconds=1)).height == 1
    assert bad_list(runs, expires_at).is_empty()


def test_what_would_clear_a_slow_machine_is_a_usual_rate() -> None:
    assert row(SLOW, SLOW, SLOW)["would_clear"] == (
        "Leaves by itself on 2027-03-04 if no further run speaks against it; a median rate of at least 0.95 of"
        " its cohort's clears it sooner."
    )


def test_a_usual_rate_does_not_clear_a_failing_machine() -> None:
    assert row(*[HARDWARE_FAILURE] * 3)["would_clear"] == (
        "Leaves by itself on 2027-03-04 if no further run speaks against it."
    )


def test_the_evidence_is_the_runs_that_speak_against_it() -> None:
    runs = subject_beside_usual(HARDWARE_FAILURE, PASSED, HARDWARE_FAILURE, UNEXPLAINED_FAILURE)
    failed = runs.filter(pl.col("outcome") != "passed")["run_id"].sort().to_list()
    assert subject(bad_list(runs))["run_ids"] == failed


def test_failures_of_our_own_software_are_no_evidence_and_not_its_top_failure() -> None:
    software = {**UNEXPLAINED_FAILURE, "blame": "software", "fingerprint_id": "bb22"}
    listed = row(HARDWARE_FAILURE, HARDWARE_FAILURE, *[software] * 5)
    assert (listed["top_fingerprint_id"], len(listed["run_ids"])) == ("aa11", 2)


def test_a_machine_has_one_row_with_the_worst_of_its_cohorts() -> None:
    two_gpus = [on_day(day + 20, **HARDWARE_FAILURE, num_gpus=2) for day in range(3)]
    listed = bad_list(subject_beside_usual(SLOW, SLOW, SLOW, *two_gpus))
    assert listed.height == 1
    assert (subject(listed)["state"], subject(listed)["cohort_count"]) == ("bad", 2)


def test_the_order_of_the_runs_changes_nothing() -> None:
    runs = subject_beside_usual(HARDWARE_FAILURE, SLOW, HARDWARE_FAILURE, SLOW)
    assert_frame_equal(bad_list(runs.sort("run_id", descending=True)), bad_list(runs), check_exact=True)


def test_the_list_can_be_written_as_its_table() -> None:
    listed = bad_list(subject_beside_usual(*[HARDWARE_FAILURE] * 3))
    assert frame_bytes(listed, BAD_MACHINES, "test")


def test_no_runs_give_an_empty_list_and_whole_exports() -> None:
    listed = bad_list(with_cohort_id(empty_frame(RUNS)))
    assert_frame_equal(listed, empty_frame(BAD_MACHINES))
    assert csv_rows(listed) == []
    assert json.loads(badlist_json(listed, AS_OF, POLICY))["machines"] == []


def csv_rows(listed: pl.DataFrame) -> list[dict[str, str]]:
    text = badlist_csv(listed, AS_OF, POLICY).decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_both_exports_say_until_when_they_hold() -> None:
    listed = bad_list(subject_beside_usual(SLOW, SLOW, SLOW))
    expected = ("2026-12-02T08:00:00.000000Z", "2026-12-02T10:00:00.000000Z")
    whole = json.loads(badlist_json(listed, AS_OF, POLICY))
    (cells,) = csv_rows(listed)
    assert (whole["as_of"], whole["valid_until"]) == expected
    assert (cells["as_of"], cells["valid_until"]) == expected


def test_the_exports_hold_the_table_s_columns_in_its_order() -> None:
    listed = bad_list(subject_beside_usual(SLOW, SLOW, SLOW))
    (machine,) = json.loads(badlist_json(listed, AS_OF, POLICY))["machines"]
    (cells,) = csv_rows(listed)
    assert tuple(machine) == BAD_MACHINES.column_names
    assert tuple(cells) == ("as_of", "valid_until", *BAD_MACHINES.column_names)


def test_null_is_null_in_json_and_an_empty_cell_in_csv() -> None:
    listed = bad_list(subject_beside_usual(SLOW, SLOW, SLOW))
    assert json.loads(badlist_json(listed, AS_OF, POLICY))["machines"][0]["bad_probability"] is None
    assert csv_rows(listed)[0]["bad_probability"] == ""


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_a_csv_cell_is_never_a_formula(start: str) -> None:
    hostile = f'{start}HYPERLINK("http://x";"y")'
    listed = make_frame(BAD_MACHINES, {"machine_id": 1, "reason": hostile, "run_ids": [hostile]})
    (cells,) = csv_rows(conform(listed, BAD_MACHINES))
    assert (cells["reason"], cells["run_ids"]) == ("'" + hostile, "'" + hostile)


def test_text_with_quotes_commas_and_new_lines_stays_one_cell() -> None:
    text = 'a "quoted", cell\nwith two lines'
    listed = make_frame(BAD_MACHINES, {"machine_id": 1, "reason": text, "run_ids": []})
    assert csv_rows(listed)[0]["reason"] == text


@pytest.mark.parametrize(
    ("ratio", "text"), [(0.949, "0.94"), (0.29, "0.29"), (1.0, "1.00"), (0.004, "0.00"), (12.5, "12.50")]
)
def test_a_ratio_is_cut_so_that_it_never_reads_as_the_threshold_it_is_below(ratio: float, text: str) -> None:
    assert pl.select(two_decimals(pl.lit(ratio))).item() == text
