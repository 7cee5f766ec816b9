"""Lines as the proving daemon writes them: tracing with its colours on stdout, timings on stderr.

Formats: tracing-subscriber's `Full`, and the timing lines of filecoin-project/curio, extern/cuzk, commit e0294b0.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from random import Random

PARTITIONS_PER_PROOF = 10
LINES_PER_PARTITION = 20
LINES_PER_SHORT_PARTITION = 4
_COLOURS = {"INFO": 32, "WARN": 33, "ERROR": 31}
_CONSTRAINTS = 130_278_869


def instant_text(at: datetime) -> str:
    """Return an instant as the daemon, and the runner's JSON, print it: microseconds and `Z`."""
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")


def tracing_line(
    at: datetime, level: str, target: str, message: str, fields: Iterable[tuple[str, str]] = (), span: str = ""
) -> str:
    """Return one event; `span` is a text of `tracing_span`, or empty."""
    head = f"\x1b[2m{instant_text(at)}\x1b[0m \x1b[{_COLOURS[level]}m{level:>5}\x1b[0m "
    said = f"\x1b[2m{target}\x1b[0m\x1b[2m:\x1b[0m {message}"
    return head + span + said + "".join(f" {_field(name, value)}" for name, value in fields)


def tracing_span(name: str, fields: Iterable[tuple[str, str]]) -> str:
    """Return a span as it stands between level and target, with its colon and blank."""
    inside = " ".join(_field(key, value) for key, value in fields)
    return f"\x1b[1m{name}\x1b[0m\x1b[1m{{\x1b[0m{inside}\x1b[1m}}\x1b[0m\x1b[2m:\x1b[0m "


def _field(name: str, value: str) -> str:
    return f"\x1b[3m{name}\x1b[0m\x1b[2m=\x1b[0m{value}"


def start_lines(budget_gib: int, gpu_count: int) -> list[tuple[str, str, tuple[tuple[str, str], ...]]]:
    """Return target, message and fields of what the daemon says while it starts."""
    return [
        ("cuzk_daemon", "cuzk-daemon starting", ()),
        ("cuzk_daemon", "configuration loaded", (("listen", "127.0.0.1:9820"),)),
        ("cuzk_daemon", "rayon global thread pool configured", (("threads", "64"),)),
        ("cuzk_core::engine", "memory budget initialized", (("total_budget_gib", str(budget_gib)),)),
        ("cuzk_core::engine", "CUDA pinned memory pool initialized", (("gpus", str(gpu_count)),)),
        ("cuzk_core::engine", "starting cuzk engine", (("pipeline_enabled", "true"),)),
        ("cuzk_core::engine", "cuzk engine started", ()),
        ("cuzk_daemon", "listening on TCP", (("addr", "127.0.0.1:9820"),)),
        ("cuzk_daemon", "cuzk-daemon ready, serving on 127.0.0.1:9820", ()),
    ]


def timeline(since_start_s: float, event: str, job_id: str, detail: str) -> str:
    """Return one line of the daemon's event list; times are milliseconds since its engine started."""
    return f"TIMELINE,{int(since_start_s * 1000)},{event},{job_id},{detail}"


def short_partition(random: Random, since_start_s: float, job_id: str, partition: int, worker: int) -> list[str]:
    """Return the few timing lines of one partition that a short log keeps (`LINES_PER_SHORT_PARTITION`)."""
    gpu_ms = random.randrange(1900, 4400)
    where = f"worker={worker},partition={partition}"
    return [
        timeline(since_start_s, "GPU_START", job_id, where),
        f"CUZK_TIMING: gpu_tid=0 ntt_msm_h_ms={random.randrange(900, 1800)}",
        f"CUZK_TIMING: gpu_tid=0 tail_msm_ms={random.randrange(90, 330)} gpu_total_ms={gpu_ms}",
        timeline(since_start_s + gpu_ms / 1000, "GPU_END", job_id, f"{where},gpu_ms={gpu_ms}"),
    ]


def partition_lines(
    random: Random, at: datetime, since_start_s: float, job_id: str, partition: int, worker: int
) -> list[tuple[str, str]]:
    """Return (stream, text) of all that the daemon writes about one partition (`LINES_PER_PARTITION`)."""
    draw = random.randrange
    synth_ms, gpu_ms = draw(30_000, 48_000), draw(1900, 4400)
    where = f"partition={partition}"
    of_job = (("job_id", job_id), ("partition", str(partition)))
    synth_span = tracing_span("synth_single", (("proof_kind", "porep"),))
    constraints = (("synth_ms", str(synth_ms)), ("num_constraints", str(_CONSTRAINTS)))
    queued = (*of_job, ("synth_ms", str(synth_ms)))
    worker_span = tracing_span("gpu_worker", (("worker_id", str(worker)), ("gpu", "0"), ("proof_kind", "porep")))
    err, out = "daemon.stderr", "daemon.stdout"
    timings = (
        f"CUZK_TIMING: split_vectors_ms={draw(150, 260)} setup_to_split_ms={draw(2, 9)}",
        f"CUZK_TIMING: prep_msm_ms={draw(150, 1700)}",
        f"CUZK_TIMING: pre_lock_cpu_ms={draw(0, 80)} mutex_wait_ms={draw(900, 2900)}",
        f"CUZK_NTT_H: d_b_alloc={draw(0, 9)}ms ntt_kernels={draw(380, 900)}ms coset_intt_sync={draw(20, 90)}ms "
        f"msm_init={draw(0, 9)}ms msm_invoke={draw(350, 600)}ms msm_dtor={draw(1, 6)}ms total={draw(900, 1500)}ms",
        f"CUZK_TIMING: gpu_tid=0 ntt_msm_h_ms={draw(900, 1800)}",
        f"CUZK_TIMING: gpu_tid=0 barrier_wait_ms={draw(20, 540)}",
        f"CUZK_TIMING: gpu_tid=0 batch_add_ms={draw(390, 860)}",
        f"CUZK_TIMING: gpu_tid=0 tail_msm_ms={draw(90, 330)} gpu_total_ms={gpu_ms}",
        f"CUZK_TIMING: mutex_held_ms={draw(1900, 3800)} total_start_fn_ms={draw(3000, 5700)}",
        f"CUZK_TIMING: b_g2_msm_ms={draw(740, 1700)} num_circuits=1",
    )
    engine = "cuzk_core::engine"
    return [
        (err, timeline(since_start_s, "SYNTH_START", job_id, where)),
        (out, tracing_line(at, "INFO", "cuzk_core::pipeline", "synthesis complete", constraints, synth_span)),
        (err, timeline(since_start_s, "SYNTH_END", job_id, f"{where},synth_ms={synth_ms}")),
        (out, tracing_line(at, "INFO", engine, "partition synthesis complete, pushing to GPU queue", queued)),
        (err, timeline(since_start_s, "GPU_QUEUE", job_id, where)),
        (err, timeline(since_start_s, "GPU_PICKUP", job_id, f"worker={worker},{where}")),
        (err, timeline(since_start_s, "GPU_START", job_id, f"worker={worker},{where}")),
        *((err, text) for text in timings),
        (err, timeline(since_start_s + gpu_ms / 1000, "GPU_END", job_id, f"worker={worker},{where},gpu_ms={gpu_ms}")),
        (out, tracing_line(at, "INFO", engine, "partition GPU prove complete", of_job, worker_span)),
        (out, tracing_line(at, "INFO", engine, "FIN_TIMING malloc_trim (success path)", of_job, worker_span)),
    ]
