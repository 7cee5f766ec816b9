"""The shipped signatures and causes: each does what its own samples say, and no word is left unexplained."""

from __future__ import annotations

import tomllib

from data import FOLDER
from harvest.contract import Blame, Outcome
from harvest.diagnosis.signatures import parse_signatures

SIGNATURES = parse_signatures((FOLDER / "signatures.toml").read_text(encoding="utf-8"))
CAUSES = tomllib.loads((FOLDER / "causes.toml").read_text(encoding="utf-8"))


def test_there_are_a_dozen_signatures_and_their_samples_hold() -> None:
    """Reading them tries each sample: a line that must match, and one that must not."""
    assert len(SIGNATURES.signatures) >= 12
    assert all(each.must_match and each.must_not_match for each in SIGNATURES.signatures)


def test_every_outcome_blame_and_cause_is_explained() -> None:
    assert set(CAUSES["outcome"]) == {str(each) for each in Outcome}
    assert set(CAUSES["blame"]) == {str(each) for each in Blame}
    assert {each.meaning.cause for each in SIGNATURES.signatures} <= set(CAUSES["cause"])


def test_a_cause_is_explained_with_the_blame_that_its_signature_gives() -> None:
    for each in SIGNATURES.signatures:
        if each.meaning.blame != Blame.UNKNOWN:
            assert CAUSES["cause"][each.meaning.cause]["blame"] == each.meaning.blame
