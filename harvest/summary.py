"""What a harvest says when it is done: once as sentences for people, once as JSON for machines. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from harvest.contract import BAD_MACHINES, REJECTS, MachineState, Outcome
from harvest.errors import EXIT_OK, EXIT_QUARANTINED
from harvest.history import Findings

SHOWN_COUNT = 10
"""Lines of a kind that people are shown; the tables have all."""
NO_VERDICT = "no_verdict"
_OUTCOMES = (Outcome.PASSED, *(each for each in Outcome if each != Outcome.PASSED), NO_VERDICT)


@dataclass(frozen=True, slots=True)
class ListedMachine:
    """A machine that is on the list since this harvest, or whose state there has become `bad` by it."""

    machine_id: int
    state: str
    reason: str


@dataclass(frozen=True, slots=True)
class Summary:
    """`judged_now` counts, by outcome, runs that were read now or never started since the harvest before.

    `rejects` are rows of the table REJECTS, those that are new first; `new_reject_count` says how many are.
    """

    store: str
    data: str
    harvest: Mapping[str, Any]
    run_count: int
    outcomes: Mapping[str, int]
    judged_now: Mapping[str, int]
    bad_count: int
    watch_count: int
    newly_listed: tuple[ListedMachine, ...]
    rejects: tuple[Mapping[str, Any], ...]
    new_reject_count: int
    is_store_empty: bool

    @property
    def exit_code(self) -> int:
        return EXIT_QUARANTINED if self.rejects else EXIT_OK

    def as_json(self) -> str:
        """Return all of it as one JSON object on several lines; instants are RFC 3339 in UTC."""
        whole = {"exit_code": self.exit_code, **asdict(self)}
        return json.dumps(whole, indent=1, default=_instant, allow_nan=False)

    def as_text(self) -> str:
        """Return what an operator wants to know first: what came in, how it ended, whom not to rent, what to do."""
        return "\n".join([*self._runs(), *self._machines(), *self._refusals(), *self._next_steps()])

    def _runs(self) -> Iterable[str]:
        as_of: datetime = self.harvest["as_of"]
        yield f"Harvest of {self.store} as of {as_of:%Y-%m-%d %H:%M:%S} UTC, done in {self.harvest['wall_s']:.1f} s"
        if self.is_store_empty:
            yield "The store is empty: no bundle and no launch record. Check --store if that is a surprise."
            return
        judged_count = sum(self.judged_now.values())
        if judged_count:
            yield f"  Judged now: {_runs_in_words(judged_count)}: {_counts_in_words(self.judged_now)}."
        else:
            yield "  Judged now: nothing, no bundle is new or changed."
        alive = self.harvest["in_flight_count"]
        yield f"  In all: {_runs_in_words(self.run_count)}: {_counts_in_words(self.outcomes)}; {alive} in flight."
        if self.harvest["unlaunched_count"]:
            yield f"  Without a launch record: {self.harvest['unlaunched_count']:,}; their machine is their own word."

    def _machines(self) -> Iterable[str]:
        if self.is_store_empty:
            return
        yield f"  Machine list: {self.bad_count} bad, {self.watch_count} to watch."
        for each in self.newly_listed[:SHOWN_COUNT]:
            yield f"    new: machine {each.machine_id}, {each.state}: {each.reason}"
        if len(self.newly_listed) > SHOWN_COUNT:
            yield f"    and {len(self.newly_listed) - SHOWN_COUNT} more, see bad_machines.csv"
        if self.harvest["cleared_machine_ids"]:
            yield f"    off the list: {', '.join(map(str, self.harvest['cleared_machine_ids']))}"

    def _refusals(self) -> Iterable[str]:
        if not self.rejects:
            return
        reasons = Counter(each["reason"] for each in self.rejects)
        found = _counts_in_words(dict(reasons.most_common()))
        yield f"  Quarantined: {len(self.rejects):,} refusals ({self.new_reject_count:,} new): {found}."
        for each in self.rejects[:SHOWN_COUNT]:
            yield f"    {each['key']}: {each['reason']}: {each['detail']}"
        if len(self.rejects) > SHOWN_COUNT:
            yield f"    and {len(self.rejects) - SHOWN_COUNT:,} more, see rejects.parquet"

    def _next_steps(self) -> Iterable[str]:
        if self.rejects:
            yield "  All else of those bundles was taken in; what was refused is still in the store, to be looked at."
        yield f"  Tables: {self.data}. Next: reports build --data {self.data} --site SITE"


def summary_of(found: Findings, row: Mapping[str, Any], store_url: str, data: Path) -> Summary:
    """Return the summary of a published harvest; `row` is its row in HARVESTS."""
    runs, bad = found.fleet.runs, found.fleet.tables[BAD_MACHINES.name]
    new_ids = found.intake.over_run_ids | (set(runs["run_id"]) - found.before.run_ids)
    new_rejects = found.intake.rejects.join(found.before.rejects, on=REJECTS.key, how="anti", nulls_equal=True)
    old_rejects = found.intake.rejects.join(found.before.rejects, on=REJECTS.key, how="semi", nulls_equal=True)
    return Summary(
        store=store_url,
        data=str(data),
        harvest=row,
        run_count=runs.height,
        outcomes=_outcome_counts(runs),
        judged_now=_outcome_counts(runs.filter(pl.col("run_id").is_in(list(new_ids)))),
        bad_count=_state_count(bad, MachineState.BAD),
        watch_count=_state_count(bad, MachineState.WATCH),
        newly_listed=_newly_listed(bad, found.before.bad_machines),
        rejects=(*new_rejects.to_dicts(), *old_rejects.to_dicts()),
        new_reject_count=new_rejects.height,
        is_store_empty=not (runs.height or found.intake.in_flight.height or found.intake.rejects.height),
    )


def _outcome_counts(runs: pl.DataFrame) -> dict[str, int]:
    counts = Counter(each or NO_VERDICT for each in runs["outcome"])
    return {str(each): counts[str(each)] for each in _OUTCOMES if counts[str(each)]}


def _state_count(bad: pl.DataFrame, state: MachineState) -> int:
    return bad.filter(pl.col("state") == str(state)).height


def _newly_listed(bad: pl.DataFrame, before: pl.DataFrame) -> tuple[ListedMachine, ...]:
    """Return the machines that are new on the list, and those that were only watched before; the bad ones first."""
    states = dict(before.select("machine_id", "state").iter_rows())
    rows = bad.select("machine_id", "state", "reason").sort("state", "machine_id").iter_rows()
    found = (ListedMachine(*row) for row in rows)
    return tuple(each for each in found if states.get(each.machine_id) not in (each.state, str(MachineState.BAD)))


def _runs_in_words(count: int) -> str:
    return "1 run" if count == 1 else f"{count:,} runs"


def _counts_in_words(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {word.replace('_', ' ')}" for word, count in counts.items()) or "none"


def _instant(value: Any) -> str:
    if not isinstance(value, datetime):
        raise TypeError(f"{type(value).__name__} is no value of a summary")
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
