"""Errors: each class has the exit code that the contract of the command gives it."""

from __future__ import annotations

import pickle

import pytest

from harvest import errors

CODES = {
    errors.UsageError: 2,
    errors.PolicyError: 2,
    errors.SignatureError: 2,
    errors.UnaccountedRuns: 1,
    errors.StoreUnreadable: 4,
    errors.ObjectMissing: 4,
    errors.DataNewer: 4,
    errors.DataBusy: 4,
    errors.DataUnwritable: 4,
    errors.SummaryUnwritten: 4,
}


def test_every_error_has_its_exit_code_here() -> None:
    assert set(CODES) == set(errors.HarvestError.__subclasses__())


@pytest.mark.parametrize(("error", "code"), CODES.items())
def test_the_exit_code_sits_on_the_class_and_survives_the_way_from_a_worker(
    error: type[errors.HarvestError], code: int
) -> None:
    assert error.exit_code == code
    returned = pickle.loads(pickle.dumps(error("what, where, what is safe, what next")))
    assert (type(returned), str(returned)) == (error, "what, where, what is safe, what next")
