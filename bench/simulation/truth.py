"""What really happened, beside the bundles: one row a run, with its machine's traits. Pure but for `write_truth`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import PRODUCER
from bench.arrow import file_metadata, parquet_bytes, table_from_rows
from bench.proofs import BatchOutput, RunResult, run_passed
from bench.schema import Table
from bench.schema import column as c
from bench.simulation import scenarios
from bench.simulation.facts import PROOFS_REQUESTED, RunFacts
from bench.simulation.recording import Recording
from bench.simulation.scenarios import Shape
from bench.simulation.schedule import Presence

SLOW_RATE_RATIO = 0.95
"""Below this share of what its cohort does, a run is slow by its machine; else its min rate was beyond the cohort."""

TRUTH_RUNS = Table(
    "truth_runs",
    "One row for each simulated run: what really happened, and what its machine is really like.",
    ("run_id",),
    (
        c("run_id", "string", "of the bundle; of the launch record where there is no bundle"),
        c("rental_id", "string?", "null where the operator left no launch record"),
        c("granted_at", "timestamp", "when it was rented"),
        c("presence", "string", "`ended`, `in_flight` or `waiting` at the end of the simulation"),
        c("scenario", "string", "what befell it; the simulator's own name"),
        c("outcome", "string?", "what a harvest should say; null while the run is alive"),
        c("blame", "string?", "whose fault it was; null while the run is alive"),
        c("cause", "string?", "a slug of the taxonomy; null where nothing went wrong"),
        c("is_bug_window", "bool", "it began while the bad build was rolled out"),
        c("build_id", "string", "of the software under test"),
        c("has_telling_line", "bool", "some line of its logs tells the cause"),
        c("root_text", "string?", "that line as the process wrote it, without what differs from run to run"),
        c("proofs_completed", "int64", "measured proofs that the daemon really completed"),
        c("true_rate_proofs_per_hour", "float64", "what the machine would give, undisturbed"),
        c("min_rate_proofs_per_hour", "float64", "the threshold that it was judged by"),
        c("min_rate_source", "string", "`price`, or `flag` for a number that somebody once worked out"),
        c("machine_id", "int64", "the physical computer"),
        c("host_id", "int64", "its owner"),
        c("gpu_model", "string", "as NVML names it"),
        c("num_gpus", "int32", "GPUs of the machine"),
        c("machine_trait", "string", "`good`, `slow`, `failing` or `flaky`"),
        c("machine_rate_ratio", "float64", "the machine's true speed over its model's median"),
        c("machine_failure_ratio", "float64", "chance that the machine's own fault ends a run"),
        c("price_usd_per_hour", "float64", "rent of the machine"),
    ),
)


def truth_row(facts: RunFacts, recording: Recording | None, batch: BatchOutput | None) -> dict[str, Any]:
    """Return the truth about one run; recording and batch are null where it never began."""
    machine, scenario = facts.machine, facts.scenario
    outcome, blame, cause = _verdict(facts, batch)
    root = scenario.root
    return {
        "run_id": facts.run_id,
        "rental_id": facts.rental_id,
        "granted_at": facts.granted_at,
        "presence": str(facts.presence),
        "scenario": scenario.name,
        "outcome": outcome,
        "blame": blame,
        "cause": cause,
        "is_bug_window": facts.is_bug_window,
        "build_id": facts.build.build_id,
        "has_telling_line": root is not None,
        "root_text": root.text if root else None,
        "proofs_completed": _proofs_completed(facts, recording, batch),
        "true_rate_proofs_per_hour": facts.rate_proofs_per_hour,
        "min_rate_proofs_per_hour": facts.min_rate_proofs_per_hour,
        "min_rate_source": facts.min_rate_source,
        "machine_id": machine.machine_id,
        "host_id": machine.host_id,
        "gpu_model": machine.model.name,
        "num_gpus": machine.num_gpus,
        "machine_trait": str(machine.trait),
        "machine_rate_ratio": machine.rate_ratio,
        "machine_failure_ratio": machine.failure_ratio,
        "price_usd_per_hour": machine.price_usd_per_hour,
    }


def _verdict(facts: RunFacts, batch: BatchOutput | None) -> tuple[str | None, str | None, str | None]:
    """Return outcome, blame and cause; all null while the run is alive."""
    scenario = facts.scenario
    if facts.presence != Presence.ENDED:
        return None, None, None
    if scenario is scenarios.PASSED and batch is not None:
        return _verdict_of_rate(facts, batch)
    outcome = {
        Shape.NEVER_STARTS: "never_started",
        Shape.FALLS_SILENT: "vanished",
        Shape.HANGS: "timed_out",
    }.get(scenario.shape)
    if outcome is None:
        outcome = "partial" if _completed_in_failure(facts, batch) else "failed"
    return outcome, scenario.blame, scenario.cause


def _verdict_of_rate(facts: RunFacts, batch: BatchOutput) -> tuple[str, str, str | None]:
    result = RunResult(
        exit_code=0,
        is_end_hidden=False,
        proofs_requested=batch.requested,
        proofs_completed=batch.completed,
        proofs_failed=batch.failed,
        rate_proofs_per_hour=batch.rate_proofs_per_hour,
        min_rate_proofs_per_hour=facts.min_rate_proofs_per_hour,
    )
    if run_passed(result):
        return "passed", "none", None
    if facts.rate_proofs_per_hour < SLOW_RATE_RATIO * facts.machine.cohort_rate_proofs_per_hour:
        return "too_slow", "machine", "too_slow_clean"
    return "too_slow", "configuration", "min_rate_above_cohort"


def _completed_in_failure(facts: RunFacts, batch: BatchOutput | None) -> int:
    """How many measured proofs completed in a run that failed: by its summary, else by what the daemon did."""
    if batch is not None and batch.completed is not None:
        return batch.completed
    return facts.completed_before if facts.scenario.shape in (Shape.DAEMON_DIES, Shape.DAEMON_REFUSES) else 0


def _proofs_completed(facts: RunFacts, recording: Recording | None, batch: BatchOutput | None) -> int:
    if recording is None:
        return 0
    if facts.scenario.shape == Shape.HANGS:
        return facts.completed_before
    if recording.cut_s is None:
        return _completed_in_failure(facts, batch)
    benchmark = next((row for row in recording.stages if row["stage"] == "benchmark"), None)
    done_s = [window.end_s for window in recording.windows[1:] if window.end_s <= recording.cut_s]
    return min(len(done_s), PROOFS_REQUESTED) if benchmark is not None else 0


def write_truth(rows: Sequence[dict[str, Any]], file: Path) -> None:
    """Write the table, sorted by its key, to a file that appears whole. Raises OSError."""
    ordered = sorted(rows, key=lambda row: str(row["run_id"]))
    data = parquet_bytes(table_from_rows(TRUTH_RUNS, ordered), file_metadata(TRUTH_RUNS, PRODUCER))
    file.parent.mkdir(parents=True, exist_ok=True)
    neighbour = file.with_name(f".new-{file.name}")
    neighbour.write_bytes(data)
    os.replace(neighbour, file)
