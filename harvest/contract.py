"""The published tables: what a harvest writes and what reports and analysts read, column by column.

This is the one place that says what the dataset holds. Its version is the bundle's
(`bench.contract.SCHEMA_VERSION`). Readers take a missing table as empty and a missing column as null.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from bench.contract import CLOSING, LOGS, OPENING, PROOFS, STAGES, TELEMETRY
from bench.schema import Table, nullable
from bench.schema import column as c


class BundleState(StrEnum):
    FINISHED = "finished"
    CLOSING_PARTIAL = "closing_partial"
    VANISHED = "vanished"
    NEVER_STARTED = "never_started"
    QUARANTINED = "quarantined"
    IMPORTED = "imported"


class Outcome(StrEnum):
    """What happened; the order is the order of precedence."""

    NEVER_STARTED = "never_started"
    VANISHED = "vanished"
    TIMED_OUT = "timed_out"
    INTERRUPTED = "interrupted"
    PARTIAL = "partial"
    FAILED = "failed"
    INCOMPLETE = "incomplete"
    TOO_SLOW = "too_slow"
    PASSED = "passed"


class Blame(StrEnum):
    MACHINE = "machine"
    SOFTWARE = "software"
    CONFIGURATION = "configuration"
    ENVIRONMENT = "environment"
    BENCHMARK_SCRIPT = "benchmark_script"
    NONE = "none"
    UNKNOWN = "unknown"


class Certainty(StrEnum):
    DIRECT = "direct"
    INFERRED = "inferred"
    FLEET = "fleet"


class Action(StrEnum):
    EXCLUDE_MACHINE = "exclude_machine"
    FILTER_OFFER = "filter_offer"
    FIX_IMAGE = "fix_image"
    FIX_SCRIPT = "fix_script"
    RETRY = "retry"
    INVESTIGATE = "investigate"
    NONE = "none"


class MachineState(StrEnum):
    """The order is from best to worst known."""

    GOOD = "good"
    UNKNOWN = "unknown"
    PROBATION = "probation"
    WATCH = "watch"
    BAD = "bad"


class RejectReason(StrEnum):
    BAD_KEY = "bad_key"
    OVER_LIMIT = "over_limit"
    SHA_MISMATCH = "sha_mismatch"
    MISSING_OBJECT = "missing_object"
    GAP_IN_PARTS = "gap_in_parts"
    BAD_JSON = "bad_json"
    BAD_PARQUET = "bad_parquet"
    SCHEMA_DEPTH = "schema_depth"
    SCHEMA_MISMATCH = "schema_mismatch"
    SCHEMA_NEWER = "schema_newer"
    ROW_COUNT_MISMATCH = "row_count_mismatch"
    BOMB = "bomb"
    READER_CRASH = "reader_crash"
    READER_TIMEOUT = "reader_timeout"
    INVALID_UTF8 = "invalid_utf8"
    OUT_OF_RANGE = "out_of_range"


_RUN_ID = c("run_id", "string", "the run: a UUIDv7; its time is when the id was made")
_MACHINE_ID = c("machine_id", "int64", "the physical computer")
_COHORT_ID = c("cohort_id", "string", "first 12 hex digits of the sha256 of the cohort's parts")
_EVIDENCE = "list<struct<role:string, stream:string, seq:int64, text:string>>"
_OWN_RUN_COLUMNS = (
    c("bundle_state", "string", "in which state the bundle is; see BundleState"),
    c("bad_tables", "list<string>", "tables of the bundle of which something was refused; see `rejects`"),
    c("flags", "list<string>", "what is odd about the run; some keep it out of the score"),
    c("is_identity_verified", "bool", "a launch record or the marketplace's API agrees on the machine"),
    c("is_scored", "bool", "the run moves its machine's score"),
    c("last_stage", "string?", "the stage that started last"),
    c("first_stored_at", "timestamp?", "store's clock: the first object"),
    c("last_stored_at", "timestamp?", "store's clock: the newest object"),
    c("stored_bytes", "int64?", "of all its objects"),
    c("object_count", "int64?", "objects in the store"),
    c("outcome", "string?", "what happened; see Outcome; null where nothing of the bundle could be trusted"),
    c("blame", "string?", "whose fault; see Blame"),
    c("cause", "string?", "what exactly: a slug of the taxonomy, explained in data/causes.toml"),
    c("certainty", "string?", "`direct`, `inferred`, `fleet`; null where nothing is known"),
    c("action", "string?", "what to do; see Action"),
    c("fingerprint_id", "string?", "id of the normalised failure, the same over machines and versions"),
    c("fingerprint_exact_id", "string?", "the same with version and line kept"),
    c("fingerprint_kind", "string?", "`root` (of an error record) or `symptom` (of the end, where nothing was said)"),
    c("fingerprint_title", "string?", "the failure's short name for people"),
    c("root_text", "string?", "the normalised root message that the fingerprint is made of"),
    c("rule", "string?", "id of the signature or rule that gave blame and cause"),
    c("evidence", _EVIDENCE, "the lines the verdict rests on: `root` first, then `context` and `echo`"),
    c("missing_evidence", "list<string>", "what would have helped and is not there"),
    c(
        "proofs_completed_by_daemon",
        "int32?",
        "counted in the daemon's log, for batches that gave no summary",
    ),
    c("cohort_id", "string?", _COHORT_ID.meaning),
    c("usd_spent", "float64?", "what the run cost; null without a price"),
    c("usd_spent_source", "string?", "`rental`, `ended_at`, `last_stored_at`: how usd_spent was worked out"),
    c("usd_lost", "float64?", "usd_spent where outcome is not `passed`, else 0; null without a price"),
    c("usd_per_proof_achieved", "float64?", "a cost: price / rate; lower is better"),
    c("min_rate_from_price_proofs_per_hour", "float64?", "price_usd_per_hour / usd_per_proof"),
    c("is_min_rate_consistent", "bool?", "false where min rate and price are more than 1 % apart"),
    c("fate", "string?", "`kept`, `destroyed`, `outbid`, `lost`"),
    c("fate_source", "string?", "`record`, `inventory`, `import`, `exit_code` (assumed: passed = kept)"),
    c("imported_fields", "map<string,string>?", "what an import could not place"),
    c("bundle_key", "string?", "the bundle's folder in the store"),
)


def _with_run_id(table: Table) -> Table:
    """Return a bundle's table as it is published: the run's id in front."""
    return replace(table, key=("run_id", *table.key), columns=(_RUN_ID, *table.columns))


_FROM_BUNDLE = nullable(each for each in (*OPENING.columns, *CLOSING.columns) if each.name != "run_id")
RUNS = Table(
    "runs",
    "One row for each run that ended or never began, with its diagnosis.",
    ("run_id",),
    (_RUN_ID, *{each.name: each for each in _FROM_BUNDLE}.values(), *_OWN_RUN_COLUMNS),
)
RUN_STAGES = _with_run_id(STAGES)
RUN_PROOFS = _with_run_id(PROOFS)
RUN_TELEMETRY = _with_run_id(TELEMETRY)
RUN_LOGS = _with_run_id(LOGS)

IN_FLIGHT = Table(
    "in_flight",
    "One row for each run that is alive.",
    ("run_id",),
    (
        _RUN_ID,
        c("instance_id", "int64?", "the marketplace's id of this rental's instance"),
        c("instance_label", "string?", "the marketplace's label"),
        c("machine_id", "int64?", _MACHINE_ID.meaning),
        c("gpu_model", "string?", "of GPU 0"),
        c("price_usd_per_hour", "float64?", "rent of the instance"),
        c("started_at", "timestamp?", "null where nothing has arrived yet"),
        c("last_stored_at", "timestamp?", "store's clock: last sign of life"),
        c("stage", "string?", "the stage that runs"),
        c("proofs_completed", "int32?", "measured proofs so far"),
        c("proofs_requested", "int32?", "measured proofs asked for"),
        c("log_bytes", "int64?", "bytes of log stored so far"),
    ),
)

RENTALS = Table(
    "rentals",
    "One row for each rental: its time and its money.",
    ("rental_id",),
    (
        c(
            "rental_id",
            "string?",
            "of the launch record, else of its first run; null for an instance without a run",
        ),
        c("instance_id", "int64?", "the marketplace's id"),
        c("machine_id", "int64?", _MACHINE_ID.meaning),
        c("rental_kind", "string?", "`on_demand`, `interruptible`, `reserved`"),
        c("granted_at", "timestamp?", "when the operator made the record"),
        c("rented_at", "timestamp?", "when the instance was rented"),
        c("running_at", "timestamp?", "when the first run started"),
        c("ended_at", "timestamp?", "when the rental ended"),
        c("ended_source", "string?", "`record`, `run`: from what ended_at is known"),
        c("loading_s", "float64?", "rented, but no run yet"),
        c("setup_s", "float64?", "in a run, before its benchmark"),
        c("benchmark_s", "float64?", "in the benchmark"),
        c("gpu_usd", "float64?", "rent for the time"),
        c("storage_usd", "float64?", "for the disk"),
        c("traffic_usd", "float64?", "for what was sent and received"),
        c("usd_spent", "float64?", "all of it"),
        c("is_still_billing", "bool?", "the marketplace still bills it"),
        c("run_ids", "list<string>", "its runs, in order"),
    ),
)

_MACHINE_COUNTS = (
    c("run_count", "int64", "runs of this machine"),
    c("effective_run_count", "float64?", "what they weigh after age and correlation"),
    c("passed_count", "int64", "runs with outcome `passed`"),
    c("slow_count", "int64", "runs with outcome `too_slow`"),
    c("failed_count", "int64", "runs that ended otherwise"),
    c("blamed_failure_count", "int64", "failures blamed on the machine"),
    c("vanished_count", "int64", "runs that fell silent"),
)
_RATE_RATIO = (
    c("rate_ratio", "float64?", "the machine's median rate over its cohort's; null without a measured rate"),
    c("rate_ratio_low", "float64?", "lower end of its 90 % interval"),
    c("rate_ratio_high", "float64?", "upper end of its 90 % interval"),
)
MACHINES = Table(
    "machines",
    "One row for each machine and cohort: the score.",
    ("machine_id", "cohort_id"),
    (
        _MACHINE_ID,
        _COHORT_ID,
        c("gpu_model", "string?", "of its newest run"),
        c("num_gpus", "int32?", "of its newest run"),
        c("host_id", "int64?", "its owner; never listed"),
        c("geolocation", "string?", "as the marketplace says it"),
        *_MACHINE_COUNTS,
        c("measured_count", "int64", "runs with a measured rate: what the median rests on"),
        c("median_rate_proofs_per_hour", "float64?", "of its measured runs"),
        *_RATE_RATIO,
        c("failure_ratio", "float64?", "posterior mean of its failure probability"),
        c("bad_probability", "float64?", "posterior chance that it loses money"),
        c("expected_usd_per_proof", "float64?", "a cost"),
        c("expected_loss_usd_per_rental", "float64?", "dollars lost each time it is rented"),
        c("earnings_ratio", "float64?", "expected earnings per dollar of rent"),
        c("earnings_ratio_low", "float64?", "lower end of its 90 % interval"),
        c("earnings_ratio_high", "float64?", "upper end of its 90 % interval"),
        c("break_even_usd_per_hour", "float64?", "the price up to which it pays"),
        c("break_even_usd_per_hour_low", "float64?", "lower end of its 90 % interval"),
        c("break_even_usd_per_hour_high", "float64?", "upper end of its 90 % interval"),
        c("retest_value_usd", "float64?", "what one more benchmark is worth, less its cost"),
        c("same_gpus_as", "list<int64>", "machine ids that showed the same GPU uuids"),
        c("state", "string", "`good`, `watch`, `bad`, `probation`, `unknown`"),
        c("first_seen_at", "timestamp?", "store time of its first run"),
        c("last_seen_at", "timestamp?", "store time of its newest run"),
    ),
)

COHORTS = Table(
    "cohorts",
    "One row for each group of runs that may be compared: what is normal.",
    ("cohort_id",),
    (
        _COHORT_ID,
        c("gpu_model", "string?", "first part of the cohort"),
        c("num_gpus", "int32?", "second part of the cohort"),
        c(
            "proof_kind",
            "string?",
            "third part: what is measured; the plan's name where there is no proof kind",
        ),
        c("parent_cohort_id", "string?", "the cohort that a weak one leans on"),
        c("is_weak", "bool", "under 5 machines: its median says little"),
        c("machine_count", "int64", "machines with a run in it"),
        c("run_count", "int64", "runs in it"),
        c("measured_count", "int64", "runs with a measured rate"),
        c("median_rate_proofs_per_hour", "float64?", "median of its machines' medians"),
        c("rate_low_proofs_per_hour", "float64?", "5th percentile of the machines' medians"),
        c("rate_high_proofs_per_hour", "float64?", "95th percentile of the machines' medians"),
        c("median_price_usd_per_hour", "float64?", "of its runs"),
        c(
            "effects",
            "list<struct<name:string, value:string, ratio:float64, run_count:int64>>",
            "what plan, settings, build and driver do to the rate",
        ),
    ),
)

BAD_MACHINES = Table(
    "bad_machines",
    "One row for each machine that is not to be rented, or only last; its state is the worst of its cohorts'.",
    ("machine_id",),
    (
        _MACHINE_ID,
        c("cohort_id", "string", "the cohort with the worst state; the numbers are its"),
        c("cohort_count", "int64", "cohorts in which the machine ran"),
        c("state", "string", "`bad` or `watch`"),
        c("reason", "string", "one sentence with numbers"),
        c("since", "timestamp?", "store time of the run with which it first got this state"),
        c("expires_at", "timestamp?", "when it leaves by itself"),
        c("would_clear", "string", "one sentence: what would take it off the list"),
        c("source", "string", "`score` or `manual`"),
        *_MACHINE_COUNTS,
        c("bad_probability", "float64?", "posterior chance that it loses money"),
        *_RATE_RATIO,
        c("expected_loss_usd_per_rental", "float64?", "dollars lost each time it is rented"),
        c("break_even_usd_per_hour", "float64?", "the price up to which it pays"),
        c("top_fingerprint_id", "string?", "its most frequent failure"),
        c("run_ids", "list<string>", "the runs that speak against it"),
    ),
)

FINGERPRINTS = Table(
    "fingerprints",
    "One row for each kind of failure, over all machines.",
    ("fingerprint_id",),
    (
        c("fingerprint_id", "string", "id of the normalised failure"),
        c("kind", "string", "`root` (of an error record) or `symptom` (of the end, where nothing was said)"),
        c("title", "string", "a short name for people"),
        c("root_text", "string?", "the normalised root message"),
        c("blame", "string", "whose fault; see Blame"),
        c("cause", "string?", "a slug of the taxonomy"),
        c("certainty", "string?", "`direct`, `inferred`, `fleet`"),
        c("action", "string?", "what to do"),
        c("rule", "string?", "the signature or rule that made it"),
        c("run_count", "int64", "runs that ended so"),
        c("machine_count", "int64", "machines it was seen on"),
        c("build_count", "int64", "builds it was seen with"),
        c("driver_count", "int64", "drivers it was seen with"),
        c("gpu_model_count", "int64", "GPU models it was seen on"),
        c("first_seen_at", "timestamp?", "store time"),
        c("last_seen_at", "timestamp?", "store time"),
        c("usd_lost", "float64?", "dollars lost in its runs"),
        c(
            "trend_ratio",
            "float64?",
            "runs of the last 7 days over those of the 7 before; null without any before",
        ),
        c(
            "spread",
            "list<struct<dimension:string, value:string, failed_count:int64, run_count:int64>>",
            "where it happens: runs with it and all runs, per machine, build, driver, model",
        ),
        c("near", "list<struct<fingerprint_id:string, reason:string>>", "alike, linked and not merged"),
    ),
)

REJECTS = Table(
    "rejects",
    "One row for each thing that was refused.",
    ("run_id", "key", "reason"),
    (
        c("run_id", "string?", "null where the key names none"),
        c("key", "string", "in the store"),
        c("table", "string?", "of the bundle; null where the key names none"),
        c("reason", "string", "see RejectReason"),
        c("detail", "string", "what exactly, at most 500 characters"),
        c("bytes", "int64?", "size of the object"),
        c("sha256", "string?", "of the object, where it was read"),
        c("stored_at", "timestamp?", "store's clock"),
    ),
)

HARVESTS = Table(
    "harvests",
    "One row for each harvest: what it saw, did, and how long each step took. Outside the sameness rule.",
    ("started_at", "harvest_id"),
    (
        c("harvest_id", "string", "a UUIDv7"),
        c("as_of", "timestamp", "the instant it judged at, by the store's clock"),
        c("started_at", "timestamp", "by the harvester's clock"),
        c("wall_s", "float64", "how long it took"),
        c("producer", "string", "name and version"),
        c("steps", "list<struct<step:string, wall_s:float64, count:int64>>", "each step of the line"),
        *(c(f"{state}_count", "int64", f"runs in state `{state}`") for state in BundleState),
        c("in_flight_count", "int64", "runs that are alive"),
        c("unlaunched_count", "int64", "runs without a launch record"),
        c("accepted_count", "int64", "objects taken in by this harvest"),
        c("rejected_count", "int64", "objects refused, in `rejects` now"),
        c("newly_bad_machine_ids", "list<int64>", "on the list since this harvest"),
        c("cleared_machine_ids", "list<int64>", "off the list since this harvest"),
    ),
)

DATED_TABLES = (RUNS, RUN_STAGES, RUN_PROOFS, RUN_TELEMETRY, RUN_LOGS)
"""Written as `<data>/<table>/date=YYYY-MM-DD/*.parquet`, the date of the run id."""

SINGLE_TABLES = (IN_FLIGHT, RENTALS, MACHINES, COHORTS, BAD_MACHINES, FINGERPRINTS, REJECTS, HARVESTS)
"""Written as `<data>/<table>.parquet`."""

PUBLISHED_TABLES = {table.name: table for table in (*DATED_TABLES, *SINGLE_TABLES)}
