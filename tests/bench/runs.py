"""`bench run` as a program, in folders of a test, and what it left."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.inspect import Bundle, read_bundle

SECONDS = 60


@dataclass(frozen=True)
class Ran:
    """A finished `bench run`: its code, its words, and the bundle in its store."""

    exit_code: int
    out: str
    err: str
    store: Path

    @property
    def bundle(self) -> Bundle:
        return read_bundle(f"file://{self.store}")

    @property
    def stages(self) -> dict[str, dict[str, Any]]:
        return {row["stage"]: row for row in self.bundle.rows("stages")}

    @property
    def closing(self) -> dict[str, Any]:
        return self.bundle.rows("closing")[0]

    def stream(self, name: str) -> bytes:
        return b"".join(self.bundle.stream(name))


def run_arguments(folder: Path, *arguments: str) -> list[str]:
    """Return the command line of a run that keeps everything below the folder."""
    places = ["--store", f"file://{folder / 'store'}", "--spool", str(folder / "spool")]
    return [sys.executable, "-m", "bench", "run", *places, *arguments]


def bench_run(folder: Path, *arguments: str, environment: dict[str, str] | None = None) -> Ran:
    """Run it to its end."""
    done = subprocess.run(
        run_arguments(folder, *arguments),
        cwd=folder,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr, folder / "store")
