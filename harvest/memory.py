"""What a harvest knows from the one before: the tables that it published, and which bundles they were made of.

Without it every bundle is read again and the tables come out the same, only later. So a run's rows are kept only
where the listing, the launch record and everything else that they rest on are as they were.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl

from bench import PRODUCER
from bench.schema import Table
from bench.schema import column as c
from harvest.contract import BAD_MACHINES, HARVESTS, REJECTS, RUNS
from harvest.dataset import dated_files
from harvest.fetch import BundleListing
from harvest.judged_bundle import JudgedBundle
from harvest.launches import LaunchRecord
from harvest.tables import conform, polars_schema, read_files

READ_BUNDLES_FILE = ".read_bundles.parquet"
READ_BUNDLES = Table(
    "read_bundles",
    "One row for each settled run whose bundle was read. Beside the tables of its generation, and not one of them.",
    ("run_id",),
    (
        c("run_id", "string", "the run"),
        c("object_count", "int64", "objects that its bundle had"),
        c("stored_bytes", "int64", "of all of them"),
        c("last_stored_at", "timestamp", "store's clock: the newest"),
        c("settled_at", "timestamp", "from when on its state could not change without a new object"),
        c("basis", "string", "digest of what else its rows rest on: launch record, policy, signatures, program"),
    ),
)


@dataclass(frozen=True, slots=True)
class Before:
    """The generation before, as far as a harvest looks at it; its folder is null in a new data folder.

    `read_bundles` are rows of READ_BUNDLES by run id.
    """

    folder: Path | None
    runs: pl.DataFrame
    rejects: pl.DataFrame
    bad_machines: pl.DataFrame
    harvests: pl.DataFrame
    read_bundles: Mapping[str, Mapping[str, Any]]

    @property
    def run_ids(self) -> set[str]:
        return set(self.runs["run_id"])

    def is_unchanged(self, listing: BundleListing, basis: str, as_of: datetime) -> bool:
        """Return whether the run's rows are what reading its bundle again would give."""
        row = self.read_bundles.get(listing.run_id)
        if row is None or as_of < row["settled_at"]:
            return False
        return {**row, "settled_at": None} == _read_bundle(listing, None, basis)


def generation_before(folder: Path | None) -> Before:
    """Return what a published generation holds; an empty one where there is none."""
    memory = _top_files(folder, READ_BUNDLES_FILE)
    return Before(
        folder=folder,
        runs=read_files(RUNS, dated_files(folder, RUNS.name)),
        rejects=_top_table(folder, REJECTS),
        bad_machines=_top_table(folder, BAD_MACHINES),
        harvests=_top_table(folder, HARVESTS),
        read_bundles={row["run_id"]: row for row in read_files(READ_BUNDLES, memory).to_dicts()},
    )


def _top_table(folder: Path | None, table: Table) -> pl.DataFrame:
    return read_files(table, _top_files(folder, f"{table.name}.parquet"))


def _top_files(folder: Path | None, name: str) -> list[Path]:
    return [folder / name] if folder is not None and (folder / name).is_file() else []


def basis_of(record: LaunchRecord | None, policy: str, signatures_text: str) -> str:
    """Return a digest of what a run's rows rest on beside its bundle."""
    parts = [record.identity_digest() if record else "", policy, signatures_text, PRODUCER]
    return sha256("\0".join(sha256(each.encode()).hexdigest() for each in parts).encode()).hexdigest()


def remembered(kept: list[Mapping[str, Any]], read: list[tuple[JudgedBundle, str]]) -> pl.DataFrame:
    """Return READ_BUNDLES for the next harvest: rows that stay, and bundles read now, each with its basis.

    A run that is alive, or whose reader died, is left out: it is read again.
    """
    rows = [_read_bundle(each.listing, each.settled_at, basis) for each, basis in read if each.settled_at is not None]
    return pl.DataFrame([*kept, *rows], schema=polars_schema(READ_BUNDLES)).pipe(conform, READ_BUNDLES)


def _read_bundle(listing: BundleListing, settled_at: datetime | None, basis: str) -> dict[str, Any]:
    return {
        "run_id": listing.run_id,
        "object_count": listing.object_count,
        "stored_bytes": listing.stored_bytes,
        "last_stored_at": listing.last_stored_at,
        "settled_at": settled_at,
        "basis": basis,
    }
