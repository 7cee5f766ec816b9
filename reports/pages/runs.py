"""Runs in tables: the grid that several pages share, the page of a date, and the page of all dates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from harvest.contract import Outcome
from reports import fleet, paths
from reports import format as fmt
from reports.causes import Causes
from reports.pages.run_evidence import root_evidence
from reports.parts import Cell, Grid, badge_cell, headings, outcome_badge
from reports.sentences import cause_title, proofs_phrase
from reports.visible import clipped

NEWEST_COUNT = 100
ROOT_CHARACTERS = 160


@dataclass(frozen=True, slots=True)
class RunsPage:
    """All runs of a date, or the newest of all with a table of dates (`dates` is null on a date's page)."""

    path: str
    title: str
    lead: str
    dates: Grid | None
    runs: Grid
    as_of: str


def run_grid(id_: str, label: str, runs: pl.DataFrame, causes: Causes, *, empty: str, has_machine: bool = True) -> Grid:
    """Return runs (with `began_at`, newest first as given) as a table; each row leads to the run's page."""
    titles = [
        "Started (UTC):time",
        "Outcome",
        "Machine:code",
        "GPUs",
        "Why: cause and root line",
        "Proofs",
        "Rate:number",
        "Lost:number",
    ]
    if not has_machine:
        titles.remove("Machine:code")
    rows = tuple(_row(run, causes, has_machine=has_machine) for run in runs.to_dicts())
    return Grid(id_, label, headings(*titles), rows, empty)


def _row(run: Mapping[str, Any], causes: Causes, *, has_machine: bool) -> tuple[Cell, ...]:
    href = paths.run_page(run["run_id"])
    started = Cell(
        fmt.minute(run["began_at"]), href, at=fmt.rfc3339(run["began_at"]), sort=fmt.rfc3339(run["began_at"])
    )
    cells = (
        started,
        badge_cell(outcome_badge(run["outcome"]), href),
        machine_cell(run["machine_id"]),
        Cell(fmt.gpus_text(run["gpu_model"], run["num_gpus"])),
        why_cell(run, causes),
        Cell(proofs_phrase(run).replace(" proofs", "") or "–"),
        rate_cell(run["rate_proofs_per_hour"]),
        Cell(fmt.usd(run["usd_lost"]), sort=str(run["usd_lost"] or 0)),
    )
    return cells if has_machine else (*cells[:2], *cells[3:])


def machine_cell(machine_id: int | None) -> Cell:
    """Return a machine's id as a link to its page."""
    return Cell(fmt.NOT_KNOWN) if machine_id is None else Cell(str(machine_id), paths.machine_page(machine_id))


def rate_cell(value: float | None) -> Cell:
    """Return a rate; one that was not measured is never a number, and sorts before all."""
    return Cell(fmt.NOT_MEASURED, tone="muted", sort="-1") if value is None else Cell(fmt.rate(value), sort=str(value))


def why_cell(run: Mapping[str, Any], causes: Causes) -> Cell:
    """Return the cause's name with the root line below it; a run that passed has neither."""
    if run["outcome"] == Outcome.PASSED:
        return Cell("–", tone="muted")
    title = cause_title(run, causes) or run["fingerprint_title"] or fmt.words(run["cause"])
    root = root_evidence(run)
    href = paths.failure_page(run["fingerprint_id"]) if run["fingerprint_id"] else ""
    blame = "" if run["blame"] in (None, "none") else f" · blame: {fmt.words(run['blame'])}"
    return Cell(f"{clipped(title, 80)}{blame}", href, note=clipped(root["text"], ROOT_CHARACTERS) if root else "")


def day_page(date: str, runs: pl.DataFrame, causes: Causes) -> RunsPage:
    """Return the page with all runs of a date."""
    grid = run_grid("runs", f"Runs of {date}", runs, causes, empty="No run has an id of this date.")
    return RunsPage(paths.day_page(date), f"Runs of {date}", _lead(runs, "on this date"), None, grid, "")


def runs_page(runs: pl.DataFrame, causes: Causes, as_of: str) -> RunsPage:
    """Return the page of all dates with the newest runs."""
    newest = run_grid("newest", "Newest runs", runs.head(NEWEST_COUNT), causes, empty="No run has been harvested yet.")
    return RunsPage(paths.RUNS, "Runs", _lead(runs, "in all"), _dates_grid(runs), newest, as_of)


def _lead(runs: pl.DataFrame, when: str) -> str:
    if runs.is_empty():
        return "No run has been harvested yet."
    passed = runs.height - fleet.failures(runs).height
    return f"{fmt.counted(runs.height, 'run')} {when}; {fmt.share(passed, runs.height)} passed."


def _dates_grid(runs: pl.DataFrame) -> Grid:
    by_date = (
        runs.with_columns(is_passed=pl.col("outcome").eq_missing(Outcome.PASSED))
        .group_by("date")
        .agg(
            run_count=pl.len(),
            passed_count=pl.col("is_passed").sum(),
            machine_count=pl.col("machine_id").drop_nulls().n_unique(),
            usd_lost=pl.col("usd_lost").sum(),
            priced_count=pl.col("usd_lost").count(),
        )
        .sort("date", descending=True)
    )
    rows = tuple(
        (
            Cell(day["date"], paths.day_page(day["date"])),
            Cell(fmt.count(day["run_count"])),
            Cell(fmt.share(day["passed_count"], day["run_count"]), sort=str(day["passed_count"] / day["run_count"])),
            Cell(fmt.count(day["machine_count"])),
            Cell(fmt.usd(day["usd_lost"] if day["priced_count"] else None), sort=str(day["usd_lost"])),
        )
        for day in by_date.to_dicts()
    )
    titles = headings("Date (of the run id)", "Runs:number", "Passed:number", "Machines:number", "Lost:number")
    return Grid("dates", "Runs by date", titles, rows, "No run has been harvested yet.")
