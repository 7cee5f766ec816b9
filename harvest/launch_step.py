"""One step of a launch record: JSON bytes into checked values. Pure.

A step is small and written by the operator, but it stands in a store: nothing in it is believed unchecked.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from bench.contract import SCHEMA_VERSION
from harvest.contract import RejectReason
from harvest.limits import EARLIEST, LATEST, MAX_LAUNCH_STEP_BYTES, MAX_NUMBER, MAX_RUN_IDS_PER_RENTAL

RENTAL_KINDS = frozenset({"on_demand", "interruptible", "reserved"})
FATES = frozenset({"kept", "destroyed", "outbid", "lost"})
_MAX_INT64 = 2**63 - 1

_RUN_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


class StepRefused(Exception):
    """A step cannot be believed. `reason` is the reject's."""

    def __init__(self, reason: RejectReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def parse_step(data: bytes, rental_id: str, step: str) -> dict[str, Any]:
    """Return a step's known fields, checked and typed; those that are missing or null are not in it.

    Args:
        data: the object's bytes.
        rental_id: as the object's key has it; a `granted` step must say the same.
        step: `granted`, `rented` or `ended`.

    Raises:
        StepRefused: not JSON, a field of another type or out of range, or one missing.
    """
    found = _json_object(data)
    version = found.get("schema_version", SCHEMA_VERSION)
    if type(version) is not int or version > SCHEMA_VERSION:
        raise StepRefused(RejectReason.SCHEMA_NEWER, f"schema_version {version!r}; this program knows {SCHEMA_VERSION}")
    if found.get("rental_id", rental_id) != rental_id:
        raise StepRefused(RejectReason.SCHEMA_MISMATCH, "rental_id is not that of the key")
    fields = {name: parse(name, found[name]) for name, parse in FIELDS[step].items() if found.get(name) is not None}
    missing = [name for name in REQUIRED[step] if name not in fields]
    if missing:
        raise StepRefused(RejectReason.SCHEMA_MISMATCH, f"step {step!r} lacks {', '.join(missing)}")
    return fields


def _json_object(data: bytes) -> dict[str, Any]:
    if len(data) > MAX_LAUNCH_STEP_BYTES:
        raise StepRefused(RejectReason.OVER_LIMIT, f"{len(data)} bytes; a step has at most {MAX_LAUNCH_STEP_BYTES}")
    try:
        found = json.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise StepRefused(RejectReason.INVALID_UTF8, str(error)) from error
    except (ValueError, RecursionError) as error:
        raise StepRefused(RejectReason.BAD_JSON, str(error)) from error
    if not isinstance(found, dict):
        raise StepRefused(RejectReason.BAD_JSON, f"a JSON object was expected, not {type(found).__name__}")
    return found


def _mismatch(name: str, value: Any, expected: str) -> StepRefused:
    return StepRefused(RejectReason.SCHEMA_MISMATCH, f"{name} is {str(value)[:80]!r}; {expected} was expected")


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _mismatch(name, value, "text")
    if any("\ud800" <= each <= "\udfff" for each in value):
        raise StepRefused(RejectReason.INVALID_UTF8, f"{name} holds half a character")
    return value


def _whole(name: str, value: Any) -> int:
    if type(value) is not int:
        raise _mismatch(name, value, "a whole number")
    if not 0 <= value <= _MAX_INT64:
        raise StepRefused(RejectReason.OUT_OF_RANGE, f"{name} is {value}")
    return value


def _number(name: str, value: Any) -> float:
    if type(value) not in (int, float):
        raise _mismatch(name, value, "a number")
    if not (0 <= value < MAX_NUMBER and math.isfinite(value)):
        raise StepRefused(RejectReason.OUT_OF_RANGE, f"{name} is {str(value)[:40]}")
    return float(value)


def _flag(name: str, value: Any) -> bool:
    if type(value) is not bool:
        raise _mismatch(name, value, "true or false")
    return value


def _instant(name: str, value: Any) -> datetime:
    try:
        instant = datetime.fromisoformat(value)
    except (TypeError, ValueError) as error:
        raise _mismatch(name, value, "an instant like 2026-12-01T05:00:00Z") from error
    if instant.tzinfo is None:
        raise _mismatch(name, value, "an instant with its zone, like 2026-12-01T05:00:00Z")
    if not EARLIEST <= instant < LATEST:
        raise StepRefused(RejectReason.OUT_OF_RANGE, f"{name} is {instant.isoformat()}")
    return instant.astimezone(UTC)


def _run_ids(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_RUN_IDS_PER_RENTAL:
        raise _mismatch(name, value, "a list of run ids")
    if len(set(map(str, value))) < len(value) or not all(isinstance(e, str) and _RUN_ID.fullmatch(e) for e in value):
        raise _mismatch(name, value, "a list of different UUIDv7")
    return tuple(value)


def _one_of(words: frozenset[str]) -> Callable[[str, Any], str]:
    def parse(name: str, value: Any) -> str:
        if value not in words:
            raise _mismatch(name, value, " or ".join(sorted(words)))
        return str(value)

    return parse


FIELDS: dict[str, dict[str, Callable[[str, Any], Any]]] = {
    "granted": {
        "run_ids": _run_ids,
        "granted_at": _instant,
        "expires_at": _instant,
        "marketplace": _text,
        "offer_id": _whole,
        "machine_id": _whole,
        "host_id": _whole,
        "gpu_model": _text,
        "num_gpus": _whole,
        "gpu_frac": _number,
        "geolocation": _text,
        "rental_kind": _one_of(RENTAL_KINDS),
        "price_usd_per_hour": _number,
        "usd_per_proof": _number,
        "min_rate_proofs_per_hour": _number,
        "is_simulated": _flag,
        "note": _text,
    },
    "rented": {"instance_id": _whole, "instance_label": _text, "rented_at": _instant},
    "ended": {"fate": _one_of(FATES), "at": _instant, "reason": _text},
}
REQUIRED = {
    "granted": ("run_ids", "granted_at", "expires_at"),
    "rented": ("rented_at",),
    "ended": ("fate", "at"),
}
