"""What the harvest decides by: the numbers of `data/policy.toml`, checked. Pure; whoever calls reads the file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from harvest.errors import PolicyError

NEXT = "Nothing was changed; correct the policy file (the shipped data/policy.toml explains each key) and run again."


@dataclass(frozen=True, slots=True)
class Policy:
    """Every number that decides. Meaning, unit and source of each stand in `data/policy.toml`."""

    vanished_after_s: float
    never_started_after_s: float
    harvest_interval_s: float
    usd_per_proof: float
    min_run_count: int
    slow_rate_ratio: float
    bad_rate_ratio: float
    bad_failure_count: int
    weak_cohort_machine_count: int
    listing_days: float
    kept_generation_count: int


KEYS = {field.name: field.type for field in fields(Policy)}
RANGES = {"bad_failure_count": (2, 100), "listing_days": (0, 36_500)}
"""Smallest and largest value of a key, where it is not the usual range. One failure alone never lists a machine."""
USUAL_RANGE = (0, 1_000_000_000)
"""Wide enough for every other key; instants worked out with it stay within what a date can hold."""


def parse_policy(text: str) -> Policy:
    """Return the policy that the TOML text holds; every key is needed and no other is known.

    Raises:
        PolicyError: the text is not TOML, or a key is missing, unknown or out of its range; it is named.
    """
    found = _toml(text)
    _check_keys(found)
    policy = Policy(**{name: _number(name, found[name]) for name in KEYS})
    if not policy.bad_rate_ratio < policy.slow_rate_ratio < 1:
        raise PolicyError(
            f"policy: bad_rate_ratio is {policy.bad_rate_ratio} and slow_rate_ratio {policy.slow_rate_ratio}; "
            f"bad_rate_ratio < slow_rate_ratio < 1 was expected. {NEXT}"
        )
    return policy


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError, or a number of too many digits
        raise PolicyError(f"policy: the text is not TOML: {error}. {NEXT}") from error


def _check_keys(found: Mapping[str, Any]) -> None:
    unknown = sorted(found.keys() - KEYS.keys())
    missing = sorted(KEYS.keys() - found.keys())
    if unknown or missing:
        problems = [f"unknown key {name!r}" for name in unknown] + [f"missing key {name!r}" for name in missing]
        raise PolicyError(f"policy: {', '.join(problems)}. {NEXT}")


def _number(name: str, value: Any) -> Any:
    """Return the value as its field's type; a truth value is no number, and nothing may be 0, NaN or infinite."""
    is_count = KEYS[name] == "int"
    least, most = RANGES.get(name, USUAL_RANGE)
    has_kind = isinstance(value, int if is_count else (int, float)) and not isinstance(value, bool)
    if not has_kind or not least <= value <= most or value == 0:
        wanted = f"a {'whole ' if is_count else ''}number above 0, {least} to {most},"
        raise PolicyError(f"policy: {name} is {value!r}; {wanted} was expected. {NEXT}")
    return value if is_count else float(value)
