"""How a run goes, from the first download to the daemon's end: setup, daemon, warm-up, benchmark. Pure."""

from __future__ import annotations

import signal
import uuid
from datetime import datetime
from random import Random

from bench.contract import EndKind
from bench.simulation.batch import PROOF_COMPLETED, play_batch
from bench.simulation.chatter import fill_with_chatter
from bench.simulation.daemon_log import instant_text, start_lines, tracing_line
from bench.simulation.facts import CONCURRENCY, PROOFS_REQUESTED, RunFacts
from bench.simulation.failing import play_daemon_end, say_failure
from bench.simulation.fleet import GIB
from bench.simulation.recording import ProofWindow, Recording, StageEnd
from bench.simulation.scenarios import Shape
from bench.simulation.schedule import Presence

ADDRESS = "http://127.0.0.1:9820"
SETUP_ARGV = ("bash", "/opt/bench/setup.sh")
DAEMON_ARGV = ("cuzk-daemon", "--config", "/opt/bench/cuzk.toml", "--listen", "127.0.0.1:9820")
C1 = "/opt/bench/c1-32g.json"
BATCH = ("cuzk-bench", "--addr", ADDRESS, "batch", "-t", "porep", "--c1", C1)
WARMUP_ARGV = (*BATCH, "--count", "1", "-j", "1")
BENCHMARK_ARGV = (*BATCH, "--count", str(PROOFS_REQUESTED), "-j", str(CONCURRENCY))
SCRIPT_ARGV = ("bash", "-u", "/opt/bench/benchmark.sh")
_PARAMETERS = (
    "v28-proof-of-spacetime-fallback-merkletree-poseidon_hasher-8-0-0-559e581f022bb4e4ec6e719e563bf0e026ad6de4.vk",
    "v28-stacked-proof-of-replication-merkletree-poseidon_hasher-8-0-0-sha256_hasher-032d3138d22506ec.params",
    "v28-stacked-proof-of-replication-merkletree-poseidon_hasher-8-8-0-sha256_hasher-82a357d2f2ca81dc.params",
    "v28-proof-of-spacetime-fallback-merkletree-poseidon_hasher-8-8-0-0377ded656c6f524f1618760bffe4e0a.params",
)


def play(facts: RunFacts, log_lines: int, end: datetime) -> Recording:
    """Return what a run left; one that falls silent, or is alive at `end`, with the time of its last sign of life."""
    recording = Recording(facts.started_at)
    random = facts.random("story")
    shape = facts.scenario.shape
    at_s = _setup(recording, facts, random)
    if shape != Shape.SETUP_FAILS:
        at_s = _start_daemon(recording, facts, random, at_s)
        at_s = _warm_up(recording, facts, random, at_s)
        if shape != Shape.WARMUP_FAILS:
            at_s = _benchmark(recording, facts, random, at_s)
        at_s = _stop_daemon(recording, random, at_s)
    recording.ended_s = at_s + random.uniform(0.2, 0.6)
    if facts.presence == Presence.IN_FLIGHT:
        recording.cut_s = (end - facts.started_at).total_seconds() - random.uniform(6.0, 50.0)
    elif shape == Shape.FALLS_SILENT:
        recording.cut_s = random.uniform(0.08, 0.95) * recording.ended_s
    fill_with_chatter(recording, log_lines, facts.random("chatter"))
    return recording


def _setup(recording: Recording, facts: RunFacts, random: Random) -> float:
    """Fetch the parameters; return when that was over."""
    start_s, took_s = 0.4, random.uniform(45.0, 150.0) if facts.presence == Presence.ENDED else random.uniform(20, 40)
    recording.start_stage(start_s, "setup", SETUP_ARGV, random.randrange(200, 400))
    fails = facts.scenario.shape == Shape.SETUP_FAILS
    checked = _PARAMETERS[:2] if fails else _PARAMETERS
    for number, name in enumerate(checked):
        at_s = start_s + took_s * (number + 1) / (len(checked) + 1)
        path = f"/var/tmp/filecoin-proof-parameters/{name}"
        recording.say(at_s, "setup.stderr", _go_line(recording.at(at_s), 227, f"Parameter file {path} is ok"))
    ended_s = start_s + took_s
    if fails:
        say_failure(recording, facts, ended_s - 0.5, job_id="")
    else:
        recording.say(
            ended_s - 0.1,
            "setup.stderr",
            _go_line(recording.at(ended_s - 0.1), 251, "parameter and key-fetching complete"),
        )
    end = StageEnd(exit_code=facts.scenario.exit_code if fails else 0)
    recording.end_stage(ended_s, "setup", end, took_s * 0.4, random.randrange(60, 90) * 2**20)
    return ended_s


def _go_line(at: datetime, source_line: int, message: str) -> str:
    stamp = instant_text(at)[:-4] + "Z"
    return f"{stamp}\tINFO\tparamfetch\tfastparamfetch/paramfetch.go:{source_line}\t{message}"


