"""What a verdict rests on: everything that is known of one run, and the lines that are quoted from it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import polars as pl

Row = Mapping[str, Any]


class Origin(StrEnum):
    """Whose lines a stream holds. A followed file is the daemon's unless its name says that it is another's."""

    KERNEL = "kernel"
    RUNNER = "runner"
    DAEMON = "daemon"
    SETUP = "setup"
    STAGE = "stage"
    BENCHMARK = "benchmark"


class Role(StrEnum):
    """What a quoted line is to the verdict."""

    ROOT = "root"
    CONTEXT = "context"
    ECHO = "echo"


ORIGIN_OF_STREAM: tuple[tuple[str, Origin], ...] = (
    (r"^kernel$", Origin.KERNEL),
    (r"^runner$", Origin.RUNNER),
    (r"^setup(\.stdout|\.stderr)?$", Origin.SETUP),
    (r"^(benchmark|bench|warmup)(\.stdout|\.stderr)?$", Origin.BENCHMARK),
    (r"^daemon\.(stdout|stderr)$", Origin.DAEMON),
    (r"\.(stdout|stderr)$", Origin.STAGE),
)
"""In order, the first that matches; a stream that matches none is a followed file, and so the daemon's."""


@dataclass(frozen=True, slots=True)
class EvidenceLine:
    """One quoted line. `text` is without control sequences, at most 500 characters."""

    role: Role
    stream: str
    seq: int
    text: str


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """One run before it is judged.

    `run` holds the columns of the table `runs` that are known by then (a key may be absent or null), `stages` and
    `proofs` the rows of those tables, `logs` and `telemetry` frames of them; each may be empty.
    """

    run: Row
    stages: Sequence[Row]
    proofs: Sequence[Row]
    logs: pl.DataFrame
    telemetry: pl.DataFrame

    def stage(self, name: str) -> Row | None:
        """Return the last stage of that name, or null."""
        found = [each for each in self.stages if each.get("stage") == name]
        return max(found, key=_stage_index, default=None)

    @property
    def deciding_stage(self) -> Row | None:
        """The stage whose end decides: the last benchmark, in a run without one the last stage; null without any."""
        return self.stage("benchmark") or max(self.stages, key=_stage_index, default=None)


def _stage_index(stage: Row) -> int:
    index = stage.get("stage_index")
    return -1 if index is None else int(index)
