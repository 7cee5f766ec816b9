"""What a simulation is asked for, and what it says when it is done."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from bench.errors import UsageError

DEFAULT_RUNS_PER_DAY = 0.5
DEFAULT_LOG_LINES = 200
MAX_LOG_LINES = 1_000_000
MAX_RUNS_PER_DAY = 24.0
"""A rental takes up to an hour, and a machine's rentals do not overlap."""


@dataclass(frozen=True)
class SimulationSettings:
    """Which fleet, and for how long. The same settings give the same bytes.

    `end` is the newest instant of anything, UTC and at a full minute; `runs_per_day` is per machine; `log_lines` is
    how many lines a run has that ends by itself (a few more where its own facts alone need them).
    """

    machines: int
    days: int
    seed: int
    end: datetime
    runs_per_day: float = DEFAULT_RUNS_PER_DAY
    log_lines: int = DEFAULT_LOG_LINES
    truth_file: Path | None = None

    @property
    def start(self) -> datetime:
        """The instant before which nothing happened."""
        return self.end - timedelta(days=self.days)

    def check(self) -> None:
        """Raise UsageError where something is asked for that cannot be made; nothing was written by then."""
        limits = (
            ("--machines", self.machines, 1, 1_000_000),
            ("--days", self.days, 1, 3650),
            ("--runs-per-day", self.runs_per_day, 0.0, MAX_RUNS_PER_DAY),
            ("--log-lines", self.log_lines, 0, MAX_LOG_LINES),
        )
        for flag, value, least, most in limits:
            if not least <= value <= most:
                raise UsageError(f"{flag} {value}: between {least} and {most} can be simulated. Nothing was written.")
        if self.end.tzinfo is None or self.end.second or self.end.microsecond:
            raise UsageError(
                f"--end {self.end.isoformat()}: an instant with its zone and at a full minute is needed, "
                "as in 2026-12-01T05:00:00Z. Nothing was written."
            )
        if self.truth_file is not None and self.truth_file.exists():
            raise UsageError(f"--truth {self.truth_file} is already there. Nothing was written; name a new file.")


@dataclass(frozen=True)
class SimulationSummary:
    """What a simulation left in the store. `run_count` counts runs that never stored anything too."""

    run_count: int
    bundle_count: int
    in_flight_count: int
    machine_count: int
    object_count: int
    stored_bytes: int
    wall_s: float
    truth_file: str | None
