"""The bundle that a run leaves in the store: its tables, column by column, and their vocabularies.

This is the one place that says what a bundle holds. Standard library only. A change of a name, a type
or a meaning is a new `SCHEMA_VERSION` with a line of history; a new column or table is free.
Keys and limits stand in `bench.keys`; how a column is declared, in `bench.schema`.
"""

from __future__ import annotations

from enum import Enum

from bench.schema import Table
from bench.schema import column as c

SCHEMA_VERSION = 1
SCHEMA_HISTORY = ((1, "2026-12-01", "the first version; nothing is older"),)


class Vocabulary(str, Enum):
    """A fixed list of words; each member is its own text (3.10 has no StrEnum)."""

    def __str__(self) -> str:
        return str(self.value)


class EndKind(Vocabulary):
    EXITED = "exited"
    SIGNALLED = "signalled"
    TIMED_OUT = "timed_out"
    STOPPED_BY_RUNNER = "stopped_by_runner"
    UNKILLABLE = "unkillable"
    NEVER_STARTED = "never_started"
    STILL_RUNNING = "still_running"
    LOST = "lost"


class EndReason(Vocabulary):
    FINISHED = "finished"
    TIMEOUT = "timeout"
    TERMINATED = "terminated"
    RUNNER_ERROR = "runner_error"
    RUNNER_KILLED = "runner_killed"
    HOST_RESTARTED = "host_restarted"


class FinishedBy(Vocabulary):
    RUNNER = "runner"
    GUARDIAN = "guardian"
    RESUME = "resume"


class RunnerFlag(Vocabulary):
    DISK_FULL = "disk_full"
    SPOOL_UNWRITABLE = "spool_unwritable"
    SPOOL_WIPED = "spool_wiped"
    CLOCK_JUMPED = "clock_jumped"
    NO_PARQUET = "no_parquet"
    TELEMETRY_HUNG = "telemetry_hung"
    REDACTION_REDUCED = "redaction_reduced"
    UPLOAD_UNCONFIRMED = "upload_unconfirmed"
    UPLOAD_CONFLICT = "upload_conflict"
    NO_READ_BACK = "no_read_back"


class RunnerEvent(Vocabulary):
    """`event` of the JSON lines in stream `runner`."""

    STAGE_STARTED = "stage_started"
    STAGE_ENDED = "stage_ended"
    SIGNAL_SENT = "signal_sent"
    OOM_KILL = "oom_kill"
    PROOF = "proof"
    WARNING = "warning"
    FOLLOWED_FILE = "followed_file"
    UPLOAD_FAILED = "upload_failed"


class KernelLog(Vocabulary):
    READABLE = "readable"
    DENIED = "denied"
    ABSENT = "absent"


class FoundBy(Vocabulary):
    CHILD = "child"
    COOKIE = "cookie"
    ORPHAN = "orphan"


class ProofPhase(Vocabulary):
    WARMUP = "warmup"
    MEASURED = "measured"


class ProofStatus(Vocabulary):
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    UNKNOWN = "unknown"


RUNNER_STREAM = "runner"
DEFAULT_USD_PER_PROOF = 0.008
"""What one proof earns, in dollars: the operators' own figure; a run or a grant may say another."""

TERMINATOR_BYTES = {0: b"", 1: b"\n", 2: b"\r", 3: b"\r\n"}
"""`logs.terminator` -> the bytes that ended the line."""

