"""What is decided about a run before it begins: machine, build, settings, price, threshold, and what will befall it.

Everything is drawn from the run's own name, so that it is the same in whatever process and order it is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from bench.contract import DEFAULT_USD_PER_PROOF
from bench.keys import make_run_id
from bench.simulation import scenarios
from bench.simulation.fleet import GIB, Machine, machine_at
from bench.simulation.scenarios import Scenario
from bench.simulation.schedule import PlannedRun, Presence
from bench.simulation.settings import SimulationSettings

PROOFS_REQUESTED = 12
CONCURRENCY = 3
MANY_PARTITION_WORKERS = 16
FEW_PARTITION_WORKERS = 10
_RUN_IDS_PER_RENTAL = 3
_INSTANCE_EPOCH_S = 1_735_689_600
"""2025-01-01: an instance id is the second since then at which it was granted."""

BUG_WINDOW = (0.45, 0.62)
"""In which share of the simulated time the bad build was rolled out."""


@dataclass(frozen=True)
class Build:
    """One image of the software under test."""

    digest: str
    daemon_version: str
    sppark_version: str

    @property
    def build_id(self) -> str:
        return f"sha256:{self.digest}"


BUILD_BEFORE = Build("5d41c0ffb2f7b4a1c2e86f0a937be1d05c14a8f3a3b9d6f2478c0e9b11f36a7c", "0.4.1", "0.1.15")
BUILD_WITH_BUG = Build("b91e27a4406de88f3c5b7d12f0a9c6e4d83715be20f49ac1675d8e03bb42f19d", "0.4.2", "0.1.14")
BUILD_AFTER = Build("0c7fa2d95b1e4638ad90e27c41f5b8d36e97104ac28b5f7de3160944c8ba7e52", "0.4.3", "0.1.15")

_BAD_BUILD_SHARE = 0.75
_ILLEGAL_ACCESS_SHARE = 0.5
_LEAK_SHARE = 0.12
_CGROUP_KILL_SHARE = 0.85
_OLD_DRIVER_SHARE = 0.9
_SMALL_GPU_SHARE = 0.012
_HOST_OFFLINE_SHARE = 0.1
_STALE_MIN_RATE_SHARE = 0.12
_WITHOUT_RECORD_SHARE = 0.08
_RATE_NOISE = 0.023


@dataclass(frozen=True)
class RunFacts:
    """One run before it begins. `rental_id` is null where the operator left no launch record.

    `rate_proofs_per_hour` is what the machine would give; `completed_before` is how many measured proofs complete
    before a failure that comes in the middle of the batch.
    """

    name: str
    presence: Presence
    machine: Machine
    build: Build
    is_bug_window: bool
    scenario: Scenario
    granted_at: datetime
    started_at: datetime
    run_ids: tuple[str, ...]
    rental_id: str | None
    instance_id: int
    rental_kind: str
    partition_workers: int
    min_rate_proofs_per_hour: float
    min_rate_source: str
    rate_proofs_per_hour: float
    completed_before: int

    @property
    def run_id(self) -> str:
        return self.run_ids[0]

    @property
    def budget_bytes(self) -> int:
        """The daemon's automatic memory budget: it leaves the host 5 GiB, and never asks the cgroup."""
        return self.machine.memory_bytes - 5 * GIB

    def random(self, purpose: str) -> Random:
        """Return a source of random numbers of this run, one for each purpose."""
        return Random(f"{self.name}/{purpose}")


def run_facts(planned: PlannedRun, settings: SimulationSettings) -> RunFacts:
    """Return everything that is decided about a planned run."""
    random = Random(f"{planned.name}/facts")
    machine = machine_at(planned.machine_index)
    is_bug_window = _is_in_bug_window(planned.granted_at, settings)
    build = _build(random, planned.granted_at, is_bug_window, settings)
    partition_workers = random.choice((FEW_PARTITION_WORKERS, MANY_PARTITION_WORKERS))
    scenario = _scenario(random, planned, machine, build, partition_workers)
    has_record = random.random() >= _WITHOUT_RECORD_SHARE or scenario is scenarios.NEVER_STARTED
    started_at = _started_at(random, planned)
    id_time = planned.granted_at if has_record else started_at
    min_rate, min_rate_source = _min_rate(random, machine)
    return RunFacts(
        name=planned.name,
        presence=planned.presence,
        machine=machine,
        build=build,
        is_bug_window=is_bug_window,
        scenario=scenario,
        granted_at=planned.granted_at,
        started_at=started_at,
        run_ids=tuple(_id_at(random, id_time) for _ in range(_RUN_IDS_PER_RENTAL)),
        rental_id=_id_at(random, planned.granted_at) if has_record else None,
        instance_id=int(planned.granted_at.timestamp()) - _INSTANCE_EPOCH_S,
        rental_kind="interruptible" if scenario is scenarios.OUTBID else random.choice(("on_demand", "interruptible")),
        partition_workers=partition_workers,
        min_rate_proofs_per_hour=min_rate,
        min_rate_source=min_rate_source,
        rate_proofs_per_hour=machine.cohort_rate_proofs_per_hour * machine.rate_ratio * random.gauss(1.0, _RATE_NOISE),
        completed_before=_completed_before(random, scenario),
    )


