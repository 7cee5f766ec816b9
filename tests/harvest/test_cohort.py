from __future__ import annotations

import hashlib
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from harvest.contract import COHORTS, RUNS
from harvest.scoring.cohort import cohort_id, cohorts, with_cohort_id
from harvest.tables import empty_frame
from tests.builders import GPU_MODEL, make_runs
from tests.harvest.fleets import NO_RATE, POLICY, runs_of, usual_machines


def only_cohort(runs: pl.DataFrame) -> dict[str, Any]:
    (cohort,) = cohorts(runs, POLICY).to_dicts()
    return cohort


def test_the_id_is_the_hash_of_the_parts_as_canonical_json() -> None:
    canonical = b'{"gpu_model":"RTX 4090","num_gpus":2,"proof_kind":"porep-32g"}'
    parts = {"gpu_model": "RTX 4090", "num_gpus": 2, "measured_kind": "porep-32g"}
    assert cohort_id(parts) == hashlib.sha256(canonical).hexdigest()[:12]


@pytest.mark.parametrize(
    "change",
    [{"gpu_model": "NVIDIA L4"}, {"num_gpus": 2}, {"proof_kind": "snap-32g"}, {"proof_kind": None}],
    ids=lambda change: next(iter(change)),
)
def test_each_part_of_a_cohort_makes_another_cohort(change: dict[str, object]) -> None:
    assert runs_of({}, change)["cohort_id"].n_unique() == 2


@pytest.mark.parametrize(
    "change", [{"driver_version": "1"}, {"build_id": "b"}, {"host_id": 1}, {"price_usd_per_hour": 9.0}]
)
def test_driver_build_host_and_price_make_no_cohort(change: dict[str, object]) -> None:
    assert runs_of({}, change)["cohort_id"].n_unique() == 1


def test_the_plan_counts_only_where_no_proof_kind_is_known() -> None:
    runs = runs_of({"plan_name": "a"}, {"plan_name": "b"}, {"plan_name": "a", "proof_kind": None})
    assert runs["cohort_id"].n_unique() == 2


def test_machines_without_a_gpu_are_compared_with_each_other() -> None:
    bare = {"gpu_model": None, "num_gpus": None, "proof_kind": None, "plan_name": "redis"}
    assert runs_of(bare, bare)["cohort_id"].null_count() == 0
    assert runs_of(bare, bare)["cohort_id"].n_unique() == 1


def test_giving_ids_changes_nothing_else() -> None:
    runs = make_runs({}, {"gpu_model": None}, {"num_gpus": 4})
    assert_frame_equal(with_cohort_id(runs).drop("cohort_id"), runs.drop("cohort_id"))


def test_normal_is_the_median_of_the_machines_medians_so_that_many_runs_do_not_outvote() -> None:
    slow_and_often = [{"machine_id": 1, "rate_proofs_per_hour": 10.0}] * 50
    others = [{"machine_id": machine_id, "rate_proofs_per_hour": 40.0} for machine_id in (2, 3)]
    cohort = only_cohort(runs_of(*slow_and_often, *others))
    assert cohort["median_rate_proofs_per_hour"] == 40.0
    assert (cohort["machine_count"], cohort["run_count"], cohort["measured_count"]) == (3, 52, 52)


def test_the_spread_is_that_of_the_machines() -> None:
    rates = [{"machine_id": machine_id, "rate_proofs_per_hour": float(machine_id)} for machine_id in range(1, 101)]
    cohort = only_cohort(runs_of(*rates))
    assert cohort["rate_low_proofs_per_hour"] == pytest.approx(5.95)
    assert cohort["rate_high_proofs_per_hour"] == pytest.approx(95.05)


@pytest.mark.parametrize("rate", [None, 0.0, -1.0, float("nan"), float("inf")])
def test_a_missing_or_senseless_rate_is_no_rate_and_not_zero(rate: float | None) -> None:
    cohort = only_cohort(runs_of({"machine_id": 1}, {"machine_id": 2, "rate_proofs_per_hour": rate}))
    assert (cohort["median_rate_proofs_per_hour"], cohort["measured_count"]) == (40.0, 1)


def test_a_cohort_without_a_rate_has_none() -> None:
    cohort = only_cohort(runs_of(NO_RATE))
    assert cohort["median_rate_proofs_per_hour"] is None
    assert cohort["is_weak"] is True


def test_a_cohort_is_weak_below_five_machines_with_a_rate() -> None:
    unmeasured = [{"machine_id": 100, **NO_RATE}]
    assert only_cohort(runs_of(*usual_machines(4), *unmeasured))["is_weak"] is True
    assert only_cohort(runs_of(*usual_machines(5)))["is_weak"] is False


def test_the_price_is_the_median_of_its_runs() -> None:
    runs = runs_of(*({"price_usd_per_hour": price} for price in (0.2, 0.3, 0.9, None)))
    assert only_cohort(runs)["median_price_usd_per_hour"] == 0.3


def test_runs_that_are_not_scored_are_in_no_cohort() -> None:
    assert cohorts(runs_of({"is_scored": False}), POLICY).is_empty()


@pytest.mark.parametrize("flag", ["few_proofs", "own_neighbour"])
def test_a_run_measured_on_too_little_or_beside_another_leaves_its_rate_out(flag: str) -> None:
    cohort = only_cohort(runs_of({"machine_id": 1}, {"machine_id": 2, "flags": [flag], "rate_proofs_per_hour": 4.0}))
    assert (cohort["median_rate_proofs_per_hour"], cohort["run_count"]) == (40.0, 2)


def test_no_runs_give_no_cohorts() -> None:
    assert_frame_equal(cohorts(with_cohort_id(empty_frame(RUNS)), POLICY), empty_frame(COHORTS))


def test_a_cohort_names_its_parts() -> None:
    cohort = only_cohort(runs_of({"proof_kind": None}))
    assert (cohort["gpu_model"], cohort["num_gpus"], cohort["proof_kind"]) == (GPU_MODEL, 1, "cuzk")
