"""The log tails of a run page: which lines of each stream are shown, and how.

A run that passed shows each stream's last lines; any other shows all of them up to a cap, then the head and the
tail. A progress line that was overwritten (carriage return) is folded away. Escape sequences are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from bench.contract import RUNNER_STREAM
from reports import format as fmt
from reports.visible import shown_line

TAIL_LINES = 200
HEAD_LINES = 100
MAX_LINES = 1_000
MAX_CHARACTERS = 256 * 1024
_CARRIAGE_RETURN = 2
_ERROR = re.compile(r"\bERROR\b|\bFATAL\b|panicked at|^\s*what\(\):|^terminate called|^Error:|\bXid\b")
_WARNING = re.compile(r"\bWARN(?:ING)?\b")


@dataclass(frozen=True, slots=True)
class LogLine:
    """A shown line: its number in the run, its time of day, its text; `tone` is `bad`, `warn`, `root` or empty."""

    seq: int
    clock: str
    text: str
    tone: str


@dataclass(frozen=True, slots=True)
class LogTail:
    """One stream. `gap` says what is left out between `head` and `tail`; empty where nothing is."""

    stream: str
    summary: str
    head: tuple[LogLine, ...]
    gap: str
    tail: tuple[LogLine, ...]
    is_open: bool
    whole_command: str


def log_tails(
    logs: pl.DataFrame,
    streams: Sequence[Mapping[str, Any]],
    root: Mapping[str, Any] | None,
    *,
    is_whole: bool,
    bundle: str,
) -> tuple[LogTail, ...]:
    """Return one tail for each stream, the root line's first, the runner's own last.

    Args:
        logs: one run's rows of `logs`.
        streams: `streams` of the closing: how many bytes and lines there really are; may be empty.
        root: the evidence line that the verdict rests on, or null.
        is_whole: show all lines up to the cap (a run that did not pass), not only the last ones.
        bundle: the bundle's key, for the command that prints a stream whole; may be empty.
    """
    root_stream, root_seq = (root["stream"], root["seq"]) if root else (None, None)
    parts = logs.with_columns(pl.col("stream").cast(pl.String)).partition_by(
        "stream", as_dict=True, maintain_order=True
    )
    by_stream = {str(key[0]): part.sort("seq") for key, part in parts.items()}
    told = {each["stream"]: each for each in streams}
    order = sorted(by_stream, key=lambda name: (name != root_stream, name == RUNNER_STREAM, name))
    return tuple(
        _tail(name, by_stream[name], told.get(name), root_seq, is_whole=is_whole, is_open=index == 0, bundle=bundle)
        for index, name in enumerate(order)
    )


def _tail(
    name: str,
    rows: pl.DataFrame,
    told: Mapping[str, Any] | None,
    root_seq: int | None,
    *,
    is_whole: bool,
    is_open: bool,
    bundle: str,
) -> LogTail:
    kept = rows.filter((pl.col("terminator") != _CARRIAGE_RETURN) | (pl.col("seq") == pl.col("seq").max()))
    head, tail = _shown_rows(kept, is_whole=is_whole)
    left_out = kept.height - head.height - tail.height
    return LogTail(
        stream=name,
        summary=_summary(rows, kept, told),
        head=_lines(head, root_seq),
        gap=f"{fmt.counted(left_out, 'line')} left out here" if left_out else "",
        tail=_lines(tail, root_seq),
        is_open=is_open,
        whole_command=f"bench inspect STORE/{bundle} --logs {name}" if bundle else "",
    )


def _shown_rows(rows: pl.DataFrame, *, is_whole: bool) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the head and the tail to show; the head is empty where the tail holds everything or the run passed."""
    if not is_whole:
        return rows.head(0), _last_characters(rows.tail(TAIL_LINES))
    tail = _last_characters(rows.tail(MAX_LINES))
    if tail.height == rows.height:
        return rows.head(0), tail
    head = rows.head(min(HEAD_LINES, rows.height - 1))
    tail = _last_characters(rows.slice(head.height).tail(MAX_LINES - HEAD_LINES))
    return head, tail


def _last_characters(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the last rows that stay under the cap of characters, at least one."""
    from_end = rows["text"].str.len_chars().clip(0, 2_000).reverse().cum_sum()
    return rows.tail(max(1, int((from_end <= MAX_CHARACTERS).sum()))) if rows.height else rows


def _lines(rows: pl.DataFrame, root_seq: int | None) -> tuple[LogLine, ...]:
    columns = zip(rows["seq"], rows["captured_at"], rows["text"], strict=True)
    return tuple(_line(seq, at, text, root_seq) for seq, at, text in columns)


def _line(seq: int, at: Any, text: str, root_seq: int | None) -> LogLine:
    shown = shown_line(text)
    return LogLine(seq, fmt.clock(at), shown, "root" if seq == root_seq else tone_of(shown))


def tone_of(text: str) -> str:
    """Return `bad` for a line that says error, `warn` for one that warns, else nothing."""
    if _ERROR.search(text):
        return "bad"
    return "warn" if _WARNING.search(text) else ""


def _summary(rows: pl.DataFrame, kept: pl.DataFrame, told: Mapping[str, Any] | None) -> str:
    parts = [fmt.counted(rows.height, "line")]
    if told is not None and told["raw_bytes"] is not None:
        parts.append(fmt.bytes_text(told["raw_bytes"]))
    if rows.height > kept.height:
        parts.append(f"{fmt.counted(rows.height - kept.height, 'overwritten progress line')} folded")
    if told is not None and told["duplicate_of"]:
        parts.append(f"repeats {told['duplicate_of']}")
    if told is not None and told["lost_bytes"]:
        parts.append(f"{fmt.bytes_text(told['lost_bytes'])} lost")
    if told is not None and told["redaction_count"]:
        parts.append(f"{fmt.counted(told['redaction_count'], 'secret')} replaced")
    return " · ".join(parts)


def last_line(logs: pl.DataFrame, stage: str) -> str:
    """Return the last line with text that a stage printed (stderr before stdout); empty where it printed nothing."""
    for suffix in ("stderr", "stdout"):
        lines = logs.filter(pl.col("stream").cast(pl.String) == f"{stage}.{suffix}").sort("seq")["text"].to_list()
        shown = [line for line in map(shown_line, lines[-50:]) if line.strip()]
        if shown:
            return shown[-1]
    return ""


def shown_seqs(tails: Sequence[LogTail]) -> frozenset[int]:
    """Return the numbers of all lines that are shown: only these can be linked to."""
    return frozenset(line.seq for tail in tails for line in (*tail.head, *tail.tail))
