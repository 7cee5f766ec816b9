"""The whole line from tables to site, one screen long: read, render, check, switch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from plotly.offline import get_plotlyjs

import site_template
from harvest.contract import PUBLISHED_TABLES
from reports import fleet, paths
from reports.causes import Causes
from reports.dataset import DOWNLOADS, Dataset, open_dataset, read_day, table_files
from reports.errors import PagesDoNotMatch
from reports.folder import new_site, not_written, refuse_foreign, switch
from reports.links import LinkIndex
from reports.pages.bad_machines import bad_machines_page
from reports.pages.causes import causes_page
from reports.pages.data import TableSize, data_page
from reports.pages.failures import failure_page, failures_page
from reports.pages.machines import machine_page, machines_page
from reports.pages.overview import overview_page
from reports.pages.run import run_page
from reports.pages.runs import day_page, runs_page
from reports.render import Page, Renderer

Told = Callable[[str], None]
MAX_TOLD_LINKS = 10


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What was built. `unreadable` names tables of single dates that could not be read: their pages say so."""

    page_count: int
    run_count: int
    machine_count: int
    failure_count: int
    as_of: str
    unreadable: tuple[str, ...]


@dataclass(slots=True)
class SiteWriter:
    """Writes pages and files into a folder, and remembers every link for the check."""

    folder: Path
    renderer: Renderer = field(default_factory=Renderer)
    links: LinkIndex = field(default_factory=LinkIndex)

    def page(self, template: str, page: Page) -> None:
        """Render a page and write it to its address."""
        html = self.renderer.html(template, page)
        self.file(page.path, html.encode("utf-8"))
        self.links.add_page(page.path, html)

    def file(self, path: str, content: bytes) -> None:
        """Write a file that pages link to."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        self.links.files.add(path)


def build_site(data: Path, site: Path, causes: Causes, harvest_interval_s: float, told: Told) -> BuildReport:
    """Build the site of a data folder and put it in the old one's place.

    Args:
        data: folder with the published tables.
        site: where the site is to stand; new, empty, or an older site of ours.
        told: is given a line now and then about what is being done.

    Raises:
        ReportError: nothing was switched; each subclass says what an operator would do.
    """
    refuse_foreign(site)
    dataset = open_dataset(data)
    runs = fleet.with_seen_at(dataset.runs)
    with new_site(site) as neighbour:
        try:
            writer = SiteWriter(neighbour)
            unreadable = _write_pages(writer, dataset, runs, causes, harvest_interval_s, told)
        except OSError as error:
            raise not_written(neighbour, error) from error
        report = _report(dataset, runs, writer.links, unreadable)
        check(neighbour, dataset, runs, writer.links)
        switch(neighbour, site)
    return report


def _write_pages(
    writer: SiteWriter, dataset: Dataset, runs: pl.DataFrame, causes: Causes, harvest_interval_s: float, told: Told
) -> tuple[str, ...]:
    _write_static(writer)
    downloads = _write_downloads(writer, dataset)
    unreadable = _write_run_pages(writer, dataset, runs, causes, told)
    _write_machine_pages(writer, dataset, runs, causes)
    _write_failure_pages(writer, dataset, runs, causes)
    newest_harvest = next(iter(dataset.harvests.tail(1).to_dicts()), None)
    known_runs = frozenset(runs["run_id"])
    writer.page("causes", causes_page(causes))
    writer.page("data", data_page(_table_sizes(dataset), dataset.rejects.height, dataset.as_of))
    writer.page(
        "bad_machines", bad_machines_page(dataset.bad_machines, newest_harvest, known_runs, downloads, dataset.as_of)
    )
    writer.page("overview", overview_page(dataset, runs, causes, harvest_interval_s))
    return unreadable


def _write_static(writer: SiteWriter) -> None:
    for path in sorted(site_template.STATIC.iterdir()):
        writer.file(f"{paths.STATIC}/{path.name}", path.read_bytes())
    writer.file(f"{paths.STATIC}/plotly.min.js", get_plotlyjs().encode("utf-8"))


def _write_downloads(writer: SiteWriter, dataset: Dataset) -> list[str]:
    """Copy the exported lists that are there; a folder from before they were written has none."""
    present = [name for name in DOWNLOADS if (dataset.folder / name).is_file()]
    for name in present:
        writer.file(f"{paths.FILES}/{name}", (dataset.folder / name).read_bytes())
    return present


def _write_run_pages(
    writer: SiteWriter, dataset: Dataset, runs: pl.DataFrame, causes: Causes, told: Told
) -> tuple[str, ...]:
    unreadable: list[str] = []
    writer.page("runs", runs_page(runs, causes, _as_of(dataset)))
    for date, of_date in _parts(runs, "date"):
        day = read_day(dataset, date)
        unreadable += [f"{table}/date={date}" for table in day.unreadable]
        writer.page("runs", day_page(date, of_date, causes))
        for run in of_date.to_dicts():
            writer.page("run", run_page(run, day.details(run["run_id"]), causes, day.unreadable))
        told(f"{date}: {of_date.height} runs")
    return tuple(unreadable)


def _write_machine_pages(writer: SiteWriter, dataset: Dataset, runs: pl.DataFrame, causes: Causes) -> None:
    scores = dict(_parts(dataset.machines, "machine_id"))
    of_machine = dict(_parts(runs, "machine_id"))
    listed = {each["machine_id"]: each for each in dataset.bad_machines.to_dicts()}
    cohorts = {each["cohort_id"]: each for each in dataset.cohorts.to_dicts()}
    machine_ids = known_machine_ids(dataset)
    writer.page("machines", machines_page(dataset.machines, sorted(machine_ids - scores.keys()), dataset.as_of))
    for machine_id in sorted(machine_ids):
        own_scores = scores[machine_id].to_dicts() if machine_id in scores else []
        own_runs = of_machine.get(machine_id, runs.clear())
        page = machine_page(machine_id, own_scores, listed.get(machine_id), own_runs, cohorts, causes)
        writer.page("machine", page)


def _write_failure_pages(writer: SiteWriter, dataset: Dataset, runs: pl.DataFrame, causes: Causes) -> None:
    of_failure = dict(_parts(runs, "fingerprint_id"))
    writer.page("failures", failures_page(dataset.fingerprints, dataset.as_of))
    for failure in dataset.fingerprints.to_dicts():
        own_runs = of_failure.get(failure["fingerprint_id"], runs.clear())
        writer.page("failure", failure_page(failure, own_runs, causes))


def _parts(frame: pl.DataFrame, column: str) -> Iterator[tuple[Any, pl.DataFrame]]:
    """Give the frame's rows for each value of a column, in order of value; rows without one are left out."""
    known = frame.filter(pl.col(column).is_not_null())
    parts: Mapping[Any, pl.DataFrame] = known.partition_by(column, as_dict=True, maintain_order=True)
    yield from ((key[0], parts[key]) for key in sorted(parts))


