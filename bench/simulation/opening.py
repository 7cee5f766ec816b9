"""The opening of a simulated run: its identity, its machine, its plan. Pure."""

from __future__ import annotations

import json
from typing import Any

from bench import __version__
from bench.contract import DEFAULT_USD_PER_PROOF, OPENING, SCHEMA_VERSION
from bench.simulation.facts import CONCURRENCY, PROOFS_REQUESTED, RunFacts
from bench.simulation.fleet import GIB, Machine
from bench.simulation.story import BENCHMARK_ARGV, C1, DAEMON_ARGV, SETUP_ARGV, WARMUP_ARGV

_STAGES = (("setup", SETUP_ARGV), ("daemon", DAEMON_ARGV), ("warmup", WARMUP_ARGV), ("benchmark", BENCHMARK_ARGV))


def opening_row(facts: RunFacts, store_credential: str) -> dict[str, Any]:
    """Return the one row of `opening`."""
    return OPENING.empty_row() | _identity(facts) | _hardware(facts.machine, facts) | _plan(facts, store_credential)


def _identity(facts: RunFacts) -> dict[str, Any]:
    machine = facts.machine
    price = machine.price_usd_per_hour
    claims = [
        {"field": "machine_id", "source": "flag", "value": str(machine.machine_id)},
        {"field": "price_usd_per_hour", "source": "flag", "value": str(price)},
        {"field": "instance_id", "source": "env:CONTAINER_ID", "value": str(facts.instance_id)},
    ]
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": facts.run_id,
        "started_at": facts.started_at,
        "runner_version": __version__,
        "marketplace": "vast.ai",
        "instance_id": facts.instance_id,
        "machine_id": machine.machine_id,
        "host_id": machine.host_id,
        "machine_id_source": "flag",
        "instance_label": f"C.{facts.instance_id}",
        "geolocation": machine.geolocation,
        "price_usd_per_hour": price,
        "usd_per_proof": DEFAULT_USD_PER_PROOF,
        "min_rate_proofs_per_hour": facts.min_rate_proofs_per_hour,
        "min_rate_source": facts.min_rate_source,
        "num_gpus_rented": machine.num_gpus,
        "identity_claims": claims,
        "rental_id": facts.rental_id,
        "rental_kind": facts.rental_kind,
    }


def _hardware(machine: Machine, facts: RunFacts) -> dict[str, Any]:
    model = machine.model
    gpus = [
        {
            "index": index,
            "uuid": uuid,
            "model": model.name,
            "memory_bytes": model.memory_bytes,
            "pcie_gen": model.pcie_gen,
            "pcie_width": 16,
            "power_limit_w": model.power_limit_w,
            "ecc": model.has_ecc,
        }
        for index, uuid in enumerate(machine.gpu_uuids)
    ]
    return {
        "gpu_model": model.name,
        "driver_version": machine.driver_version,
        "cuda_version": machine.cuda_version,
        "num_gpus": machine.num_gpus,
        "gpus": gpus,
        "cpu_model": machine.cpu_model,
        "cpu_count": machine.cpu_count,
        "memory_bytes": machine.memory_bytes,
        "memory_limit_bytes": machine.memory_limit_bytes,
        "shm_bytes": 64 * GIB,
        "disk_free_bytes": 212 * GIB,
        "kernel": machine.kernel,
        "os_image": "Ubuntu 24.04.3 LTS",
        "container_image": f"registry.example/cuzk@{facts.build.build_id}",
        "kernel_log": str(machine.kernel_log),
        "boot_id": str(facts.random("boot").getrandbits(64)),
    }


def _plan(facts: RunFacts, store_credential: str) -> dict[str, Any]:
    asked = {
        "proofs": str(PROOFS_REQUESTED),
        "concurrency": str(CONCURRENCY),
        "partition_workers": str(facts.partition_workers),
        "proof_kind": "porep-32g",
        "c1": C1,
        "param_cache": "/var/tmp/filecoin-proof-parameters",
        "total_budget": "auto",
    }
    plan = {"name": "cuzk", "settings": asked, "stage": [{"name": name, "argv": argv} for name, argv in _STAGES]}
    return {
        "plan_name": "cuzk",
        "plan": json.dumps(plan),
        "settings": asked | {"total_budget": f"{facts.budget_bytes // GIB}GiB"},
        "settings_asked": asked,
        "settings_sources": {"total_budget": "memory_bytes less 5 GiB"},
        "versions": {"daemon": facts.build.daemon_version, "sppark": facts.build.sppark_version},
        "proof_kind": "porep-32g",
        "build_id": facts.build.build_id,
        "probe_errors": {"public_ip_hash": "PUBLIC_IPADDR is not set"},
        "plan_warnings": _plan_warnings(facts),
        "input_files": [],
        "store_credential": store_credential,
    }


def _plan_warnings(facts: RunFacts) -> list[dict[str, Any]]:
    limit = facts.machine.memory_limit_bytes
    if limit is None or facts.budget_bytes <= limit:
        return []
    warning = {
        "code": "budget_over_cgroup",
        "text": "the daemon's automatic memory budget is beyond the cgroup's limit",
        "measured": float(facts.budget_bytes),
        "limit": float(limit),
        "unit": "bytes",
    }
    return [warning]
