"""Who runs here and at what price: from flags and from what the marketplace put into the environment. Pure.

vast.ai gives an instance CONTAINER_ID, VAST_CONTAINERLABEL (`C.<id>`), CONTAINER_API_KEY, PUBLIC_IPADDR and
GPU_COUNT; the machine's own id is not among them. What each source said is kept as a claim. Where two sources
disagree the first one holds, and both claims stand: a contradiction is recorded, not resolved.
"""

from __future__ import annotations

import math
import re
from argparse import ArgumentTypeError
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bench.contract import DEFAULT_USD_PER_PROOF
from bench.redact import address_hash

# GPU_COUNT alone is anybody's variable: it says nothing about the marketplace.
_VAST_MARKS = ("CONTAINER_ID", "VAST_CONTAINERLABEL", "CONTAINER_API_KEY", "PUBLIC_IPADDR")
_LABEL = re.compile(r"C\.(\d{1,19})", re.ASCII)
_INT64_MAX = 2**63 - 1
_INT32_MAX = 2**31 - 1
_LONGEST_CLAIM = 200


class FlagRefused(ValueError, ArgumentTypeError):
    """A flag's text cannot be used. Also an ArgumentTypeError: argparse drops the text of a bare ValueError."""


@dataclass(frozen=True)
class IdentityFlags:
    """What the command line says; null where a flag was not given."""

    machine_id: int | None = None
    price_usd_per_hour: float | None = None
    usd_per_proof: float | None = None
    min_rate_proofs_per_hour: float | None = None


@dataclass(frozen=True)
class Claim:
    """One source's word on one column of the opening. `source` is `flag` or `env:<variable>`."""

    field: str
    source: str
    value: str


@dataclass(frozen=True)
class Identity:
    """Columns of the opening, named as there; null where nobody knows."""

    marketplace: str
    instance_id: int | None
    machine_id: int | None
    machine_id_source: str | None
    instance_label: str | None
    public_ip_hash: str | None
    num_gpus_rented: int | None
    price_usd_per_hour: float | None
    usd_per_proof: float
    min_rate_proofs_per_hour: float | None
    min_rate_source: str | None
    host_id: int | None = None
    geolocation: str | None = None
    identity_claims: tuple[Claim, ...] = ()

    def as_row(self) -> dict[str, Any]:
        """Return the columns by name, ready for the opening."""
        row = asdict(self)
        return {**row, "identity_claims": list(row["identity_claims"])}


def work_out_identity(flags: IdentityFlags, environment: Mapping[str, str], address_key: bytes) -> Identity:
    """Return the identity and the price of this run. A variable that makes no sense gives null and a claim.

    Args:
        address_key: key of the hash that stands for the public address; the address itself is not kept.
    """
    said = {name: text.strip() for name, text in environment.items() if text.strip()}
    label = _label(said.get("VAST_CONTAINERLABEL"))
    usd_per_proof = DEFAULT_USD_PER_PROOF if flags.usd_per_proof is None else flags.usd_per_proof
    min_rate, min_rate_source = _min_rate(flags, usd_per_proof)
    return Identity(
        marketplace="vast.ai" if any(name in said for name in _VAST_MARKS) else "local",
        instance_id=_first(_whole(said.get("CONTAINER_ID"), _INT64_MAX), _id_of_label(label)),
        machine_id=flags.machine_id,
        machine_id_source=None if flags.machine_id is None else "flag",
        instance_label=label,
        public_ip_hash=address_hash(said.get("PUBLIC_IPADDR", ""), address_key),
        num_gpus_rented=_whole(said.get("GPU_COUNT"), _INT32_MAX),
        price_usd_per_hour=flags.price_usd_per_hour,
        usd_per_proof=usd_per_proof,
        min_rate_proofs_per_hour=min_rate,
        min_rate_source=min_rate_source,
        identity_claims=(*_flag_claims(flags), *_environment_claims(said, address_key)),
    )


def positive_number(text: str) -> float:
    """Return the number above 0 that a flag gives.

    Raises:
        FlagRefused (a ValueError): no number, or NaN, infinite, zero or negative.
    """
    try:
        number = float(text)
    except ValueError:
        raise FlagRefused(f"{text!r} is not a number, as in 0.296") from None
    if not math.isfinite(number) or number <= 0:
        raise FlagRefused(f"{text!r} is not a number above 0, as in 0.296")
    return number


def marketplace_id(text: str) -> int:
    """Return the id that a flag gives: a whole number that fits 63 bits.

    Raises:
        FlagRefused (a ValueError): anything else.
    """
    number = _whole(text.strip(), _INT64_MAX)
    if number is None:
        raise FlagRefused(f"{text!r} is not a marketplace's id: a whole number, as in 4242")
    return number


def _min_rate(flags: IdentityFlags, usd_per_proof: float) -> tuple[float | None, str | None]:
    if flags.min_rate_proofs_per_hour is not None:
        return flags.min_rate_proofs_per_hour, "flag"
    if flags.price_usd_per_hour is None:
        return None, None
    min_rate = flags.price_usd_per_hour / usd_per_proof
    return (min_rate, "price") if math.isfinite(min_rate) else (None, None)


def _flag_claims(flags: IdentityFlags) -> list[Claim]:
    return [Claim(name, "flag", str(value)) for name, value in asdict(flags).items() if value is not None]


def _environment_claims(said: Mapping[str, str], address_key: bytes) -> list[Claim]:
    """What each variable said, sense or not; the address as its hash, since its text may never leave."""
    claims = []
    if container := said.get("CONTAINER_ID"):
        claims.append(_claim("instance_id", "CONTAINER_ID", container))
    if label := said.get("VAST_CONTAINERLABEL"):
        claims.append(_claim("instance_label", "VAST_CONTAINERLABEL", label))
        if instance_id := _id_of_label(_label(label)):
            claims.append(_claim("instance_id", "VAST_CONTAINERLABEL", str(instance_id)))
    if address := said.get("PUBLIC_IPADDR"):
        text = address_hash(address, address_key) or f"not an address ({len(address)} characters)"
        claims.append(_claim("public_ip_hash", "PUBLIC_IPADDR", text))
    if gpu_count := said.get("GPU_COUNT"):
        claims.append(_claim("num_gpus_rented", "GPU_COUNT", gpu_count))
    return claims


def _claim(name: str, variable: str, text: str) -> Claim:
    """A variable may hold any bytes: what UTF-8 cannot carry is written as an escape."""
    storable = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return Claim(name, f"env:{variable}", storable[:_LONGEST_CLAIM])


def _label(text: str | None) -> str | None:
    return text if text is not None and _LABEL.fullmatch(text) else None


def _id_of_label(label: str | None) -> int | None:
    return None if label is None else _whole(label[2:], _INT64_MAX)


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _whole(text: str | None, largest: int) -> int | None:
    """Digits only: int() would also take `1_000`, ` +7` and other alphabets' digits."""
    if text is None or not (text.isascii() and text.isdigit()) or len(text) > 19:
        return None
    number = int(text)
    return number if number <= largest else None
