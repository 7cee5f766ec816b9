"""When which machine is rented: every rental of a simulation, known before anything is made. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from bench.contract import Vocabulary
from bench.simulation.settings import SimulationSettings

_LONGEST_RENTAL = timedelta(minutes=70)
"""Rentals that end by themselves are over this long after they began, a benchmark's time limit included."""
_ID_STEP_S = 3000
_MACHINES_PER_FLYING = 20
_MACHINES_PER_WAITING = 30


class Presence(Vocabulary):
    """How far a rental is at the end of the simulation. `waiting`: rented, but no run has begun."""

    ENDED = "ended"
    IN_FLIGHT = "in_flight"
    WAITING = "waiting"


@dataclass(frozen=True)
class PlannedRun:
    """One rental of one machine; everything random about it is drawn from `name`, in whatever process that is."""

    name: str
    machine_index: int
    granted_at: datetime
    presence: Presence


def planned_runs(settings: SimulationSettings, is_alive_possible: bool) -> list[PlannedRun]:
    """Return all rentals, sorted by time.

    Args:
        is_alive_possible: whether the store can date objects; without that, nothing can be alive at `end`.
    """
    planned = [run for index in range(settings.machines) for run in _ended_runs(settings, index)]
    if is_alive_possible:
        planned += _alive_runs(settings)
    return sorted(planned, key=lambda run: (run.granted_at, run.machine_index))


def _ended_runs(settings: SimulationSettings, machine_index: int) -> list[PlannedRun]:
    """Spread a machine's rentals evenly, each with some play, so that they never overlap."""
    random = Random(f"{settings.seed}/{machine_index}")
    count = int(settings.days * settings.runs_per_day + random.random())
    slot = (settings.end - _LONGEST_RENTAL - settings.start) / max(count, 1)
    play = max(slot - _LONGEST_RENTAL, timedelta(0))
    return [
        PlannedRun(
            name=f"{settings.seed}/{machine_index}/{number}",
            machine_index=machine_index,
            granted_at=_aligned(settings.start + number * slot + random.random() * play, machine_index),
            presence=Presence.ENDED,
        )
        for number in range(count)
    ]


def _aligned(granted_at: datetime, machine_index: int) -> datetime:
    """Move a time to a second that only this machine's rentals begin at: instance ids are made from it."""
    second = int(granted_at.timestamp())
    shift_s = (machine_index - second) % _ID_STEP_S
    return granted_at.replace(microsecond=0) + timedelta(seconds=shift_s if shift_s < 600 else 0)


def _alive_runs(settings: SimulationSettings) -> list[PlannedRun]:
    random = Random(f"{settings.seed}/alive")
    flying_count = max(1, settings.machines // _MACHINES_PER_FLYING)
    waiting_count = settings.machines // _MACHINES_PER_WAITING
    indices = random.sample(range(settings.machines), flying_count + waiting_count)
    flying = [
        _alive(settings, index, random.uniform(200.0, 300.0), Presence.IN_FLIGHT) for index in indices[:flying_count]
    ]
    waiting = [
        _alive(settings, index, random.uniform(30.0, 200.0), Presence.WAITING) for index in indices[flying_count:]
    ]
    return flying + waiting


def _alive(settings: SimulationSettings, machine_index: int, age_s: float, presence: Presence) -> PlannedRun:
    granted_at = (settings.end - timedelta(seconds=age_s)).replace(microsecond=0)
    return PlannedRun(f"{settings.seed}/{machine_index}/{presence}", machine_index, granted_at, presence)
