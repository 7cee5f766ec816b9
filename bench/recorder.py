"""What a run leaves while it lasts: events, log parts, proofs and telemetry, tick by tick on their way to the store."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

from bench.capture import Capture, Chunk
from bench.cgroup import CgroupReader
from bench.clock import utc_now_text
from bench.contract import RUNNER_STREAM, ProofPhase, RunnerEvent, RunnerFlag
from bench.keys import PART_RAW_BYTES
from bench.lines import Line
from bench.proofs import BatchOutput, parse_batch
from bench.spool import Spool
from bench.telemetry import GpuSampler, HostSampler
from bench.upload import Shipper

BENCHMARK_STAGE = "benchmark"
WARMUP_STAGE = "warmup"
_BATCH_WORDS = (
    "===",
    "[",
    "proof type:",
    "count:",
    "concurrency:",
    "total time:",
    "completed:",
    "failed:",
    "throughput:",
)
HOST_SAMPLE_S = 5.0


class BatchReader:
    """The lines of one stage's output that belong to a batch, with the rows that they are."""

    def __init__(self, phase: ProofPhase) -> None:
        self._phase = phase
        self._lines: list[str] = []
        self._seqs: list[int] = []
        self.output = BatchOutput()

    def read(self, first_seq: int, lines: Sequence[Line]) -> list[dict[str, Any]]:
        """Take lines in; return the rows of proofs that they reported."""
        known = len(self.output.proofs)
        for seq, line in enumerate(lines, first_seq):
            text = line.as_text()[0]
            if text.lstrip(" ").startswith(_BATCH_WORDS):
                self._lines.append(text)
                self._seqs.append(seq)
        self.output = parse_batch(self._lines)
        return self.rows()[known:]

    def rows(self) -> list[dict[str, Any]]:
        """Return rows of `proofs`, without `proof_index`."""
        return [
            {
                "phase": str(self._phase if self._phase is ProofPhase.WARMUP else proof.phase),
                "status": str(proof.status),
                "wall_s": proof.wall_s,
                "prove_s": proof.prove_s,
                "queue_s": proof.queue_s,
                "log_seq": self._seqs[proof.line_index],
            }
            for proof in self.output.proofs
        ]


