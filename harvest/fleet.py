"""What follows from all runs together: money, rentals, what is normal, scores, the list, fingerprints. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from harvest.contract import BAD_MACHINES, COHORTS, FINGERPRINTS, IN_FLIGHT, MACHINES, RENTALS
from harvest.diagnosis.fingerprints import fingerprints
from harvest.intake import Intake
from harvest.launches import Launches
from harvest.money import with_costs, with_fate, with_thresholds
from harvest.policy import Policy
from harvest.rentals import rentals
from harvest.scoring.badlist import bad_machines
from harvest.scoring.cohort import cohorts, with_cohort_id
from harvest.scoring.score import machines


@dataclass(frozen=True, slots=True)
class Fleet:
    """The table RUNS, whole; and the tables about the fleet, by name."""

    runs: pl.DataFrame
    tables: Mapping[str, pl.DataFrame]

    @property
    def machine_count(self) -> int:
        return int(self.tables[MACHINES.name]["machine_id"].n_unique())


def fleet_of(intake: Intake, stages: pl.DataFrame, launches: Launches, policy: Policy, as_of: datetime) -> Fleet:
    """Return all that is worked out again by each harvest. `stages` is the table RUN_STAGES of the same runs."""
    judged = with_thresholds(intake.runs, policy.usd_per_proof).pipe(with_fate, launches)
    rented = rentals(judged, intake.in_flight, stages, launches)
    runs = with_costs(judged, rented).pipe(with_cohort_id)
    normal = cohorts(runs, policy)
    scored = machines(runs, normal, policy)
    tables = {
        IN_FLIGHT.name: intake.in_flight,
        RENTALS.name: rented,
        COHORTS.name: normal,
        MACHINES.name: scored,
        BAD_MACHINES.name: bad_machines(scored, runs, policy, as_of),
        FINGERPRINTS.name: fingerprints(runs, as_of),
    }
    return Fleet(runs, tables)
