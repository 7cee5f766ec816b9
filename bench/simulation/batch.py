"""The measured batch: proofs at the machine's rate, and what breaks in its middle. Pure."""

from __future__ import annotations

import signal
import uuid
from dataclasses import dataclass
from random import Random

from bench.contract import EndKind
from bench.simulation.daemon_log import PARTITIONS_PER_PROOF, timeline, tracing_line
from bench.simulation.facts import CONCURRENCY, PROOFS_REQUESTED, RunFacts
from bench.simulation.failing import play_daemon_end, say_failure
from bench.simulation.recording import ProofWindow, Recording, StageEnd
from bench.simulation.scenarios import JOB_MIXUP, Shape

PROOF_COMPLETED = "Phase 7: PoRep proof self-check PASSED"
BENCHMARK_TIMEOUT_S = 2700.0
_BROKEN_OFF = (Shape.DAEMON_DIES, Shape.DAEMON_REFUSES, Shape.HANGS)
_RSS_BYTES = 44 * 2**20
_DAEMON_GONE = ("", "Caused by:", "    0: transport error", "    1: connection reset by peer (os error 104)")
_DAEMON_REFUSED = ("", "Caused by:", '    status: Internal, message: "proof failed", details: []')


@dataclass(frozen=True)
class Job:
    """One proof of the batch; `done_s` is when the daemon is done with it, by the machine's rate."""

    number: int
    job_id: str
    start_s: float
    done_s: float


def play_batch(recording: Recording, facts: RunFacts, random: Random, start_s: float) -> float:
    """Run the batch from `start_s` on; return when the benchmark ended."""
    jobs = _jobs(facts, random, start_s)
    if facts.scenario.shape in _BROKEN_OFF:
        return _play_broken(recording, facts, random, jobs)
    failed = _failing_numbers(facts, random)
    for job in jobs:
        if job.number in failed:
            _work(recording, job, is_completed=False)
            say_failure(recording, facts, job.done_s - 0.1, job.job_id)
        else:
            _work(recording, job, is_completed=True)
    ended_s = jobs[-1].done_s + 0.4
    _print_proofs(recording, jobs, failed, random)
    recording.say(ended_s - 0.1, "benchmark.stdout", *_summary(jobs, failed, ended_s - 0.3 - start_s))
    recording.end_stage(ended_s, "benchmark", StageEnd(exit_code=0), 0.9, _RSS_BYTES)
    return ended_s


def _jobs(facts: RunFacts, random: Random, start_s: float) -> list[Job]:
    each_s = 3600 / facts.rate_proofs_per_hour
    jobs = []
    begun_s = start_s
    for number in range(PROOFS_REQUESTED):
        is_last = number == PROOFS_REQUESTED - 1
        play_s = 0.0 if is_last else random.uniform(-0.06, 0.06) * each_s
        done_s = start_s + (number + 1) * each_s + play_s
        jobs.append(Job(number, str(uuid.UUID(int=random.getrandbits(128), version=4)), begun_s, done_s))
        begun_s = done_s
    return jobs


def _failing_numbers(facts: RunFacts, random: Random) -> frozenset[int]:
    """Return which proofs fail their self-check: one by a mix-up, about half by a GPU that computes wrongly."""
    if facts.scenario.shape != Shape.SOME_PROOFS_FAIL:
        return frozenset()
    if facts.scenario is JOB_MIXUP:
        return frozenset({random.randrange(1, PROOFS_REQUESTED)})
    share = random.choice((0.3, 0.6, 1.0))
    first = random.randrange(PROOFS_REQUESTED)
    return frozenset({first, *(number for number in range(PROOFS_REQUESTED) if random.random() < share)})


def _work(recording: Recording, job: Job, is_completed: bool) -> None:
    """Note what the daemon says of one whole proof."""
    _begin(recording, job)
    recording.windows.append(ProofWindow(job.job_id, job.start_s + 0.1, job.done_s - 0.3))
    if is_completed:
        at = recording.at(job.done_s - 0.1)
        line = tracing_line(at, "INFO", "cuzk_core::engine", PROOF_COMPLETED, (("job_id", job.job_id),))
        recording.say(job.done_s - 0.1, "daemon.stdout", line)


