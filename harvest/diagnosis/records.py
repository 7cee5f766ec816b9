"""Log lines -> error records: a panic with its message, a what(), an ERROR with its causes, in one piece. Pure.

Whole logs are searched by polars; only the neighbourhoods of what it finds meet Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import groupby
from typing import Any

import polars as pl

from harvest.diagnosis.evidence import Origin
from harvest.diagnosis.lines import plain
from harvest.diagnosis.signatures import Signatures

HITS_PER_STREAM = 200
"""The earliest hits of a stream that are looked at: the root comes first, the noise after it."""
LINES_BEFORE = 8
LINES_PER_RECORD = 40


class RecordKind(StrEnum):
    """How a process said that something went wrong. The first three end a thread or a process."""

    PANIC = "panic"
    ABORT = "abort"
    ASSERT = "assert"
    LOGGED = "logged"
    ERROR = "error"
    MESSAGE = "message"


CRASHES = (RecordKind.PANIC, RecordKind.ABORT, RecordKind.ASSERT)

TIMED = r"^(?:\[[\w.-]+\]\s*)*(?:\d{4}[-/]\d\d[-/]\d\d[T ])?\d\d:\d\d:\d\d\S*\s"
"""A line that begins with a time, after any `[prefix]`: it begins a record."""
LEVEL = TIMED + r"\s*\[?([A-Z]{4,8})\b"
ERROR_LEVELS = ("ERROR", "FATAL", "CRITICAL")
METRICS = r"^(?:TIMELINE,|CUZK_TIMING:|CUZK_NTT_H:)"

KIND_OF_LINE: tuple[tuple[RecordKind, str], ...] = (
    (RecordKind.PANIC, r"thread '[^']*' (?:\(\d+\) )?panicked at "),
    (RecordKind.ABORT, r"terminate called |^\s*what\(\):"),
    (RecordKind.ASSERT, r"Assertion `.*' failed"),
    (
        RecordKind.ERROR,
        r"^(?:\[[\w.-]+\]\s*)*(?:[Ff]atal error|[Ee]rror|FATAL|ERROR):\s*\S|^[\w.]*(?:Error|Exception): ",
    ),
)
KIND_NEEDLES = ["panicked at", "terminate called", "what():", "Assertion `", "rror:", "Exception:", "FATAL", "ERROR"]
KIND_NEEDLES += ["CRITICAL"]


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line near a hit, without control sequences. `kind` is null for a line that is no error by its form."""

    row: int
    position: int
    seq: int
    stream: str
    origin: Origin
    captured_at: datetime | None
    text: str
    kind: RecordKind | None
    signature_id: str | None
    is_echo: bool
    is_head: bool

    @property
    def is_hit(self) -> bool:
        return self.kind is not None or self.signature_id is not None or self.is_echo


@dataclass(frozen=True, slots=True)
class ErrorRecord:
    """One thing that a process said went wrong. `root` is the line of `lines` that tells it best."""

    kind: RecordKind
    lines: tuple[LogLine, ...]
    root: LogLine
    signature_id: str | None
    is_echo: bool

    @property
    def is_crash(self) -> bool:
        return self.kind in CRASHES


def error_records(lines: pl.DataFrame, signatures: Signatures) -> tuple[ErrorRecord, ...]:
    """Return the error records of a run's lines (of `log_lines`), in the order captured.

    A line of a level below ERROR is none, whatever it says: passing runs warn too.
    """
    streams = groupby(_neighbourhoods(lines, signatures), key=lambda line: line.stream)
    records = [record for _, each in streams for record in _records_of_stream(list(each))]
    return tuple(sorted(records, key=lambda record: record.root.row))


def _neighbourhoods(lines: pl.DataFrame, signatures: Signatures) -> Iterator[LogLine]:
    """Give each stream's lines around its earliest hits, stream by stream."""
    hits = _hits(lines, signatures)
    if hits.is_empty():
        return iter(())
    near = (
        hits.select(
            "stream", position=pl.int_ranges(pl.col("position") - LINES_BEFORE, pl.col("position") + LINES_PER_RECORD)
        )
        .explode("position")
        .unique()
    )
    marks = hits.select("row", "kind", "signature_id", "is_echo")
    found = (
        lines.join(near, on=["stream", "position"], how="semi")
        .with_columns(text=plain())
        .filter(~pl.col("text").str.contains(METRICS))
        .with_columns(is_head=pl.col("text").str.contains(TIMED))
        .join(marks, on="row", how="left", validate="1:1")
        .with_columns(pl.col("is_echo").fill_null(value=False))
        .sort("stream", "row")
    )
    return (_log_line(each) for each in found.to_dicts())


