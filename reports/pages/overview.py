"""The overview: what needs me?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from harvest.contract import MachineState, Outcome
from reports import fleet, paths
from reports import format as fmt
from reports.causes import Causes
from reports.charts import Chart, Panel, Series
from reports.dataset import Dataset
from reports.pages.decisions import Decision, decisions
from reports.pages.failures import failure_grid
from reports.pages.machines import cohort_name
from reports.pages.runs import machine_cell, run_grid
from reports.parts import Cell, Fact, Grid, headings

NEWEST_FAILURES = 10
TOP_FAILURES = 10
CHART_DAYS = 14
_DAY_CLASSES = (
    ("passed", 2, (Outcome.PASSED,)),
    ("too slow", 4, (Outcome.TOO_SLOW,)),
    ("vanished or interrupted", 3, (Outcome.VANISHED, Outcome.INTERRUPTED, Outcome.NEVER_STARTED)),
    ("failed", 1, (Outcome.FAILED, Outcome.PARTIAL, Outcome.TIMED_OUT, Outcome.INCOMPLETE)),
)


@dataclass(frozen=True, slots=True)
class OverviewPage:
    """The first page. `as_of` and `valid_until` are texts; the `_iso` ones are for the script that gives the age."""

    path: str
    title: str
    lead: str
    as_of: str
    as_of_iso: str
    valid_until: str
    valid_until_iso: str
    decisions: tuple[Decision, ...]
    no_decisions: str
    numbers: tuple[Fact, ...]
    newest_failures: Grid
    failures: Grid
    chart: Chart | None
    in_flight: Grid
    cohorts: Grid


def overview_page(dataset: Dataset, runs: pl.DataFrame, causes: Causes, harvest_interval_s: float) -> OverviewPage:
    """Return the first page. `runs` are the dataset's with `seen_at`, newest first."""
    as_of = dataset.as_of
    valid_until = as_of + timedelta(seconds=2 * harvest_interval_s) if as_of else None
    needed = decisions(dataset, runs)
    newest = fleet.failures(runs).head(NEWEST_FAILURES)
    top = dataset.fingerprints.sort(
        "usd_lost", "run_count", "fingerprint_id", descending=[True, True, False], nulls_last=True
    )
    return OverviewPage(
        path=paths.OVERVIEW,
        title="Overview",
        lead=_lead(runs, needed, as_of),
        as_of=fmt.instant(as_of) if as_of else "",
        as_of_iso=fmt.rfc3339(as_of),
        valid_until=fmt.instant(valid_until) if valid_until else "",
        valid_until_iso=fmt.rfc3339(valid_until),
        decisions=needed,
        no_decisions=_no_decisions(runs, as_of),
        numbers=_numbers(dataset, runs, as_of) if as_of and runs.height else (),
        newest_failures=run_grid("newest-failures", "Newest failures", newest, causes, empty="No run has failed."),
        failures=failure_grid(top.head(TOP_FAILURES), as_of),
        chart=_chart(runs, as_of) if as_of and runs.height else None,
        in_flight=_in_flight_grid(dataset.in_flight),
        cohorts=_cohort_grid(dataset.cohorts),
    )


def _lead(runs: pl.DataFrame, needed: tuple[Decision, ...], as_of: datetime | None) -> str:
    if as_of is None or runs.is_empty():
        return "No run has been harvested yet."
    if not needed:
        return "Nothing needs you."
    return f"{fmt.counted(len(needed), 'thing')} {'needs' if len(needed) == 1 else 'need'} you."


def _no_decisions(runs: pl.DataFrame, as_of: datetime | None) -> str:
    if as_of is None:
        return "There is no harvest in the data folder yet: run `harvest run`, then `reports build` again."
    if runs.is_empty():
        return "The newest harvest found no run in the store. Start one with `bench run`; it will stand here after the next harvest."
    return "No machine is newly bad, nothing of ours breaks runs, nothing vanished, every failure is explained."


def _numbers(dataset: Dataset, runs: pl.DataFrame, as_of: datetime) -> tuple[Fact, ...]:
    day, day_before = (fleet.seen_within(runs, as_of - timedelta(days=back), 1) for back in (0, 1))
    week = fleet.seen_within(runs, as_of, 7)
    failed = fleet.failures(week)
    closed, whole = fleet.closed(failed).height, fleet.with_whole_evidence(failed).height
    unknown = fleet.unexplained(week).height
    bad, watch = (
        dataset.bad_machines.filter(pl.col("state") == state).height for state in (MachineState.BAD, MachineState.WATCH)
    )
    return (
        Fact("Runs in 24 h", fmt.count(day.height), f"{fmt.count(day_before.height)} the day before", href=paths.RUNS),
        Fact("Passed in 7 days", fmt.share(week.height - failed.height, week.height)),
        Fact("Failures with whole evidence", fmt.share(whole, closed), "of those whose closing arrived, 7 days", tone="" if whole == closed else "bad"),
        Fact("Failures not explained", fmt.share(unknown, failed.height), "7 days", tone="warn" if unknown else "", href=paths.FAILURES),
        Fact("Machines on the list", f"{fmt.count(bad)} bad", f"{fmt.count(watch)} on watch", href=paths.BAD_MACHINES),
        Fact("Money lost in 7 days", _sum(week, "usd_lost"), f"of {_sum(week, 'usd_spent')} spent"),
    )  # fmt: skip


