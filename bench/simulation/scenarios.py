"""What can become of a run, and the lines that tell of it: the catalogue that the truth is taken from.

Blame and cause are words of the failure taxonomy. The texts follow the proving stack's own formats
(filecoin-project/curio, extern/cuzk, commit e0294b0) and public reports of how it failed.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass

from bench.contract import Vocabulary

ENGINE = "cuzk_core::engine"
SERVICE = "cuzk_server::service"
DAEMON_STDOUT = "daemon.stdout"
DAEMON_STDERR = "daemon.stderr"
KERNEL = "kernel"


class Shape(Vocabulary):
    """How a run goes: which process ends how, and what the others make of it."""

    PASSES = "passes"
    SOME_PROOFS_FAIL = "some_proofs_fail"
    SETUP_FAILS = "setup_fails"
    WARMUP_FAILS = "warmup_fails"
    SCRIPT_FAILS = "script_fails"
    DAEMON_DIES = "daemon_dies"
    DAEMON_REFUSES = "daemon_refuses"
    HANGS = "hangs"
    FALLS_SILENT = "falls_silent"
    NEVER_STARTS = "never_starts"


@dataclass(frozen=True)
class Said:
    """One line of a failure. `level` (with `target` and `fields`) makes it a tracing line of the daemon.

    Texts hold `{job}`, `{pci}` and `{pid}`. A line of the kernel that cannot be read goes to
    `else_to`, or is not said at all.
    """

    stream: str
    text: str
    level: str = ""
    target: str = ENGINE
    fields: tuple[tuple[str, str], ...] = ()
    is_root: bool = False
    else_to: str = ""


@dataclass(frozen=True)
class Scenario:
    """One kind of run. `exit_code` and `ended_by` are of the process that fails first; `xid` is what NVML tells."""

    name: str
    shape: Shape
    blame: str = "unknown"
    cause: str | None = None
    lines: tuple[Said, ...] = ()
    exit_code: int | None = None
    ended_by: int | None = None
    xid: int | None = None
    oom_kill_count: int = 0

    @property
    def root(self) -> Said | None:
        """The line that tells the cause; null where nothing does."""
        return next((line for line in self.lines if line.is_root), None)


_PANIC_AT = "/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/supraseal-c2-0.1.2/src/lib.rs:151:9:"
_SYNC = "cudaStreamSynchronize(stream)@sppark-0.1.15/sppark/util/gpu_t.cuh:158 failed:"
_NOTE = "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace"
_JOB = ("job_id", "{job}")


def _error(message: str, *fields: tuple[str, str], target: str = ENGINE, is_root: bool = False) -> Said:
    return Said(DAEMON_STDOUT, message, "ERROR", target, fields, is_root)


def _proof_failed(reason: str) -> tuple[Said, ...]:
    """What the daemon says after a partition failed: true, but no cause."""
    return (
        _error("partition GPU proving task panicked", _JOB, ("error", reason)),
        _error("prove failed", _JOB, ("error", reason), target=SERVICE),
    )


def _panic(message: str, thread: str = "<unnamed>", at: str = _PANIC_AT) -> tuple[Said, ...]:
    return (
        Said(DAEMON_STDERR, f"thread '{thread}' panicked at {at}"),
        Said(DAEMON_STDERR, message, is_root=True),
        Said(DAEMON_STDERR, _NOTE),
    )


def _abort(what: str, is_root: bool = True) -> tuple[Said, ...]:
    return (
        Said(DAEMON_STDERR, "terminate called after throwing an instance of 'sppark_error'"),
        Said(DAEMON_STDERR, f"  what():  {what}", is_root=is_root),
    )


_ILLEGAL_WIDE = (
    "cudaGetLastError()@sppark-0.1.14/sppark/ntt/kernels/gs_mixed_radix_wide.cu:220 failed: "
    '"an illegal memory access was encountered"'
)
_NO_MEMORY = 'gpu_ptr_t@sppark-0.1.14/sppark/util/gpu_t.cuh:366 failed: "out of memory"'
_TASK = "GPU task panicked: task 214 panicked"

PASSED = Scenario("passed", Shape.PASSES, "none")

BUILD_ILLEGAL_ACCESS = Scenario(
    "build_illegal_access",
    Shape.DAEMON_DIES,
    "software",
    "cuda_illegal_access",
    (*_panic(_ILLEGAL_WIDE), *_proof_failed(_TASK), *_abort(_ILLEGAL_WIDE, is_root=False)),
    ended_by=signal.SIGABRT,
    xid=31,
)
BUILD_MEMORY_LEAK = Scenario(
    "build_memory_leak",
    Shape.DAEMON_REFUSES,
    "software",
    "gpu_memory_leak",
    (
        *_panic(_NO_MEMORY),
        *_proof_failed(_TASK),
        Said(DAEMON_STDERR, f"thread '<unnamed>' panicked at {_PANIC_AT}"),
        Said(DAEMON_STDERR, "Once has panicked"),
    ),
)
CGROUP_KILL = Scenario(
    "cgroup_kill", Shape.DAEMON_DIES, "configuration", "cgroup_oom", ended_by=signal.SIGKILL, oom_kill_count=1
)
OLD_DRIVER = Scenario(
    "old_driver",
    Shape.WARMUP_FAILS,
    "configuration",
    "host_driver_too_old",
    (
        _error("GPU prove start failed", _JOB, ("error", "no usable device")),
        *_abort(
            "cudaGetDeviceCount(&n)@sppark-0.1.15/sppark/util/all_gpus.cpp:25 failed: "
            '"CUDA driver version is insufficient for CUDA runtime version"'
        ),
    ),
    ended_by=signal.SIGABRT,
)
SMALL_GPU = Scenario(
    "small_gpu",
    Shape.WARMUP_FAILS,
    "configuration",
    "vram_too_small",
    (
        *_panic('gpu_ptr_t@sppark-0.1.15/sppark/util/gpu_t.cuh:366 failed: "out of memory"'),
        *_proof_failed(_TASK),
    ),
)

HARDWARE = (
    Scenario(
        "gpu_off_bus",
        Shape.DAEMON_DIES,
        "machine",
        "gpu_fell_off_bus",
        (
            Said(
                KERNEL,
                "NVRM: Xid (PCI:{pci}): 79, pid={pid}, name=cuzk-daemon, GPU has fallen off the bus.",
                is_root=True,
                else_to=DAEMON_STDERR,
            ),
            *_abort(f'{_SYNC} "unspecified launch failure"', is_root=False),
        ),
        ended_by=signal.SIGABRT,
        xid=79,
    ),
    Scenario(
        "gpu_ecc",
        Shape.DAEMON_DIES,
        "machine",
        "gpu_ecc_uncorrectable",
        (
            Said(KERNEL, "NVRM: Xid (PCI:{pci}): 48, pid={pid}, name=cuzk-daemon, An uncorrectable double bit error"),
            *_abort(f'{_SYNC} "uncorrectable ECC error encountered"'),
        ),
        ended_by=signal.SIGABRT,
        xid=48,
    ),
    Scenario(
        "gpu_illegal_access",
        Shape.DAEMON_DIES,
        "machine",
        "gpu_hw_fault_repeated",
        (
            _error("partition GPU proving failed", _JOB, ("error", "CUDA error: an illegal memory access")),
            *_abort(f'{_SYNC} "an illegal memory access was encountered"'),
        ),
        ended_by=signal.SIGABRT,
        xid=31,
    ),
    Scenario(
        "gpu_bad_proofs",
        Shape.SOME_PROOFS_FAIL,
        "machine",
        "silent_corruption",
        (
            _error(
                "Phase 7: per-partition verification results (invalid partitions produced bad proofs)",
                _JOB,
                ("valid_partitions", "[0, 1, 2, 4, 5, 6, 7, 9]"),
                ("invalid_partitions", "[3, 8]"),
            ),
            _error("Phase 7: PoRep proof self-check FAILED — proof will NOT be returned to caller", _JOB, is_root=True),
        ),
    ),
)
"""What a machine's own fault looks like; each failing machine has one that it comes back to."""

