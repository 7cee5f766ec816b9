"""What the harvest accepts at most, beside the limits of `bench.keys` that both sides share."""

from __future__ import annotations

from datetime import UTC, datetime

EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
LATEST = datetime(2100, 1, 1, tzinfo=UTC)
"""An instant outside of these two is a broken clock or a forgery; far outside, it is not even a datetime."""

MAX_LAUNCH_STEP_BYTES = 64 * 2**10
MAX_RUN_IDS_PER_RENTAL = 16
MAX_NUMBER = 1e15

MAX_ROW_COUNT = 10_000_000
"""Rows in one object: a log part holds 8 MiB of raw bytes, and a line is one byte at least."""
MAX_COLUMN_COUNT = 500
MAX_ROW_GROUP_COUNT = 1_000
MAX_FOOTER_BYTES = 16 * 2**20
MAX_SCHEMA_DEPTH = 20
"""Footers say little about the size of what they describe, so that counts are capped, and bytes after reading."""

MAX_TABLE_BYTES = 2**30
"""One object's rows in memory."""

MAX_RUNNER_EVENT_COUNT = 100_000
MAX_DETAIL_CHARACTERS = 500
