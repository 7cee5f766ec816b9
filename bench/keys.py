"""Names in the store: run ids, the keys of a bundle's objects, of launch records, and their limits. Pure."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from datetime import datetime, timezone

MAX_OBJECT_COUNT = 20_000
MAX_OBJECT_BYTES = 256 * 2**20
MAX_STORED_BYTES = 2 * 2**30
MAX_RAW_BYTES = 10 * 2**30
PART_RAW_BYTES = 8 * 2**20
MAX_LINE_BYTES = 64 * 2**10

BUNDLES_PREFIX = "bundles/v1/"
LAUNCHES_PREFIX = "launches/v1/"
PART_TABLES = ("logs", "telemetry")
WHOLE_TABLES = ("opening", "stages", "proofs", "closing-partial", "closing")
LAUNCH_STEPS = ("granted", "rented", "ended")

_UUID7 = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_PART = r"(?P<part_table>logs|telemetry)-(?P<part>[0-9]{5})"
_WHOLE = r"(?P<table>opening|stages|proofs|closing-partial|closing)"
BUNDLE_KEY = re.compile(rf"bundles/v1/(?P<date>{_DATE})/(?P<run_id>{_UUID7})/(?:{_PART}|{_WHOLE})\.parquet")
LAUNCH_KEY = re.compile(rf"launches/v1/(?P<date>{_DATE})/(?P<rental_id>{_UUID7})\.(?P<step>granted|rented|ended)\.json")


@dataclass(frozen=True)
class ObjectName:
    """What a bundle's key says: whose object it is, of which table, and which part (null for a whole table)."""

    run_id: str
    table: str
    part: int | None


def make_run_id(unix_ms: int, random_bits: int) -> str:
    """Return the UUIDv7 of an instant (milliseconds since 1970, UTC) and 74 random bits (more are cut off)."""
    value = (unix_ms & (2**48 - 1)) << 80
    value |= 0x7 << 76 | (random_bits >> 62 & 0xFFF) << 64
    value |= 0b10 << 62 | random_bits & (2**62 - 1)
    return str(uuid.UUID(int=value))


def run_time(run_id: str) -> datetime:
    """Return the UTC instant in a run id or rental id: when the id was made."""
    unix_ms = uuid.UUID(run_id).int >> 80
    return datetime.fromtimestamp(unix_ms / 1000, timezone.utc)


def run_date(run_id: str) -> str:
    """Return the date (YYYY-MM-DD, UTC) under which everything of this run is filed."""
    return run_time(run_id).strftime("%Y-%m-%d")


def bundle_prefix(run_id: str) -> str:
    """Return the folder of a run's bundle, with a slash at its end."""
    return f"{BUNDLES_PREFIX}{run_date(run_id)}/{run_id}/"


def object_key(run_id: str, table: str, part: int | None = None) -> str:
    """Return the key of one object: `part` is its number for `logs` and `telemetry`, null for the others."""
    name = table if part is None else f"{table}-{part:05d}"
    return f"{bundle_prefix(run_id)}{name}.parquet"


def launch_key(rental_id: str, step: str) -> str:
    """Return the key of one step (`granted`, `rented`, `ended`) of a rental's launch record."""
    return f"{LAUNCHES_PREFIX}{run_date(rental_id)}/{rental_id}.{step}.json"


def parse_bundle_key(key: str) -> ObjectName | None:
    """Return what a key names, or null where it is not exactly a key that `object_key` would give."""
    match = BUNDLE_KEY.fullmatch(key)
    if match is None or not _is_filed_right(match["date"], match["run_id"]):
        return None
    part = int(match["part"]) if match["part"] is not None else None
    return ObjectName(match["run_id"], match["table"] or match["part_table"], part)


def parse_launch_key(key: str) -> tuple[str, str] | None:
    """Return (rental_id, step) of a launch record's key, or null where it is not one."""
    match = LAUNCH_KEY.fullmatch(key)
    if match is None or not _is_filed_right(match["date"], match["rental_id"]):
        return None
    return match["rental_id"], match["step"]


def _is_filed_right(date: str, id_: str) -> bool:
    try:
        return date == run_date(id_)
    except (ValueError, OverflowError):  # an id whose time is past the year 9999
        return False
