"""Whom not to rent, why, and until when?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from harvest.contract import MachineState
from reports import format as fmt
from reports import paths
from reports.parts import Cell, Grid, Link, badge_cell, headings, state_badge

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BadMachinesPage:
    path: str
    title: str
    lead: str
    machines: Grid
    changes: str
    ids: str
    query: str
    downloads: tuple[Link, ...]
    as_of: str


def bad_machines_page(
    bad: pl.DataFrame,
    newest_harvest: Row | None,
    known_runs: frozenset[str],
    downloads: Sequence[str],
    as_of: datetime | None,
) -> BadMachinesPage:
    """Return the page of the list.

    Args:
        bad: table `bad_machines`.
        newest_harvest: the newest row of `harvests`, for what changed; or null.
        known_runs: ids of runs that have a page.
        downloads: names of the exported files that the site carries.
    """
    rows = tuple(_row(machine, known_runs) for machine in bad.sort("state", "machine_id").to_dicts())
    titles = headings("Machine:code", "State", "Why", "Lost per rental:number", "Runs:number", "Evidence",
                      "Since (UTC):time", "Until (UTC):time", "What would clear it")  # fmt: skip
    ids = sorted(bad.filter(pl.col("state") == MachineState.BAD)["machine_id"])
    text = ", ".join(map(str, ids))
    return BadMachinesPage(
        path=paths.BAD_MACHINES,
        title="Bad machines",
        lead=_lead(len(ids), bad.height - len(ids)),
        machines=Grid(
            "bad-machines",
            "Machines not to rent",
            titles,
            rows,
            "The list is empty: no machine has earned a place on it.",
        ),
        changes=_changes(newest_harvest),
        ids=text,
        query=f"machine_id notin [{text.replace(' ', '')}]" if ids else "",
        downloads=tuple(Link(name, f"{paths.FILES}/{name}") for name in downloads),
        as_of=fmt.instant(as_of),
    )


def _lead(bad_count: int, watch_count: int) -> str:
    if not bad_count and not watch_count:
        return "The list is empty: rent whom you like."
    watch = f"; {fmt.counted(watch_count, 'machine')} on watch, rent them last" if watch_count else ""
    if not bad_count:
        return f"No machine is bad{watch}."
    return f"Do not rent {fmt.counted(bad_count, 'machine')}{watch}."


def _row(machine: Row, known_runs: frozenset[str]) -> tuple[Cell, ...]:
    href = paths.machine_page(machine["machine_id"])
    evidence = [run_id for run_id in machine["run_ids"] or () if run_id in known_runs]
    newest = paths.run_page(evidence[-1]) if evidence else ""
    failed = f"{fmt.count(machine['blamed_failure_count'])} blamed on it, {fmt.count(machine['slow_count'])} slow"
    return (
        Cell(str(machine["machine_id"]), href),
        badge_cell(state_badge(machine["state"]), href),
        Cell(machine["reason"], note="" if machine["source"] == "score" else f"source: {machine['source']}"),
        Cell(fmt.usd(machine["expected_loss_usd_per_rental"]), sort=str(machine["expected_loss_usd_per_rental"] or 0)),
        Cell(fmt.count(machine["run_count"]), note=failed, sort=str(machine["run_count"])),
        Cell(f"newest of {fmt.counted(len(evidence), 'run')}" if newest else "none in the tables", newest),
        Cell(fmt.minute(machine["since"]), at=fmt.rfc3339(machine["since"])),
        Cell(fmt.minute(machine["expires_at"]), at=fmt.rfc3339(machine["expires_at"])),
        Cell(machine["would_clear"]),
    )


def _changes(harvest: Row | None) -> str:
    if harvest is None:
        return "No harvest is recorded, so nothing can be said about changes."
    newly, cleared = (harvest[name] or [] for name in ("newly_bad_machine_ids", "cleared_machine_ids"))
    if not newly and not cleared:
        return "Nothing changed with the newest harvest."
    parts = [
        f"new: {', '.join(map(str, newly))}" if newly else "",
        f"cleared: {', '.join(map(str, cleared))}" if cleared else "",
    ]
    return f"With the newest harvest: {'; '.join(part for part in parts if part)}."
