"""Bytes of a stream into lines, such that the lines give back every byte. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bench.contract import TERMINATOR_BYTES
from bench.keys import MAX_LINE_BYTES

_TERMINATOR = re.compile(rb"\r\n|\n|\r")
_CODE_OF = {ending: code for code, ending in TERMINATOR_BYTES.items()}


@dataclass(frozen=True)
class Line:
    """One row of `logs` to be: its bytes without the terminator, the terminator's code, whether it goes on."""

    content: bytes
    terminator: int
    is_continued: bool

    def as_text(self) -> tuple[str, bytes | None]:
        """Return (`text`, `raw`): raw only where the text would not give the bytes back."""
        try:
            text = self.content.decode("utf-8")
        except UnicodeDecodeError:
            return self.content.decode("utf-8", "backslashreplace").replace("\0", "\\x00"), self.content
        return (text, None) if "\0" not in text else (text.replace("\0", "\\x00"), self.content)


def split_lines(chunk: bytes, *, is_cut: bool) -> list[Line]:
    """Return the lines of a chunk that starts at a line's start or right after a cut.

    Args:
        is_cut: the chunk ends inside a line that goes on in the next chunk; else its unterminated end is the stream's.
    """
    lines: list[Line] = []
    start = 0
    for match in _TERMINATOR.finditer(chunk):
        lines += _pieces(chunk[start : match.start()], _CODE_OF[match.group()], is_continued=False)
        start = match.end()
    if start < len(chunk):
        lines += _pieces(chunk[start:], 0, is_continued=is_cut)
    return lines


def complete_length(pending: bytes, *, is_end: bool) -> tuple[int, bool]:
    """Return how many of the bytes can be captured now, and whether that cuts a line.

    Whole lines go; a trailing CR waits for the LF that may follow; an unterminated line longer than 64 KiB is cut.
    """
    if is_end:
        return len(pending), False
    usable = pending[:-1] if pending.endswith(b"\r") else pending
    length = max(usable.rfind(b"\n"), usable.rfind(b"\r")) + 1
    if length == 0 and len(usable) > MAX_LINE_BYTES:
        return len(usable) // MAX_LINE_BYTES * MAX_LINE_BYTES, True
    return length, False


def _pieces(content: bytes, terminator: int, *, is_continued: bool) -> list[Line]:
    starts = range(0, max(len(content), 1), MAX_LINE_BYTES)
    last = starts[-1]
    return [
        Line(content[at : at + MAX_LINE_BYTES], terminator if at == last else 0, is_continued if at == last else True)
        for at in starts
    ]
