"""The lines of a run as rows of `logs`: in the order captured, numbered, with the runner's word on each proof. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench.contract import RUNNER_STREAM, ProofPhase, RunnerEvent
from bench.proofs import BatchOutput, Proof, parse_batch
from bench.simulation.recording import Line, Recording, event_text

TICK_S = 0.1
WARMUP_STREAM = "warmup.stdout"
BENCHMARK_STREAM = "benchmark.stdout"
_STREAM_ORDER = (
    "setup.stdout",
    "setup.stderr",
    "daemon.stdout",
    "daemon.stderr",
    WARMUP_STREAM,
    "warmup.stderr",
    BENCHMARK_STREAM,
    "benchmark.stderr",
    "kernel",
    RUNNER_STREAM,
)
_RANKS = {stream: rank for rank, stream in enumerate(_STREAM_ORDER)}


@dataclass(frozen=True)
class NumberedLogs:
    """Rows of `logs` with the time of each, rows of `proofs`, and what the benchmark's output said."""

    times_s: list[float]
    rows: list[dict[str, Any]]
    proofs: list[dict[str, Any]]
    batch: BatchOutput


def numbered_logs(recording: Recording, until_s: float) -> NumberedLogs:
    """Return everything that was captured up to a time; order between streams is true to one tick."""
    lines = sorted((line for line in recording.lines if line.at_s <= until_s), key=_captured)
    batch, measured = _reported(lines, BENCHMARK_STREAM)
    _, warmup = _reported(lines, WARMUP_STREAM)
    reported = {id(line): proof for line, proof in measured}
    reported |= {id(line): replace(proof, phase=ProofPhase.WARMUP) for line, proof in warmup}
    told = [line for line in lines if id(line) in reported]
    notes = [Line(line.at_s + TICK_S, RUNNER_STREAM, "") for line in told]
    line_of_note = {id(note): line for note, line in zip(notes, told, strict=True)}
    times_s: list[float] = []
    rows: list[dict[str, Any]] = []
    proofs: list[dict[str, Any]] = []
    seqs: dict[int, int] = {}
    for line in sorted([*lines, *notes], key=_captured):
        text = line.text
        if id(line) in line_of_note:
            source = line_of_note[id(line)]
            proofs.append(_proof_row(reported[id(source)], len(proofs), seqs[id(source)]))
            text = event_text(RunnerEvent.PROOF, recording.text_at(line.at_s), proofs[-1])
        seqs[id(line)] = len(rows)
        tick = _tick(line.at_s)
        rows.append(
            {
                "seq": len(rows),
                "stream": line.stream,
                "captured_at": recording.at(tick * TICK_S),
                "text": text,
                "terminator": 1,
                "is_continued": False,
            }
        )
        times_s.append(line.at_s)
    return NumberedLogs(times_s, rows, proofs, batch)


def _tick(at_s: float) -> int:
    return math.ceil(at_s / TICK_S)


def _captured(line: Line) -> tuple[int, int, float]:
    return _tick(line.at_s), _RANKS[line.stream], line.at_s


def _reported(lines: Sequence[Line], stream: str) -> tuple[BatchOutput, list[tuple[Line, Proof]]]:
    own = [line for line in lines if line.stream == stream]
    output = parse_batch(line.text for line in own)
    return output, [(own[proof.line_index], proof) for proof in output.proofs]


def _proof_row(proof: Proof, proof_index: int, log_seq: int) -> dict[str, Any]:
    return {
        "proof_index": proof_index,
        "phase": str(proof.phase),
        "status": str(proof.status),
        "wall_s": proof.wall_s,
        "prove_s": proof.prove_s,
        "queue_s": proof.queue_s,
        "log_seq": log_seq,
    }
