"""Are the values of a trusted schema possible at all: finite, not negative, of this century. Pure.

Good input to a median is checked here once: NaN compares as larger than every number, and infinity moves a mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from bench.schema import ColumnType, Table
from harvest.limits import EARLIEST, LATEST, MAX_NUMBER

_SIGNED = frozenset({"clock_offset_s", "temperature_c"})
_COUNTED = frozenset(
    {
        "seq",
        "log_seq",
        "stage_index",
        "proof_index",
        "gpu_index",
        "num_gpus",
        "num_gpus_rented",
        "proofs_requested",
        "proofs_completed",
        "proofs_failed",
        "rows",
        "bytes",
    }
)
"""Never negative, though no unit stands in the name."""
_NUMBERS = frozenset({"int32", "int64", "float64", "timestamp"})
_INSTANTS_US = (int(EARLIEST.timestamp()) * 10**6, int(LATEST.timestamp()) * 10**6)


def out_of_range(rows: pa.Table, declared: Table) -> str | None:
    """Return what is impossible about the first such column, as a sentence; null where all is possible."""
    for name, is_unsigned in _checked_columns(declared):
        for chunk in rows[name].chunks:
            if chunk.null_count == len(chunk):
                continue
            problem = _first_problem(name, chunk, is_unsigned)
            if problem is not None:
                return f"column {name!r}: {problem}"
    return None


@cache
def _checked_columns(declared: Table) -> tuple[tuple[str, bool], ...]:
    """Return the columns that hold a number or an instant, at any depth, and whether it may not be negative."""
    return tuple(
        (each.name, each.name in _COUNTED or (bool(each.unit) and each.name not in _SIGNED))
        for each in declared.columns
        if _has_numbers(each.parsed_type)
    )


def _has_numbers(type_: ColumnType) -> bool:
    inner = [item for _, item in type_.fields] + ([type_.item] if type_.item is not None else [])
    return type_.kind in _NUMBERS or any(_has_numbers(each) for each in inner)


def _first_problem(name: str, values: pa.Array, is_unsigned: bool) -> str | None:
    for leaf_name, leaf in _leaves(name, values):
        problem = _impossible(leaf, is_unsigned or leaf_name in _COUNTED)
        if problem is not None:
            return f"{leaf_name} {problem}"
    return None


def _leaves(name: str, values: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    """Yield the flat arrays in a column: a list's items, a struct's fields, a map's values."""
    if pa.types.is_map(values.type):
        yield from _leaves(name, values.items)
    elif pa.types.is_list(values.type):
        yield from _leaves(name, values.flatten())
    elif pa.types.is_struct(values.type):
        for field, part in zip(values.type, values.flatten(), strict=True):
            yield from _leaves(field.name, part)
    else:
        yield name, values


def _impossible(values: pa.Array, is_unsigned: bool) -> str | None:
    if pa.types.is_timestamp(values.type):
        # as integers: what lies far outside is not even a datetime
        return _not_between(values.cast(pa.int64()), *_INSTANTS_US, f"{EARLIEST:%Y} and {LATEST:%Y}")
    if pa.types.is_floating(values.type):
        if pc.all(pc.is_finite(values)).as_py() is False:
            return "is NaN or infinite"
        lowest = 0.0 if is_unsigned else -MAX_NUMBER
        return _not_between(values, lowest, MAX_NUMBER, f"{lowest:g} and {MAX_NUMBER:g}")
    if pa.types.is_integer(values.type) and is_unsigned:
        return _not_between(values, 0, math.inf, "0 and what a number can be")
    return None


def _not_between(values: pa.Array, lowest: float, above: float, in_words: str) -> str | None:
    least, most = (each.as_py() for each in pc.min_max(values).values())
    if least is None or (lowest <= least and most < above):
        return None
    return f"is {least if least < lowest else most}, not between {in_words}"
