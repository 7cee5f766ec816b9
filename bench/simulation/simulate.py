"""A synthetic fleet into a store: what `bench simulate` does."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing import get_context
from typing import Any

from bench.errors import UsageError
from bench.simulation.bundles import DatedObject, simulated_bundle
from bench.simulation.facts import RunFacts, run_facts
from bench.simulation.launches import launch_objects
from bench.simulation.scenarios import OUTBID, Shape
from bench.simulation.schedule import PlannedRun, Presence, planned_runs
from bench.simulation.settings import SimulationSettings, SimulationSummary
from bench.simulation.story import play
from bench.simulation.truth import truth_row, write_truth
from bench.store import Store, open_store

_RUNS_PER_CHUNK = 25
_WORKERS_PER_CPU = 2
"""A worker waits for the disk after each object: another one computes meanwhile."""
_MAX_WORKERS = 16
_GIVEN_UP_AFTER = timedelta(hours=2, minutes=10)


@dataclass(frozen=True)
class SimulatedRun:
    """One run: its objects in the order stored, and the truth about it. `has_bundle` where any are a bundle's."""

    objects: list[DatedObject]
    truth: dict[str, Any]
    has_bundle: bool


def simulate(settings: SimulationSettings, store: Store, progress: Callable[[int, int], None]) -> SimulationSummary:
    """Write a fleet's bundles, launch records and, where asked for, the truth; return what was written.

    Args:
        store: a folder dates each object by the simulated time; others use their own clock, and so get no run that
            vanished or is alive.
        progress: is told how many of how many runs are stored, now and then.

    Raises:
        UsageError: the settings cannot be simulated; nothing was written.
        StoreError: the store did not take an object; what was stored before stays there, and is whole.
    """
    settings.check()
    started_s = time.monotonic()
    planned = planned_runs(settings, is_alive_possible=can_date(store))
    done: list[_ChunkResult] = []
    progress(0, len(planned))
    for result in _all_chunks(planned, settings, store.url):
        done.append(result)
        progress(sum(len(each.truth) + each.skipped_count for each in done), len(planned))
    truth = [row for result in done for row in result.truth]
    if settings.truth_file is not None:
        _save_truth(truth, settings)
    return _summary(truth, done, settings, time.monotonic() - started_s)


def can_date(store: Store) -> bool:
    """Whether the store takes the simulated time for an object's own: a folder does."""
    return store.credential == "file"


def simulated_run(planned: PlannedRun, settings: SimulationSettings, store: Store) -> SimulatedRun | None:
    """Return one run; null where the store cannot hold one that vanished."""
    facts = run_facts(planned, settings)
    is_dated = can_date(store)
    if facts.scenario.shape == Shape.NEVER_STARTS:
        return _never_started(facts, settings, is_dated)
    if facts.scenario.shape == Shape.FALLS_SILENT and not is_dated:
        return None
    recording = play(facts, settings.log_lines, settings.end)
    bundle = simulated_bundle(facts, recording, store.credential)
    truth = truth_row(facts, recording, bundle.logs.batch)
    ended_at = bundle.objects[-1].stored_at + timedelta(seconds=45)
    launches = launch_objects(facts, _fate(facts, truth), ended_at, is_simulated=not is_dated)
    return SimulatedRun([*launches[:2], *bundle.objects, *launches[2:]], truth, has_bundle=True)


def _never_started(facts: RunFacts, settings: SimulationSettings, is_dated: bool) -> SimulatedRun:
    """A rental that is given up in time is `destroyed`; one that may yet begin has no end."""
    given_up_at = facts.granted_at + _GIVEN_UP_AFTER
    fate = "destroyed" if facts.presence == Presence.ENDED and given_up_at < settings.end else None
    launches = launch_objects(facts, fate, given_up_at, is_simulated=not is_dated)
    return SimulatedRun(launches, truth_row(facts, None, None), has_bundle=False)


def _fate(facts: RunFacts, truth: dict[str, Any]) -> str | None:
    if facts.presence != Presence.ENDED:
        return None
    if facts.scenario.shape == Shape.FALLS_SILENT:
        return "outbid" if facts.scenario is OUTBID else "lost"
    return "kept" if truth["outcome"] == "passed" else "destroyed"


@dataclass(frozen=True)
class _ChunkResult:
    truth: list[dict[str, Any]]
    skipped_count: int
    bundle_count: int
    object_count: int
    stored_bytes: int


def _all_chunks(planned: Sequence[PlannedRun], settings: SimulationSettings, url: str) -> Iterator[_ChunkResult]:
    """Store the runs in several processes; yield what each chunk gave, in no order."""
    chunks = [planned[at : at + _RUNS_PER_CHUNK] for at in range(0, len(planned), _RUNS_PER_CHUNK)]
    worker_count = min(_WORKERS_PER_CPU * (os.cpu_count() or 1), _MAX_WORKERS, max(len(chunks), 1))
    with ProcessPoolExecutor(worker_count, get_context("spawn")) as workers:
        futures: Iterable[Future[_ChunkResult]] = [workers.submit(_store_chunk, each, settings, url) for each in chunks]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            workers.shutdown(wait=True, cancel_futures=True)
            raise


def _store_chunk(planned: Sequence[PlannedRun], settings: SimulationSettings, url: str) -> _ChunkResult:
    store = open_store(url)
    runs = [_store_run(each, settings, store) for each in planned]
    stored = [run for run in runs if run is not None]
    return _ChunkResult(
        truth=[run.truth for run in stored],
        skipped_count=len(runs) - len(stored),
        bundle_count=sum(run.has_bundle for run in stored),
        object_count=sum(len(run.objects) for run in stored),
        stored_bytes=sum(len(each.data) for run in stored for each in run.objects),
    )


def _store_run(planned: PlannedRun, settings: SimulationSettings, store: Store) -> SimulatedRun | None:
    run = simulated_run(planned, settings, store)
    for each in [] if run is None else run.objects:
        store.put_new(each.key, each.data, each.stored_at)
    return run


def _save_truth(rows: Sequence[dict[str, Any]], settings: SimulationSettings) -> None:
    assert settings.truth_file is not None
    try:
        write_truth(rows, settings.truth_file)
    except OSError as error:
        raise UsageError(
            f"--truth {settings.truth_file} cannot be written: {error.strerror}. All bundles are stored; the same "
            "command with an empty store writes the same bundles again, and the truth."
        ) from error


def _summary(
    truth: Sequence[dict[str, Any]], done: Sequence[_ChunkResult], settings: SimulationSettings, wall_s: float
) -> SimulationSummary:
    return SimulationSummary(
        run_count=len(truth),
        bundle_count=sum(each.bundle_count for each in done),
        in_flight_count=sum(row["presence"] != Presence.ENDED for row in truth),
        machine_count=len({row["machine_id"] for row in truth}),
        object_count=sum(each.object_count for each in done),
        stored_bytes=sum(each.stored_bytes for each in done),
        wall_s=round(wall_s, 3),
        truth_file=None if settings.truth_file is None else str(settings.truth_file),
    )
