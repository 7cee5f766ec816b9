"""One harvest's row in the table HARVESTS: what it saw, did, and how long each step took. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from bench import PRODUCER
from harvest.accounting import unlaunched_count
from harvest.contract import BAD_MACHINES, HARVESTS, BundleState
from harvest.fleet import Fleet
from harvest.intake import Intake
from harvest.launches import Launches
from harvest.memory import Before
from harvest.runs import frame_of
from harvest.steps import Steps


@dataclass(frozen=True, slots=True)
class Findings:
    """All that one harvest worked out, at `as_of`, and what it began with."""

    as_of: datetime
    before: Before
    launches: Launches
    intake: Intake
    fleet: Fleet


def harvest_row(found: Findings, harvest_id: str, started_at: datetime, steps: Steps) -> dict[str, Any]:
    """Return the row of a harvest that is about to be published; that last step is not in its times."""
    runs, in_flight = found.fleet.runs, found.intake.in_flight
    states = dict(runs["bundle_state"].value_counts().iter_rows())
    listed = set(found.fleet.tables[BAD_MACHINES.name]["machine_id"])
    listed_before = set(found.before.bad_machines["machine_id"])
    return {
        "harvest_id": harvest_id,
        "as_of": found.as_of,
        "started_at": started_at,
        "wall_s": steps.wall_s,
        "producer": PRODUCER,
        "steps": [{"step": each.step, "wall_s": each.wall_s, "count": each.count} for each in steps.done],
        **{f"{state}_count": states.get(str(state), 0) for state in BundleState},
        "in_flight_count": in_flight.height,
        "unlaunched_count": unlaunched_count([*runs["run_id"], *in_flight["run_id"]], found.launches),
        "accepted_count": found.intake.accepted_count,
        "rejected_count": found.intake.rejects.height,
        "newly_bad_machine_ids": sorted(listed - listed_before),
        "cleared_machine_ids": sorted(listed_before - listed),
    }


def with_harvest(harvests: pl.DataFrame, row: dict[str, Any]) -> pl.DataFrame:
    """Return the table HARVESTS with one more row."""
    return pl.concat([harvests, frame_of(HARVESTS, [row])]).sort(HARVESTS.key, maintain_order=True)
