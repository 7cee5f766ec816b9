"""The only place where numbers, times and ids become text.

Each function takes a value or null; null becomes words that say so, never a zero. Units are written out or
are the usual short ones. Binary multiples are named as such (GiB).
"""

from __future__ import annotations

from datetime import datetime

NOT_MEASURED = "not measured"
NOT_KNOWN = "not known"
_BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def usd(value: float | None) -> str:
    """Return dollars: cents from a dollar on, three decimals below, so that a short run's cost is seen.

    >>> usd(0.0512), usd(12.3), usd(0.0), usd(None)
    ('$0.051', '$12.30', '$0', 'not known')
    """
    if value is None:
        return NOT_KNOWN
    if value == 0:
        return "$0"
    return f"${value:,.2f}" if abs(value) >= 1 else f"${value:.3f}"


def usd_per_hour(value: float | None) -> str:
    """Return a price, e.g. `$0.296/h`."""
    return NOT_KNOWN if value is None else f"${value:,.3f}/h"


def usd_per_proof(value: float | None) -> str:
    """Return what one proof costs or earns, with three to five decimals: `$0.008`, `$0.0074`."""
    if value is None:
        return NOT_KNOWN
    whole, _, decimals = f"{value:.5f}".rstrip("0").partition(".")
    return f"${whole}.{decimals:0<3}"


def rate(value: float | None) -> str:
    """Return a rate with its unit; a rate that was not measured is said in words."""
    return NOT_MEASURED if value is None else f"{plain_rate(value)} proofs/h"


def plain_rate(value: float) -> str:
    """Return a rate without its unit, for sums that are written out: `37.0`; below 1 three decimals."""
    return f"{value:,.1f}" if value >= 1 else f"{value:.3f}"


def ratio(value: float | None) -> str:
    """Return a quotient as a multiple: `0.83 x`."""
    return NOT_MEASURED if value is None else f"{value:.2f} ×"


def interval(low: float | None, high: float | None) -> str:
    """Return an interval's two ends, or nothing where there is none."""
    return "" if low is None or high is None else f"{low:.2f} to {high:.2f}"


def share(part: int, whole: int) -> str:
    """Return a part of a whole with both counts beside the percentage: `3 of 12 (25 %)`; `0 of 0` has none.

    >>> share(3, 12), share(0, 0), share(1, 1000)
    ('3 of 12 (25 %)', '0 of 0', '1 of 1,000 (0.1 %)')
    """
    counts = f"{count(part)} of {count(whole)}"
    return f"{counts} ({percent(part / whole)})" if whole else counts


def percent(value: float) -> str:
    """Return a share as a percentage, rounded so that neither 0 % nor 100 % is claimed falsely."""
    hundredfold = value * 100
    text = f"{hundredfold:.0f}"
    if (text == "0" and value > 0) or (text == "100" and value < 1):
        text = f"{hundredfold:.1f}"
    return f"{text} %"


def count(value: int | None) -> str:
    """Return a count with thousands marked."""
    return NOT_KNOWN if value is None else f"{value:,}"


def counted(value: int, one: str, many: str = "") -> str:
    """Return a count with its noun: `1 run`, `12 runs`."""
    return f"{value:,} {one if value == 1 else many or one + 's'}"


def bytes_text(value: int | None) -> str:
    """Return a size in the binary unit that keeps three digits: `503.7 GiB`."""
    if value is None:
        return NOT_KNOWN
    size, unit = float(value), 0
    while abs(size) >= 1024 and unit < len(_BYTE_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:,.0f} {_BYTE_UNITS[unit]}" if unit == 0 or size >= 1000 else f"{size:.1f} {_BYTE_UNITS[unit]}"


def duration(seconds: float | None) -> str:
    """Return a time span in its two largest units.

    >>> duration(620.4), duration(7260), duration(3.21), duration(0.0042), duration(90061)
    ('10 min 20 s', '2 h 1 min', '3.2 s', '4 ms', '1 d 1 h')
    """
    if seconds is None:
        return NOT_MEASURED
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, unit, small_size, small_unit in ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // small_size
            return f"{whole // size} {unit}" + (f" {rest} {small_unit}" if rest else "")
    return f"{whole} s"


def instant(value: datetime | None) -> str:
    """Return a time to the second, always in UTC and saying so."""
    return NOT_KNOWN if value is None else f"{value:%Y-%m-%d %H:%M:%S} UTC"


def minute(value: datetime | None) -> str:
    """Return a time to the minute, for tables whose heading says UTC."""
    return NOT_KNOWN if value is None else f"{value:%Y-%m-%d %H:%M}"


def clock(value: datetime | None) -> str:
    """Return the time of day to the tenth of a second; empty where it is not known."""
    return "" if value is None else f"{value:%H:%M:%S}.{value.microsecond // 100_000}"


def rfc3339(value: datetime | None) -> str:
    """Return a time for machines (`datetime` attributes, charts); empty where it is not known."""
    return "" if value is None else f"{value:%Y-%m-%dT%H:%M:%SZ}"


def words(slug: str | None) -> str:
    """Return a word of a vocabulary for people: `cuda_illegal_access` becomes `cuda illegal access`."""
    return NOT_KNOWN if not slug else slug.replace("_", " ")


def short_run_id(run_id: str) -> str:
    """Return the end of a run id, which tells runs apart; its beginning is only the time."""
    return run_id[-12:]


def gpus_text(model: str | None, number: int | None) -> str:
    """Return the GPUs as people say it: `2x RTX PRO 4000`; the maker's name is left out."""
    if not model:
        return "GPU not known"
    short = model.removeprefix("NVIDIA ").removeprefix("GeForce ")
    return f"{number}x {short}" if number else short
