"""The whole line, on real bundles in a folder: what comes in comes out, once, with its state and its reason."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bench.arrow import arrow_schema, arrow_type
from bench.keys import bundle_prefix
from harvest.contract import PUBLISHED_TABLES
from harvest.engine import each_result, local_processes
from harvest.errors import StoreUnreadable
from tests.builders import START
from tests.harvest.bundles import (
    AS_OF,
    POLICY,
    file_bytes,
    granted,
    harvest_once,
    only_run,
    published,
    put,
    put_launch,
    put_usual,
    reject_reasons,
    run_id,
    sealed_bundle,
    without,
)

RENTAL = run_id(-1)


def test_a_usual_run_comes_out_whole(tmp_path: Path) -> None:
    put_usual(tmp_path / "s")
    summary = harvest_once(tmp_path / "s", tmp_path / "d")
    row = only_run(tmp_path / "d")
    assert (summary.exit_code, row["outcome"], row["bundle_state"], row["is_scored"]) == (0, "passed", "finished", True)
    assert (row["rate_proofs_per_hour"], row["min_rate_from_price_proofs_per_hour"]) == (40.0, 37.0)
    assert row["usd_spent"] == pytest.approx(0.296 / 3)
    assert (row["usd_lost"], row["object_count"], row["last_stage"]) == (0.0, 8, "benchmark")
    assert (row["bundle_key"], row["bad_tables"], row["flags"]) == (bundle_prefix(run_id()), [], [])
    assert published(tmp_path / "d", "logs")["text"].to_list()[1:] == ["cuzk-daemon starting", "line 2", "line 3"]
    assert published(tmp_path / "d", "stages")["stage"].to_list() == ["daemon", "benchmark"]
    assert [published(tmp_path / "d", name).height for name in ("proofs", "telemetry", "rejects")] == [12, 2, 0]
    assert published(tmp_path / "d", "machines")["machine_id"].to_list() == [4242]


def test_every_published_file_has_exactly_the_columns_and_metadata_of_its_table(tmp_path: Path) -> None:
    put_usual(tmp_path / "s")
    put(tmp_path / "s", without(sealed_bundle(run_id(5)), "closing"), AS_OF - timedelta(minutes=5), AS_OF)
    harvest_once(tmp_path / "s", tmp_path / "d")
    for name, table in PUBLISHED_TABLES.items():
        paths = [*(tmp_path / "d" / name).glob("date=*/*.parquet"), *(tmp_path / "d").glob(f"{name}.parquet")]
        assert paths, name
        for path in paths:
            schema = pq.read_schema(path)
            assert schema.names == list(table.column_names)
            assert [each.type for each in schema] == [arrow_type(each.parsed_type) for each in table.columns]
            assert [each.nullable for each in schema] == [each.nullable for each in arrow_schema(table)]
            assert schema.metadata[b"table"] == name.encode()
            assert schema.metadata[b"schema_version"] == b"1"
            assert set(schema.metadata) == {b"schema_version", b"table", b"producer"}


def test_a_run_that_fell_silent_has_vanished_and_keeps_what_arrived(tmp_path: Path) -> None:
    put(tmp_path / "s", without(sealed_bundle(run_id()), "closing", "stages", "proofs"))
    assert harvest_once(tmp_path / "s", tmp_path / "d").exit_code == 0
    row = only_run(tmp_path / "d")
    assert (row["bundle_state"], row["outcome"], row["last_stage"]) == ("vanished", "vanished", "benchmark")
    assert (row["ended_at"], row["rate_proofs_per_hour"], row["usd_spent_source"]) == (None, None, "last_stored_at")
    assert published(tmp_path / "d", "stages")["end_kind"].to_list() == ["lost"]
    assert published(tmp_path / "d", "logs").height == 4


def test_a_run_is_alive_until_its_deadline_and_over_after_it(tmp_path: Path) -> None:
    put(tmp_path / "s", without(sealed_bundle(run_id()), "closing", "stages", "proofs"))
    silent_since = START + timedelta(minutes=20)
    for minutes, places in ((10, (0, 1)), (10.01, (1, 0))):
        harvest_once(tmp_path / "s", tmp_path / "d", silent_since + timedelta(minutes=minutes))
        assert tuple(published(tmp_path / "d", name).height for name in ("runs", "in_flight")) == places


def test_a_run_may_lengthen_its_deadline_by_its_own_interval_up_to_an_hour(tmp_path: Path) -> None:
    opening = {"longest_interval_s": 1500.0}
    put(tmp_path / "s", without(sealed_bundle(run_id(), opening=opening), "closing", "stages", "proofs"))
    for minutes, vanished_count in ((20 + 49, 0), (20 + 51, 1)):
        harvest_once(tmp_path / "s", tmp_path / "d", START + timedelta(minutes=minutes))
        assert published(tmp_path / "d", "runs").height == vanished_count


def test_a_run_in_flight_shows_its_stage_and_its_newest_sign_of_life(tmp_path: Path) -> None:
    put(tmp_path / "s", without(sealed_bundle(run_id()), "closing", "stages", "proofs"))
    harvest_once(tmp_path / "s", tmp_path / "d", START + timedelta(minutes=21))
    (row,) = published(tmp_path / "d", "in_flight").to_dicts()
    assert (row["run_id"], row["stage"], row["machine_id"]) == (run_id(), "benchmark", 4242)
    assert (row["last_stored_at"], row["proofs_requested"]) == (START + timedelta(minutes=20), 12)
    assert row["log_bytes"] > 50
    assert published(tmp_path / "d", "logs").is_empty()


def test_a_closing_that_comes_late_turns_a_vanished_run_into_a_finished_one(tmp_path: Path) -> None:
    objects = sealed_bundle(run_id())
    put(tmp_path / "s", objects[:-1])
    harvest_once(tmp_path / "s", tmp_path / "d")
    assert only_run(tmp_path / "d")["bundle_state"] == "vanished"
    put(tmp_path / "s", objects[-1:], AS_OF + timedelta(minutes=1))
    harvest_once(tmp_path / "s", tmp_path / "d", AS_OF + timedelta(hours=1))
    assert (only_run(tmp_path / "d")["bundle_state"], only_run(tmp_path / "d")["outcome"]) == ("finished", "passed")
    assert published(tmp_path / "d", "logs").height == 4


def test_a_closing_partial_alone_is_an_interrupted_run(tmp_path: Path) -> None:
    objects = sealed_bundle(run_id(), closing={"end_reason": "terminated", "end_signal": 15})
    closing = objects[-1]
    partial = replace(closing, key=closing.key.replace("closing", "closing-partial"), table="closing-partial")
    put(tmp_path / "s", [*without(objects, "closing"), partial])
    assert harvest_once(tmp_path / "s", tmp_path / "d").exit_code == 0
    row = only_run(tmp_path / "d")
    assert (row["bundle_state"], row["outcome"], row["end_signal"]) == ("closing_partial", "interrupted", 15)


def test_a_rental_without_a_bundle_waits_and_then_never_started(tmp_path: Path) -> None:
    put_launch(tmp_path / "s", RENTAL, "granted", granted([run_id(), run_id(1)]))
    put_launch(tmp_path / "s", RENTAL, "rented", {"instance_id": 7, "rented_at": START.isoformat()})
    harvest_once(tmp_path / "s", tmp_path / "d", START + timedelta(hours=2))
    (waiting,) = published(tmp_path / "d", "in_flight").to_dicts()
    assert (waiting["run_id"], waiting["started_at"], waiting["stage"]) == (run_id(), None, None)
    harvest_once(tmp_path / "s", tmp_path / "d", START + timedelta(hours=2, seconds=1))
    row = only_run(tmp_path / "d")
    assert (row["run_id"], row["bundle_state"], row["outcome"]) == (run_id(), "never_started", "never_started")
    assert (row["instance_id"], row["machine_id"], row["stored_bytes"]) == (7, 4242, 0)
    assert published(tmp_path / "d", "in_flight").is_empty()


def test_the_launch_record_says_which_machine_it_was_and_at_what_price(tmp_path: Path) -> None:
    put_usual(tmp_path / "s")
    record = granted([run_id()], machine_id=7, price_usd_per_hour=0.4)
    put_launch(tmp_path / "l", RENTAL, "granted", record)
    harvest_once(tmp_path / "s", tmp_path / "d", launches=tmp_path / "l")
    row = only_run(tmp_path / "d")
    assert (row["machine_id"], row["machine_id_source"], row["rental_id"]) == (7, "grant", RENTAL)
    assert (row["price_usd_per_hour"], row["flags"]) == (0.4, ["identity_mismatch"])
    assert published(tmp_path / "d", "machines")["machine_id"].to_list() == [7]


def test_a_record_that_comes_later_is_taken_into_account_though_the_bundle_is_the_same(tmp_path: Path) -> None:
    put_usual(tmp_path / "s")
    harvest_once(tmp_path / "s", tmp_path / "d")
    put_launch(tmp_path / "s", RENTAL, "granted", granted([run_id()], machine_id=7))
    harvest_once(tmp_path / "s", tmp_path / "d")
    assert only_run(tmp_path / "d")["machine_id"] == 7


def test_an_object_that_was_stored_after_as_of_is_not_there_yet(tmp_path: Path) -> None:
    put_usual(tmp_path / "s", 0)
    put_usual(tmp_path / "s", 1)
    harvest_once(tmp_path / "s", tmp_path / "d", START + timedelta(minutes=40))
    assert published(tmp_path / "d", "runs")["run_id"].to_list() == [run_id(0)]


def test_a_second_harvest_of_the_same_gives_the_same_bytes_and_nothing_double(tmp_path: Path) -> None:
    for number in range(3):
        put_usual(tmp_path / "s", number)
    put(tmp_path / "s", without(sealed_bundle(run_id(4)), "closing", "logs-00000"), AS_OF - timedelta(minutes=8), AS_OF)
    put_launch(tmp_path / "s", RENTAL, "granted", granted([run_id(1)]))
    first = harvest_once(tmp_path / "s", tmp_path / "d")
    before = file_bytes(tmp_path / "d")
    second = harvest_once(tmp_path / "s", tmp_path / "d")
    assert file_bytes(tmp_path / "d") == before
    assert (first.exit_code, second.exit_code) == (3, 3)
    assert (first.harvest["accepted_count"], second.harvest["accepted_count"]) == (24, 0)
    assert published(tmp_path / "d", "harvests").height == 2


def test_two_harvests_one_after_another_give_the_bytes_of_one(tmp_path: Path) -> None:
    put_usual(tmp_path / "s", 0, closing={"rate_proofs_per_hour": 30.0})
    put(tmp_path / "s", without(sealed_bundle(run_id(1)), "closing"), START + timedelta(hours=1))
    harvest_once(tmp_path / "s", tmp_path / "bit by bit", START + timedelta(hours=1, minutes=25))
    for number in (3, 2):
        put_usual(tmp_path / "s", number)
    harvest_once(tmp_path / "s", tmp_path / "bit by bit")
    harvest_once(tmp_path / "s", tmp_path / "at once")
    assert file_bytes(tmp_path / "bit by bit") == file_bytes(tmp_path / "at once")


def test_a_harvest_as_of_an_earlier_instant_gives_what_was_there_then(tmp_path: Path) -> None:
    for number in range(3):
        put_usual(tmp_path / "s", number)
    harvest_once(tmp_path / "s", tmp_path / "d")
    harvest_once(tmp_path / "s", tmp_path / "d", START + timedelta(hours=1, minutes=30))
    harvest_once(tmp_path / "s", tmp_path / "fresh", START + timedelta(hours=1, minutes=30))
    assert published(tmp_path / "d", "runs").height == 2
    assert file_bytes(tmp_path / "d") == file_bytes(tmp_path / "fresh")


def test_a_bundle_that_comes_later_joins_the_others(tmp_path: Path) -> None:
    put_usual(tmp_path / "s", 0)
    harvest_once(tmp_path / "s", tmp_path / "d")
    put_usual(tmp_path / "s", 1)
    summary = harvest_once(tmp_path / "s", tmp_path / "d")
    assert published(tmp_path / "d", "runs")["run_id"].to_list() == [run_id(0), run_id(1)]
    assert published(tmp_path / "d", "logs")["run_id"].unique().sort().to_list() == [run_id(0), run_id(1)]
    assert summary.judged_now == {"passed": 1}


def test_another_policy_judges_all_runs_again(tmp_path: Path) -> None:
    put(tmp_path / "s", without(sealed_bundle(run_id()), "closing"))
    as_of = START + timedelta(minutes=40)
    harvest_once(tmp_path / "s", tmp_path / "d", as_of)
    assert only_run(tmp_path / "d")["bundle_state"] == "vanished"
    harvest_once(tmp_path / "s", tmp_path / "d", as_of, policy=replace(POLICY, vanished_after_s=7200.0))
    assert published(tmp_path / "d", "in_flight").height == 1
    assert published(tmp_path / "d", "logs").is_empty()


def test_an_empty_store_is_no_error_and_says_so(tmp_path: Path) -> None:
    summary = harvest_once(tmp_path / "s", tmp_path / "d")
    assert (summary.exit_code, summary.is_store_empty) == (0, True)
    assert "The store is empty" in summary.as_text()
    assert published(tmp_path / "d", "runs").is_empty()


def test_a_store_that_became_empty_changes_nothing(tmp_path: Path) -> None:
    put_usual(tmp_path / "s")
    harvest_once(tmp_path / "s", tmp_path / "d")
    before = file_bytes(tmp_path / "d")
    with pytest.raises(StoreUnreadable, match="holds nothing now, but runs were published from it: 1"):
        harvest_once(tmp_path / "not mounted", tmp_path / "d")
    assert file_bytes(tmp_path / "d") == before


def test_a_harvest_writes_nothing_into_the_store(tmp_path: Path) -> None:
    put_usual(tmp_path / "s")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "s").rglob("*")}
    harvest_once(tmp_path / "s", tmp_path / "d")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "s").rglob("*")} == before


def test_every_run_stands_in_exactly_one_place(tmp_path: Path) -> None:
    put_usual(tmp_path / "s", 0)
    put(tmp_path / "s", without(sealed_bundle(run_id(1)), "closing"), START + timedelta(hours=1))
    put(tmp_path / "s", without(sealed_bundle(run_id(2)), "closing"), AS_OF - timedelta(minutes=25), AS_OF)
    damaged = [replace(each, data=b"PAR1 torn") for each in sealed_bundle(run_id(3))]
    put(tmp_path / "s", damaged, START + timedelta(hours=3))
    put_launch(tmp_path / "s", run_id(-1), "granted", granted([run_id(4)]))
    early = {"expires_at": (START + timedelta(hours=1)).isoformat()}
    put_launch(tmp_path / "s", run_id(-2), "granted", granted([run_id(5), run_id(6)], **early))
    summary = harvest_once(tmp_path / "s", tmp_path / "d")
    states = dict(published(tmp_path / "d", "runs").select("run_id", "bundle_state").iter_rows())
    states |= dict.fromkeys(published(tmp_path / "d", "in_flight")["run_id"], "in_flight")
    assert states == {
        run_id(0): "finished",
        run_id(1): "vanished",
        run_id(2): "in_flight",
        run_id(3): "quarantined",
        run_id(4): "in_flight",
        run_id(5): "never_started",
    }
    counted = ("finished_count", "vanished_count", "quarantined_count", "never_started_count", "in_flight_count")
    assert [summary.harvest[name] for name in counted] == [1, 1, 1, 1, 2]
    assert summary.harvest["unlaunched_count"] == 4
    assert len(reject_reasons(tmp_path / "d")) == 8


def doubled_or_dead(number: int) -> int:
    """Work for a worker process; 3 kills it."""
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number


def given_up(number: int, why: str) -> int:
    return -number


def test_a_task_that_kills_its_worker_is_given_up_and_all_others_are_done() -> None:
    results = each_result(local_processes, doubled_or_dead, range(8), given_up)
    assert sorted(results) == [-3, 0, 2, 4, 8, 10, 12, 14]
