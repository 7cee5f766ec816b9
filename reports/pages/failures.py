"""What is breaking, is it us or them? All fingerprints, and the page of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from reports import format as fmt
from reports import paths, sentences
from reports.causes import Causes, Explanation
from reports.pages.runs import run_grid
from reports.parts import Cell, Fact, Grid, Link, headings
from reports.visible import clipped

Row = Mapping[str, Any]
GROWING_RATIO = 1.5
NEW_DAYS = 7
MAX_SPREAD_ROWS = 60


@dataclass(frozen=True, slots=True)
class FailuresPage:
    path: str
    title: str
    lead: str
    failures: Grid
    as_of: str


@dataclass(frozen=True, slots=True)
class FailurePage:
    """One fingerprint: what it is, whose fault, what to do, where it happens, all its runs."""

    path: str
    title: str
    lead: str
    root_text: str
    explanation: Explanation | None
    explanation_href: str
    facts: tuple[Fact, ...]
    why_grouped: str
    spread: tuple[Grid, ...]
    near: tuple[Link, ...]
    runs: Grid


def trend(failure: Row, as_of: datetime | None) -> str:
    """Return `new`, `growing`, `gone`, `shrinking` or `steady`, by the last 7 days against the 7 before."""
    first, last, ratio = failure["first_seen_at"], failure["last_seen_at"], failure["trend_ratio"]
    if as_of is None or first is None or last is None:
        return fmt.NOT_KNOWN
    week_ago = as_of - timedelta(days=NEW_DAYS)
    if first > week_ago:
        return "new"
    if last <= week_ago:
        return "gone"
    if ratio is None or ratio >= GROWING_RATIO:
        return "growing"
    return "shrinking" if ratio <= 1 / GROWING_RATIO else "steady"


def failure_grid(fingerprints: pl.DataFrame, as_of: datetime | None, *, id_: str = "failures") -> Grid:
    """Return fingerprints, the dearest first; money that is not known comes last."""
    dearest_first = fingerprints.sort(
        "usd_lost", "run_count", "fingerprint_id", descending=[True, True, False], nulls_last=True
    )
    titles = headings(
        "Failure and its root line",
        "Whose fault",
        "What to do",
        "Runs:number",
        "Machines:number",
        "Lost:number",
        "Trend",
        "Last seen (UTC):time",
    )
    rows = tuple(_grid_row(failure, as_of) for failure in dearest_first.to_dicts())
    return Grid(id_, "Failures, the dearest first", titles, rows, "No failure has been seen.")


def _grid_row(failure: Row, as_of: datetime | None) -> tuple[Cell, ...]:
    word = trend(failure, as_of)
    return (
        Cell(
            clipped(failure["title"], 90),
            paths.failure_page(failure["fingerprint_id"]),
            note=clipped(failure["root_text"] or "", 160),
        ),
        Cell(fmt.words(failure["blame"]), note=failure["certainty"] or ""),
        Cell(fmt.words(failure["action"])),
        Cell(fmt.count(failure["run_count"]), sort=str(failure["run_count"])),
        Cell(fmt.count(failure["machine_count"]), sort=str(failure["machine_count"])),
        Cell(fmt.usd(failure["usd_lost"]), sort=str(failure["usd_lost"] or 0)),
        Cell(word, tone="bad" if word in ("new", "growing") else "muted"),
        Cell(fmt.minute(failure["last_seen_at"]), at=fmt.rfc3339(failure["last_seen_at"])),
    )


def failures_page(fingerprints: pl.DataFrame, as_of: datetime | None) -> FailuresPage:
    """Return the page of all fingerprints."""
    lead = "No failure has been seen."
    if fingerprints.height:
        words = [trend(failure, as_of) for failure in fingerprints.to_dicts()]
        ours = fingerprints.filter(~pl.col("blame").is_in(["machine", "unknown", "none"])).height
        theirs = fingerprints.filter(pl.col("blame") == "machine").height
        lead = (
            f"{fmt.counted(fingerprints.height, 'kind')} of failure: {ours} to mend on our side, {theirs} of machines, "
            f"{fingerprints.height - ours - theirs} not known or nobody's; {words.count('new')} new and "
            f"{words.count('growing')} growing in the last {NEW_DAYS} days."
        )
    return FailuresPage(paths.FAILURES, "Failures", lead, failure_grid(fingerprints, as_of), fmt.instant(as_of))


def failure_page(failure: Row, runs: pl.DataFrame, causes: Causes) -> FailurePage:
    """Return the page of one fingerprint; `runs` are its runs, newest first."""
    explanation = causes.explain("cause", failure["cause"])
    is_written = explanation is not None and explanation.is_written
    empty = "None of its runs is in the published tables any more."
    return FailurePage(
        path=paths.failure_page(failure["fingerprint_id"]),
        title=failure["title"],
        lead=_lead(failure),
        root_text=failure["root_text"] or "",
        explanation=explanation if is_written else None,
        explanation_href=paths.cause_anchor("cause", failure["cause"]) if is_written else "",
        facts=_facts(failure),
        why_grouped=_why_grouped(failure),
        spread=_spread(failure),
        near=tuple(Link(f"{near['fingerprint_id']}: {near['reason']}", "") for near in failure["near"] or ()),
        runs=run_grid("runs", "Runs that ended so", runs, causes, empty=empty),
    )


def _lead(failure: Row) -> str:
    fault = sentences.fault_phrase(failure["blame"], failure["certainty"])
    where = f"{fmt.counted(failure['run_count'], 'run')} on {fmt.counted(failure['machine_count'], 'machine')} ended so"
    return f"{where}; {fault}: {sentences.action_phrase(failure['action'])}."


def _facts(failure: Row) -> tuple[Fact, ...]:
    return (
        Fact("Runs", fmt.count(failure["run_count"])),
        Fact("Machines", fmt.count(failure["machine_count"])),
        Fact("GPU models", fmt.count(failure["gpu_model_count"])),
        Fact("Builds", fmt.count(failure["build_count"])),
        Fact("Drivers", fmt.count(failure["driver_count"])),
        Fact("Lost", fmt.usd(failure["usd_lost"])),
        Fact("First seen", fmt.instant(failure["first_seen_at"])),
        Fact("Last seen", fmt.instant(failure["last_seen_at"])),
    )


def _why_grouped(failure: Row) -> str:
    what = {
        "root": "These runs are one failure because their root messages are the same once numbers, ids and paths are masked",
        "symptom": "These runs are one failure because they ended alike and no log said why",
    }.get(failure["kind"], f"These runs share a fingerprint of kind {failure['kind']}")
    rule = f"; rule: {failure['rule']}" if failure["rule"] else ""
    return f"{what}{rule}. Fingerprint {failure['fingerprint_id']}."


def _spread(failure: Row) -> tuple[Grid, ...]:
    by_dimension: dict[str, list[Row]] = {}
    for each in failure["spread"] or ():
        by_dimension.setdefault(each["dimension"], []).append(each)
    return tuple(_spread_grid(dimension, rows) for dimension, rows in sorted(by_dimension.items()))


def _spread_grid(dimension: str, rows: list[Row]) -> Grid:
    most_first = sorted(rows, key=lambda each: (-each["failed_count"], -each["run_count"], each["value"]))
    cells = tuple(
        (
            Cell(each["value"] or fmt.NOT_KNOWN),
            Cell(fmt.share(each["failed_count"], each["run_count"]), sort=str(each["failed_count"])),
        )
        for each in most_first[:MAX_SPREAD_ROWS]
    )
    titles = headings(f"{fmt.words(dimension).capitalize()}", "Runs that ended so, of all its runs:number")
    return Grid(f"spread-{paths.anchor(dimension)}", f"By {fmt.words(dimension)}", titles, cells, "Not known.")
