"""The whole line, from the store to the switched tables: fetch, judge, keep, score, publish. See `harvest`."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from bench import PRODUCER
from bench.keys import make_run_id
from harvest.accounting import check_accounts, check_not_emptied
from harvest.contract import BAD_MACHINES, HARVESTS, PUBLISHED_TABLES, REJECTS, RUN_STAGES
from harvest.dataset import BAD_MACHINE_EXPORTS, NewGeneration, current_generation, new_generation, publish, writing
from harvest.dated import dated_rows, write_details, write_runs
from harvest.engine import ExecutorMaker
from harvest.fetch import list_stores
from harvest.fleet import fleet_of
from harvest.history import Findings, harvest_row, with_harvest
from harvest.intake import take_in
from harvest.judged_bundle import Surroundings
from harvest.launches import read_launches
from harvest.lock import data_lock
from harvest.memory import READ_BUNDLES, READ_BUNDLES_FILE, generation_before
from harvest.policy import Policy
from harvest.scoring.badlist import badlist_csv, badlist_json
from harvest.steps import Steps
from harvest.store import open_store
from harvest.summary import Summary, summary_of
from harvest.tables import frame_bytes


@dataclass(frozen=True, slots=True)
class Order:
    """What a harvest is asked for. Null `launches_url`: the records lie beside the bundles; null `as_of`: now."""

    store_url: str
    launches_url: str | None
    data: Path
    as_of: datetime | None
    policy: Policy
    signatures_text: str


def harvest(order: Order, make_executor: ExecutorMaker, steps: Steps) -> Summary:
    """Do one harvest and return what is to be said of it.

    Raises:
        HarvestError: it stopped; the published tables are as before.
    """
    store = open_store(order.store_url)
    launch_store = open_store(order.launches_url or order.store_url)
    started_at = datetime.now(UTC)
    with writing(order.data), data_lock(order.data, started_at):
        before = generation_before(current_generation(order.data))
        with steps.step("fetch", "objects listed") as step:
            listing = list_stores(store, launch_store, order.as_of)
            check_not_emptied(listing, before.runs, order.store_url)
            launches = read_launches(launch_store, listing.launches)
            step.count = listing.all_object_count
        with new_generation(order.data, before.folder) as new:
            around = Surroundings(order.store_url, new.staging, listing.as_of, order.policy, order.signatures_text)
            with steps.step("judge", "bundles read") as step:
                intake = take_in(around, listing, launches, before, make_executor, step.each)
            with steps.step("keep", "runs") as step:
                gone = before.run_ids - intake.over_run_ids - intake.kept_run_ids
                write_details(new, intake.over_run_ids, intake.kept_run_ids, gone)
                step.count = intake.runs.height
            with steps.step("score", "machines scored") as step:
                fleet = fleet_of(intake, dated_rows(new, RUN_STAGES), launches, order.policy, listing.as_of)
                check_accounts(fleet.runs, intake.in_flight, listing.bundles, launches)
                step.count = fleet.machine_count
            with steps.step("publish", "runs") as step:
                found = Findings(listing.as_of, before, launches, intake, fleet)
                row = harvest_row(found, _new_id(started_at), started_at, steps)
                _write_tables(new, found, row, order.policy)
                publish(order.data, new, order.policy.kept_generation_count)
                step.count = fleet.runs.height
    return summary_of(found, row, order.store_url, order.data)


def _new_id(now: datetime) -> str:
    return make_run_id(int(now.timestamp() * 1000), secrets.randbits(74))


def _write_tables(new: NewGeneration, found: Findings, row: dict[str, Any], policy: Policy) -> None:
    """Fill the new generation with all tables that are worked out again by each harvest."""
    write_runs(new, found.fleet.runs)
    tables: dict[str, pl.DataFrame] = {
        **found.fleet.tables,
        REJECTS.name: found.intake.rejects,
        HARVESTS.name: with_harvest(found.before.harvests, row),
    }
    for name, frame in tables.items():
        new.write(f"{name}.parquet", frame_bytes(frame, PUBLISHED_TABLES[name], PRODUCER))
    new.write(READ_BUNDLES_FILE, frame_bytes(found.intake.read_bundles, READ_BUNDLES, PRODUCER))
    bad = tables[BAD_MACHINES.name]
    for name, export in zip(BAD_MACHINE_EXPORTS, (badlist_csv, badlist_json), strict=True):
        new.write(name, export(bad, found.as_of, policy))
