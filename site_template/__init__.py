"""Templates and static files of the site. A package, so that a wheel carries it."""

from pathlib import Path

FOLDER = Path(__file__).parent
STATIC = FOLDER / "static"
