"""The operator's own note of each rental: granted, rented, ended, as JSON objects of the launch record. Pure."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from bench.contract import DEFAULT_USD_PER_PROOF, SCHEMA_VERSION
from bench.keys import launch_key
from bench.simulation.bundles import DatedObject
from bench.simulation.daemon_log import instant_text
from bench.simulation.facts import RunFacts

_RENTED_AFTER = timedelta(seconds=6)
_EXPIRES_AFTER = timedelta(hours=8)


def launch_objects(facts: RunFacts, fate: str | None, ended_at: datetime, is_simulated: bool) -> list[DatedObject]:
    """Return the steps of a rental's launch record; none where the operator left none.

    Args:
        fate: `kept`, `destroyed`, `outbid` or `lost`; null where the rental goes on.
        ended_at: when it ended; of no use without a fate.
        is_simulated: say so in the record: the store's clock cannot be that of the simulation.
    """
    if facts.rental_id is None:
        return []
    rented_at = facts.granted_at + _RENTED_AFTER
    steps = {
        "granted": (facts.granted_at, _granted(facts, is_simulated)),
        "rented": (rented_at, _rented(facts, rented_at)),
    }
    if fate is not None:
        steps["ended"] = (ended_at, {"fate": fate, "at": instant_text(ended_at)})
    return [_object(facts.rental_id, step, at, fields) for step, (at, fields) in steps.items()]


def _granted(facts: RunFacts, is_simulated: bool) -> dict[str, Any]:
    machine = facts.machine
    fields: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "rental_id": facts.rental_id,
        "run_ids": list(facts.run_ids),
        "granted_at": instant_text(facts.granted_at),
        "expires_at": instant_text(facts.granted_at + _EXPIRES_AFTER),
        "marketplace": "vast.ai",
        "machine_id": machine.machine_id,
        "host_id": machine.host_id,
        "gpu_model": machine.model.name,
        "num_gpus": machine.num_gpus,
        "geolocation": machine.geolocation,
        "rental_kind": facts.rental_kind,
        "price_usd_per_hour": machine.price_usd_per_hour,
        "usd_per_proof": DEFAULT_USD_PER_PROOF,
        "min_rate_proofs_per_hour": facts.min_rate_proofs_per_hour,
    }
    return fields | {"is_simulated": True} if is_simulated else fields


def _rented(facts: RunFacts, rented_at: datetime) -> dict[str, Any]:
    return {
        "instance_id": facts.instance_id,
        "instance_label": f"C.{facts.instance_id}",
        "rented_at": instant_text(rented_at),
    }


def _object(rental_id: str, step: str, at: datetime, fields: dict[str, Any]) -> DatedObject:
    data = json.dumps(fields, indent=1, sort_keys=True).encode() + b"\n"
    return DatedObject(launch_key(rental_id, step), data, at + timedelta(seconds=1))
