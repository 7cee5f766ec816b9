"""One harvest at a time in a data folder: a lock that the kernel frees at its holder's death."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from harvest.errors import DataBusy, DataUnwritable

LOCK_NAME = ".lock"


@contextmanager
def data_lock(folder: Path, now: datetime) -> Iterator[None]:
    """Hold the folder's lock, which names this process; the folder is made where it is not there.

    Raises:
        DataBusy: another harvest holds it; it is named.
        DataUnwritable: the folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise DataUnwritable(
            f"data folder {folder} cannot be written: {error.strerror}. Nothing was changed; "
            "give another --data, or the folder's rights."
        ) from error
    try:
        _take(descriptor, folder)
        _write_holder(descriptor, now)
        yield
    finally:
        os.close(descriptor)  # frees the lock; the file stays, since removing it would let two hold it


def _take(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DataBusy(
            f"data folder {folder} is being written by another harvest ({_holder(descriptor)}). Nothing was changed; "
            "run again when it is done."
        ) from None


def _write_holder(descriptor: int, now: datetime) -> None:
    holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": now.isoformat(timespec="seconds")}
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(holder).encode() + b"\n", 0)


def _holder(descriptor: int) -> str:
    try:
        holder = json.loads(os.pread(descriptor, 4096, 0))
        return f"pid {holder['pid']} on {holder['host']} since {holder['since']}"
    except (ValueError, TypeError, KeyError):  # between its lock and its first write
        return "it has just begun"