KILLED_BY_NOBODY = Scenario("killed_by_nobody", Shape.DAEMON_DIES, cause="sigkill_sender", ended_by=signal.SIGKILL)
QUIET_EXIT = Scenario("quiet_exit", Shape.DAEMON_DIES, cause="no_evidence", exit_code=1)
QUIET_REFUSAL = Scenario("quiet_refusal", Shape.DAEMON_REFUSES, cause="no_evidence")
HANG = Scenario("hang", Shape.HANGS, "software", "hang")
WORKER_PANIC = Scenario(
    "worker_panic",
    Shape.DAEMON_REFUSES,
    "software",
    "panic",
    (
        *_panic(
            "index out of bounds: the len is 10 but the index is 10",
            "rayon-synth-3",
            "extern/cuzk/cuzk-core/src/pipeline.rs:412:37:",
        ),
        _error("partition synthesis task panicked", _JOB),
        _error("prove failed", _JOB, ("error", "synthesis task panicked"), target=SERVICE),
    ),
)
JOB_MIXUP = Scenario(
    "job_mixup",
    Shape.SOME_PROOFS_FAIL,
    "software",
    "proof_invalid",
    (
        Said(
            DAEMON_STDOUT,
            "ALL 10 partition proofs are individually valid — likely an ordering/assembly bug",
            "INFO",
            ENGINE,
            (_JOB,),
        ),
        _error("Phase 7: PoRep proof self-check FAILED — proof will NOT be returned to caller", _JOB, is_root=True),
    ),
)

