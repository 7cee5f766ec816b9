"""How a table is declared: columns with a type, a nullability and a meaning. Standard library only.

Both contracts (`bench.contract`, `harvest.contract`) are lists of these, and everything that must agree
on a table (writers, readers, checks, `data/SCHEMA.md`) is derived from them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

SCALARS = frozenset({"bool", "int8", "int32", "int64", "float64", "string", "dictionary", "binary", "timestamp"})
UNIT_BY_SUFFIX = {
    "_usd_per_hour": "USD per hour",
    "_usd_per_hour_low": "USD per hour",
    "_usd_per_hour_high": "USD per hour",
    "_proofs_per_hour": "proofs per hour",
    "_usd": "USD",
    "_usd_per_proof": "USD per proof",
    "_usd_per_rental": "USD per rental",
    "usd_per_proof": "USD per proof",
    "_bytes": "bytes",
    "_mhz": "MHz",
    "_ratio": "quotient",
    "_ratio_low": "quotient",
    "_ratio_high": "quotient",
    "_probability": "0 to 1",
    "_count": "count",
    "_at": "UTC, microseconds",
    "_s": "seconds",
    "_w": "watts",
    "_c": "degrees Celsius",
}


@dataclass(frozen=True)
class ColumnType:
    """A parsed type. `kind` is a scalar's name, or `list`, `map` or `struct`.

    `item` is a list's element or a map's value (map keys are always strings); `fields` are a struct's.
    """

    kind: str
    item: ColumnType | None = None
    fields: tuple[tuple[str, ColumnType], ...] = ()


def parse_type(text: str) -> ColumnType:
    """Return the type that `text` names, e.g. `list<struct<index:int32, uuid:string>>`.

    Raises:
        ValueError: the text is not a type of the contract's small grammar.
    """
    parsed, rest = _parse(text.replace(" ", ""))
    if rest:
        raise ValueError(f"type {text!r}: {rest!r} is left over")
    return parsed


def _parse(text: str) -> tuple[ColumnType, str]:
    match = re.match(r"[a-z0-9]+", text)
    if match is None:
        raise ValueError(f"a type was expected at {text!r}")
    word, rest = match.group(), text[match.end() :]
    if word in SCALARS:
        return ColumnType(word), rest
    if not rest.startswith("<"):
        raise ValueError(f"unknown type {word!r}")
    if word == "struct":
        return _parse_struct(rest[1:])
    if word == "map":
        rest = _expect(rest, "<string,")
        item, rest = _parse(rest)
        return ColumnType("map", item), _expect(rest, ">")
    if word == "list":
        item, rest = _parse(rest[1:])
        return ColumnType("list", item), _expect(rest, ">")
    raise ValueError(f"unknown type {word!r}")


def _parse_struct(text: str) -> tuple[ColumnType, str]:
    fields: list[tuple[str, ColumnType]] = []
    while True:
        name, _, text = text.partition(":")
        item, text = _parse(text)
        fields.append((name, item))
        if not text.startswith(","):
            return ColumnType("struct", None, tuple(fields)), _expect(text, ">")
        text = text[1:]


def _expect(text: str, token: str) -> str:
    if not text.startswith(token):
        raise ValueError(f"{token!r} was expected at {text!r}")
    return text[len(token) :]


@dataclass(frozen=True)
class Column:
    """One column: its name (which carries the unit), its type, whether null may stand in it, what it means."""

    name: str
    type: str
    is_nullable: bool
    meaning: str

    @property
    def parsed_type(self) -> ColumnType:
        return parse_type(self.type)

    @property
    def unit(self) -> str:
        """The unit that the name carries; empty where it carries none."""
        suffixes = (s for s in UNIT_BY_SUFFIX if self.name.endswith(s))
        return UNIT_BY_SUFFIX.get(max(suffixes, key=len, default=""), "")


@dataclass(frozen=True)
class Table:
    """One table: its columns in file order, and the columns that it is sorted by (its key)."""

    name: str
    meaning: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        """Return the column called `name`. Raises KeyError where there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"table {self.name!r} has no column {name!r}")

    def empty_row(self) -> dict[str, Any]:
        """Return one row with null everywhere, to be filled by name."""
        return dict.fromkeys(self.column_names)


def column(name: str, type_: str, meaning: str) -> Column:
    """Declare a column; a type that ends in `?` may be null: `column("pid", "int64?", "...")`."""
    declared = Column(name, type_.rstrip("?"), type_.endswith("?"), meaning)
    parse_type(declared.type)
    return declared


def nullable(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Return the same columns, each allowed to be null."""
    return tuple(replace(each, is_nullable=True) for each in columns)
