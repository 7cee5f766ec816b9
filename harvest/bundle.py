"""One bundle, read: the trusted rows of all its tables, and what was refused of it.

A refused object costs only itself. The closing is read first, since it says what all others must be; without one,
page checksums are the only check, and stages and proofs are rebuilt from what the runner told as it happened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import pyarrow as pa

from bench.arrow import arrow_schema
from bench.contract import BUNDLE_TABLES, EndKind
from bench.keys import MAX_OBJECT_BYTES, object_key, parse_bundle_key
from harvest.contract import RejectReason
from harvest.errors import ObjectMissing
from harvest.fetch import BundleListing, BundleObject
from harvest.parts import joined_parts, part_gap
from harvest.refusal import Refusal
from harvest.runner_events import RunnerEvents, proofs_of, runner_events, stages_of
from harvest.store import ObjectStore
from harvest.validate import Listed, Untrusted, trusted_table

_DETAILS = ("logs", "telemetry", "stages", "proofs")


@dataclass(frozen=True, slots=True)
class Bundle:
    """What could be trusted of a bundle. Tables are in the bundle's schemas, without rows where nothing was there.

    `opening` and `closing` are null where there is none that can be read; maps in them are dicts.
    """

    opening: Mapping[str, Any] | None
    closing: Mapping[str, Any] | None
    logs: pa.Table
    telemetry: pa.Table
    stages: pa.Table
    proofs: pa.Table
    refusals: tuple[Refusal, ...]
    accepted_count: int

    @property
    def is_trusted(self) -> bool:
        """Whether anything of the bundle could be trusted at all."""
        tables = (self.logs, self.telemetry, self.stages, self.proofs)
        return self.opening is not None or self.closing is not None or any(each.num_rows for each in tables)


def read_bundle(store: ObjectStore, listing: BundleListing) -> Bundle:
    """Return everything of a bundle that can be trusted. Damage is a refusal, never an error.

    Raises:
        StoreUnreadable: the store did not give an object; another try may.
    """
    over_limit = listing.over_limit()
    if over_limit is not None:
        return nothing_trusted(refused_whole(listing, RejectReason.OVER_LIMIT, over_limit))
    reader = _Reader(store, listing)
    closing = reader.closing()
    opening = _first_row(reader.table("opening"))
    logs = reader.parts("logs")
    telemetry = reader.parts("telemetry")
    stages, proofs = reader.table("stages"), reader.table("proofs")
    reader.check_presence()
    told = runner_events(logs) if stages is None or proofs is None else RunnerEvents()
    if told.bad_line_count:
        reader.refuse_logs(RejectReason.BAD_JSON, f"{told.bad_line_count} lines of the runner: {told.first_problem}")
    return Bundle(
        opening=opening,
        closing=closing,
        logs=logs,
        telemetry=telemetry,
        stages=stages_of(told.events, EndKind.LOST) if stages is None else stages,
        proofs=proofs_of(told.events) if proofs is None else proofs,
        refusals=tuple(reader.refusals),
        accepted_count=reader.accepted_count,
    )


def nothing_trusted(refusal: Refusal) -> Bundle:
    """Return a bundle none of whose objects was opened, for the reason given."""
    empty = {name: arrow_schema(BUNDLE_TABLES[name]).empty_table() for name in _DETAILS}
    return Bundle(None, None, **empty, refusals=(refusal,), accepted_count=0)


def refused_whole(listing: BundleListing, reason: RejectReason, detail: str) -> Refusal:
    """Return the refusal of a whole bundle."""
    return Refusal(
        run_id=listing.run_id,
        key=listing.prefix,
        table=None,
        reason=reason,
        detail=detail,
        bytes=listing.stored_bytes,
        stored_at=listing.last_stored_at,
    )


def _first_row(table: pa.Table | None) -> dict[str, Any] | None:
    if table is None:
        return None
    row: dict[str, Any] = table.to_pylist(maps_as_pydicts="lossy")[0]
    return row


class _Reader:
    """Reads the objects of one bundle, one at a time, and keeps what it refuses."""

    def __init__(self, store: ObjectStore, listing: BundleListing) -> None:
        self._store = store
        self._listing = listing
        self._listed: dict[str, Listed] = {}
        self.refusals: list[Refusal] = []
        self.accepted_count = 0

    def closing(self) -> dict[str, Any] | None:
        """Return the row of the closing, else of the partial one; from here on its list is checked."""
        closing = _first_row(self.table("closing"))
        self._take_list(closing)
        partial = _first_row(self.table("closing-partial"))
        if closing is None:
            self._take_list(partial)
        return closing or partial

    def _take_list(self, closing: Mapping[str, Any] | None) -> None:
        for entry in (closing or {}).get("objects") or []:
            self._take_entry(entry)

    def _take_entry(self, entry: Mapping[str, Any] | None) -> None:
        key = str((entry or {}).get("key"))
        name = parse_bundle_key(key)
        if entry is None or name is None or name.run_id != self._listing.run_id:
            closing_key = object_key(self._listing.run_id, "closing")
            self._refuse(closing_key, "closing", RejectReason.BAD_KEY, f"it lists {key!r}, which is not of this run")
        elif None in entry.values():
            self._refuse(key, name.table, RejectReason.SCHEMA_MISMATCH, "its entry in the closing has nulls")
        else:
            self._listed[key] = Listed(entry["bytes"], entry["sha256"], entry["rows"])

    def table(self, table: str) -> pa.Table | None:
        """Return a table that is one object; null where it is not there or was refused."""
        found = self._listing.of_table(table)
        return self._read(found[0]) if found else None

    def parts(self, table: str) -> pa.Table:
        """Return all parts of `logs` or `telemetry` that can be trusted as one table, in order; a gap is reported."""
        found = self._listing.of_table(table)
        refused_before = len(self.refusals)
        read = [(part, rows) for part in found if (rows := self._read(part)) is not None]
        joined, overlapping = joined_parts(table, [(part.name.part or 0, rows) for part, rows in read])
        for part, _ in read:
            if part.name.part in overlapping:
                self._refuse_object(part, RejectReason.OUT_OF_RANGE, overlapping[part.name.part], None)
                self.accepted_count -= 1
        gap = part_gap(table, [part.name.part or 0 for part in found], joined)
        if gap is not None and not self._is_known_missing(table, refused_before):
            self._refuse(
                object_key(self._listing.run_id, table, gap.part), table, RejectReason.GAP_IN_PARTS, gap.detail
            )
        return joined

    def _is_known_missing(self, table: str, refused_before: int) -> bool:
        """Whether a gap is no news: a part of the table was refused, or the closing lists one that is not there."""
        there = {each.stored.key for each in self._listing.of_table(table)}
        listed = {key for key in self._listed if (name := parse_bundle_key(key)) and name.table == table}
        return len(self.refusals) > refused_before or bool(listed - there)

    def check_presence(self) -> None:
        """Report what the closing lists and the store has not, and a missing opening."""
        there = {each.stored.key for each in self._listing.objects}
        missing = dict.fromkeys(self._listed.keys() - there, "the closing lists it")
        if not self._listing.of_table("opening"):
            missing[object_key(self._listing.run_id, "opening")] = "every bundle begins with it"
        for key, why in sorted(missing.items()):
            name = parse_bundle_key(key)
            self._refuse(key, name.table if name else None, RejectReason.MISSING_OBJECT, f"not in the store; {why}")

    def refuse_logs(self, reason: RejectReason, detail: str) -> None:
        self._refuse(object_key(self._listing.run_id, "logs", 0), "logs", reason, detail)

    def _read(self, found: BundleObject) -> pa.Table | None:
        if found.stored.bytes > MAX_OBJECT_BYTES:
            self._refuse_object(found, RejectReason.OVER_LIMIT, f"an object has at most {MAX_OBJECT_BYTES} bytes", None)
            return None
        data: bytes | None = None
        try:
            data = self._store.get(found.stored.key)
            listed = self._listed.get(found.stored.key)
            rows = trusted_table(data, found.name.table, self._listing.run_id, listed)
        except ObjectMissing:
            self._refuse_object(found, RejectReason.MISSING_OBJECT, "listed, and gone when it was read", None)
            return None
        except Untrusted as problem:
            self._refuse_object(found, problem.reason, problem.detail, data)
            return None
        self.accepted_count += 1
        return rows

    def _refuse_object(self, found: BundleObject, reason: RejectReason, detail: str, data: bytes | None) -> None:
        self.refusals.append(
            Refusal(
                run_id=self._listing.run_id,
                key=found.stored.key,
                table=found.name.table,
                reason=reason,
                detail=detail,
                bytes=found.stored.bytes,
                sha256=None if data is None else sha256(data).hexdigest(),
                stored_at=found.stored.stored_at,
            )
        )

    def _refuse(self, key: str, table: str | None, reason: RejectReason, detail: str) -> None:
        self.refusals.append(Refusal(self._listing.run_id, key, table, reason, detail))