OPENING = Table(
    "opening",
    "One row: who, where, at what price and with which plan. Stored before anything is started.",
    ("run_id",),
    (
        c("schema_version", "int32", "version of this contract"),
        c("run_id", "string", "UUIDv7; its time is when the id was made"),
        c("started_at", "timestamp", "start of the run by the runner's clock"),
        c("runner_version", "string", "version of lastwords that recorded the run"),
        c("marketplace", "string", "`vast.ai`, `local`, ..."),
        c("instance_id", "int64?", "the marketplace's id of this rental's instance"),
        c("machine_id", "int64?", "the physical computer: what is scored and listed"),
        c("host_id", "int64?", "its owner; never listed"),
        c("machine_id_source", "string?", "`flag`, `env`, `grant`, `api`; null where unknown"),
        c("instance_label", "string?", "the marketplace's label, `C.<instance_id>` on vast.ai"),
        c("geolocation", "string?", "as the marketplace says it"),
        c(
            "public_ip_hash",
            "string?",
            "keyed hash of the public address, never the address: equal addresses can be seen",
        ),
        c(
            "price_usd_per_hour",
            "float64?",
            "rent of the instance, all its GPUs together (vast.ai: dph_total)",
        ),
        c("usd_per_proof", "float64?", "what one proof earns"),
        c("min_rate_proofs_per_hour", "float64?", "the threshold in force for this run"),
        c(
            "min_rate_source",
            "string?",
            "`flag`, `env`, `grant`, or `price` (price_usd_per_hour / usd_per_proof)",
        ),
        c("gpu_model", "string?", "of GPU 0; all GPUs are in `gpus`"),
        c("driver_version", "string?", "of the GPU driver"),
        c("cuda_version", "string?", "newest CUDA that the driver supports"),
        c("num_gpus", "int32?", "GPUs seen by NVML"),
        c("num_gpus_rented", "int32?", "GPUs that the marketplace promised"),
        c(
            "gpus",
            "list<struct<index:int32, uuid:string, model:string, memory_bytes:int64, pcie_gen:int32,"
            " pcie_width:int32, power_limit_w:float64, ecc:bool>>",
            "each GPU as NVML describes it; empty with a line in probe_errors where there is no NVML",
        ),
        c("cpu_model", "string?", "of the first processor"),
        c("cpu_count", "int32?", "logical processors of the host"),
        c("cpu_quota_count", "float64?", "processors that the cgroup grants; null when unlimited"),
        c("memory_bytes", "int64?", "MemTotal of the host"),
        c("memory_limit_bytes", "int64?", "the cgroup's memory limit; null when unlimited"),
        c("shm_bytes", "int64?", "size of /dev/shm"),
        c("disk_free_bytes", "int64?", "free on the spool's disk at the start"),
        c("kernel", "string?", "release of the kernel"),
        c("os_image", "string?", "PRETTY_NAME of the operating system"),
        c("container_image", "string?", "the image's name, where the environment tells it"),
        c("plan_name", "string", "which plan ran"),
        c("plan", "string", "the whole resolved plan as JSON, secrets redacted"),
        c("settings", "map<string,string>", "the plan's comparable settings as they were worked out"),
        c(
            "versions",
            "map<string,string>",
            "of the software under test: `daemon`, `bench`, `image_digest`, ...",
        ),
        c("proof_kind", "string?", "e.g. `porep-32g`"),
        c("build_id", "string?", "image digest, else hash of the daemon's and benchmark's binaries"),
        c("settings_asked", "map<string,string>", "as the plan had them (`auto` stays `auto`)"),
        c("settings_sources", "map<string,string>", "setting -> from what it was worked out"),
        c("probe_errors", "map<string,string>", "column -> why it is null"),
        c(
            "identity_claims",
            "list<struct<field:string, source:string, value:string>>",
            "which source said what",
        ),
        c(
            "plan_warnings",
            "list<struct<code:string, text:string, measured:float64, limit:float64, unit:string>>",
            "what looked wrong before the start, with its two figures",
        ),
        c(
            "input_files",
            "list<struct<path:string, bytes:int64, sha256:string>>",
            "parameter files and the like",
        ),
        c("kernel_log", "string", "`readable`, `denied`, `absent`"),
        c("rental_id", "string?", "as in the launch record"),
        c("rental_kind", "string?", "`on_demand`, `interruptible`, `reserved`"),
        c("gpu_frac", "float64?", "share of the machine's GPUs that is rented"),
        c(
            "longest_interval_s",
            "float64?",
            "longest time between two parts, where rights are counted in keys",
        ),
        c("store_credential", "string", "with what the runner writes: `grant`, `keys`, `file`"),
        c("follows_run_id", "string?", "the run of the same rental before it"),
        c("is_second_try", "bool?", "the run before it again, with one setting changed"),
        c("boot_id", "string?", "of the kernel: tells a restarted host from a restarted runner"),
    ),
)

