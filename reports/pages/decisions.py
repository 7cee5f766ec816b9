"""The overview's sentences: what needs a decision, most urgent first, five at most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from harvest.contract import Action, Blame, Outcome
from reports import fleet, paths
from reports import format as fmt
from reports.dataset import Dataset
from reports.pages.failures import trend
from reports.visible import clipped

MAX_DECISIONS = 5
_NAMED_COUNT = 5
_OURS = (Blame.SOFTWARE, Blame.CONFIGURATION, Blame.ENVIRONMENT, Blame.BENCHMARK_SCRIPT)
_DO = {
    Action.FIX_IMAGE: "Fix the image",
    Action.FIX_SCRIPT: "Fix the benchmark script",
    Action.FILTER_OFFER: "Filter such offers out",
    Action.RETRY: "Run again",
}


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do, why, and where the evidence is. `tone` is `bad` for what costs money now, else `warn`."""

    do: str
    why: str
    href: str
    tone: str = "warn"


def decisions(dataset: Dataset, runs: pl.DataFrame) -> tuple[Decision, ...]:
    """Return what needs a decision. `runs` are those of the dataset with `seen_at`, newest first."""
    if dataset.as_of is None:
        return ()
    found = (
        *_billing(dataset),
        *_newly_bad(dataset),
        *_ours(dataset, dataset.as_of),
        *_vanished(fleet.seen_within(runs, dataset.as_of, 1)),
        *_thresholds(fleet.seen_within(runs, dataset.as_of, 7)),
        *_unexplained(fleet.seen_within(runs, dataset.as_of, 7)),
        *_rejects(dataset),
    )
    return found[:MAX_DECISIONS]


def _billing(dataset: Dataset) -> Iterator[Decision]:
    alive = set(dataset.in_flight["run_id"])
    billing = dataset.rentals.filter(
        pl.col("is_still_billing").fill_null(False)
        & (pl.col("run_ids").list.set_intersection(list(alive)).list.len().fill_null(0) == 0)
    )
    if billing.height:
        why = f"{fmt.counted(billing.height, 'rental')} still bill and no run of theirs is alive: {_named(billing['instance_id'])}."
        yield Decision("Destroy what still bills", why, paths.RUNS, "bad")


def _newly_bad(dataset: Dataset) -> Iterator[Decision]:
    newest = dataset.harvests.tail(1).to_dicts()
    ids = (newest[0]["newly_bad_machine_ids"] or []) if newest else []
    if ids:
        why = f"{fmt.counted(len(ids), 'machine')} came onto the list with the newest harvest: {_named(ids)}."
        yield Decision("Stop renting", why, paths.BAD_MACHINES, "bad")


def _ours(dataset: Dataset, as_of: datetime) -> Iterator[Decision]:
    """The dearest two failures of the last 7 days that are ours to mend."""
    dearest = (
        dataset.fingerprints.filter(pl.col("blame").is_in([str(blame) for blame in _OURS]))
        .filter((as_of - pl.col("last_seen_at")) < pl.duration(days=7))
        .sort("usd_lost", "run_count", "fingerprint_id", descending=[True, True, False], nulls_last=True)
        .head(2)
    )
    for failure in dearest.to_dicts():
        yield Decision(
            _DO.get(failure["action"], "Look into"),
            _story(failure, as_of),
            paths.failure_page(failure["fingerprint_id"]),
        )


def _story(failure: Mapping[str, Any], as_of: datetime) -> str:
    runs, machines = fmt.counted(failure["run_count"], "run"), fmt.counted(failure["machine_count"], "machine")
    lost = "" if failure["usd_lost"] is None else f", {fmt.usd(failure['usd_lost'])} lost"
    return f"“{clipped(failure['title'], 90)}” ended {runs} on {machines}{lost}; it is {trend(failure, as_of)}."


def _vanished(runs: pl.DataFrame) -> Iterator[Decision]:
    vanished = runs.filter(pl.col("outcome") == Outcome.VANISHED)
    if vanished.height:
        why = f"{fmt.counted(vanished.height, 'run')} vanished in the last 24 h, on {_named(vanished['machine_id'], 'machine')}."
        yield Decision("See whether they still bill", why, _newest(vanished), "bad")


def _thresholds(runs: pl.DataFrame) -> Iterator[Decision]:
    wrong = runs.filter(pl.col("is_min_rate_consistent").eq_missing(False))
    if wrong.height:
        judged = runs.filter(pl.col("is_min_rate_consistent").is_not_null()).height
        why = f"{fmt.share(wrong.height, judged)} runs of the last 7 days were judged against a min rate that does not fit their price."
        yield Decision("Correct the min rate", why, _newest(wrong))


def _unexplained(runs: pl.DataFrame) -> Iterator[Decision]:
    unknown = fleet.unexplained(runs)
    if unknown.height:
        failed = fleet.failures(runs).height
        why = f"{fmt.share(unknown.height, failed)} failures of the last 7 days are not explained; the newest comes first."
        yield Decision("Look at what no rule explains", why, _newest(unknown))


def _rejects(dataset: Dataset) -> Iterator[Decision]:
    if dataset.rejects.height:
        why = f"{fmt.counted(dataset.rejects.height, 'thing')} in the store could not be trusted and was refused."
        yield Decision("See what was refused", why, paths.DATA)


def _newest(runs: pl.DataFrame) -> str:
    return paths.run_page(runs["run_id"][0])


def _named(ids: Sequence[Any] | pl.Series, noun: str = "") -> str:
    """Return up to five ids, then how many more."""
    known = sorted({each for each in ids if each is not None})
    if not known:
        return "not known which"
    named = ", ".join(map(str, known[:_NAMED_COUNT]))
    more = f" and {len(known) - _NAMED_COUNT} more" if len(known) > _NAMED_COUNT else ""
    return f"{noun + ' ' if noun else ''}{named}{more}"
