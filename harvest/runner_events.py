"""The runner's own lines, one JSON object each -> the stages and proofs of a bundle that has no such tables. Pure.

The runner tells what happens as it happens, so that a host that vanished still leaves its ends and its phase.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bench.arrow import arrow_schema, table_from_rows
from bench.contract import PROOFS, RUNNER_STREAM, STAGES, EndKind, FoundBy, RunnerEvent
from bench.schema import Table
from harvest.limits import MAX_RUNNER_EVENT_COUNT
from harvest.ranges import out_of_range

_ROW_ERRORS = (pa.ArrowException, ValueError, TypeError, KeyError, AttributeError, OverflowError)
_UNKNOWN_END: Mapping[str, Any] = {
    "end_kind": str(EndKind.STILL_RUNNING),
    "argv": [],
    "found_by": str(FoundBy.CHILD),
    "is_end_hidden": False,
    "runner_signals": [],
}


@dataclass(frozen=True, slots=True)
class RunnerEvents:
    """The events in order, and how many lines of the stream were none, with the first such line's problem."""

    events: tuple[Mapping[str, Any], ...] = ()
    bad_line_count: int = 0
    first_problem: str | None = None


def runner_events(logs: pa.Table) -> RunnerEvents:
    """Return the events in the runner's stream of a trusted table `logs`; at most 100,000 are read."""
    is_runner = pc.equal(logs["stream"].cast(pa.string()), RUNNER_STREAM)
    lines = logs["text"].filter(is_runner).slice(0, MAX_RUNNER_EVENT_COUNT).to_pylist()
    events: list[Mapping[str, Any]] = []
    problems: list[str] = []
    for line in lines:
        event = _event(line)
        if isinstance(event, str):
            problems.append(event)
        else:
            events.append(event)
    return RunnerEvents(tuple(events), len(problems), problems[0] if problems else None)


def _event(line: str) -> Mapping[str, Any] | str:
    """Return a line's event, checked as far as anything here uses it, or what is wrong with it."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}"
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        return "not an event"
    if event["event"] == RunnerEvent.PROOF:
        return _checked(event, PROOFS, event)
    if event["event"] in (RunnerEvent.STAGE_STARTED, RunnerEvent.STAGE_ENDED):
        return _checked(event, STAGES, {**_UNKNOWN_END, **_told(event)})
    return event


def _checked(event: Mapping[str, Any], table: Table, row: Mapping[str, Any]) -> Mapping[str, Any] | str:
    try:
        rows = table_from_rows(table, [row])
    except _ROW_ERRORS as error:
        return f"not a row of {table.name!r}: {error}"
    missing = [each.name for each in table.columns if not each.is_nullable and rows[each.name].null_count]
    if missing:
        return f"a row of {table.name!r} without {', '.join(missing)}"
    return out_of_range(rows, table) or event


def _told(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of `stages` that this event tells."""
    known = {name: event[name] for name in STAGES.column_names if event.get(name) is not None}
    started = {"started_at": event.get("at")} if event["event"] == RunnerEvent.STAGE_STARTED else {}
    return {**started, **known}


def stages_of(events: Sequence[Mapping[str, Any]], unknown_end: EndKind) -> pa.Table:
    """Return the table `stages` that the events tell; a stage without an end has end kind `unknown_end`."""
    rows: dict[int, dict[str, Any]] = {}
    for event in _of_kind(events, RunnerEvent.STAGE_STARTED, RunnerEvent.STAGE_ENDED):
        before = rows.get(event["stage_index"], {**_UNKNOWN_END, "end_kind": str(unknown_end)})
        rows[event["stage_index"]] = {**before, **_told(event)}
    return _table(STAGES, [row for _, row in sorted(rows.items())])


def proofs_of(events: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return the table `proofs` that the events tell; of an index that comes twice, the later one."""
    rows = {event["proof_index"]: event for event in _of_kind(events, RunnerEvent.PROOF)}
    return _table(PROOFS, [row for _, row in sorted(rows.items())])


def _of_kind(events: Iterable[Mapping[str, Any]], *kinds: RunnerEvent) -> Iterable[Mapping[str, Any]]:
    return (event for event in events if event["event"] in kinds)


def _table(table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    return table_from_rows(table, rows) if rows else arrow_schema(table).empty_table()
