"""What a bundle holds, read back from a store or a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.contract import TERMINATOR_BYTES
from bench.errors import BundleUnreadable, StoreError
from bench.keys import BUNDLES_PREFIX, parse_bundle_key
from bench.store import open_store


@dataclass(frozen=True)
class Bundle:
    """The objects of one bundle by name (`opening`, `logs-00000`, ...), and what is wrong with them."""

    name: str
    objects: dict[str, bytes]

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return all rows of a table, its parts in order. Raises BundleUnreadable where one is torn."""
        names = sorted(each for each in self.objects if each == table or each.rpartition("-")[0] == table)
        return [row for name in names for row in self._read(name).to_pylist()]

    def stream(self, stream: str) -> Iterator[bytes]:
        """Yield a stream's lines as they were, with their terminators."""
        for row in sorted(self.rows("logs"), key=lambda row: row["seq"]):
            if row["stream"] == stream:
                content = row["text"].encode() if row["raw"] is None else row["raw"]
                yield content + TERMINATOR_BYTES[row["terminator"]]

    def faults(self) -> list[str]:
        """Return why the bundle is not whole; empty where it is."""
        if "closing" not in self.objects:
            return ["no closing: the run goes on, or fell silent"]
        faults = []
        for listed in self.rows("closing")[0]["objects"]:
            data = self.objects.get(listed["key"].rpartition("/")[2].removesuffix(".parquet"))
            if data is None:
                faults.append(f"{listed['key']} is missing")
            elif hashlib.sha256(data).hexdigest() != listed["sha256"]:
                faults.append(f"{listed['key']} is not what the closing lists")
        return faults

    def _read(self, name: str) -> pa.Table:
        try:
            return pq.ParquetFile(BytesIO(self.objects[name]), page_checksum_verification=True).read()
        except (pa.ArrowException, OSError) as error:
            raise BundleUnreadable(f"{self.name}: {name}.parquet cannot be read: {error}") from error


def read_bundle(where: str) -> Bundle:
    """Return the bundle in a folder, or at a URL that ends with the bundle's folder or is a store of one bundle.

    Raises:
        BundleUnreadable: there is none, or more than one.
    """
    return _read_url(where) if "://" in where else _read_folder(Path(where))


def _read_folder(folder: Path) -> Bundle:
    found = {each.stem: each.read_bytes() for each in folder.glob("*.parquet")} if folder.is_dir() else {}
    if "opening" not in found:
        raise BundleUnreadable(
            f"{folder} is not a bundle: it has no opening.parquet. Give the folder named by the run id."
        )
    return Bundle(str(folder), found)


def _read_url(url: str) -> Bundle:
    base, slash, rest = url.partition(BUNDLES_PREFIX)
    store = open_store(base.rstrip("/"))
    try:
        keys = store.list_keys(f"{BUNDLES_PREFIX}{rest.rstrip('/')}" if slash else BUNDLES_PREFIX)
        named = {key: name for key in keys if (name := parse_bundle_key(key)) is not None}
        run_ids = sorted({name.run_id for name in named.values()})
        if len(run_ids) != 1:
            raise BundleUnreadable(
                f"{url} holds {len(run_ids)} bundles; name one: STORE/{BUNDLES_PREFIX}DATE/RUN_ID"
                + (f", for example RUN_ID {run_ids[0]}" if run_ids else "")
            )
        objects = {key.rpartition("/")[2].removesuffix(".parquet"): store.get(key) for key in named}
    except StoreError as error:
        raise BundleUnreadable(f"{url} cannot be read: {error}") from error
    return Bundle(run_ids[0], objects)
