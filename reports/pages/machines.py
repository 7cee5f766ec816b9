"""How good is this machine, and how sure are we? All machines, and the page of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from harvest.contract import MachineState
from reports import fleet, paths
from reports import format as fmt
from reports.causes import Causes
from reports.charts import Chart, Level, Panel, Series
from reports.pages.runs import rate_cell, run_grid
from reports.parts import Badge, Cell, Fact, Grid, badge_cell, headings, state_badge

Row = Mapping[str, Any]
_ORDER = {state: number for number, state in enumerate(MachineState)}


@dataclass(frozen=True, slots=True)
class MachinesPage:
    path: str
    title: str
    lead: str
    machines: Grid
    as_of: str


@dataclass(frozen=True, slots=True)
class MachinePage:
    """One machine: its state and why, its rates against its cohorts, its runs and failures, its hardware."""

    path: str
    title: str
    heading: str
    badge: Badge
    lead: str
    clears: str
    facts: tuple[Fact, ...]
    scores: Grid
    charts: tuple[Chart, ...]
    failures: Grid
    hardware: Grid
    runs: Grid


def worst_state(scores: Sequence[Row]) -> str | None:
    """Return the worst state of a machine over its cohorts; null without a score."""
    states = [score["state"] for score in scores if score["state"] in _ORDER]
    return max(states, key=lambda state: _ORDER[MachineState(state)], default=None)


def machines_page(machines: pl.DataFrame, unscored_ids: Sequence[int], as_of: datetime | None) -> MachinesPage:
    """Return the page of all machines: one row for each cohort it ran in; those without a score come last."""
    rows = [*(_row(score) for score in _worst_first(machines)), *(_unscored_row(id_) for id_ in unscored_ids)]
    titles = headings("Machine:code", "State", "GPUs", "Runs:number", "Passed:number", "Blamed failures:number",
                      "Median rate:number", "Against its cohort:number", "Place", "Last seen (UTC):time")  # fmt: skip
    grid = Grid("machines", "Machines", titles, tuple(rows), "No machine has been seen yet.")
    return MachinesPage(paths.MACHINES, "Machines", _all_lead(machines, unscored_ids), grid, fmt.instant(as_of))


def _worst_first(machines: pl.DataFrame) -> list[dict[str, Any]]:
    scores = machines.to_dicts()
    return sorted(scores, key=lambda each: (-_ORDER.get(each["state"], 1), each["machine_id"], each["cohort_id"]))


def _all_lead(machines: pl.DataFrame, unscored_ids: Sequence[int]) -> str:
    number = machines["machine_id"].n_unique() + len(unscored_ids)
    if not number:
        return "No machine has been seen yet."
    states = {
        state: machines.filter(pl.col("state") == state)["machine_id"].n_unique() for state in reversed(MachineState)
    }
    told = ", ".join(f"{fmt.count(count)} {state}" for state, count in states.items() if count)
    return f"{fmt.counted(number, 'machine')}: {told or 'none scored yet'}."


def _row(score: Row) -> tuple[Cell, ...]:
    href = paths.machine_page(score["machine_id"])
    return (
        Cell(str(score["machine_id"]), href),
        badge_cell(state_badge(score["state"]), href),
        Cell(fmt.gpus_text(score["gpu_model"], score["num_gpus"])),
        Cell(fmt.count(score["run_count"]), sort=str(score["run_count"])),
        Cell(fmt.share(score["passed_count"], score["run_count"]), sort=str(_share(score))),
        Cell(fmt.count(score["blamed_failure_count"])),
        rate_cell(score["median_rate_proofs_per_hour"]),
        _ratio_cell(score),
        Cell(score["geolocation"] or fmt.NOT_KNOWN),
        Cell(fmt.minute(score["last_seen_at"]), at=fmt.rfc3339(score["last_seen_at"])),
    )


def _unscored_row(machine_id: int) -> tuple[Cell, ...]:
    href = paths.machine_page(machine_id)
    unknown = tuple(Cell("–", tone="muted") for _ in range(8))
    return (Cell(str(machine_id), href), badge_cell(state_badge(None), href), *unknown)


def _share(score: Row) -> float:
    return score["passed_count"] / score["run_count"] if score["run_count"] else 0.0


def _ratio_cell(score: Row) -> Cell:
    """Return the ratio with what it rests on: its interval, else the number of measured runs."""
    if score["rate_ratio"] is None:
        return Cell(fmt.NOT_MEASURED, tone="muted", sort="-1")
    interval = fmt.interval(score["rate_ratio_low"], score["rate_ratio_high"])
    measured = fmt.counted(score["measured_count"], "measured run")
    return Cell(
        fmt.ratio(score["rate_ratio"]),
        note=f"{interval}, {measured}" if interval else measured,
        sort=str(score["rate_ratio"]),
    )


def machine_page(
    machine_id: int,
    scores: Sequence[Row],
    listed: Row | None,
    runs: pl.DataFrame,
    cohorts: Mapping[str, Row],
    causes: Causes,
) -> MachinePage:
    """Return the page of one machine.

    Args:
        scores: its rows of `machines`, one for each cohort; may be empty.
        listed: its row of `bad_machines`, or null.
        runs: its runs, newest first.
        cohorts: rows of `cohorts` by id.
    """
    state = worst_state(scores)
    return MachinePage(
        path=paths.machine_page(machine_id),
        title=f"Machine {machine_id}: {state_badge(state).word}",
        heading=_heading(runs, scores),
        badge=state_badge(state),
        lead=_lead(state, scores, listed, runs),
        clears=listed["would_clear"] if listed else "",
        facts=_facts(scores, runs),
        scores=_scores_grid(scores, cohorts),
        charts=tuple(_charts(scores, runs, cohorts)),
        failures=_failures_grid(runs),
        hardware=_hardware_grid(runs),
        runs=run_grid(
            "runs", "Runs of this machine", runs, causes, empty="No run of it is in the tables.", has_machine=False
        ),
    )


def _heading(runs: pl.DataFrame, scores: Sequence[Row]) -> str:
    newest = [*runs.head(1).to_dicts(), *scores, {"gpu_model": None, "num_gpus": None, "geolocation": None}][0]
    return " · ".join(
        part for part in (fmt.gpus_text(newest["gpu_model"], newest["num_gpus"]), newest["geolocation"]) if part
    )


def _lead(state: str | None, scores: Sequence[Row], listed: Row | None, runs: pl.DataFrame) -> str:
    if listed is not None:
        advice = "Do not rent it" if listed["state"] == MachineState.BAD else "Rent it only last"
        until = f" Listed until {fmt.instant(listed['expires_at'])}." if listed["expires_at"] else ""
        return f"{advice}: {listed['reason'].rstrip('.')}.{until}"
    passed = runs.height - fleet.failures(runs).height
    counts = f"{fmt.share(passed, runs.height)} of its runs passed" if runs.height else "it has no run"
    if state == MachineState.GOOD:
        return f"Rent it: {counts}{_against_cohort(scores)}."
    if state is None or state == MachineState.UNKNOWN:
        return f"Too little is known to judge it: {counts}{_against_cohort(scores)}. It may be rented, to learn more."
    return f"State {state}: {counts}{_against_cohort(scores)}."


def _against_cohort(scores: Sequence[Row]) -> str:
    measured = [score for score in scores if score["rate_ratio"] is not None]
    if not measured:
        return ", and no rate was measured"
    most = max(measured, key=lambda score: score["measured_count"])
    return f", at {fmt.ratio(most['rate_ratio'])} its cohort's rate over {fmt.counted(most['measured_count'], 'measured run')}"


def _facts(scores: Sequence[Row], runs: pl.DataFrame) -> tuple[Fact, ...]:
    failed = fleet.failures(runs)
    blamed = failed.filter(pl.col("blame") == "machine").height
    lost = float(runs["usd_lost"].sum()) if runs["usd_lost"].count() else None
    hosts = {score["host_id"] for score in scores if score["host_id"] is not None}
    return (
        Fact("Runs", fmt.count(runs.height)),
        Fact("Passed", fmt.share(runs.height - failed.height, runs.height)),
        Fact("Failures blamed on it", fmt.share(blamed, failed.height), "of its failures"),
        Fact("Lost on it", fmt.usd(lost)),
        Fact("Host", ", ".join(map(str, sorted(hosts))) or fmt.NOT_KNOWN),
    )


def _scores_grid(scores: Sequence[Row], cohorts: Mapping[str, Row]) -> Grid:
    rows = tuple(_score_row(score, cohorts.get(score["cohort_id"])) for score in scores)
    titles = headings("Cohort", "State", "Runs:number", "Passed:number", "Blamed failures:number", "Vanished:number",
                      "Median rate:number", "Cohort's median:number", "Against its cohort:number")  # fmt: skip
    return Grid("scores", "Score by cohort", titles, rows, "It has no score: none of its runs is scored.")


def _score_row(score: Row, cohort: Row | None) -> tuple[Cell, ...]:
    median = cohort["median_rate_proofs_per_hour"] if cohort else None
    machines = fmt.counted(cohort["machine_count"], "machine") if cohort else ""
    return (
        Cell(cohort_name(cohort or score), note=score["cohort_id"]),
        badge_cell(state_badge(score["state"])),
        Cell(fmt.count(score["run_count"])),
        Cell(fmt.share(score["passed_count"], score["run_count"])),
        Cell(fmt.count(score["blamed_failure_count"])),
        Cell(fmt.count(score["vanished_count"])),
        rate_cell(score["median_rate_proofs_per_hour"]),
        Cell(fmt.rate(median), note=machines),
        _ratio_cell(score),
    )


def cohort_name(cohort: Row) -> str:
    """Return a cohort's name for people: its GPUs and what is measured."""
    kind = cohort.get("proof_kind")
    gpus = fmt.gpus_text(cohort["gpu_model"], cohort["num_gpus"])
    return f"{gpus}, {kind}" if kind else gpus


