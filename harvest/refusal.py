"""What the harvest refused, and why: one value for each row of `rejects`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import polars as pl

from harvest.contract import REJECTS, RejectReason
from harvest.limits import MAX_DETAIL_CHARACTERS
from harvest.store import StoredObject
from harvest.tables import conform, polars_schema


@dataclass(frozen=True, slots=True)
class Refusal:
    """One thing refused. `run_id` and `table` are null where the key names none; `sha256` where it was not read."""

    run_id: str | None
    key: str
    table: str | None
    reason: RejectReason
    detail: str
    bytes: int | None = None
    sha256: str | None = None
    stored_at: datetime | None = None

    def as_row(self) -> dict[str, Any]:
        """Return the row of `rejects`, its detail on one line and cut to 500 characters."""
        return {**asdict(self), "reason": str(self.reason), "detail": one_line(self.detail)}


def one_line(text: str) -> str:
    """Return the text without line breaks and control characters, at most 500 characters."""
    return "".join(each if each.isprintable() else " " for each in text)[:MAX_DETAIL_CHARACTERS]


def refused_object(stored: StoredObject, reason: RejectReason, detail: str, run_id: str | None = None) -> Refusal:
    """Return the refusal of a whole object that was not read."""
    return Refusal(run_id, stored.key, None, reason, detail, stored.bytes, None, stored.stored_at)


def rejects_frame(refusals: Iterable[Refusal], kept: pl.DataFrame) -> pl.DataFrame:
    """Return refusals, and rows of the table REJECTS that stay, as one such table; what stands twice stands once."""
    rows = [each.as_row() for each in refusals]
    frame = pl.concat([kept, pl.DataFrame(rows, schema=polars_schema(REJECTS))])
    return frame.unique().sort(REJECTS.column_names).pipe(conform, REJECTS)
