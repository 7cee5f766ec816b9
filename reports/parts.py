"""The parts that pages are made of: cells, grids, facts, badges, links. Frozen, and text alone.

An `href` is an address from the site's root (`reports.paths`), with an anchor or without.
A `tone` is `good`, `warn`, `bad`, `muted` or empty; where it says something, a `mark` or the word says it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harvest.contract import MachineState, Outcome
from reports.format import words


@dataclass(frozen=True, slots=True)
class Link:
    text: str
    href: str


@dataclass(frozen=True, slots=True)
class Badge:
    """A state as a word, a shape and a tone."""

    word: str
    mark: str
    tone: str


@dataclass(frozen=True, slots=True)
class Fact:
    """A labelled value; `note` says what the value rests on."""

    label: str
    value: str
    note: str = ""
    tone: str = ""
    href: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell. `sort` is what it is sorted by where the text would mislead; `at` is a time for machines."""

    text: str
    href: str = ""
    badge: Badge | None = None
    note: str = ""
    tone: str = ""
    sort: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Heading:
    """A column's heading; `kind` is `text`, `number`, `code` (as printed by a program) or `time`."""

    text: str
    kind: str = "text"


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: `id` names it on its page, `label` for who cannot see it, `empty` is shown instead of no rows."""

    id: str
    label: str
    headings: tuple[Heading, ...]
    rows: tuple[tuple[Cell, ...], ...]
    empty: str


_OUTCOMES = {
    Outcome.PASSED: ("✓", "good"),
    Outcome.TOO_SLOW: ("▼", "warn"),
    Outcome.FAILED: ("✕", "bad"),
    Outcome.TIMED_OUT: ("◷", "bad"),
    Outcome.PARTIAL: ("◐", "bad"),
    Outcome.INCOMPLETE: ("?", "warn"),
    Outcome.INTERRUPTED: ("‖", "warn"),
    Outcome.VANISHED: ("◌", "bad"),
    Outcome.NEVER_STARTED: ("∅", "warn"),
}
_STATES = {
    MachineState.GOOD: ("✓", "good"),
    MachineState.UNKNOWN: ("○", "muted"),
    MachineState.PROBATION: ("◐", "warn"),
    MachineState.WATCH: ("▲", "warn"),
    MachineState.BAD: ("✕", "bad"),
}


def outcome_badge(outcome: str | None) -> Badge:
    """Return the badge of an outcome; null is a run of which nothing could be trusted."""
    if outcome is None:
        return Badge("not trusted", "⊘", "warn")
    mark, tone = _OUTCOMES.get(Outcome(outcome), ("?", "warn")) if outcome in set(Outcome) else ("?", "warn")
    return Badge(words(outcome), mark, tone)


def state_badge(state: str | None) -> Badge:
    """Return the badge of a machine's state; a machine without a score has none yet."""
    if state not in set(MachineState):
        return Badge("not scored", "○", "muted")
    mark, tone = _STATES[MachineState(state)]
    return Badge(str(state), mark, tone)


def badge_cell(badge: Badge, href: str = "") -> Cell:
    """Return a cell that holds a badge alone."""
    return Cell(badge.word, href, badge)


def headings(*texts: str) -> tuple[Heading, ...]:
    """Return headings from `Text`, `Text:number`, `Text:code`, `Text:time`."""
    return tuple(Heading(*text.rsplit(":", 1)) if ":" in text else Heading(text) for text in texts)


def keyed_rows(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return the facts that say something: those without a value are left out."""
    return tuple(fact for fact in facts if fact.value)
