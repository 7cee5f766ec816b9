"""Who and at what price: flags, the marketplace's variables, and their contradictions."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

import pytest

from bench.arrow import table_from_rows
from bench.contract import OPENING
from bench.identity import Claim, Identity, IdentityFlags, marketplace_id, positive_number, work_out_identity

KEY = b"a key of this run"
VAST = {
    "CONTAINER_ID": "32733029",
    "VAST_CONTAINERLABEL": "C.32733029",
    "PUBLIC_IPADDR": "203.0.113.7",
    "GPU_COUNT": "1",
}


def identity(environment: Mapping[str, str] | None = None, **flags: float) -> Identity:
    return work_out_identity(IdentityFlags(**flags), environment or {}, KEY)  # type: ignore[arg-type] # machine_id is whole


def test_the_marketplaces_variables_name_the_instance() -> None:
    found = identity(VAST)
    assert (found.marketplace, found.instance_id, found.instance_label) == ("vast.ai", 32733029, "C.32733029")
    assert found.num_gpus_rented == 1


def test_the_label_alone_names_the_instance_too() -> None:
    assert identity({"VAST_CONTAINERLABEL": "C.17"}).instance_id == 17


def test_without_the_marketplaces_variables_the_run_is_local() -> None:
    found = identity({"GPU_COUNT": "2"})
    assert (found.marketplace, found.instance_id, found.identity_claims[0].source) == ("local", None, "env:GPU_COUNT")


def test_a_contradiction_keeps_the_first_word_and_both_claims() -> None:
    found = identity({"CONTAINER_ID": "1", "VAST_CONTAINERLABEL": "C.2"})
    claims = [claim for claim in found.identity_claims if claim.field == "instance_id"]
    assert found.instance_id == 1
    assert claims == [
        Claim("instance_id", "env:CONTAINER_ID", "1"),
        Claim("instance_id", "env:VAST_CONTAINERLABEL", "2"),
    ]


def test_the_address_is_kept_only_as_a_keyed_hash() -> None:
    found = identity(VAST)
    assert found.public_ip_hash is not None
    assert len(found.public_ip_hash) == 16
    assert "203.0.113.7" not in str(found)


def test_another_key_gives_another_hash() -> None:
    assert identity(VAST).public_ip_hash != work_out_identity(IdentityFlags(), VAST, b"another").public_ip_hash


@pytest.mark.parametrize(
    ("variable", "text", "column"),
    [
        ("CONTAINER_ID", "12x", "instance_id"),
        ("CONTAINER_ID", "9" * 19, "instance_id"),
        ("CONTAINER_ID", "١٢", "instance_id"),
        ("CONTAINER_ID", "\udcff", "instance_id"),
        ("VAST_CONTAINERLABEL", "my box", "instance_label"),
        ("PUBLIC_IPADDR", "auto", "public_ip_hash"),
        ("GPU_COUNT", "many", "num_gpus_rented"),
    ],
)
def test_garbage_in_a_variable_gives_null_and_a_claim(variable: str, text: str, column: str) -> None:
    found = identity({variable: text})
    assert getattr(found, column) is None
    assert [(claim.field, claim.source) for claim in found.identity_claims] == [(column, f"env:{variable}")]


def test_an_address_that_is_none_is_not_quoted() -> None:
    (claim,) = identity({"PUBLIC_IPADDR": "host-17.example.org"}).identity_claims
    assert "example" not in claim.value


def test_an_empty_variable_says_nothing() -> None:
    assert identity({"CONTAINER_ID": " ", "PUBLIC_IPADDR": ""}).identity_claims == ()


def test_the_min_rate_follows_from_the_price() -> None:
    found = identity(price_usd_per_hour=0.296)
    assert (found.min_rate_proofs_per_hour, found.min_rate_source, found.usd_per_proof) == (37.0, "price", 0.008)


def test_a_given_min_rate_holds_against_the_price() -> None:
    found = identity(price_usd_per_hour=0.296, min_rate_proofs_per_hour=29.0)
    assert (found.min_rate_proofs_per_hour, found.min_rate_source) == (29.0, "flag")


def test_without_price_and_flag_there_is_no_min_rate() -> None:
    found = identity(machine_id=4242)
    assert (found.min_rate_proofs_per_hour, found.min_rate_source) == (None, None)
    assert (found.machine_id, found.machine_id_source) == (4242, "flag")


def test_a_quotient_beyond_all_numbers_is_no_min_rate() -> None:
    assert identity(price_usd_per_hour=1e300, usd_per_proof=1e-300).min_rate_proofs_per_hour is None


def test_each_flag_given_is_a_claim() -> None:
    claims = identity(machine_id=4242, price_usd_per_hour=0.296).identity_claims
    assert [(claim.field, claim.source, claim.value) for claim in claims] == [
        ("machine_id", "flag", "4242"),
        ("price_usd_per_hour", "flag", "0.296"),
    ]


def test_the_row_fits_the_opening() -> None:
    row = identity(VAST, machine_id=4242).as_row()
    assert set(row) <= set(OPENING.column_names)
    stored = table_from_rows(OPENING, [{**OPENING.empty_row(), **row}]).to_pylist()[0]
    assert stored["identity_claims"][0] == {"field": "machine_id", "source": "flag", "value": "4242"}


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "-1", "0", "1e999", "cheap", ""])
def test_a_flag_that_is_no_number_above_zero_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a number"):
        positive_number(text)


def test_a_number_above_zero_is_taken() -> None:
    assert positive_number("0.296") == 0.296


def test_the_command_line_tells_why_it_refused(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--price", type=positive_number)
    with pytest.raises(SystemExit):
        parser.parse_args(["--price", "nan"])
    assert "'nan' is not a number above 0, as in 0.296" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["-1", "4_242", "4242.0", str(2**63), ""])
def test_an_id_that_is_no_whole_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a marketplace's id"):
        marketplace_id(text)


def test_the_largest_id_is_taken() -> None:
    assert marketplace_id(str(2**63 - 1)) == 2**63 - 1
