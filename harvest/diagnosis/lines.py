"""The log of a run as lines to be searched: who wrote them, in which order, free of control sequences. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from harvest.contract import RUN_LOGS
from harvest.diagnosis.evidence import ORIGIN_OF_STREAM, Origin, RunEvidence
from harvest.tables import conform

CONTROL_SEQUENCE = r"\x1b\[[0-9;?]*[A-Za-z]"

SELF_CHECK_PASSED = "proof self-check PASSED"
"""What the daemon logs for each proof that it completed (cuzk_core::engine)."""


def log_lines(evidence: RunEvidence) -> pl.DataFrame:
    """Return the run's lines in the order captured, each stream once.

    Columns: `row` (0, 1, 2 ... over all lines), `position` (the same within its stream), `seq`, `stream`, `origin`
    (see Origin), `captured_at` (null from a raw bundle), `text` (as captured). A followed file that the closing names
    as a repetition of a captured stream is left out, so that nothing is counted twice.
    """
    if evidence.logs.is_empty():
        return _numbered(conform(evidence.logs.clear(), RUN_LOGS), [])
    return _numbered(conform(evidence.logs, RUN_LOGS), _repetitions(evidence))


def plain(column: str = "text") -> pl.Expr:
    """Return the column without control sequences."""
    return pl.col(column).str.replace_all(CONTROL_SEQUENCE, "")


def daemon_completed(lines: pl.DataFrame) -> pl.DataFrame:
    """Return the lines with which the daemon reported a completed proof."""
    return lines.filter(
        (pl.col("origin") == Origin.DAEMON) & pl.col("text").str.contains(SELF_CHECK_PASSED, literal=True)
    )


def _repetitions(evidence: RunEvidence) -> list[str]:
    return [str(each["stream"]) for each in evidence.run.get("streams") or () if each.get("duplicate_of")]


def _numbered(logs: pl.DataFrame, left_out: Sequence[str]) -> pl.DataFrame:
    stream = pl.col("stream").cast(pl.String)
    return (
        logs.with_columns(stream=stream, text=pl.col("text").fill_null(""))
        .filter(~pl.col("stream").is_in(list(left_out)))
        .sort("seq", maintain_order=True)
        .with_row_index("row")
        .with_columns(origin=_origin(), position=pl.int_range(pl.len()).over("stream"))
        .select("row", "position", "seq", "stream", "origin", "captured_at", "text")
    )


def _origin() -> pl.Expr:
    named = (pl.when(pl.col("stream").str.contains(each)).then(pl.lit(origin)) for each, origin in ORIGIN_OF_STREAM)
    return pl.coalesce(*named, pl.lit(Origin.DAEMON))
