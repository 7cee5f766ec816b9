"""What comes in: bundles that are new or changed are read, all others keep their rows, and each run gets its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from harvest.contract import IN_FLIGHT
from harvest.engine import ExecutorMaker, each_result
from harvest.fetch import Listing
from harvest.judged_bundle import (
    BundleTask,
    JudgedBundle,
    Surroundings,
    crashed_bundle,
    judge_bundle,
    judged_never_started,
)
from harvest.launches import Launches, unstarted
from harvest.memory import Before, basis_of, remembered
from harvest.refusal import rejects_frame
from harvest.runs import all_runs, frame_of, not_yet_started_row

Results = Iterator[JudgedBundle]
Told = Callable[[Results, int], Iterable[JudgedBundle]]
"""Passes results on as they come, of that many, and tells whoever listens."""


@dataclass(frozen=True, slots=True)
class Intake:
    """All runs, each in its place: RUNS (judged, without money and cohort) or IN_FLIGHT; and what was refused.

    `read` are the bundles that were opened, in order of run id; `read_bundles` is for the next harvest.
    """

    read: tuple[JudgedBundle, ...]
    kept_run_ids: frozenset[str]
    runs: pl.DataFrame
    in_flight: pl.DataFrame
    rejects: pl.DataFrame
    read_bundles: pl.DataFrame

    @property
    def over_run_ids(self) -> set[str]:
        """Runs that were read now and are over: their details wait in the staging folder."""
        return {each.listing.run_id for each in self.read if not each.is_alive}

    @property
    def accepted_count(self) -> int:
        """Objects that came into the tables with this harvest."""
        return sum(each.accepted_count for each in self.read if not each.is_alive)


def take_in(
    around: Surroundings, listing: Listing, launches: Launches, before: Before, make_executor: ExecutorMaker, told: Told
) -> Intake:
    """Read what is new, keep what is not, and place every run.

    Raises:
        HarvestError: the store cannot be read, or the staging folder cannot be written.
    """
    bases = {run_id: _basis(run_id, launches, around) for run_id in listing.bundles}
    kept = frozenset(
        run_id for run_id, bundle in listing.bundles.items() if before.is_unchanged(bundle, bases[run_id], around.as_of)
    )
    tasks = [
        BundleTask(around, bundle, launches.by_run_id.get(run_id))
        for run_id, bundle in listing.bundles.items()
        if run_id not in kept
    ]
    results = told(each_result(make_executor, judge_bundle, tasks, crashed_bundle), len(tasks))
    read = tuple(sorted(results, key=lambda each: each.listing.run_id))
    silent = unstarted(launches, listing.bundles.keys(), around.as_of, around.policy)
    never_started = [judged_never_started(record, around.signatures_text) for record in silent.never_started]
    alive = [each.row for each in read if each.is_alive] + [not_yet_started_row(record) for record in silent.waiting]
    refusals = [*listing.refusals, *launches.refusals, *(each for one in read for each in one.refusals)]
    return Intake(
        read=read,
        kept_run_ids=kept,
        runs=all_runs(_rows_of(before.runs, kept), [*_over_rows(read), *never_started]),
        in_flight=frame_of(IN_FLIGHT, alive),
        rejects=rejects_frame(refusals, _rows_of(before.rejects, kept)),
        read_bundles=remembered(
            [before.read_bundles[run_id] for run_id in kept], [(each, bases[each.listing.run_id]) for each in read]
        ),
    )


def _basis(run_id: str, launches: Launches, around: Surroundings) -> str:
    return basis_of(launches.by_run_id.get(run_id), repr(around.policy), around.signatures_text)


def _over_rows(read: Iterable[JudgedBundle]) -> list[Mapping[str, Any]]:
    return [each.row for each in read if not each.is_alive]


def _rows_of(frame: pl.DataFrame, run_ids: frozenset[str]) -> pl.DataFrame:
    return frame.filter(pl.col("run_id").is_in(list(run_ids)))