def _charts(scores: Sequence[Row], runs: pl.DataFrame, cohorts: Mapping[str, Row]) -> list[Chart]:
    """Return one chart of rates over time for each cohort in which a rate was measured."""
    charts = []
    for score in scores:
        measured = runs.filter(
            (pl.col("cohort_id") == score["cohort_id"]) & pl.col("rate_proofs_per_hour").is_not_null()
        ).sort("began_at")
        if measured.height:
            charts.append(_chart(score, measured, cohorts.get(score["cohort_id"])))
    return charts


def _chart(score: Row, measured: pl.DataFrame, cohort: Row | None) -> Chart:
    x = tuple(float(at.timestamp()) for at in measured["began_at"])
    series = [Series("measured rate", x, tuple(measured["rate_proofs_per_hour"].round(3)))]
    if measured["min_rate_proofs_per_hour"].count():
        series.append(Series("min rate in force", x, tuple(measured["min_rate_proofs_per_hour"].round(3)), 1))
    name = cohort_name(cohort or score)
    panel = Panel("Rate of each run", "proofs/h", tuple(series), _levels(cohort), kind="points")
    description = f"{fmt.counted(measured.height, 'measured run')}; the runs below give the same in numbers."
    return Chart(
        f"rates-{paths.anchor(score['cohort_id'])}", f"Rates over time: {name}", description, (panel,), is_date=True
    )


