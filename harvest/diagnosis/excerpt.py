"""The lines that a verdict is shown with: the root first, then what stood around it, then its echoes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import polars as pl

from bench.contract import RunnerEvent
from harvest.diagnosis.evidence import EvidenceLine, Origin, Role
from harvest.diagnosis.lines import plain
from harvest.diagnosis.records import ErrorRecord

MAX_LINE_COUNT = 40
MAX_LINE_LENGTH = 500
LINES_BEFORE_ROOT = 6
LINES_AFTER_ROOT = 12
TAIL_LINE_COUNT = 10
MAX_ECHO_COUNT = 10
RUNNER_FACTS = (RunnerEvent.OOM_KILL, RunnerEvent.SIGNAL_SENT, RunnerEvent.STAGE_ENDED)
"""What the runner wrote about an end, the most telling first."""


def excerpt_of_record(
    lines: pl.DataFrame, root: ErrorRecord, others: Sequence[ErrorRecord]
) -> tuple[EvidenceLine, ...]:
    """Return the root line, the lines around it in its stream, and the first lines of the other records as echoes."""
    line = root.root
    near = lines.filter(
        (pl.col("stream") == line.stream)
        & pl.col("position").is_between(line.position - LINES_BEFORE_ROOT, line.position + LINES_AFTER_ROOT)
        & (pl.col("row") != line.row)
    )
    first = EvidenceLine(Role.ROOT, line.stream, line.seq, line.text[:MAX_LINE_LENGTH])
    shown = {first.seq, *near["seq"]}
    return (first, *_quoted(near, Role.CONTEXT), *islice(_echoes(others, shown), MAX_ECHO_COUNT))[:MAX_LINE_COUNT]


def excerpt_of_end(lines: pl.DataFrame, stage: str | None, others: Sequence[ErrorRecord]) -> tuple[EvidenceLine, ...]:
    """Return what the runner wrote about a stage's end as root, then the last lines of the logs and error records."""
    fact = _runner_fact(lines, stage)
    tails = pl.concat([_tail(lines, Origin.DAEMON), _tail(lines, Origin.BENCHMARK), _tail(lines, Origin.STAGE)])
    shown = {*fact["seq"], *tails["seq"]}
    errors = islice(_echoes(others, shown), MAX_ECHO_COUNT)
    return (*_quoted(fact, Role.ROOT), *_quoted(tails, Role.CONTEXT), *errors)[:MAX_LINE_COUNT]


def _echoes(records: Sequence[ErrorRecord], shown: set[int]) -> Iterator[EvidenceLine]:
    """Give the telling line of each record that is not shown yet."""
    for record in records:
        line = record.root
        if line.seq not in shown:
            yield EvidenceLine(Role.ECHO, line.stream, line.seq, line.text[:MAX_LINE_LENGTH])


def _quoted(lines: pl.DataFrame, role: Role) -> Iterator[EvidenceLine]:
    shown = lines.select("stream", "seq", text=plain().str.head(MAX_LINE_LENGTH)).sort("seq", maintain_order=True)
    return (EvidenceLine(role, **each) for each in shown.to_dicts() if each["text"].strip())


def _tail(lines: pl.DataFrame, origin: Origin) -> pl.DataFrame:
    return lines.filter(pl.col("origin") == origin).tail(TAIL_LINE_COUNT)


def _runner_fact(lines: pl.DataFrame, stage: str | None) -> pl.DataFrame:
    """Return the one line of the runner that tells a stage's end best; no row where there is none."""
    facts = (
        lines.filter(pl.col("origin") == Origin.RUNNER)
        .filter(pl.col("text").str.contains_any([str(each) for each in RUNNER_FACTS]))
        .with_columns(
            event=pl.col("text").str.json_path_match("$.event"), stage=pl.col("text").str.json_path_match("$.stage")
        )
        .filter((pl.col("stage") == stage) if stage is not None else pl.lit(value=False))
    )
    found = (facts.filter(pl.col("event") == each).tail(1) for each in RUNNER_FACTS)
    return next((each for each in found if not each.is_empty()), facts.clear()).drop("event", "stage")
