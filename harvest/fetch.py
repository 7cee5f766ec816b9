"""What the store holds at an instant, sorted into bundles.

A bundle is described by its listing alone: no object is opened to learn whether it has a closing, how large it is
or when it was last heard of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from bench.keys import (
    LAUNCHES_PREFIX,
    MAX_OBJECT_COUNT,
    MAX_STORED_BYTES,
    ObjectName,
    bundle_prefix,
    parse_bundle_key,
)
from harvest.contract import BundleState, RejectReason
from harvest.policy import Policy
from harvest.refusal import Refusal, refused_object
from harvest.store import ObjectStore, StoredObject

ALL_BUNDLES_PREFIX = "bundles/"
"""Every version's: an object of a layout that this program does not know is refused, not passed over."""
LONGEST_DEADLINE_S = 3600
"""A bundle's own `longest_interval_s` may lengthen its deadline to this at most."""


@dataclass(frozen=True, slots=True)
class BundleObject:
    """One object of a bundle: what its key says, and what the store says."""

    name: ObjectName
    stored: StoredObject


@dataclass(frozen=True, slots=True)
class BundleListing:
    """All that the store had of one run, sorted by key; one object at least.

    `strangers` lie in the run's folder under names that no object of a bundle has: they are never opened, but count,
    since a run that stored anything is a run.
    """

    run_id: str
    objects: tuple[BundleObject, ...]
    strangers: tuple[StoredObject, ...] = ()

    @property
    def prefix(self) -> str:
        return bundle_prefix(self.run_id)

    @property
    def stored(self) -> tuple[StoredObject, ...]:
        return (*(each.stored for each in self.objects), *self.strangers)

    @property
    def object_count(self) -> int:
        return len(self.stored)

    @property
    def stored_bytes(self) -> int:
        return sum(each.bytes for each in self.stored)

    @property
    def first_stored_at(self) -> datetime:
        return min(each.stored_at for each in self.stored)

    @property
    def last_stored_at(self) -> datetime:
        return max(each.stored_at for each in self.stored)

    def of_table(self, table: str) -> tuple[BundleObject, ...]:
        """Return the objects of one table, parts in order; none where it is not there."""
        return tuple(each for each in self.objects if each.name.table == table)

    def over_limit(self) -> str | None:
        """Return what is too much about the whole bundle, as a sentence; null where it may be read."""
        if self.object_count > MAX_OBJECT_COUNT:
            return f"{self.object_count} objects; a run has at most {MAX_OBJECT_COUNT}"
        if self.stored_bytes > MAX_STORED_BYTES:
            return f"{self.stored_bytes} bytes stored; a run has at most {MAX_STORED_BYTES}"
        return None


@dataclass(frozen=True, slots=True)
class Listing:
    """What the stores held at `as_of`: bundles by run id, in its order, objects of launch records, refused keys.

    `all_object_count` counts what was stored after `as_of` too, which is not there yet otherwise.
    """

    as_of: datetime
    bundles: Mapping[str, BundleListing]
    launches: tuple[StoredObject, ...]
    refusals: tuple[Refusal, ...]
    all_object_count: int


def list_stores(bundle_store: ObjectStore, launch_store: ObjectStore, as_of: datetime | None) -> Listing:
    """Return what both stores held at `as_of`; null means now, by the clock of the store of bundles.

    Raises:
        StoreUnreadable: a store did not answer, or said no.
    """
    instant = as_of or bundle_store.now()  # asked before the listing: what it lists later is not needed to be whole
    objects = bundle_store.list(ALL_BUNDLES_PREFIX)
    bundles, refusals = bundles_by_run(each for each in objects if each.stored_at <= instant)
    launches = launch_store.list(LAUNCHES_PREFIX)
    return Listing(
        as_of=instant,
        bundles=bundles,
        launches=tuple(each for each in launches if each.stored_at <= instant),
        refusals=tuple(refusals),
        all_object_count=len(objects) + len(launches),
    )


def bundles_by_run(objects: Iterable[StoredObject]) -> tuple[dict[str, BundleListing], list[Refusal]]:
    """Return the bundles by run id, in its order, and a refusal for each key that is not one of a bundle's."""
    known: dict[str, list[BundleObject]] = {}
    strangers: dict[str, list[StoredObject]] = {}
    refusals = []
    for stored in sorted(objects, key=lambda each: each.key):
        name = parse_bundle_key(stored.key)
        if name is not None:
            known.setdefault(name.run_id, []).append(BundleObject(name, stored))
            continue
        run_id = run_id_of_folder(stored.key)
        refusals.append(refused_object(stored, RejectReason.BAD_KEY, "not the key of an object of a bundle", run_id))
        if run_id is not None:
            strangers.setdefault(run_id, []).append(stored)
    bundles = {
        run_id: BundleListing(run_id, tuple(known.get(run_id, ())), tuple(strangers.get(run_id, ())))
        for run_id in sorted(known.keys() | strangers.keys())
    }
    return bundles, refusals


def run_id_of_folder(key: str) -> str | None:
    """Return the run in whose folder a key lies, whatever its name; null where the folder is no run's."""
    root, version, date, folder, *names = [*key.split("/"), "", "", ""]
    name = parse_bundle_key("/".join((root, version, date, folder, "opening.parquet")))
    return name.run_id if name is not None and names[0] else None


def silence_deadline_s(policy: Policy, longest_interval_s: float | None) -> float:
    """Return after how many seconds of silence a bundle without a closing counts as over."""
    own_s = min(2 * (longest_interval_s or 0), LONGEST_DEADLINE_S)
    return max(policy.vanished_after_s, own_s)


def settled_at(listing: BundleListing, deadline_s: float) -> datetime:
    """Return the instant from which the bundle is in a state that only a new object can change."""
    if listing.of_table("closing"):
        return listing.last_stored_at
    return listing.last_stored_at + timedelta(seconds=deadline_s)


def listed_state(listing: BundleListing, deadline_s: float, as_of: datetime) -> BundleState | None:
    """Return the bundle's state by the store's clock; null while the run may be alive."""
    if listing.of_table("closing"):
        return BundleState.FINISHED
    if as_of <= settled_at(listing, deadline_s):
        return None
    return BundleState.CLOSING_PARTIAL if listing.of_table("closing-partial") else BundleState.VANISHED
