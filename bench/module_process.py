"""A module of ours in a Python of its own, for what may hang or crash without hurting the run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_PACKAGE_PARENT = Path(__file__).resolve().parent.parent
_KILL_WAIT_S = 2.0


def start_module(
    module: str, arguments: Sequence[str], output_descriptor: int, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start `python -m module`; both outputs go to the descriptor, never through a pipe of ours.

    Args:
        environment: all its variables; null means ours.

    Raises:
        OSError: the kernel did not start it.
    """
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        # `-m` looks in the working folder first, and an operator's folder may well hold a `bench` of its own.
        cwd=_PACKAGE_PARENT,
        stdin=subprocess.DEVNULL,
        stdout=output_descriptor,
        stderr=output_descriptor,
        env=None if environment is None else dict(environment),
        start_new_session=True,  # Ctrl-C at the terminal is for the runner, which then stops what it started
    )


def end_process(process: subprocess.Popen[bytes]) -> bool:
    """Kill the process; return whether it is gone. One that hangs inside the kernel is left behind, not waited for."""
    process.kill()
    try:
        process.wait(_KILL_WAIT_S)
    except subprocess.TimeoutExpired:
        return False
    return True