def _id_at(random: Random, at: datetime) -> str:
    return make_run_id(int(at.timestamp() * 1000), random.getrandbits(74))


def _started_at(random: Random, planned: PlannedRun) -> datetime:
    """The image has to be loaded first; rentals that are alive at the end began moments ago."""
    loading_s = random.uniform(40.0, 400.0) if planned.presence == Presence.ENDED else random.uniform(40.0, 70.0)
    return planned.granted_at + timedelta(microseconds=int(loading_s * 1e6))


def _is_in_bug_window(at: datetime, settings: SimulationSettings) -> bool:
    since, until = (settings.start + share * (settings.end - settings.start) for share in BUG_WINDOW)
    return since <= at < until


def _build(random: Random, at: datetime, is_bug_window: bool, settings: SimulationSettings) -> Build:
    if is_bug_window:
        return BUILD_WITH_BUG if random.random() < _BAD_BUILD_SHARE else BUILD_BEFORE
    middle = settings.start + BUG_WINDOW[0] * (settings.end - settings.start)
    return BUILD_BEFORE if at < middle else BUILD_AFTER


def _scenario(random: Random, planned: PlannedRun, machine: Machine, build: Build, partition_workers: int) -> Scenario:
    """The first that happens, in the order in which it would strike."""
    if planned.presence == Presence.WAITING:
        return scenarios.NEVER_STARTED
    if planned.presence == Presence.IN_FLIGHT:
        return scenarios.PASSED
    common = _common_scenario(random)
    if common.shape in (scenarios.Shape.NEVER_STARTS, scenarios.Shape.SETUP_FAILS):
        return common
    chances = (
        (scenarios.OLD_DRIVER, _OLD_DRIVER_SHARE if machine.has_old_driver else 0.0),
        (scenarios.SMALL_GPU, _SMALL_GPU_SHARE if machine.model.memory_bytes <= 24 * GIB else 0.0),
        (scenarios.CGROUP_KILL, _CGROUP_KILL_SHARE if _is_over_limit(machine, partition_workers) else 0.0),
        (scenarios.BUILD_ILLEGAL_ACCESS, _ILLEGAL_ACCESS_SHARE if build is BUILD_WITH_BUG else 0.0),
        (scenarios.BUILD_MEMORY_LEAK, _LEAK_SHARE if build is BUILD_WITH_BUG else 0.0),
        (_own_fault(random, machine), machine.failure_ratio),
    )
    return next((scenario for scenario, chance in chances if random.random() < chance), common)


def _common_scenario(random: Random) -> Scenario:
    kinds = [scenario for scenario, _ in scenarios.ANYWHERE]
    chances = [chance for _, chance in scenarios.ANYWHERE]
    return random.choices([*kinds, scenarios.PASSED], [*chances, 1.0 - sum(chances)])[0]


def _is_over_limit(machine: Machine, partition_workers: int) -> bool:
    return machine.memory_limit_bytes is not None and partition_workers == MANY_PARTITION_WORKERS


def _own_fault(random: Random, machine: Machine) -> Scenario:
    """A machine comes back to the fault that it has; now and then its host goes off line instead."""
    usual = Random(f"fault/{machine.index}").choice(scenarios.HARDWARE)
    return scenarios.HOST_OFFLINE if random.random() < _HOST_OFFLINE_SHARE else usual


def _min_rate(random: Random, machine: Machine) -> tuple[float, str]:
    """Usually price / usd_per_proof; some runs were started with a number that somebody once worked out."""
    if random.random() < _STALE_MIN_RATE_SHARE:
        return machine.model.stale_min_rate_proofs_per_hour, "flag"
    return machine.price_usd_per_hour / DEFAULT_USD_PER_PROOF, "price"


def _completed_before(random: Random, scenario: Scenario) -> int:
    """A leak shows only after some proofs; other failures come early as often as late."""
    if scenario is scenarios.BUILD_MEMORY_LEAK:
        return random.randrange(2, PROOFS_REQUESTED - 2)
    return random.choice((0, 0, 0, 0, 1, 2, 3, 5, 8))
