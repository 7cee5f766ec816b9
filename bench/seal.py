"""Rows of the contract into sealed objects: immutable bytes with a key, a checksum and a row count.

The runner seals in a process of its own (`bench.sealer`), the simulator in its own: the same code either way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench import PRODUCER
from bench.arrow import file_metadata, parquet_bytes, table_from_rows
from bench.contract import BUNDLE_TABLES
from bench.keys import object_key


@dataclass(frozen=True)
class SealedObject:
    """One object of a bundle, ready to be stored; `table` is its name, `rows` its row count."""

    key: str
    table: str
    rows: int
    data: bytes

    def listing(self) -> dict[str, Any]:
        """Return its entry in `closing.objects`."""
        sha256 = hashlib.sha256(self.data).hexdigest()
        return {
            "key": self.key,
            "table": self.table,
            "bytes": len(self.data),
            "sha256": sha256,
            "rows": self.rows,
        }


def seal_rows(table: str, rows: Sequence[Mapping[str, Any]], run_id: str, part: int | None = None) -> SealedObject:
    """Return rows of one bundle table as a sealed object.

    Args:
        table: `opening`, `logs`, `telemetry`, `stages`, `proofs`, `closing-partial` or `closing`.
        rows: by column name; a missing column is null; instants are aware datetimes or RFC 3339 text.
        part: the number of a `logs` or `telemetry` part, null for the others.
    """
    declared = BUNDLE_TABLES[table]
    data = parquet_bytes(table_from_rows(declared, rows), file_metadata(declared, PRODUCER, run_id))
    return SealedObject(object_key(run_id, table, part), table, len(rows), data)
