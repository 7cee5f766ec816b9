"""One run, from opening to closing: the evidence is stored before anybody may take the machine away."""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from bench.clock import utc_now_text
from bench.contract import CLOSING, SCHEMA_VERSION, EndKind, EndReason, FinishedBy, RunnerEvent
from bench.errors import EXIT_EVIDENCE_MISSING, EXIT_NOT_PASSED, EXIT_NOT_STORED, EXIT_PASSED, StoreError
from bench.identity import IdentityFlags
from bench.keys import make_run_id, object_key
from bench.opening import opening_row
from bench.plan import Plan, PlanStage, resolved
from bench.process import Child, is_answering
from bench.proofs import RunResult, run_passed
from bench.recorder import BENCHMARK_STAGE, Recorder
from bench.redact import make_redactor
from bench.spool import Spool
from bench.store import Store
from bench.upload import Sealer, SealingFailed, Shipper

DEFAULT_READY_S = 300.0


@dataclass(frozen=True)
class RunConfig:
    """What `bench run` was asked for; durations in seconds."""

    store: Store
    plan: Plan
    flags: IdentityFlags
    spool_base: Path
    environment: Mapping[str, str]
    timeout_s: float | None = None
    keep_at_most_s: float = 1800.0
    part_interval_s: float = 15.0
    telemetry_interval_s: float = 60.0
    tick_s: float = 0.1


@dataclass(frozen=True)
class Receipt:
    """How a run ended, for whoever started it."""

    run_id: str
    store_url: str
    spool: Path
    exit_code: int
    is_passed: bool
    opening: Mapping[str, Any]
    stages: list[dict[str, Any]]
    closing: Mapping[str, Any]
    errors: tuple[str, ...] = ()
    log_paths: Mapping[str, str] = field(default_factory=dict)


class OpeningNotStored(StoreError):
    """The opening could not be stored: nothing was started, nothing was spent."""


