"""Data that the programs ship: signatures, causes, policy, plans, a sample. A package, so that a wheel carries it."""

from pathlib import Path

FOLDER = Path(__file__).parent
