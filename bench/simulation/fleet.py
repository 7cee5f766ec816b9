"""The machines of the simulated marketplace: one fixed universe, each machine drawn from its index alone.

A machine's traits never depend on the seed of a simulation: called again with another seed, the same machines run
again. Prices and rates are invented, but of the size that operators see.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from bench.contract import DEFAULT_USD_PER_PROOF, KernelLog, Vocabulary

GIB = 2**30


class Trait(Vocabulary):
    """What a machine is like: `failing` breaks by its hardware half of the time, `flaky` now and then."""

    GOOD = "good"
    SLOW = "slow"
    FAILING = "failing"
    FLAKY = "flaky"


@dataclass(frozen=True)
class GpuModel:
    """One GPU model. The rate is the median of healthy machines with one such GPU."""

    name: str
    memory_bytes: int
    has_ecc: bool
    power_limit_w: float
    sm_clock_mhz: float
    memory_clock_mhz: float
    pcie_gen: int
    rate_proofs_per_hour: float
    stale_min_rate_proofs_per_hour: float


MODELS = (
    GpuModel("NVIDIA RTX PRO 4000 Blackwell", 24 * GIB, True, 145.0, 2430.0, 14001.0, 5, 41.5, 29.0),
    GpuModel("NVIDIA GeForce RTX 4090", 24 * GIB, False, 450.0, 2640.0, 10501.0, 4, 58.0, 47.0),
    GpuModel("NVIDIA GeForce RTX 5090", 32 * GIB, False, 575.0, 2730.0, 14001.0, 5, 86.0, 70.0),
    GpuModel("NVIDIA A100-SXM4-80GB", 80 * GIB, True, 400.0, 1410.0, 1593.0, 4, 72.0, 55.0),
    GpuModel("NVIDIA RTX PRO 6000 Blackwell Server Edition", 96 * GIB, True, 600.0, 2430.0, 12481.0, 5, 118.0, 95.0),
)
_MODEL_WEIGHTS = (32, 26, 20, 12, 10)
_TWO_GPU_SHARE = 0.12
TWO_GPU_SPEEDUP = 1.93

_TRAITS = (Trait.GOOD, Trait.SLOW, Trait.FAILING, Trait.FLAKY)
_TRAIT_WEIGHTS = (74, 8, 8, 10)
FAILURE_RATIOS = {Trait.GOOD: 0.0, Trait.SLOW: 0.0, Trait.FAILING: 0.55, Trait.FLAKY: 0.18}
"""Chance that the machine's own fault ends a run, by trait."""

_SHARED_HOST_SHARE = 0.5
_COUNTRIES = ("US", "US", "US", "CA", "DE", "SE", "NO", "PL", "KR", "TW", "JP", "AU")
_REGIONS = {"US": ("Texas", "Oregon", "Virginia", "California"), "CA": ("Quebec", "Ontario")}
_COUNTRY_NAMES = {"DE": "Germany", "SE": "Sweden", "NO": "Norway", "PL": "Poland", "KR": "South Korea"}
_COUNTRY_NAMES |= {"TW": "Taiwan", "JP": "Japan", "AU": "Australia"}
_DRIVERS = (("580.95.05", "13.0"), ("575.64.03", "12.9"), ("570.172.08", "12.8"), ("580.82.09", "13.0"))
OLD_DRIVER = ("535.183.01", "12.2")
_OLD_DRIVER_SHARE = 0.03
_CPUS = (
    ("AMD EPYC 7763 64-Core Processor", 128, 504),
    ("AMD EPYC 9354 32-Core Processor", 64, 377),
    ("Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz", 128, 503),
    ("AMD Ryzen Threadripper PRO 5975WX 32-Cores", 64, 251),
)
_MEMORY_LIMIT_SHARE = 0.12
_COSTLY_SHARE = 0.06