def _levels(cohort: Row | None) -> tuple[Level, ...]:
    if cohort is None or cohort["median_rate_proofs_per_hour"] is None:
        return ()
    median = Level(
        f"cohort's median {fmt.plain_rate(cohort['median_rate_proofs_per_hour'])}",
        cohort["median_rate_proofs_per_hour"],
    )
    low, high = cohort["rate_low_proofs_per_hour"], cohort["rate_high_proofs_per_hour"]
    return (
        (median,)
        if low is None or high is None or high <= low
        else (Level("cohort's 5th to 95th percentile", low, high), median)
    )


def _failures_grid(runs: pl.DataFrame) -> Grid:
    by_fingerprint = (
        fleet.failures(runs)
        .filter(pl.col("fingerprint_id").is_not_null())
        .group_by("fingerprint_id")
        .agg(
            pl.col("fingerprint_title", "blame").first(),
            run_count=pl.len(),
            usd_lost=pl.col("usd_lost").sum(),
            last_at=pl.col("seen_at").max(),
        )
        .sort("run_count", "fingerprint_id", descending=[True, False])
    )
    rows = tuple(
        (
            Cell(each["fingerprint_title"] or each["fingerprint_id"], paths.failure_page(each["fingerprint_id"])),
            Cell(fmt.words(each["blame"])),
            Cell(fmt.count(each["run_count"])),
            Cell(fmt.usd(each["usd_lost"])),
            Cell(fmt.minute(each["last_at"]), at=fmt.rfc3339(each["last_at"])),
        )
        for each in by_fingerprint.to_dicts()
    )
    titles = headings("Failure", "Whose fault", "Runs:number", "Lost:number", "Last seen (UTC):time")
    return Grid("failures", "Failures on this machine", titles, rows, "No run on it failed.")


def _hardware_grid(runs: pl.DataFrame) -> Grid:
    """Return each set of hardware facts that its runs reported, newest first: two rows are a change."""
    columns = ("gpu_model", "num_gpus", "gpu_uuids", "driver_version", "cpu_model", "memory_bytes")
    sets = (
        runs.with_columns(gpu_uuids=pl.col("gpus").list.eval(pl.element().struct.field("uuid")).list.join(", "))
        .group_by(columns)
        .agg(run_count=pl.len(), first_at=pl.col("began_at").min(), last_at=pl.col("began_at").max())
        .sort("last_at", "first_at", *columns, descending=True)
    )
    rows = tuple(
        (
            Cell(fmt.gpus_text(each["gpu_model"], each["num_gpus"]), note=each["gpu_uuids"] or ""),
            Cell(each["driver_version"] or fmt.NOT_KNOWN),
            Cell(each["cpu_model"] or fmt.NOT_KNOWN),
            Cell(fmt.bytes_text(each["memory_bytes"])),
            Cell(fmt.count(each["run_count"])),
            Cell(fmt.minute(each["first_at"])),
            Cell(fmt.minute(each["last_at"])),
        )
        for each in sets.to_dicts()
    )
    titles = headings(
        "GPUs and their UUIDs",
        "Driver",
        "Processor",
        "Memory:number",
        "Runs:number",
        "First (UTC):time",
        "Last (UTC):time",
    )
    return Grid("hardware", "Hardware as its runs saw it", titles, rows, "No run described its hardware.")
