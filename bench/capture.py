"""Streams -> chunks of whole lines, tick by tick; followed files are copied into the spool first."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.lines import Line, complete_length, split_lines
from bench.spool import Spool

READ_BYTES = 4 * 2**20


@dataclass(frozen=True)
class Chunk:
    """Bytes `start` to `end` of a stream, captured at one tick; its rows are numbered from `first_seq`."""

    stream: str
    start: int
    end: int
    at: str
    first_seq: int
    is_cut: bool
    path: str


@dataclass
class CapturedStream:
    """One stream as far as it was captured. Not frozen: it grows."""

    name: str
    path: str
    descriptor: int
    captured_bytes: int = 0
    line_count: int = 0
    redaction_count: int = 0
    last_output_at: str | None = None
    follower: Follower | None = None
    digest: Any = field(default_factory=hashlib.sha256)

    def as_row(self) -> dict[str, Any]:
        """Return its entry in `closing.streams`."""
        return {
            "stream": self.name,
            "path": str(self.follower.source) if self.follower else None,
            "raw_bytes": self.captured_bytes,
            "raw_sha256": self.digest.hexdigest(),
            "line_count": self.line_count,
            "redaction_count": self.redaction_count,
            "lost_bytes": 0,
            "truncation_count": self.follower.truncation_count if self.follower else 0,
            "rotation_count": self.follower.rotation_count if self.follower else 0,
            "duplicate_of": None,
        }


class Follower:
    """Copies what somebody else appends to a file, also when it appears late, is truncated or is replaced."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self.truncation_count = 0
        self.rotation_count = 0
        self._descriptor = -1
        self._copied_bytes = 0

    @property
    def is_found(self) -> bool:
        return self._descriptor >= 0

    def copy_news(self, target: int) -> None:
        """Append the file's new bytes to the target descriptor. An unreadable file has no news."""
        try:
            self._open()
            self._drain(target)
            if self._is_replaced():
                self._drain(target)
                os.close(self._descriptor)
                self._descriptor, self._copied_bytes = -1, 0
                self.rotation_count += 1
                self._open()
                self._drain(target)
        except FileNotFoundError:
            return

    def _open(self) -> None:
        if self._descriptor < 0:
            self._descriptor = os.open(self.source, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)

    def _drain(self, target: int) -> None:
        if os.fstat(self._descriptor).st_size < self._copied_bytes:
            self.truncation_count += 1
            self._copied_bytes = 0
        while news := os.pread(self._descriptor, READ_BYTES, self._copied_bytes):
            self._copied_bytes += len(news)
            _write_all(target, news)

    def _is_replaced(self) -> bool:
        ours, there = os.fstat(self._descriptor), self.source.stat()
        return (ours.st_dev, ours.st_ino) != (there.st_dev, there.st_ino)


class Capture:
    """All streams of a run: numbers their lines in the order captured, and notes each chunk in the journal."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self.streams: dict[str, CapturedStream] = {}
        self.next_seq = 0

    @property
    def log_bytes(self) -> int:
        return sum(stream.captured_bytes for stream in self.streams.values())

    def add(self, name: str, source: Path | None = None) -> int:
        """Begin to capture a stream; return the descriptor to write to. A name that is there goes on."""
        if name not in self.streams:
            descriptor = self._spool.open_stream(name)
            follower = None if source is None else Follower(source)
            path = str(self._spool.stream_path(name))
            self.streams[name] = CapturedStream(name, path, descriptor, follower=follower)
        return self.streams[name].descriptor

    def tick(self, at: str, *, is_end: bool = False) -> list[tuple[Chunk, list[Line]]]:
        """Return what became complete since the last tick, stream by stream."""
        found: list[tuple[Chunk, list[Line]]] = []
        for stream in list(self.streams.values()):
            if stream.follower is not None:
                stream.follower.copy_news(stream.descriptor)
            while (chunk := self._next_chunk(stream, at, is_end)) is not None:
                found.append(chunk)
        return found

    def close(self) -> None:
        for stream in self.streams.values():
            os.close(stream.descriptor)

    def _next_chunk(self, stream: CapturedStream, at: str, is_end: bool) -> tuple[Chunk, list[Line]] | None:
        pending = os.pread(stream.descriptor, READ_BYTES, stream.captured_bytes)
        length, is_cut = complete_length(pending, is_end=is_end and len(pending) < READ_BYTES)
        if length == 0:
            return None
        news = pending[:length]
        lines = split_lines(news, is_cut=is_cut)
        end = stream.captured_bytes + length
        chunk = Chunk(stream.name, stream.captured_bytes, end, at, self.next_seq, is_cut, stream.path)
        stream.digest.update(news)
        stream.captured_bytes = end
        stream.line_count += len(lines)
        stream.last_output_at = at
        self.next_seq += len(lines)
        self._spool.note({"stream": stream.name, "from": chunk.start, "to": end, "at": at, "is_cut": is_cut})
        return chunk, lines


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
