"""The words of a verdict explained: a title, a paragraph and what to do, from `data/causes.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reports.errors import DataUnreadable
from reports.format import words

KINDS = ("outcome", "blame", "cause")


@dataclass(frozen=True, slots=True)
class Explanation:
    """What one word means. A text that the file does not give is empty; `is_written` says whether it is there."""

    slug: str
    title: str
    blame: str = ""
    text: str = ""
    told_by: str = ""
    do: str = ""
    is_written: bool = True


@dataclass(frozen=True, slots=True)
class Causes:
    """All explanations by kind (`outcome`, `blame`, `cause`) and slug."""

    by_kind: Mapping[str, Mapping[str, Explanation]] = field(default_factory=dict)

    def explain(self, kind: str, slug: str | None) -> Explanation | None:
        """Return what a word means; one that the file does not know gets its slug as title; null gives null."""
        if not slug:
            return None
        known = self.by_kind.get(kind, {}).get(slug)
        return known or Explanation(slug, words(slug).capitalize(), is_written=False)


def parse_causes(text: str) -> Causes:
    """Return the explanations of a TOML text with tables `[outcome.SLUG]`, `[blame.SLUG]`, `[cause.SLUG]`.

    Raises:
        DataUnreadable: the text is not TOML.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DataUnreadable(
            f"data/causes.toml cannot be read: {error}. The old site is kept; mend the file."
        ) from error
    return Causes(
        {kind: {slug: _explanation(slug, each) for slug, each in tables.get(kind, {}).items()} for kind in KINDS}
    )


def _explanation(slug: str, table: Mapping[str, Any]) -> Explanation:
    blame, text, told_by, do = (str(table.get(name, "")).strip() for name in ("blame", "text", "told_by", "do"))
    return Explanation(slug, str(table.get("title") or words(slug).capitalize()), blame, text, told_by, do)