def _hits(lines: pl.DataFrame, signatures: Signatures) -> pl.DataFrame:
    level = pl.col("text").str.extract(LEVEL, 1)
    is_error_level = level.is_in(ERROR_LEVELS)
    by_form = pl.coalesce(
        *(pl.when(pl.col("text").str.contains(each)).then(pl.lit(kind)) for kind, each in KIND_OF_LINE)
    )
    return (
        lines.filter(pl.col("origin") != Origin.RUNNER)
        .filter(pl.col("text").str.contains_any([*KIND_NEEDLES, *signatures.needles]))
        .with_columns(text=plain())
        .with_columns(level=level, is_error_level=is_error_level.fill_null(value=False))
        .filter(pl.col("level").is_null() | pl.col("is_error_level"))
        .with_columns(
            kind=pl.when("is_error_level").then(pl.lit(RecordKind.LOGGED)).otherwise(by_form),
            signature_id=signatures.signature_id(),
            is_echo=signatures.is_echo(),
        )
        .filter(pl.col("kind").is_not_null() | pl.col("signature_id").is_not_null() | pl.col("is_echo"))
        .group_by("stream", maintain_order=True)
        .head(HITS_PER_STREAM)
    )


def _log_line(row: dict[str, Any]) -> LogLine:
    kind = row["kind"]
    return LogLine(**{**row, "origin": Origin(row["origin"]), "kind": None if kind is None else RecordKind(kind)})


def _records_of_stream(lines: Sequence[LogLine]) -> Iterator[ErrorRecord]:
    """Give the error records among a stream's lines; a gap in the positions ends a record."""
    pending: list[LogLine] = []
    for line in lines:
        if pending and not _continues(pending, line):
            yield from _as_record(pending)
            pending = []
        pending.append(line)
    yield from _as_record(pending)


def _continues(record: Sequence[LogLine], line: LogLine) -> bool:
    """Return whether a line belongs to the record before it."""
    head, last = record[0], record[-1]
    if line.is_head or line.position - head.position >= LINES_PER_RECORD:
        return False
    if head.kind == RecordKind.ABORT:
        return line.kind == RecordKind.ABORT and "what():" not in last.text and not _begins_abort(line)
    if line.kind in (RecordKind.PANIC, RecordKind.ABORT):
        return False
    if head.kind == RecordKind.PANIC:
        has_message = len(record) > 1
        is_over = last.text.startswith("note: ") or not last.text.strip() or line.kind == RecordKind.ERROR
        return not (has_message and is_over)
    if head.kind in (RecordKind.LOGGED, RecordKind.ERROR):
        return not line.text.strip() or line.text.startswith((" ", "\t", "Caused by:"))
    return False


def _begins_abort(line: LogLine) -> bool:
    return "terminate called after" in line.text


def _as_record(lines: Sequence[LogLine]) -> Iterator[ErrorRecord]:
    if not any(line.is_hit for line in lines):
        return
    kept = tuple(_without_blank_end(lines))
    known = next((line for line in kept if line.signature_id is not None), None)
    kind = kept[0].kind or RecordKind.MESSAGE
    root = known or _telling_line(kind, kept)
    yield ErrorRecord(kind, kept, root, known.signature_id if known else None, kept[0].is_echo or root.is_echo)


def _without_blank_end(lines: Sequence[LogLine]) -> Sequence[LogLine]:
    count = len(lines)
    while count > 1 and not lines[count - 1].text.strip():
        count -= 1
    return lines[:count]


def _telling_line(kind: RecordKind, lines: Iterable[LogLine]) -> LogLine:
    """Return a panic's message, an abort's what(), else the first line."""
    first, *rest = lines
    if kind == RecordKind.ABORT:
        return next((line for line in (first, *rest) if "what():" in line.text), first)
    if kind == RecordKind.PANIC and re.search(r"panicked at \S+:\d+:\d+:\s*$", first.text):
        return next((line for line in rest if line.text.strip()), first)
    return first