def known_machine_ids(dataset: Dataset) -> set[int]:
    """Return every machine that any table names: each has a page, so that each link to one leads somewhere."""
    tables = (dataset.machines, dataset.bad_machines, dataset.runs, dataset.in_flight)
    return {id_ for table in tables for id_ in table["machine_id"].drop_nulls()}


def _table_sizes(dataset: Dataset) -> list[TableSize]:
    sizes = []
    for table in PUBLISHED_TABLES.values():
        files = table_files(dataset.folder, table)
        rows = sum(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item() for path in files)
        sizes.append(TableSize(table, len(files), rows, sum(path.stat().st_size for path in files)))
    return sizes


def check(folder: Path, dataset: Dataset, runs: pl.DataFrame, links: LinkIndex) -> None:
    """Compare the pages on disk with the tables, and follow every link.

    Raises:
        PagesDoNotMatch: a page is missing or too many, or a link leads nowhere.
    """
    expected = {
        "runs/*/????????-*.html": runs["run_id"].n_unique(),
        "runs/*/index.html": runs["date"].n_unique(),
        "machines/*/*.html": len(known_machine_ids(dataset)),
        "failures/[0-9a-f]*.html": dataset.fingerprints["fingerprint_id"].n_unique(),
    }
    found = {pattern: sum(1 for _ in folder.glob(pattern)) for pattern in expected}
    wrong = [
        f"{pattern}: {found[pattern]} pages, {number} in the tables"
        for pattern, number in expected.items()
        if found[pattern] != number
    ]
    dead = links.dead_links()
    if wrong or dead:
        told = "; ".join([*wrong, *(f"dead link {link}" for link in dead[:MAX_TOLD_LINKS])])
        more = f" and {len(dead) - MAX_TOLD_LINKS} more dead links" if len(dead) > MAX_TOLD_LINKS else ""
        raise PagesDoNotMatch(
            f"The pages do not match the data: {told}{more}. Nothing was switched, the old site is kept; run the harvest again, then this."
        )


def _report(dataset: Dataset, runs: pl.DataFrame, links: LinkIndex, unreadable: tuple[str, ...]) -> BuildReport:
    return BuildReport(
        page_count=sum(path.endswith(".html") for path in links.files),
        run_count=runs.height,
        machine_count=len(known_machine_ids(dataset)),
        failure_count=dataset.fingerprints.height,
        as_of=_as_of(dataset),
        unreadable=unreadable,
    )


def _as_of(dataset: Dataset) -> str:
    return "" if dataset.as_of is None else f"{dataset.as_of:%Y-%m-%dT%H:%M:%SZ}"
