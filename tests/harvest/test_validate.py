"""Damaged, forged and foreign objects: each is refused with its reason, and costs only itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.arrow import file_metadata, parquet_bytes, table_from_rows
from bench.contract import BUNDLE_TABLES
from bench.keys import bundle_prefix, object_key
from bench.seal import SealedObject, seal_rows
from harvest.contract import RejectReason
from harvest.validate import Listed, Untrusted, trusted_table
from tests.builders import START
from tests.harvest.bundles import (
    altered,
    event,
    harvest_once,
    line,
    object_named,
    only_run,
    published,
    put,
    reject_reasons,
    run_id,
    sample,
    sealed_bundle,
    sealed_closing,
    stage_row,
    usual_opening,
    without,
)

ID = run_id()


def harvested(tmp_path: Path, objects: Sequence[SealedObject]) -> Path:
    """Store the objects, harvest, and return the data folder; something was refused."""
    put(tmp_path / "s", objects)
    assert harvest_once(tmp_path / "s", tmp_path / "d").exit_code == 3
    return tmp_path / "d"


def test_a_torn_parquet_file_is_quarantined_and_the_rest_is_kept(tmp_path: Path) -> None:
    objects = without(sealed_bundle(ID), "closing")
    torn = object_named(objects, "logs-00001").data[:-20]
    data = harvested(tmp_path, altered(objects, "logs-00001", torn))
    assert reject_reasons(data) == [("logs-00001.parquet", "bad_parquet")]
    assert only_run(data)["bad_tables"] == ["logs"]
    assert published(data, "logs")["seq"].to_list() == [0, 1]
    assert published(data, "proofs").height == 12


def test_a_changed_byte_is_found_by_the_closings_sha256(tmp_path: Path) -> None:
    objects = sealed_bundle(ID)
    whole = object_named(objects, "proofs").data
    changed = whole[:60] + bytes([whole[60] ^ 1]) + whole[61:]
    data = harvested(tmp_path, altered(objects, "proofs", changed))
    assert reject_reasons(data) == [("proofs.parquet", "sha_mismatch")]
    (reject,) = published(data, "rejects").to_dicts()
    assert (reject["run_id"], reject["table"], reject["bytes"]) == (ID, "proofs", len(whole))
    assert len(reject["sha256"]) == 64
    assert reject["stored_at"] is not None
    assert (only_run(data)["outcome"], only_run(data)["rate_proofs_per_hour"]) == ("passed", 40.0)


def test_a_changed_byte_without_a_closing_is_found_by_the_pages_checksum(tmp_path: Path) -> None:
    objects = without(sealed_bundle(ID), "closing")
    whole = object_named(objects, "logs-00001").data
    changed = whole[:30] + bytes([whole[30] ^ 1]) + whole[31:]
    data = harvested(tmp_path, altered(objects, "logs-00001", changed))
    assert reject_reasons(data) == [("logs-00001.parquet", "bad_parquet")]


def test_an_object_that_the_closing_lists_and_the_store_has_not_is_told_once(tmp_path: Path) -> None:
    data = harvested(tmp_path, without(sealed_bundle(ID), "logs-00000"))
    assert reject_reasons(data) == [("logs-00000.parquet", "missing_object")]
    assert published(data, "logs")["seq"].to_list() == [2, 3]


def test_stages_that_are_missing_are_rebuilt_from_what_the_runner_told(tmp_path: Path) -> None:
    told = [
        event(0, "stage_started", stage="benchmark", stage_index=0),
        event(1, "stage_ended", **_json_stage(exit_code=1, wait_status=256)),
    ]
    data = harvested(tmp_path, without(sealed_bundle(ID, log_parts=[told]), "stages"))
    (stage,) = published(data, "stages").to_dicts()
    assert (stage["stage"], stage["exit_code"], stage["end_kind"]) == ("benchmark", 1, "exited")
    assert stage["started_at"] == START
    assert only_run(data)["outcome"] == "partial"


def _json_stage(**changes: object) -> dict[str, object]:
    row = stage_row(0, "benchmark", START, **changes)
    return {name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in row.items()}


def test_proofs_of_a_vanished_run_are_rebuilt_from_what_the_runner_told(tmp_path: Path) -> None:
    proof = {"phase": "measured", "status": "completed", "wall_s": 90.0, "log_seq": 1}
    told = [event(seq, "proof", proof_index=index, **proof) for seq, index in enumerate((0, 1, 1))]
    put(tmp_path / "s", without(sealed_bundle(ID, log_parts=[told]), "closing", "stages", "proofs"))
    harvest_once(tmp_path / "s", tmp_path / "d")
    assert published(tmp_path / "d", "proofs")["proof_index"].to_list() == [0, 1]


def test_a_line_of_the_runner_that_is_no_event_is_told_and_the_others_count(tmp_path: Path) -> None:
    told = [event(0, "stage_started", stage="daemon", stage_index=0), line(1, "runner", "{torn")]
    told.append(event(2, "stage_started", stage="benchmark", stage_index="one"))
    data = harvested(tmp_path, without(sealed_bundle(ID, log_parts=[told]), "closing", "stages", "proofs"))
    assert reject_reasons(data) == [("logs-00000.parquet", "bad_json")]
    assert published(data, "rejects")["detail"][0].startswith("2 lines of the runner: not JSON")
    assert only_run(data)["last_stage"] == "daemon"
    assert published(data, "logs").height == 3


def test_a_part_that_is_missing_between_others_is_a_gap(tmp_path: Path) -> None:
    data = harvested(tmp_path, without(sealed_bundle(ID), "closing", "logs-00000"))
    assert reject_reasons(data) == [("logs-00000.parquet", "gap_in_parts")]


def test_a_line_that_is_missing_between_others_is_a_gap(tmp_path: Path) -> None:
    parts = [[line(0, "daemon", "a"), line(2, "daemon", "c")]]
    data = harvested(tmp_path, sealed_bundle(ID, log_parts=parts))
    assert published(data, "rejects")["detail"].to_list() == ["one line is missing, the first is seq 1"]
    assert published(data, "logs").height == 2


def test_a_part_that_repeats_lines_is_refused_so_that_none_counts_twice(tmp_path: Path) -> None:
    parts = [[line(0, "daemon", "a"), line(1, "daemon", "b")], [line(1, "daemon", "b"), line(2, "daemon", "c")]]
    data = harvested(tmp_path, sealed_bundle(ID, log_parts=parts))
    assert reject_reasons(data) == [("logs-00001.parquet", "out_of_range")]
    assert published(data, "logs")["seq"].to_list() == [0, 1]


def test_a_missing_opening_is_told_and_the_run_judged_by_the_rest(tmp_path: Path) -> None:
    data = harvested(tmp_path, without(sealed_bundle(ID), "opening"))
    assert reject_reasons(data) == [("opening.parquet", "missing_object")]
    row = only_run(data)
    assert (row["bundle_state"], row["machine_id"], row["is_scored"]) == ("finished", None, False)


def test_a_bundle_of_a_newer_version_is_quarantined_and_says_so(tmp_path: Path) -> None:
    objects = [replace(each, data=with_metadata(each.data, schema_version="2")) for each in sealed_bundle(ID)]
    data = harvested(tmp_path, objects)
    assert {reason for _, reason in reject_reasons(data)} == {"schema_newer"}
    row = only_run(data)
    assert (row["bundle_state"], row["outcome"], row["is_scored"]) == ("quarantined", None, False)
    assert row["bad_tables"] == ["closing", "logs", "opening", "proofs", "stages", "telemetry"]


def test_keys_that_are_no_bundles_are_refused_and_a_run_with_nothing_else_is_quarantined(tmp_path: Path) -> None:
    store = tmp_path / "s" / "bundles" / "v1"
    (store / "2026-11-02").mkdir(parents=True)
    (store / "notes.txt").write_text("hello")
    (tmp_path / "s" / bundle_prefix(ID)).mkdir(parents=True)
    (tmp_path / "s" / bundle_prefix(ID) / "opening.json").write_text("{}")
    assert harvest_once(tmp_path / "s", tmp_path / "d", None).exit_code == 3
    assert published(tmp_path / "d", "in_flight")["run_id"].to_list() == [ID]
    assert sorted(reject_reasons(tmp_path / "d")) == [
        ("notes.txt", "bad_key"),
        ("opening.json", "bad_key"),
        ("opening.parquet", "missing_object"),
    ]
    later = harvest_once(tmp_path / "s", tmp_path / "d", _mtime(tmp_path / "s") + timedelta(hours=1))
    assert (later.harvest["quarantined_count"], later.harvest["rejected_count"]) == (1, 3)


def _mtime(store: Path) -> datetime:
    return datetime.fromtimestamp((store / bundle_prefix(ID) / "opening.json").stat().st_mtime, UTC)


def test_a_closing_that_lists_another_runs_objects_is_told(tmp_path: Path) -> None:
    objects = without(sealed_bundle(ID), "closing")
    foreign = replace(objects[0], key=object_key(run_id(1), "opening"))
    data = harvested(tmp_path, [*objects, sealed_closing(ID, [*objects, foreign])])
    assert reject_reasons(data) == [("closing.parquet", "bad_key")]
    assert (only_run(data)["bundle_state"], only_run(data)["rate_proofs_per_hour"]) == ("finished", 40.0)


def test_a_closing_that_cannot_be_read_is_never_good_news(tmp_path: Path) -> None:
    opening = {"settings": {}}
    data = harvested(tmp_path, altered(sealed_bundle(ID, opening=opening), "closing", b"PAR1 torn"))
    row = only_run(data)
    assert (row["bundle_state"], row["bad_tables"]) == ("finished", ["closing"])
    assert row["outcome"] == "incomplete"


def test_too_many_objects_are_not_opened_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harvest.fetch.MAX_OBJECT_COUNT", 7)  # a limit, not a function: 20,001 files take a minute
    data = harvested(tmp_path, sealed_bundle(ID))
    assert published(data, "rejects")["reason"].to_list() == ["over_limit"]
    assert only_run(data)["bundle_state"] == "quarantined"


# One object at a time.


def refused(table: str, data: bytes, listed: Listed | None = None) -> RejectReason:
    with pytest.raises(Untrusted) as caught:
        trusted_table(data, table, ID, listed)
    return caught.value.reason


def with_metadata(data: bytes, **changes: str) -> bytes:
    table = pq.read_table(BytesIO(data))
    metadata = {name.decode(): value.decode() for name, value in (table.schema.metadata or {}).items()}
    return parquet_bytes(table, metadata | changes)


def opening_with(**changes: object) -> bytes:
    return seal_rows("opening", [usual_opening(ID) | changes], ID).data


def written(schema: pa.Schema, columns: list[object], table: str = "proofs") -> bytes:
    arrays = pa.Table.from_arrays(columns, schema=schema)
    return parquet_bytes(arrays, file_metadata(BUNDLE_TABLES[table], "test", ID))


def test_a_usual_object_is_trusted_and_missing_columns_are_null() -> None:
    proofs = [("proof_index", pa.int32()), ("phase", pa.string()), ("status", pa.string()), ("log_seq", pa.int64())]
    data = written(pa.schema([*proofs, ("new_column", pa.int64())]), [[0], ["measured"], ["completed"], [5], [1]])
    rows = trusted_table(data, "proofs", ID, None)
    assert rows.column_names == list(BUNDLE_TABLES["proofs"].column_names)
    assert rows["wall_s"].null_count == 1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"price_usd_per_hour": float("nan")}, RejectReason.OUT_OF_RANGE),
        ({"price_usd_per_hour": float("inf")}, RejectReason.OUT_OF_RANGE),
        ({"price_usd_per_hour": -0.1}, RejectReason.OUT_OF_RANGE),
        ({"memory_bytes": -1}, RejectReason.OUT_OF_RANGE),
        ({"started_at": START.replace(year=1999)}, RejectReason.OUT_OF_RANGE),
        ({"input_files": [{"path": "p", "bytes": -5, "sha256": None}]}, RejectReason.OUT_OF_RANGE),
    ],
)
def test_a_value_that_cannot_be_is_refused(changes: dict[str, object], reason: RejectReason) -> None:
    assert refused("opening", opening_with(**changes)) == reason


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"run_id": run_id(1)}, RejectReason.SCHEMA_MISMATCH),
        ({"table": "closing"}, RejectReason.SCHEMA_MISMATCH),
        ({"schema_version": "one"}, RejectReason.SCHEMA_MISMATCH),
        ({"schema_version": "2"}, RejectReason.SCHEMA_NEWER),
    ],
)
def test_a_file_that_says_it_is_another_is_refused(change: dict[str, str], reason: RejectReason) -> None:
    assert refused("opening", with_metadata(opening_with(), **change)) == reason


def test_two_openings_in_one_file_are_refused() -> None:
    data = seal_rows("opening", [usual_opening(ID)] * 2, ID).data
    assert refused("opening", data) == RejectReason.ROW_COUNT_MISMATCH


def test_a_null_where_none_may_be_is_refused() -> None:
    rows = table_from_rows(BUNDLE_TABLES["telemetry"], [sample(START, 0)])
    columns = [pa.nulls(1, each.type) if each.name == "sampled_at" else rows[each.name] for each in rows.schema]
    schema = pa.schema([each.with_nullable(True) for each in rows.schema])
    assert refused("telemetry", written(schema, columns, "telemetry")) == RejectReason.SCHEMA_MISMATCH


def test_a_column_of_another_type_is_refused() -> None:
    data = written(pa.schema([("proof_index", pa.string())]), [["0"]])
    assert refused("proofs", data) == RejectReason.SCHEMA_MISMATCH


def test_text_that_is_not_utf8_is_refused() -> None:
    broken = pa.array([b"\xff\xfe"]).view(pa.string())
    schema = pa.schema(
        [("proof_index", pa.int32()), ("phase", pa.string()), ("status", pa.string()), ("log_seq", pa.int64())]
    )
    data = written(schema, [pa.array([0], pa.int32()), broken, pa.array(["completed"]), pa.array([1])])
    assert refused("proofs", data) == RejectReason.INVALID_UTF8


def test_a_schema_nested_too_deep_is_refused_before_it_is_read() -> None:
    type_: pa.DataType = pa.int32()
    for _ in range(60):
        type_ = pa.list_(type_)
    data = written(pa.schema([("proof_index", type_)]), [pa.nulls(1, type_)])
    assert refused("proofs", data) == RejectReason.SCHEMA_DEPTH


def test_more_rows_than_an_object_may_have_are_not_read() -> None:
    data = written(pa.schema([("proof_index", pa.int32())]), [pa.nulls(10_000_001, pa.int32())])
    assert len(data) < 100_000
    assert refused("proofs", data) == RejectReason.BOMB


def test_a_small_file_that_grows_past_the_limit_in_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harvest.validate.MAX_TABLE_BYTES", 2**20)  # a limit, not a function: a GiB is slow to fill
    text = pa.array(["x" * 2**16] * 32)
    schema = pa.schema(
        [("proof_index", pa.int32()), ("phase", pa.string()), ("status", pa.string()), ("log_seq", pa.int64())]
    )
    data = written(schema, [pa.array(range(32), pa.int32()), text, pa.array(["completed"] * 32), pa.array(range(32))])
    assert len(data) < 10_000
    assert refused("proofs", data) == RejectReason.BOMB


def test_an_object_of_other_size_than_listed_is_refused_unread() -> None:
    assert refused("proofs", b"short", Listed(6, "0" * 64, 0)) == RejectReason.SHA_MISMATCH


@pytest.mark.parametrize("data", [b"", b"PAR1", b"not Parquet at all", b"PAR1" + b"\xff" * 100 + b"PAR1"])
def test_bytes_that_are_no_parquet_are_refused(data: bytes) -> None:
    assert refused("logs", data) in {RejectReason.BAD_PARQUET, RejectReason.BOMB}


@pytest.mark.parametrize("cut", [1, 10, 100, 1000])
def test_a_file_cut_short_is_refused(cut: int) -> None:
    assert refused("opening", opening_with()[:-cut]) in {RejectReason.BAD_PARQUET, RejectReason.BOMB}


def test_no_flipped_bit_in_a_page_gives_other_values() -> None:
    whole = opening_with()
    trusted = trusted_table(whole, "opening", ID, None)
    footer_start = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")  # only a sha256 guards the footer
    for at in range(4, footer_start, 37):
        changed = whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :]
        try:
            rows = trusted_table(changed, "opening", ID, None)
        except Untrusted:
            continue
        assert rows.equals(trusted), f"byte {at}"