def _begin(recording: Recording, job: Job) -> None:
    fields = (("job_id", job.job_id), ("proof_kind", "porep"), ("priority", "normal"))
    at_s = job.start_s + 0.05
    line = tracing_line(recording.at(at_s), "INFO", "cuzk_server::service", "Prove", fields)
    recording.say(at_s, "daemon.stdout", line)


def _print_proofs(recording: Recording, jobs: list[Job], failed: frozenset[int], random: Random) -> None:
    """Print a line a proof. The benchmark prints nothing until all are submitted, so until N - C are over."""
    all_submitted_s = jobs[PROOFS_REQUESTED - CONCURRENCY - 1].done_s
    for job in jobs:
        submitted_s = jobs[max(job.number - CONCURRENCY, 0)].done_s if job.number >= CONCURRENCY else jobs[0].start_s
        wall_s = job.done_s - submitted_s
        prove_ms = int((job.done_s - job.start_s) * random.uniform(930, 1000))
        word = "FAILED" if job.number in failed else "COMPLETED"
        queue_ms = max(int(wall_s * 1000) - prove_ms, 0)
        text = (
            f"  [{job.number + 1}/{PROOFS_REQUESTED}] {word} — {wall_s:.1f}s (prove={prove_ms} ms, queue={queue_ms} ms)"
        )
        recording.say(max(job.done_s, all_submitted_s) + 0.01, "benchmark.stdout", text)


def _summary(jobs: list[Job], failed: frozenset[int], total_s: float) -> list[str]:
    completed = len(jobs) - len(failed)
    lines = [
        "",
        "=== Batch Summary ===",
        f"total time:    {total_s:.1f}s",
        f"completed:     {completed}",
        f"failed:        {len(failed)}",
    ]
    if not completed:
        return lines
    proves_s = [job.done_s - job.start_s for job in jobs if job.number not in failed]
    average_s = sum(proves_s) / len(proves_s)
    return [
        *lines,
        f"wall time:     avg={average_s * CONCURRENCY:.1f}s min={min(proves_s):.1f}s"
        f" max={max(proves_s) * CONCURRENCY:.1f}s",
        f"prove time:    avg={average_s:.1f}s",
        f"throughput:    {completed * 60 / total_s:.3f} proofs/min ({total_s / completed:.1f}s/proof)",
    ]


def _play_broken(recording: Recording, facts: RunFacts, random: Random, jobs: list[Job]) -> float:
    """Let the proofs before the failure complete, then break the next one off in its middle."""
    before, broken = jobs[: facts.completed_before], jobs[facts.completed_before]
    for job in before:
        _work(recording, job, is_completed=True)
    fail_s = broken.start_s + random.uniform(0.3, 0.8) * (broken.done_s - broken.start_s)
    _begin(recording, broken)
    recording.windows.append(ProofWindow(broken.job_id, broken.start_s + 0.1, fail_s - 0.2))
    where = f"worker={random.randrange(2)},partition={random.randrange(PARTITIONS_PER_PROOF)}"
    since_s = fail_s - recording.windows[0].start_s
    recording.say(fail_s - 0.1, "daemon.stderr", timeline(since_s, "GPU_START", broken.job_id, where))
    if len(before) >= PROOFS_REQUESTED - CONCURRENCY:
        _print_proofs(recording, before, frozenset(), random)
    if facts.scenario.shape == Shape.HANGS:
        return _time_out(recording, jobs[0].start_s + BENCHMARK_TIMEOUT_S)
    say_failure(recording, facts, fail_s, broken.job_id)
    play_daemon_end(recording, facts, fail_s + 0.1, random)
    causes = _DAEMON_REFUSED if recording.is_running("daemon") else _DAEMON_GONE
    recording.say(fail_s + 0.2, "benchmark.stderr", "Error: Prove RPC failed", *causes)
    recording.end_stage(fail_s + 0.3, "benchmark", StageEnd(exit_code=1), 0.5, _RSS_BYTES)
    return fail_s + 0.3


def _time_out(recording: Recording, at_s: float) -> float:
    sent = ((at_s, int(signal.SIGTERM), f"no end within {BENCHMARK_TIMEOUT_S:.0f} s"),)
    end = StageEnd(EndKind.TIMED_OUT, signal=int(signal.SIGTERM), signals_sent=sent)
    recording.end_stage(at_s + 0.1, "benchmark", end, 0.5, _RSS_BYTES)
    return at_s + 0.1