class Recorder:
    """Everything that is recorded about a run that goes on."""

    def __init__(self, spool: Spool, shipper: Shipper, part_interval_s: float, telemetry_interval_s: float) -> None:
        self.capture = Capture(spool)
        self.cgroup = CgroupReader()
        self._spool = spool
        self._shipper = shipper
        self._part_interval_s = part_interval_s
        self._telemetry_interval_s = telemetry_interval_s
        self._events = self.capture.add(RUNNER_STREAM)
        self._pending: list[Chunk] = []
        self._news_s: float | None = None
        self._part_count = {"logs": 0, "telemetry": 0}
        self._host = HostSampler(spool.folder, self.cgroup)
        self._gpu = GpuSampler()
        self._samples: list[dict[str, Any]] = []
        self._host_at_s = self._telemetry_at_s = time.monotonic()
        self._found: set[str] = set()
        self.batches = {
            f"{BENCHMARK_STAGE}.stdout": BatchReader(ProofPhase.MEASURED),
            f"{WARMUP_STAGE}.stdout": BatchReader(ProofPhase.WARMUP),
        }
        self.stage: str | None = None

    @property
    def batch(self) -> BatchOutput:
        return self.batches[f"{BENCHMARK_STAGE}.stdout"].output

    def start(self) -> None:
        """Begin to sample."""
        try:
            self._gpu.start(self._spool.folder / "gpu.jsonl")
        except OSError as error:
            self.tell(RunnerEvent.WARNING, text=f"no GPU samples: {error}")

    def tell(self, event: RunnerEvent, **columns: Any) -> None:
        """Say in the runner's own stream what just happened."""
        row = {"event": str(event), "at": utc_now_text(), **columns}
        os.write(
            self._events, json.dumps(row, ensure_ascii=False, default=str).encode("utf-8", "backslashreplace") + b"\n"
        )

    def tick(self, *, is_end: bool = False, seal_now: bool = False) -> None:
        """Capture what is new, sample what is due, and send off the parts that are."""
        now_s = time.monotonic()
        self._tell_of_found_files()
        for chunk, lines in self.capture.tick(utc_now_text(), is_end=is_end):
            self._pending.append(chunk)
            self._news_s = self._news_s or now_s
            self._read_proofs(chunk, lines)
        if is_end or now_s >= self._host_at_s:
            self._sample()
            self._host_at_s = now_s + HOST_SAMPLE_S
        raw_bytes = sum(chunk.end - chunk.start for chunk in self._pending)
        is_due = self._news_s is not None and now_s - self._news_s >= self._part_interval_s
        if self._pending and (is_end or seal_now or is_due or raw_bytes >= PART_RAW_BYTES):
            self._ship_logs()
        if is_end or now_s - self._telemetry_at_s >= self._telemetry_interval_s:
            self._telemetry_at_s = now_s
            self._ship_part("telemetry", {"rows": self._samples})
            self._samples = []

    def proof_rows(self) -> list[dict[str, Any]]:
        """Return the rows of `proofs`: warm-ups first, then the measured ones."""
        readers = reversed(self.batches.values())
        rows = [row for reader in readers for row in reader.rows()]
        return [{"proof_index": index, **row} for index, row in enumerate(sorted(rows, key=lambda row: row["log_seq"]))]

    def close(self) -> None:
        self._gpu.close()

    def last_output_at(self, stage: str) -> str | None:
        """Return when the stage's outputs last grew; null where they never did."""
        streams = (self.capture.streams.get(f"{stage}.{each}") for each in ("stdout", "stderr"))
        return max((each.last_output_at for each in streams if each and each.last_output_at), default=None)

    def _read_proofs(self, chunk: Chunk, lines: Sequence[Line]) -> None:
        if (reader := self.batches.get(chunk.stream)) is None:
            return
        for row in reader.read(chunk.first_seq, lines):
            index = sum(len(each.output.proofs) for each in self.batches.values()) - 1
            self.tell(RunnerEvent.PROOF, stage=self.stage, **{"proof_index": index, **row})

    def _sample(self) -> None:
        completed = sum(proof.status == "completed" for proof in self.batch.proofs)
        row = self._host.sample(datetime.now(timezone.utc), self.stage, completed, self.capture.log_bytes)
        if self._gpu.is_hung(time.monotonic()):
            self._gpu.stop()
            self._shipper.flags.add(str(RunnerFlag.TELEMETRY_HUNG))
            self.tell(RunnerEvent.WARNING, text="NVML did not answer for three intervals; no more GPU samples")
        for each in (*self._gpu.new_rows(), row):
            self._samples.append({**each, "sampled_at": each["sampled_at"].isoformat()})

    def _tell_of_found_files(self) -> None:
        for stream in self.capture.streams.values():
            if stream.follower and stream.follower.is_found and stream.name not in self._found:
                self._found.add(stream.name)
                self.tell(RunnerEvent.FOLLOWED_FILE, stream=stream.name, path=str(stream.follower.source))

    def _ship_logs(self) -> None:
        chunks, self._pending, self._news_s = self._pending, [], None
        while chunks:
            count, raw_bytes = 0, 0
            while count < len(chunks) and (count == 0 or raw_bytes + _bytes(chunks[count]) <= PART_RAW_BYTES):
                raw_bytes += _bytes(chunks[count])
                count += 1
            self._ship_part("logs", {"chunks": [asdict(chunk) for chunk in chunks[:count]]})
            chunks = chunks[count:]

    def _ship_part(self, table: str, content: dict[str, Any]) -> None:
        self._shipper.ship({"table": table, "part": self._part_count[table], **content})
        self._part_count[table] += 1


def _bytes(chunk: Chunk) -> int:
    return chunk.end - chunk.start
