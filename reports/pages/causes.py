"""What does this word mean? One paragraph for each outcome, blame and cause."""

from __future__ import annotations

from dataclasses import dataclass

from reports import paths
from reports.causes import KINDS, Causes

_TITLES = {"outcome": "Outcomes: what happened", "blame": "Blame: whose fault", "cause": "Causes: what exactly"}


@dataclass(frozen=True, slots=True)
class CauseEntry:
    anchor: str
    slug: str
    title: str
    blame: str
    text: str
    told_by: str
    do: str


@dataclass(frozen=True, slots=True)
class CauseGroup:
    title: str
    entries: tuple[CauseEntry, ...]


@dataclass(frozen=True, slots=True)
class CausesPage:
    path: str
    title: str
    lead: str
    groups: tuple[CauseGroup, ...]


def causes_page(causes: Causes) -> CausesPage:
    """Return the page of all explanations, in the order of the file."""
    groups = tuple(_group(kind, causes) for kind in KINDS if causes.by_kind.get(kind))
    lead = (
        "Every word of a verdict: what it is, how it is told, and what to do."
        if groups
        else "No word is explained here yet."
    )
    return CausesPage(paths.CAUSES, "Causes", lead, groups)


def _group(kind: str, causes: Causes) -> CauseGroup:
    entries = tuple(
        CauseEntry(
            paths.cause_anchor(kind, each.slug).partition("#")[2],
            each.slug,
            each.title,
            each.blame,
            each.text,
            each.told_by,
            each.do,
        )
        for each in causes.by_kind[kind].values()
    )
    return CauseGroup(_TITLES[kind], entries)