LOGS = Table(
    "logs",
    "All streams of the run, one row a line, in the order captured. Comes in numbered parts.",
    ("seq",),
    (
        c("seq", "int64", "0, 1, 2 ... over the whole run; a gap is lost evidence"),
        c(
            "stream",
            "dictionary",
            "`<stage>.stdout`, `<stage>.stderr`, the name of a followed file, `runner`, `kernel`",
        ),
        c("captured_at", "timestamp?", "the capture tick (at most 100 ms apart); null from a raw bundle"),
        c("text", "string", "the line, decoded, without its terminator; control sequences kept"),
        c("raw", "binary?", "the line's exact bytes where `text` would not give them back"),
        c("terminator", "int8", "0 none (cut or end of stream), 1 LF, 2 CR, 3 CRLF"),
        c(
            "is_continued",
            "bool",
            "the line was longer than 64 KiB and goes on in the next row of its stream",
        ),
    ),
)

TELEMETRY = Table(
    "telemetry",
    "Samples of each GPU and of the host (gpu_index null). Comes in numbered parts: the sign of life.",
    ("sampled_at", "gpu_index"),
    (
        c("sampled_at", "timestamp", "when the sample was taken"),
        c("gpu_index", "int32?", "null for the host's row"),
        c("gpu_util_ratio", "float64?", "share of the last interval in which a kernel ran"),
        c("memory_used_bytes", "int64?", "of the GPU, or of the host"),
        c("power_w", "float64?", "drawn now"),
        c("temperature_c", "float64?", "of the GPU"),
        c("sm_clock_mhz", "float64?", "of the multiprocessors"),
        c("memory_clock_mhz", "float64?", "of the GPU's memory"),
        c("throttle_reasons", "int64?", "bit mask as NVML gives it"),
        c("pcie_gen", "int32?", "current generation of the link"),
        c("pcie_width", "int32?", "current lanes of the link"),
        c("memory_total_bytes", "int64?", "of the GPU, or of the host"),
        c("other_process_count", "int32?", "processes on the GPU that are not ours"),
        c("other_memory_used_bytes", "int64?", "GPU memory of processes that are not ours"),
        c("ecc_uncorrected_count", "int64?", "uncorrected memory errors since the driver was loaded"),
        c("xid", "int32?", "number of the newest Xid error"),
        c("error", "string?", "the NVML error that replaced the sample"),
        c("cpu_ratio", "float64?", "host row: share of all processors' time that was busy"),
        c("cgroup_memory_bytes", "int64?", "host row: memory that the cgroup is charged for"),
        c("oom_kill_count", "int64?", "host row: the cgroup's counter"),
        c("disk_free_bytes", "int64?", "host row: free on the spool's disk"),
        c("load_1m", "float64?", "host row: load average of one minute"),
        c("stage", "string?", "host row: the stage that ran"),
        c("proofs_completed", "int32?", "host row: measured proofs completed so far"),
        c("log_bytes", "int64?", "host row: bytes of log captured so far"),
    ),
)

STAGES = Table(
    "stages",
    "One row for each process that the runner ran or watched.",
    ("stage_index",),
    (
        c("stage_index", "int32", "0, 1, 2 ... in order of start; names may repeat"),
        c("stage", "string", "`setup`, `daemon`, `warmup`, `benchmark`, `teardown`, or a plan's own name"),
        c("argv", "list<string>", "the command, redacted"),
        c("pid", "int64?", "null where it never started"),
        c("started_at", "timestamp?", "null where it never started"),
        c("ended_at", "timestamp?", "null where it did not end"),
        c("wall_s", "float64?", "by the monotonic clock"),
        c("user_cpu_s", "float64?", "of the process and its waited-for children"),
        c("system_cpu_s", "float64?", "of the process and its waited-for children"),
        c("max_rss_bytes", "int64?", "largest resident set"),
        c("ready_at", "timestamp?", "its port answered"),
        c("last_output_at", "timestamp?", "capture tick of its last byte"),
        c("end_kind", "string", "how it ended; see EndKind"),
        c("wait_status", "int32?", "as the kernel gave it"),
        c("exit_code", "int32?", "decoded from wait_status; null unless it exited"),
        c("signal", "int32?", "decoded from wait_status; null unless a signal ended it"),
        c("is_core_dumped", "bool?", "decoded from wait_status"),
        c("found_by", "string", "`child`, `cookie`, `orphan`"),
        c("is_end_hidden", "bool", "the end is a shell's word, not the process's"),
        c("hidden_end", "string?", "`pipe`, `shell_128n`, `log_tail`"),
        c("stack", "string?", "of a hung process, taken before TERM"),
        c(
            "runner_signals",
            "list<struct<at:timestamp, signal:int32, reason:string>>",
            "every signal that the runner itself sent",
        ),
        c("oom_kill_count", "int64?", "growth of the cgroup's counter during the stage"),
        c("error", "string?", "why it never started"),
    ),
)

