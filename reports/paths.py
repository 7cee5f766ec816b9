"""The address of every page. An address is made of ids alone, so that a link in a ticket lives for ever.

Addresses are relative to the site's root; a template puts the way to the root in front.
"""

from __future__ import annotations

import re

from bench.keys import run_date
from reports.errors import DataUnreadable

OVERVIEW = "index.html"
BAD_MACHINES = "bad-machines.html"
MACHINES = "machines/index.html"
FAILURES = "failures/index.html"
RUNS = "runs/index.html"
DATA = "data.html"
CAUSES = "causes.html"
FILES = "files"
STATIC = "static"
_RUN_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HEX = re.compile(r"[0-9a-f]{1,64}")


def run_page(run_id: str) -> str:
    """Return the address of a run's page. Raises DataUnreadable where the id could not be a file's name."""
    return f"runs/{run_date(_safe(run_id, _RUN_ID, 'run_id'))}/{run_id}.html"


def day_page(date: str) -> str:
    """Return the address of the page with all runs of one date (YYYY-MM-DD)."""
    return f"runs/{date}/index.html"


def machine_page(machine_id: int) -> str:
    """Return the address of a machine's page; 256 folders keep each one small."""
    return f"machines/{machine_id % 256}/{machine_id}.html"


def failure_page(fingerprint_id: str) -> str:
    """Return the address of a fingerprint's page."""
    return f"failures/{_safe(fingerprint_id, _HEX, 'fingerprint_id')}.html"


def cause_anchor(kind: str, slug: str) -> str:
    """Return the address of the paragraph that explains a word of the verdict."""
    return f"{CAUSES}#{kind}-{anchor(slug)}"


def anchor(text: str) -> str:
    """Return a text as part of an element's id: only small letters, digits, `_` and `-`."""
    return re.sub(r"[^a-z0-9_]", "-", text.lower())


def way_to_root(page: str) -> str:
    """Return what leads from a page's folder to the site's root: empty, `../` or `../../`."""
    return "../" * page.count("/")


def _safe(id_: str, shape: re.Pattern[str], column: str) -> str:
    if not shape.fullmatch(id_):
        raise DataUnreadable(f"{column} {id_[:80]!r} is not an id. The old site is kept; run the harvest again.")
    return id_
