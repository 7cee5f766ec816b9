"""Builds the library with made-up GPUs (tests/fakes/nvml) and gives the environment in which pynvml finds it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_SOURCE = Path(__file__).parent.parent / "fakes" / "nvml" / "nvml_stub.c"


def build_fake_nvml(folder: Path) -> Path:
    """Compile the library into the folder and return the folder. Needs a C compiler, `cc`."""
    library = folder / "libnvidia-ml.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", str(library), str(_SOURCE)], check=True)
    return folder


def environment_with(folder: Path, behaviour: str) -> dict[str, str]:
    """Return our environment, with the library in `folder` behaving as named in its source."""
    return {**os.environ, "LD_LIBRARY_PATH": str(folder), "FAKE_NVML": behaviour}
