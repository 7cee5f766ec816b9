"""The run's folder on the instance: a file for each stream, the journal of what was captured, the sealed parts."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench.errors import SpoolError

DEFAULT_BASE = "/var/lib/lastwords"


class Spool:
    """The folder of one run. Streams are opened once and read by that descriptor, so that a removed folder loses none.

    Raises:
        SpoolError: the folder cannot be made.
    """

    def __init__(self, base: Path, run_id: str) -> None:
        self.folder = base / run_id
        self.run_folder = self.folder / "run"
        self.parts_folder = self.folder / "parts"
        try:
            for folder in (self.folder / "streams", self.run_folder, self.parts_folder):
                folder.mkdir(parents=True, exist_ok=True)
            self._journal = os.open(self.folder / "journal.jsonl", _APPEND, 0o600)
        except OSError as error:
            raise SpoolError(
                f"the run's folder {self.folder} cannot be made: {error.strerror}. Nothing was started; "
                "free the disk, or name another folder with --spool."
            ) from error

    def stream_path(self, stream: str) -> Path:
        """Return where a stream's bytes lie."""
        return self.folder / "streams" / quote(stream, safe="")

    def open_stream(self, stream: str) -> int:
        """Return a new O_APPEND descriptor of the stream's file. Raises OSError."""
        return os.open(self.stream_path(stream), _APPEND, 0o600)

    def note(self, record: Mapping[str, Any]) -> None:
        """Append one record to the journal, by one call."""
        os.write(self._journal, json.dumps(record).encode() + b"\n")

    def close(self) -> None:
        os.close(self._journal)


_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


def default_base(environment: Mapping[str, str]) -> Path:
    """Return where spools lie unless `--spool` says otherwise: not under /tmp, which images wipe."""
    if os.access(Path(DEFAULT_BASE).parent, os.W_OK):
        return Path(DEFAULT_BASE)
    return Path(environment.get("HOME") or "/root") / ".lastwords"
