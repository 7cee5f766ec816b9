"""Does everything add up: what a harvest asks of itself, and of the store, before it publishes. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set

import polars as pl

from harvest.errors import StoreUnreadable, UnaccountedRuns
from harvest.fetch import Listing
from harvest.launches import Launches

_SHOWN_COUNT = 5


def check_not_emptied(listing: Listing, published: pl.DataFrame, store_url: str) -> None:
    """Check that a store which gave runs to the table RUNS before has not become empty.

    A disk that is not mounted and a bucket of another name look just so, and would empty the tables.

    Raises:
        StoreUnreadable: it has.
    """
    stored_count = published["bundle_key"].count()
    if stored_count and not listing.all_object_count:
        raise StoreUnreadable(
            f"{store_url} holds nothing now, but runs were published from it: {stored_count}. Nothing was changed; "
            "check --store and that it is mounted, or give a new --data where it was really emptied."
        )


def check_accounts(runs: pl.DataFrame, in_flight: pl.DataFrame, stored: Iterable[str], launches: Launches) -> None:
    """Check that each run is in RUNS or in IN_FLIGHT, once, and that each launched rental has a run.

    Args:
        runs, in_flight: the tables that are to be published.
        stored: the ids of all runs that have an object in the store.
        launches: the operator's records.

    Raises:
        UnaccountedRuns: one is in no place or in two, or a launched rental has none; it is named.
    """
    placed = Counter([*runs["run_id"], *in_flight["run_id"]])
    expected = expected_run_ids(stored, launches)
    problems = {
        "in two places": {run_id for run_id, count in placed.items() if count > 1},
        "in no place": expected - placed.keys(),
        "in a table, but neither stored nor launched": placed.keys() - expected,
        "a launched rental without a run": {
            each.rental_id for each in launches.records.values() if placed.keys().isdisjoint(each.run_ids)
        },
    }
    found = [f"{what}: {_shown(ids)}" for what, ids in problems.items() if ids]
    if found:
        raise UnaccountedRuns(
            f"runs do not add up ({'; '.join(found)}). Nothing was switched, the tables are as before; "
            "this is a mistake of the harvest, please report it with these ids."
        )


def expected_run_ids(stored: Iterable[str], launches: Launches) -> set[str]:
    """Return the ids of all runs there are: with an object in the store, or the first of a rental without one."""
    known = set(stored)
    unstarted = (each.run_ids[0] for each in launches.records.values() if known.isdisjoint(each.run_ids))
    return known.union(unstarted)


def unlaunched_count(run_ids: Iterable[str], launches: Launches) -> int:
    """Return how many runs have no launch record."""
    return sum(run_id not in launches.by_run_id for run_id in run_ids)


def _shown(ids: Set[str]) -> str:
    shown = ", ".join(sorted(ids)[:_SHOWN_COUNT])
    return shown if len(ids) <= _SHOWN_COUNT else f"{shown} and {len(ids) - _SHOWN_COUNT} more"
