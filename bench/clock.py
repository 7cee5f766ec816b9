"""The runner's clock as text."""

from __future__ import annotations

from datetime import datetime, timezone


def utc_now_text() -> str:
    """Return the present instant as RFC 3339 text, UTC, with microseconds."""
    return datetime.now(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")