def _sum(runs: pl.DataFrame, column: str) -> str:
    """Money over runs; null where no run has a price, and said how many have none."""
    if not runs[column].count():
        return fmt.NOT_KNOWN if runs.height else fmt.usd(0.0)
    without = runs[column].null_count()
    return fmt.usd(float(runs[column].sum())) + (f" ({fmt.counted(without, 'run')} without a price)" if without else "")


def _chart(runs: pl.DataFrame, as_of: datetime) -> Chart:
    first_day = datetime(as_of.year, as_of.month, as_of.day, tzinfo=UTC) - timedelta(days=CHART_DAYS - 1)
    days = [first_day + timedelta(days=number) for number in range(CHART_DAYS)]
    x = tuple(day.timestamp() + 43_200 for day in days)
    by_day = runs.group_by(pl.col("began_at").dt.truncate("1d").alias("day"), "outcome").agg(run_count=pl.len())
    counts = {(each["day"], each["outcome"]): each["run_count"] for each in by_day.to_dicts()}
    series = tuple(
        Series(
            name,
            x,
            tuple(float(sum(counts.get((day, str(outcome)), 0) for outcome in outcomes)) for day in days),
            color,
        )
        for name, color, outcomes in _DAY_CLASSES
    )
    description = "; ".join(f"{each.name}: {fmt.count(int(sum(y or 0 for y in each.y)))}" for each in series)
    panel = Panel("Runs by day", "runs", series, kind="bars")
    return Chart("days", f"Runs of the last {CHART_DAYS} days by outcome", f"{description}.", (panel,), is_date=True)


def _in_flight_grid(in_flight: pl.DataFrame) -> Grid:
    rows = tuple(_in_flight_row(run) for run in in_flight.sort("last_stored_at", "run_id").to_dicts())
    titles = headings(
        "Run:code", "Machine:code", "GPU", "Stage", "Proofs:number", "Price:number", "Last sign of life (UTC):time"
    )
    return Grid("in-flight", "Running now", titles, rows, "No run is alive.")


def _in_flight_row(run: Mapping[str, Any]) -> tuple[Cell, ...]:
    asked = "" if run["proofs_requested"] is None else f" of {run['proofs_requested']}"
    done = fmt.NOT_KNOWN if run["proofs_completed"] is None else f"{run['proofs_completed']}{asked}"
    return (
        Cell(fmt.short_run_id(run["run_id"]), note=run["instance_label"] or ""),
        machine_cell(run["machine_id"]),
        Cell(fmt.gpus_text(run["gpu_model"], None)),
        Cell(run["stage"] or "nothing has arrived yet"),
        Cell(done),
        Cell(fmt.usd_per_hour(run["price_usd_per_hour"])),
        Cell(fmt.minute(run["last_stored_at"]), at=fmt.rfc3339(run["last_stored_at"])),
    )


def _cohort_grid(cohorts: pl.DataFrame) -> Grid:
    biggest_first = cohorts.sort("run_count", "cohort_id", descending=[True, False])
    rows = tuple(_cohort_row(cohort) for cohort in biggest_first.to_dicts())
    titles = headings(
        "Cohort",
        "Machines:number",
        "Runs:number",
        "Median rate:number",
        "5th to 95th percentile:number",
        "Median price:number",
    )
    return Grid("cohorts", "Cohorts: what is normal", titles, rows, "No cohort yet: no run has been scored.")


def _cohort_row(cohort: Mapping[str, Any]) -> tuple[Cell, ...]:
    low, high = cohort["rate_low_proofs_per_hour"], cohort["rate_high_proofs_per_hour"]
    band = "–" if low is None or high is None else f"{fmt.plain_rate(low)} to {fmt.plain_rate(high)}"
    weak = "weak: few machines" if cohort["is_weak"] else ""
    return (
        Cell(cohort_name(cohort), note=weak),
        Cell(fmt.count(cohort["machine_count"]), sort=str(cohort["machine_count"])),
        Cell(
            fmt.count(cohort["run_count"]),
            note=f"{fmt.count(cohort['measured_count'])} measured",
            sort=str(cohort["run_count"]),
        ),
        Cell(fmt.rate(cohort["median_rate_proofs_per_hour"]), sort=str(cohort["median_rate_proofs_per_hour"] or -1)),
        Cell(band),
        Cell(fmt.usd_per_hour(cohort["median_price_usd_per_hour"])),
    )