@dataclass(frozen=True)
class Machine:
    """One physical computer of the marketplace; `price_usd_per_hour` is for all its GPUs together.

    `rate_ratio` is its true speed over its model's median; `memory_limit_bytes` is null where the cgroup has none.
    """

    index: int
    machine_id: int
    host_id: int
    geolocation: str
    model: GpuModel
    num_gpus: int
    trait: Trait
    rate_ratio: float
    price_usd_per_hour: float
    driver_version: str
    cuda_version: str
    cpu_model: str
    cpu_count: int
    memory_bytes: int
    memory_limit_bytes: int | None
    kernel: str
    kernel_log: KernelLog
    pci_address: str
    gpu_uuids: tuple[str, ...]

    @property
    def failure_ratio(self) -> float:
        """Chance that the machine's own fault ends a run."""
        return FAILURE_RATIOS[self.trait]

    @property
    def cohort_rate_proofs_per_hour(self) -> float:
        """The true median rate of healthy machines like it."""
        return self.model.rate_proofs_per_hour * (TWO_GPU_SPEEDUP if self.num_gpus == 2 else 1.0)

    @property
    def has_old_driver(self) -> bool:
        return self.driver_version == OLD_DRIVER[0]


@lru_cache(maxsize=4096)
def machine_at(index: int) -> Machine:
    """Return the machine with that index (0, 1, 2 ...) in the universe: always the same."""
    random = Random(f"machine/{index}")
    host_number = _host_number(index)
    host = Random(f"host/{host_number}")
    country = host.choice(_COUNTRIES)
    place = host.choice(_REGIONS.get(country, (_COUNTRY_NAMES.get(country, country),)))
    driver_version, cuda_version = OLD_DRIVER if random.random() < _OLD_DRIVER_SHARE else random.choice(_DRIVERS)
    cpu_model, cpu_count, memory_gib = host.choice(_CPUS)
    model = random.choices(MODELS, _MODEL_WEIGHTS)[0]
    num_gpus = 2 if random.random() < _TWO_GPU_SHARE else 1
    trait = random.choices(_TRAITS, _TRAIT_WEIGHTS)[0]
    is_limited = random.random() < _MEMORY_LIMIT_SHARE
    return Machine(
        index=index,
        machine_id=4000 + 53 * index + random.randrange(53),
        host_id=20000 + 17 * host_number,
        geolocation=f"{place}, {country}",
        model=model,
        num_gpus=num_gpus,
        trait=trait,
        rate_ratio=_rate_ratio(random, trait),
        price_usd_per_hour=_price_usd_per_hour(random, model, num_gpus),
        driver_version=driver_version,
        cuda_version=cuda_version,
        cpu_model=cpu_model,
        cpu_count=cpu_count,
        memory_bytes=memory_gib * GIB + random.randrange(2**18) * 4096,
        memory_limit_bytes=memory_gib // 4 * GIB if is_limited else None,
        kernel=host.choice(("6.8.0-85-generic", "5.15.0-161-generic", "6.8.0-79-generic")),
        kernel_log=KernelLog.READABLE if random.random() < 0.3 else KernelLog.DENIED,
        pci_address=f"0000:{random.choice(('01', '41', '81', 'a1', 'c1'))}:00",
        gpu_uuids=tuple(f"GPU-{uuid.UUID(int=random.getrandbits(128), version=4)}" for _ in range(num_gpus)),
    )


def _host_number(index: int) -> int:
    """Machines stand in blocks of three; about half of them belong to their block's host, the others to their own."""
    is_shared = Random(f"owner/{index}").random() < _SHARED_HOST_SHARE
    return 4 * (index // 3) + (0 if is_shared else 1 + index % 3)


def _rate_ratio(random: Random, trait: Trait) -> float:
    """Healthy machines of one model differ by 1 to 3 %; a slow one lacks 12 to 30 %."""
    ratio = random.gauss(1.0, 0.017)
    return ratio * random.uniform(0.70, 0.88) if trait == Trait.SLOW else ratio


def _price_usd_per_hour(random: Random, model: GpuModel, num_gpus: int) -> float:
    """Most offers ask for about 0.89 of what a healthy machine earns, some for more than it can."""
    markup = random.uniform(1.14, 1.22) if random.random() < _COSTLY_SHARE else random.uniform(0.94, 1.04)
    earned_usd_per_hour = model.rate_proofs_per_hour * DEFAULT_USD_PER_PROOF
    return round(0.8916 * earned_usd_per_hour * markup * (1.95 if num_gpus == 2 else 1.0), 3)