def run(config: RunConfig) -> Receipt:
    """Record one run. Children's failures are values in the receipt.

    Raises:
        OpeningNotStored, SpoolError, UsageError: nothing was started.
    """
    run_id = make_run_id(time.time_ns() // 1_000_000, secrets.randbits(74))
    spool = Spool(config.spool_base, run_id)
    return _Run(config, run_id, spool, resolved(config.plan, spool.run_folder)).carry_out()


class _Run:
    """A run while it lasts."""

    def __init__(self, config: RunConfig, run_id: str, spool: Spool, plan: Plan) -> None:
        self._config = config
        self._run_id = run_id
        self._spool = spool
        self._plan = plan
        self._address_key = secrets.token_bytes(16)
        self._redactor = make_redactor(config.environment, self._address_key)
        self._shipper = Shipper(
            config.store, Sealer(run_id, spool.parts_folder, self._address_key), self._tell_of_failed_upload
        )
        self._recorder = Recorder(spool, self._shipper, config.part_interval_s, config.telemetry_interval_s)
        self._children: list[Child] = []
        self._rows: dict[int, dict[str, Any]] = {}
        self._started_s = time.monotonic()
        self._end_signal: int | None = None
        self._end_reason = EndReason.FINISHED
        self._has_partial = False
        self._opening: dict[str, Any] = {}

    def carry_out(self) -> Receipt:
        self._store_opening()
        self._catch_signals()
        self._recorder.start()
        for name, text in self._plan.files.items():
            (self._spool.run_folder / name).write_text(text, encoding="utf-8")
        for name, path in self._plan.follow.items():
            self._recorder.capture.add(name, Path(path))
        self._run_stages()
        self._stop_all()
        return self._close()

    def _store_opening(self) -> None:
        config = self._config
        self._opening = {
            **opening_row(self._plan, self._spool.folder, config.flags, config.environment, self._address_key),
            "run_id": self._run_id,
            "settings_asked": dict(config.plan.settings),
            "store_credential": config.store.credential,
        }
        try:
            listing = self._shipper.put({"table": "opening", "rows": [self._opening]})
        except (StoreError, SealingFailed) as error:
            raise OpeningNotStored(
                f"the opening could not be stored, so nothing was started and nothing was spent: {error} "
                "Check the store's address, its rights and the network, then run the same command again."
            ) from error
        self._shipper.objects.append({name: listing[name] for name in ("key", "table", "bytes", "sha256", "rows")})

    def _run_stages(self) -> None:
        for stage in self._plan.stages:
            if self._end_signal is not None or not self._run_stage(stage):
                return

    def _run_stage(self, stage: PlanStage) -> bool:
        """Run one stage; return whether the plan goes on."""
        child = self._start(stage)
        if stage.is_daemon:
            return self._wait_until_ready(child, stage)
        while not self._is_over(child):
            self._check_limits(child, stage)
            self._tick()
        return child.exit_code == 0 and child.stop_kind is None

    def _start(self, stage: PlanStage) -> Child:
        child = Child(len(self._children), stage.name, stage.argv, utc_now_text(), time.monotonic())
        child.oom_kills_before = self._recorder.cgroup.oom_kill_count()
        self._children.append(child)
        self._recorder.stage = stage.name
        outputs = tuple(self._recorder.capture.add(f"{stage.name}.{each}") for each in ("stdout", "stderr"))
        child.start((outputs[0], outputs[1]), {**self._config.environment, **self._plan.environment})
        argv = self._redactor.redact_argv(stage.argv)
        pid = child.process.pid if child.process else None
        self._recorder.tell(
            RunnerEvent.STAGE_STARTED, stage=stage.name, stage_index=child.stage_index, argv=argv, pid=pid
        )
        return child

    def _wait_until_ready(self, child: Child, stage: PlanStage) -> bool:
        limit_s = child.started_s + (stage.timeout_s or DEFAULT_READY_S)
        while not self._is_over(child) and self._end_signal is None:
            if stage.ready_tcp is None or is_answering(stage.ready_tcp):
                child.ready_at = utc_now_text()
                return True
            if time.monotonic() > limit_s:
                self._recorder.tell(
                    RunnerEvent.WARNING, stage=stage.name, text=f"{stage.ready_tcp} did not answer in time"
                )
                return False
            self._tick()
        return False

    def _check_limits(self, child: Child, stage: PlanStage) -> None:
        now_s = time.monotonic()
        if self._end_signal is not None:
            self._stop(child, EndKind.STOPPED_BY_RUNNER, f"the runner got signal {self._end_signal}")
        if stage.timeout_s is not None and now_s - child.started_s > stage.timeout_s:
            self._stop(child, EndKind.TIMED_OUT, f"longer than the stage's limit of {stage.timeout_s:g} s")
        total_s = self._config.timeout_s or self._plan.timeout_s
        if total_s is not None and now_s - self._started_s > total_s:
            self._end_reason = EndReason.TIMEOUT
            self._stop(child, EndKind.TIMED_OUT, f"longer than the run's limit of {total_s:g} s")

    def _stop(self, child: Child, kind: EndKind, reason: str) -> None:
        sent = child.begin_stop(kind, reason, utc_now_text(), time.monotonic())
        if sent is not None:
            self._recorder.tell(RunnerEvent.SIGNAL_SENT, stage=child.stage, **sent)

    def _stop_all(self) -> None:
        for child in self._children:
            if not self._is_over(child):
                self._stop(child, EndKind.STOPPED_BY_RUNNER, "the run is over")
        while any(not self._is_over(child) for child in self._children):
            self._tick()
        for child in self._children:
            child.kill_leftovers()

    def _is_over(self, child: Child) -> bool:
        """Look at one child, once more; when it has just ended, say so at once."""
        sent = child.go_on_stopping(utc_now_text(), time.monotonic())
        if sent is not None:
            self._recorder.tell(RunnerEvent.SIGNAL_SENT, stage=child.stage, **sent)
        is_over = child.poll(utc_now_text(), time.monotonic())
        if is_over and child.stage_index not in self._rows:
            self._recorder.tick()
            row = child.as_row(self._recorder.last_output_at(child.stage), self._recorder.cgroup.oom_kill_count())
            row["argv"] = self._redactor.redact_argv(row["argv"])
            self._rows[child.stage_index] = row
            if row["oom_kill_count"]:
                self._recorder.tell(RunnerEvent.OOM_KILL, stage=child.stage, count=row["oom_kill_count"])
            self._recorder.tell(RunnerEvent.STAGE_ENDED, **row)
            self._recorder.tick(seal_now=True)
        return is_over

    def _tick(self) -> None:
        time.sleep(self._config.tick_s)
        self._recorder.tick()
        for child in self._children:
            self._is_over(child)
        if self._end_signal is not None and not self._has_partial:
            self._has_partial = True
            self._end_reason = EndReason.TERMINATED
            self._recorder.tick(seal_now=True)
            self._shipper.ship({"table": "closing-partial", "rows": [self._closing_row()]}, is_first=True)

    def _catch_signals(self) -> None:
        def note(number: int, _frame: FrameType | None) -> None:
            self._end_signal = number

        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(each, note)

    def _tell_of_failed_upload(self, text: str) -> None:
        self._recorder.tell(RunnerEvent.UPLOAD_FAILED, text=text)

    def _close(self) -> Receipt:
        if self._end_signal is not None:
            self._end_reason = EndReason.TERMINATED
        self._recorder.tick()  # its news may bring events, which the last one then takes along
        self._recorder.tick(is_end=True)
        self._recorder.close()
        stages = [self._rows[index] for index in sorted(self._rows)]
        self._shipper.ship({"table": "stages", "rows": stages})
        self._shipper.ship({"table": "proofs", "rows": self._recorder.proof_rows()})
        give_up_at_s = time.monotonic() + self._config.keep_at_most_s
        is_shipped = self._shipper.wait_until_shipped(give_up_at_s)
        closing = self._closing_row()
        errors = list(self._shipper.errors)
        is_stored = is_shipped and self._store_closing(closing, give_up_at_s, errors)
        return self._receipt(closing, stages, is_stored, errors)

    def _store_closing(self, closing: Mapping[str, Any], give_up_at_s: float, errors: list[str]) -> bool:
        count = len(self._shipper.objects)
        self._shipper.ship({"table": "closing", "rows": [closing]})
        if not self._shipper.wait_until_shipped(give_up_at_s) or len(self._shipper.objects) == count:
            errors += [each for each in self._shipper.errors if each not in errors]
            return False
        try:
            stored = self._config.store.get(object_key(self._run_id, "closing"))
        except StoreError as error:
            errors.append(f"the closing could not be read back: {error}")
            return False
        return stored == (self._spool.parts_folder / "closing.parquet").read_bytes()

    def _closing_row(self) -> dict[str, Any]:
        batch = self._recorder.batch
        streams = self._recorder.capture.streams.values()
        for stream in streams:
            stream.redaction_count = self._shipper.stream_redactions[stream.name]
        return {
            **CLOSING.empty_row(),
            "schema_version": SCHEMA_VERSION,
            "run_id": self._run_id,
            "ended_at": utc_now_text(),
            "end_reason": str(self._end_reason),
            "finished_by": str(FinishedBy.RUNNER),
            "end_signal": self._end_signal,
            "closing_boot_id": self._opening["boot_id"],
            "runner_flags": sorted(self._shipper.flags),
            "proofs_requested": batch.requested if batch.requested is not None else self._proofs_asked(),
            "proofs_completed": batch.completed,
            "proofs_failed": batch.failed,
            "measured_wall_s": batch.measured_wall_s,
            "rate_proofs_per_hour": batch.rate_proofs_per_hour,
            "reported_rate_proofs_per_hour": batch.reported_rate_proofs_per_hour,
            "streams": [stream.as_row() for stream in streams],
            "log_bytes": self._recorder.capture.log_bytes,
            "log_line_count": self._recorder.capture.next_seq,
            "redaction_count": sum(self._shipper.redactions.values()),
            "redactions": dict(self._shipper.redactions),
            "lost_log_bytes": 0,
            "runner_errors": list(self._shipper.errors),
            "objects": list(self._shipper.objects),
        }

    def _proofs_asked(self) -> int | None:
        text = self._plan.settings.get("proofs", "")
        return int(text) if text.isascii() and text.isdigit() else None

    def _receipt(
        self, closing: Mapping[str, Any], stages: list[dict[str, Any]], is_stored: bool, errors: list[str]
    ) -> Receipt:
        passed = self._is_passed(closing, stages)
        paths = {name: stream.path for name, stream in self._recorder.capture.streams.items()}
        if not is_stored:
            exit_code = EXIT_NOT_STORED
        elif errors:
            exit_code = EXIT_EVIDENCE_MISSING
        else:
            exit_code = EXIT_PASSED if passed else EXIT_NOT_PASSED
        return Receipt(
            self._run_id,
            self._config.store.url,
            self._spool.folder,
            exit_code,
            passed,
            self._opening,
            stages,
            closing,
            tuple(errors),
            paths,
        )

    def _is_passed(self, closing: Mapping[str, Any], stages: list[dict[str, Any]]) -> bool:
        """A run without a benchmark stage is told by its last stage's end."""
        asked = [stage.name for stage in self._plan.stages if not stage.is_daemon]
        deciding = BENCHMARK_STAGE if BENCHMARK_STAGE in asked else asked[-1] if asked else None
        row = next((each for each in reversed(stages) if each["stage"] == deciding), None)
        if row is None or row["end_kind"] != EndKind.EXITED or self._end_signal is not None:
            return False
        return run_passed(
            RunResult(
                row["exit_code"],
                row["is_end_hidden"],
                closing["proofs_requested"],
                closing["proofs_completed"],
                closing["proofs_failed"],
                closing["rate_proofs_per_hour"],
                self._opening["min_rate_proofs_per_hour"],
            )
        )


def environment_of_process() -> Mapping[str, str]:
    """Return this process's variables as they are now."""
    return dict(os.environ)
