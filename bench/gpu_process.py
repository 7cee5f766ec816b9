"""The process that asks NVML, so that a library which hangs or crashes hurts nothing else.

`python -m bench.gpu_process describe` prints one JSON object: the opening's columns about GPUs. `... sample` prints
one JSON line for each GPU and interval (columns of `telemetry`) until it is killed or its parent is gone. Where
there is no NVML either prints `{"no_nvml": reason}` and ends with 0.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

NO_NVML = "no_nvml"
MODULE = "bench.gpu_process"
_PARENT_LOOK_S = 1.0


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}")
    parser.add_argument("task", choices=("describe", "sample"))
    parser.add_argument("--interval-s", type=float, default=1.0)
    parser.add_argument("--parent-pid", type=int, default=os.getppid(), help="end when this process is gone")
    options = parser.parse_args(argv)
    end_with_parent(options.parent_pid)
    try:
        from bench import nvml  # here, not above: the one-file runner has no pynvml
    except ImportError as error:
        print_row({NO_NVML: f"pynvml cannot be imported: {error}"})
        return 0
    try:
        nvml.start_nvml()
        if options.task == "describe":
            print_row(nvml.describe_gpus())
        else:
            _sample(options.interval_s)
    except nvml.NvmlError as error:
        print_row({NO_NVML: f"NVML: {error}"})
    return 0


def _sample(interval_s: float) -> None:
    """Print samples for ever, one interval apart by the monotonic clock; what was missed is not made up for."""
    from bench import nvml

    handles = nvml.gpu_handles()
    xids = nvml.XidWatch(handles)
    next_at_s = time.monotonic()
    while True:
        newest_xid = xids.newest()
        for index, handle in handles.items():
            sampled_at = datetime.now(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")
            row = {"sampled_at": sampled_at, "gpu_index": index, "xid": newest_xid.get(index)}
            print_row({**row, **nvml.gpu_sample(handle)})
        now_s = time.monotonic()
        next_at_s = max(next_at_s + interval_s, now_s)
        time.sleep(next_at_s - now_s)


def print_row(row: Mapping[str, Any]) -> None:
    """Write one line by one call, so that a kill leaves whole lines."""
    os.write(sys.stdout.fileno(), json.dumps(row, allow_nan=False).encode() + b"\n")


def end_with_parent(parent_pid: int) -> None:
    """End this process soon after its parent did, also while NVML hangs (ctypes lets other threads run).

    The kernel's own death signal (PR_SET_PDEATHSIG) is no use here: it comes when the parent's thread ends.
    """

    def watch() -> None:
        while os.getppid() == parent_pid:
            time.sleep(_PARENT_LOOK_S)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    sys.exit(main())