_FETCHED = "v28-stacked-proof-of-replication-merkletree-poseidon_hasher-8-8-0-sha256_hasher-82a357d2f2ca81dc.params"
DOWNLOAD_FAILED = Scenario(
    "download_failed",
    Shape.SETUP_FAILS,
    "environment",
    "download_failed",
    (
        Said(
            "setup.stderr",
            f"ERROR\tparamfetch\tfastparamfetch/paramfetch.go:198\tfetching file {_FETCHED}: "
            "read tcp 172.17.0.2:41822->104.18.4.21:443: read: connection reset by peer",
            "GO",
            is_root=True,
        ),
        Said("setup.stderr", "Error: parameter fetch failed after 5 tries"),
    ),
    exit_code=1,
)
NO_NAME_SERVICE = Scenario(
    "no_name_service",
    Shape.SETUP_FAILS,
    "environment",
    "dns_or_tls",
    (
        Said(
            "setup.stderr",
            "curl: (6) Could not resolve host: proofs.filecoin.io (Temporary failure in name resolution)",
            is_root=True,
        ),
        Said("setup.stderr", "Error: parameter fetch failed after 5 tries"),
    ),
    exit_code=6,
)
UNBOUND_VARIABLE = Scenario(
    "unbound_variable",
    Shape.SCRIPT_FAILS,
    "benchmark_script",
    "shell_error",
    (Said("benchmark.stderr", "/opt/bench/benchmark.sh: line 41: PARTITION_WORKERS: unbound variable", is_root=True),),
    exit_code=1,
)
COMMAND_NOT_FOUND = Scenario(
    "command_not_found",
    Shape.SCRIPT_FAILS,
    "benchmark_script",
    "shell_error",
    (Said("benchmark.stderr", "/opt/bench/benchmark.sh: line 12: cuzk-bench: command not found", is_root=True),),
    exit_code=127,
)
LOST_HOST = Scenario("lost_host", Shape.FALLS_SILENT, cause="no_heartbeat")
HOST_OFFLINE = Scenario("host_offline", Shape.FALLS_SILENT, "machine", "host_offline")
OUTBID = Scenario("outbid", Shape.FALLS_SILENT, "none", "outbid")
NEVER_STARTED = Scenario("never_started", Shape.NEVER_STARTS, cause="no_evidence")

ANYWHERE: tuple[tuple[Scenario, float], ...] = (
    (KILLED_BY_NOBODY, 0.018),
    (QUIET_EXIT, 0.012),
    (QUIET_REFUSAL, 0.012),
    (HANG, 0.008),
    (WORKER_PANIC, 0.008),
    (JOB_MIXUP, 0.006),
    (DOWNLOAD_FAILED, 0.015),
    (NO_NAME_SERVICE, 0.006),
    (UNBOUND_VARIABLE, 0.009),
    (COMMAND_NOT_FOUND, 0.006),
    (LOST_HOST, 0.014),
    (OUTBID, 0.008),
    (NEVER_STARTED, 0.02),
)
"""What may befall a run on any machine, with its chance; the rest passes, or is too slow."""

SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        PASSED,
        BUILD_ILLEGAL_ACCESS,
        BUILD_MEMORY_LEAK,
        CGROUP_KILL,
        OLD_DRIVER,
        SMALL_GPU,
        HOST_OFFLINE,
        *HARDWARE,
        *(scenario for scenario, _ in ANYWHERE),
    )
}