PROOFS = Table(
    "proofs",
    "One row for each proof that the benchmark reported.",
    ("proof_index",),
    (
        c("proof_index", "int32", "0, 1, 2 ... in the order reported"),
        c("phase", "string", "`warmup` or `measured`"),
        c("status", "string", "`completed`, `failed`, `cancelled`, `timeout`, `unknown`"),
        c("wall_s", "float64?", "from submit to answer"),
        c("prove_s", "float64?", "as the benchmark printed it"),
        c("queue_s", "float64?", "as the benchmark printed it"),
        c("started_at", "timestamp?", "null unless the benchmark prints it"),
        c("ended_at", "timestamp?", "null unless the benchmark prints it"),
        c("error", "string?", "as the benchmark printed it"),
        c("log_seq", "int64", "`logs.seq` of the line that reported it"),
    ),
)

CLOSING = Table(
    "closing",
    "One row: how the run ended and the list of every object. Stored last: the commit point.",
    ("run_id",),
    (
        c("schema_version", "int32", "version of this contract"),
        c("run_id", "string", "the same as in the opening"),
        c("ended_at", "timestamp", "end of the run by the runner's clock"),
        c("end_reason", "string", "why the run ended; see EndReason"),
        c("finished_by", "string", "`runner`, `guardian`, `resume`"),
        c("end_signal", "int32?", "the signal that was sent to the runner"),
        c("closing_boot_id", "string?", "boot_id at the end"),
        c("runner_flags", "list<string>", "what went wrong with the recording; see RunnerFlag"),
        c("clock_offset_s", "float64?", "store's clock minus ours, median over uploads; null on file://"),
        c("proofs_requested", "int32?", "measured proofs that the plan or the batch header asks for"),
        c("proofs_completed", "int32?", "the batch summary's; null when it gave none"),
        c("proofs_failed", "int32?", "the batch summary's; null when it gave none"),
        c("measured_wall_s", "float64?", "the batch's own total time"),
        c(
            "rate_proofs_per_hour",
            "float64?",
            "proofs_completed * 3600 / measured_wall_s; null without a completed proof",
        ),
        c("reported_rate_proofs_per_hour", "float64?", "as the benchmark printed it"),
        c(
            "streams",
            "list<struct<stream:string, path:string, raw_bytes:int64, raw_sha256:string, line_count:int64,"
            " redaction_count:int64, lost_bytes:int64, truncation_count:int32, rotation_count:int32,"
            " duplicate_of:string>>",
            "each stream: how many bytes and lines, and what was lost or replaced",
        ),
        c("log_bytes", "int64", "raw bytes of all streams"),
        c("log_line_count", "int64", "rows of `logs`"),
        c("redaction_count", "int64", "secrets replaced before upload"),
        c("redactions", "map<string,int64>", "rule -> how often it replaced something"),
        c("lost_log_bytes", "int64", "0, or what could not be kept; why stands in runner_errors"),
        c("runner_errors", "list<string>", "what the runner could not do, in its own words"),
        c(
            "objects",
            "list<struct<key:string, table:string, bytes:int64, sha256:string, rows:int64>>",
            "every object of the bundle but this one",
        ),
    ),
)

BUNDLE_TABLES = {table.name: table for table in (OPENING, LOGS, TELEMETRY, STAGES, PROOFS, CLOSING)}
BUNDLE_TABLES["closing-partial"] = CLOSING