def _start_daemon(recording: Recording, facts: RunFacts, random: Random, at_s: float) -> float:
    """Start the daemon; return when its port answered."""
    recording.start_stage(at_s + 0.2, "daemon", DAEMON_ARGV, random.randrange(400, 900))
    said = start_lines(facts.budget_bytes // GIB, facts.machine.num_gpus)
    step_s = random.uniform(0.3, 0.9)
    for number, (target, message, fields) in enumerate(said):
        said_s = at_s + 0.4 + number * step_s
        recording.say(said_s, "daemon.stdout", tracing_line(recording.at(said_s), "INFO", target, message, fields))
    ready_s = at_s + 0.5 + len(said) * step_s
    recording.mark_ready(ready_s, "daemon")
    return ready_s


def _warm_up(recording: Recording, facts: RunFacts, random: Random, at_s: float) -> float:
    """Prove once, unmeasured; return when that was over."""
    start_s, took_s = at_s + 0.2, 3600 / facts.rate_proofs_per_hour * 1.1 + random.uniform(8.0, 16.0)
    job_id = str(uuid.UUID(int=random.getrandbits(128), version=4))
    recording.start_stage(start_s, "warmup", WARMUP_ARGV, random.randrange(900, 1200))
    recording.say(start_s + 0.1, "warmup.stdout", *batch_header(1, 1))
    fields = (("job_id", job_id), ("proof_kind", "porep"), ("priority", "normal"))
    recording.say(
        start_s + 0.2,
        "daemon.stdout",
        tracing_line(recording.at(start_s + 0.2), "INFO", "cuzk_server::service", "Prove", fields),
    )
    fails = facts.scenario.shape == Shape.WARMUP_FAILS
    ended_s = start_s + took_s * (random.uniform(0.15, 0.4) if fails else 1.0)
    recording.windows.append(ProofWindow(job_id, start_s + 0.3, ended_s - 0.8))
    if fails:
        say_failure(recording, facts, ended_s - 0.6, job_id)
        play_daemon_end(recording, facts, ended_s - 0.3, random)
        recording.say(ended_s - 0.1, "warmup.stderr", "Error: Prove RPC failed")
    else:
        recording.say(ended_s - 0.6, "daemon.stdout", _job_line(recording.at(ended_s - 0.6), PROOF_COMPLETED, job_id))
        recording.say(ended_s - 0.2, "warmup.stdout", *warmup_summary(took_s))
    end = StageEnd(exit_code=1 if fails else 0)
    recording.end_stage(ended_s, "warmup", end, 0.4, 38 * 2**20)
    return ended_s


def batch_header(count: int, concurrency: int) -> tuple[str, ...]:
    """Return what the benchmark prints before it submits anything."""
    return (
        "=== Batch Benchmark ===",
        "proof type:  porep",
        f"count:       {count}",
        f"concurrency: {concurrency}",
        "",
    )


def warmup_summary(took_s: float) -> tuple[str, ...]:
    """Return what the benchmark prints of a batch of one proof that completed."""
    prove_ms = int(took_s * 970)
    return (
        f"  [1/1] COMPLETED — {took_s:.1f}s (prove={prove_ms} ms, queue=3 ms)",
        "",
        "=== Batch Summary ===",
        f"total time:    {took_s:.1f}s",
        "completed:     1",
        "failed:        0",
    )


def _job_line(at: datetime, message: str, job_id: str) -> str:
    return tracing_line(at, "INFO", "cuzk_core::engine", message, (("job_id", job_id),))


def _benchmark(recording: Recording, facts: RunFacts, random: Random, at_s: float) -> float:
    """Run the measured batch, or what stands in its place; return when that was over."""
    is_script = facts.scenario.shape == Shape.SCRIPT_FAILS
    argv = SCRIPT_ARGV if is_script else BENCHMARK_ARGV
    recording.start_stage(at_s + 0.3, "benchmark", argv, random.randrange(1200, 1500))
    if not is_script:
        recording.say(at_s + 0.4, "benchmark.stdout", *batch_header(PROOFS_REQUESTED, CONCURRENCY))
        return play_batch(recording, facts, random, at_s + 0.5)
    say_failure(recording, facts, at_s + 0.6, job_id="")
    end = StageEnd(exit_code=facts.scenario.exit_code)
    recording.end_stage(at_s + 0.8, "benchmark", end, 0.1, 6 * 2**20)
    return at_s + 0.8


def _stop_daemon(recording: Recording, random: Random, at_s: float) -> float:
    """Stop the daemon if it still runs: SIGINT first, then SIGTERM, for its server outlives its engine."""
    if not recording.is_running("daemon"):
        return at_s
    asked_s, ended_s = at_s + 0.2, at_s + 10.4
    said_s = asked_s + 0.05
    line = tracing_line(recording.at(said_s), "INFO", "cuzk_daemon", "received SIGINT, shutting down")
    recording.say(said_s, "daemon.stdout", line)
    sent = ((asked_s, int(signal.SIGINT), "stop"), (asked_s + 10.0, int(signal.SIGTERM), "stop"))
    end = StageEnd(EndKind.STOPPED_BY_RUNNER, signal=int(signal.SIGTERM), signals_sent=sent)
    recording.end_stage(ended_s, "daemon", end, random.uniform(40.0, 60.0) * ended_s / 10, 180 * GIB)
    return ended_s
