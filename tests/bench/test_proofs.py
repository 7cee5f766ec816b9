"""The benchmark's output, read; and what a run must show to have passed."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from bench.contract import ProofPhase, ProofStatus
from bench.proofs import BatchOutput, RunResult, parse_batch, rate_proofs_per_hour, run_passed

HEADER = """\
=== Batch Benchmark ===
proof type:  porep
count:       3
concurrency: 2

"""
PROOFS = """\
  [1/3] COMPLETED — 51.3s (prove=4210 ms, queue=12 ms)
  [2/3] COMPLETED — 52.0s (prove=4300 ms, queue=15 ms)
  [3/3] FAILED — 2.1s (prove=0 ms, queue=3 ms)
"""
SUMMARY = """\

=== Batch Summary ===
total time:    105.4s
completed:     2
failed:        1
wall time:     avg=51.6s min=51.3s max=52.0s
prove time:    avg=4255ms
throughput:    1.139 proofs/min (52.7s/proof)
"""


def parsed(text: str) -> BatchOutput:
    return parse_batch(text.splitlines(keepends=True))


def result(**changed: object) -> RunResult:
    """A run that passed: 12 of 12 proofs at 40 per hour, 37 asked for."""
    usual = RunResult(
        exit_code=0,
        is_end_hidden=False,
        proofs_requested=12,
        proofs_completed=12,
        proofs_failed=0,
        rate_proofs_per_hour=40.0,
        min_rate_proofs_per_hour=37.0,
    )
    return replace(usual, **changed)  # type: ignore[arg-type] # a test names fields, not types


def test_a_whole_batch_gives_its_header_and_its_summary() -> None:
    batch = parsed(HEADER + PROOFS + SUMMARY)
    assert (batch.proof_kind, batch.requested, batch.concurrency) == ("porep", 3, 2)
    assert (batch.completed, batch.failed, batch.measured_wall_s) == (2, 1, 105.4)


def test_the_rate_comes_from_completed_proofs_and_the_batches_own_total() -> None:
    assert parsed(HEADER + PROOFS + SUMMARY).rate_proofs_per_hour == pytest.approx(2 * 3600 / 105.4)


def test_the_reported_rate_is_turned_into_proofs_per_hour() -> None:
    assert parsed(HEADER + PROOFS + SUMMARY).reported_rate_proofs_per_hour == pytest.approx(1.139 * 60)


def test_each_proof_keeps_its_times_and_the_line_that_reported_it() -> None:
    first, _, last = parsed(HEADER + PROOFS + SUMMARY).proofs
    assert (first.status, first.wall_s, first.prove_s, first.queue_s) == (ProofStatus.COMPLETED, 51.3, 4.21, 0.012)
    assert (last.status, last.line_index) == (ProofStatus.FAILED, 7)


def test_colours_do_not_hide_a_line() -> None:
    batch = parsed(
        "\x1b[1m=== Batch Benchmark ===\x1b[0m\r\ncount:       3\r\n  \x1b[32m[1/3] COMPLETED\x1b[0m — 5.0s\r\n"
    )
    assert (batch.requested, len(batch.proofs)) == (3, 1)


def test_a_proof_line_without_details_has_null_details() -> None:
    (proof,) = parsed(HEADER + "  [1/3] TIMEOUT — 600.0s\n").proofs
    assert (proof.status, proof.prove_s, proof.queue_s) == (ProofStatus.TIMEOUT, None, None)


def test_a_status_that_nobody_knows_is_unknown() -> None:
    (proof,) = parsed(HEADER + "  [1/3] EXPLODED — 1.0s\n").proofs
    assert proof.status == ProofStatus.UNKNOWN


def test_a_batch_that_died_has_no_rate_though_proofs_completed() -> None:
    batch = parsed(HEADER + PROOFS)
    assert (batch.completed, batch.rate_proofs_per_hour) == (None, None)


def test_a_batch_in_which_every_proof_failed_has_a_null_rate_not_zero() -> None:
    batch = parsed(HEADER + "=== Batch Summary ===\ntotal time:    9.0s\ncompleted:     0\nfailed:        3\n")
    assert (batch.completed, batch.rate_proofs_per_hour, batch.reported_rate_proofs_per_hour) == (0, None, None)


def test_an_output_of_another_program_says_nothing() -> None:
    assert parsed("completed: 12\n[1/12] COMPLETED — 5.0s\nthroughput: 9\n") == BatchOutput()


def test_an_earlier_success_does_not_stand_in_for_the_last_batch() -> None:
    warmup = HEADER + "=== Batch Summary ===\ntotal time:    50.0s\ncompleted:     3\nfailed:        0\n"
    batch = parsed(warmup + HEADER)
    assert (batch.requested, batch.completed, batch.measured_wall_s) == (3, None, None)


def test_proofs_of_earlier_batches_are_warm_up() -> None:
    batch = parsed(HEADER + PROOFS + SUMMARY + HEADER + PROOFS)
    assert [proof.phase for proof in batch.proofs] == [ProofPhase.WARMUP] * 3 + [ProofPhase.MEASURED] * 3


@pytest.mark.parametrize("digits", ["1.2.3", ".", "9" * 400, "٣"])
def test_a_figure_that_is_no_number_was_not_measured(digits: str) -> None:
    assert parsed(f"=== Batch Summary ===\ntotal time:    {digits}s\n").measured_wall_s is None


def test_a_count_beyond_all_sense_was_not_measured() -> None:
    assert parsed(HEADER.replace("3", "9" * 12)).requested is None


def test_endless_digits_in_the_details_give_no_infinity() -> None:
    (proof,) = parsed(HEADER + f"  [1/3] COMPLETED — 5.0s (prove={'9' * 400} ms)\n").proofs
    assert proof.prove_s is None or math.isfinite(proof.prove_s)


@pytest.mark.parametrize(("completed", "wall_s"), [(None, 10.0), (0, 10.0), (3, None), (3, 0.0), (3, 1e-308)])
def test_a_rate_that_was_not_measured_is_null(completed: int | None, wall_s: float | None) -> None:
    assert rate_proofs_per_hour(completed, wall_s) is None


def test_a_run_that_did_all_it_should_passed() -> None:
    assert run_passed(result())


def test_a_rate_that_just_reaches_the_min_rate_passes() -> None:
    assert run_passed(result(rate_proofs_per_hour=37.0))


def test_a_plan_that_measures_no_proofs_passes_by_exit_0_alone() -> None:
    assert run_passed(
        result(proofs_requested=None, proofs_completed=None, proofs_failed=None, rate_proofs_per_hour=None)
    )


def test_without_a_min_rate_the_proofs_decide() -> None:
    assert run_passed(result(min_rate_proofs_per_hour=None, rate_proofs_per_hour=None))


@pytest.mark.parametrize(
    "shortcoming",
    [
        {"exit_code": 1},
        {"exit_code": None},
        {"is_end_hidden": True},
        {"proofs_completed": 11},
        {"proofs_completed": None},
        {"proofs_failed": 1},
        {"proofs_failed": None},
        {"rate_proofs_per_hour": 36.9},
        {"rate_proofs_per_hour": None},
        {"rate_proofs_per_hour": math.nan},
        {"proofs_requested": None, "rate_proofs_per_hour": 20.0},
        {"proofs_requested": None, "proofs_completed": None, "proofs_failed": 1},
        {"proofs_requested": None, "proofs_completed": 0, "rate_proofs_per_hour": None},
    ],
    ids=str,
)
def test_a_run_with_a_shortcoming_did_not_pass(shortcoming: dict[str, object]) -> None:
    assert not run_passed(result(**shortcoming))
