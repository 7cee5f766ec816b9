"""The numbered parts of `logs` and `telemetry` as one table, and what is missing between them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bench.arrow import arrow_schema
from bench.contract import BUNDLE_TABLES

NumberedPart = tuple[int, pa.Table]


def joined_parts(table: str, parts: Sequence[NumberedPart]) -> tuple[pa.Table, dict[int, str]]:
    """Return the parts, in order, as one table; and the parts left out, each with the reason.

    In `logs` every `seq` must be above the one before: a part that repeats lines would count them twice.
    """
    left_out: dict[int, str] = {}
    kept = [arrow_schema(BUNDLE_TABLES[table]).empty_table()]
    last_seq = -1
    for number, rows in parts:
        if table == "logs" and rows.num_rows:
            seqs = rows["seq"].to_numpy()
            if seqs[0] <= last_seq or np.any(np.diff(seqs) <= 0):
                left_out[number] = f"seq begins at {seqs[0]}, does not rise, or is not above {last_seq}"
                continue
            last_seq = int(seqs[-1])
        kept.append(rows)
    return pa.concat_tables(kept), left_out


@dataclass(frozen=True, slots=True)
class Gap:
    """What is missing, in words, and the part that is missing first or that comes after the missing lines."""

    part: int
    detail: str


def part_gap(table: str, numbers: Sequence[int], joined: pa.Table) -> Gap | None:
    """Return what is missing between the first row that was ever written and the last one here; null if nothing.

    Args:
        table: `logs` or `telemetry`.
        numbers: of the parts in the store, in order.
        joined: the rows of all of them.
    """
    missing = sorted(set(range(max(numbers, default=-1) + 1)) - set(numbers))
    if missing:
        words = f"{len(missing)} parts are" if len(missing) > 1 else "one part is"
        return Gap(missing[0], f"{words} missing, the first is part {missing[0]}; there are parts up to {numbers[-1]}")
    if table != "logs" or not joined.num_rows:
        return None
    seqs = joined["seq"].to_numpy()
    missing_count = int(seqs[-1]) + 1 - len(seqs)
    if missing_count == 0:
        return None
    first = int(np.flatnonzero(seqs != np.arange(len(seqs)))[0])
    words = f"{missing_count} lines are" if missing_count > 1 else "one line is"
    return Gap(numbers[0], f"{words} missing, the first is seq {first}")
