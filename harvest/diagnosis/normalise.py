"""A root message without what differs from run to run, so that the same failure reads the same everywhere. Pure.

What names a failure is kept (the CUDA error's words, Xid number, errno, signal, GLIBC version, sm_ architecture,
library name, HTTP status); ids, addresses, times, sizes and paths are masked. Nothing here is learned, so
that an id that was given once is given again.
"""

from __future__ import annotations

import re

from harvest.diagnosis.records import TIMED

MAX_MESSAGE_LENGTH = 300

_TRACING_HEAD = re.compile(TIMED + r"\s*\[?[A-Z]{4,8}\b\]?\s*")
_TIME_HEAD = re.compile(TIMED)
_SPAN = re.compile(r"^(?:[\w.:]+\{[^{}]{0,500}\}:?)+\s*")
_VALID_PARTITIONS = re.compile(r"\b(\d+)/(\d+) valid\b")

KEPT = re.compile(
    r"""failed:\ "[^"]{1,200}"                      # what CUDA said
    | Xid\ \([^)]{1,40}\):\ \d+
    | os\ error\ \d+ | \bE[A-Z]{3,12}\b | CUDA_ERROR_\w+ | cudaError\w+
    | \bsignal:?\ \d+ | \bSIG[A-Z]{2,6}\b
    | GLIBC(?:XX)?_[\d.]+ | CUDA(?:\ error)?:\ \d+\b | \bError\ \d+:
    | \bsm_\d+a? | \bcuda>=[\d.]+
    | \blib[\w+-]+\.so(?:\.\d+)*
    | HTTP(?:/[\d.]+)?\ \d{3} | \bstatus(?:\ code)?[:=\ ]\ ?\d{3}\b
    | \bexit\ code:?\ \d+""",
    re.VERBOSE,
)
"""Pieces that are copied as they are; a PCI address inside an Xid is masked all the same."""

MASKS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), "<uuid>"),
    (re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})*\.(?:com|org|net|io|dev|ai)\b"), "<email>"),
    (re.compile(r"\b[a-z][a-z0-9+.-]{1,15}://[^\s\"'<>]+"), "<url>"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b"), "<address>"),
    (re.compile(r"\b(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?(?!\w|:)"), "<pci>"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b|\b(?=[0-9a-fA-F]*\d)(?=[0-9a-fA-F]*[a-fA-F])[0-9a-fA-F]{8,}\b"), "<hex>"),
    (re.compile(r"(?:[\w.~+<>-]*/)+([\w.+<>-]*)"), r"\1"),
    (re.compile(r"(?<=\.rs)(?::\d+)+|(?<=\.cuh)(?::\d+)+|(?<=\.cu|\.go|\.py)(?::\d+)+|(?<=\.cpp)(?::\d+)+"), ""),
    (re.compile(r"\b[\d.]+ ?(?:ns|us|µs|ms|secs?|min|[KMGT]i?B|bytes|GiB|MiB|[smh])\b"), "<size>"),
    (re.compile(r"\"[^\"]*\"|`[^`]*'|'[^']*'"), "<text>"),
    (re.compile(r"(?<![A-Za-z_])\d[\d.,_]*"), "<n>"),
)
"""In this order: each finds what the ones before it left."""

VERSION = re.compile(r"([A-Za-z][\w+]*(?:-[A-Za-z][\w+]*)*-\d+\.\d+\.\d+)")
PLACE = re.compile(r"([\w+-]+\.(?:rs|cuh?|cpp|cc|hpp?|go|py)):(\d+)")


def message_of(text: str) -> str:
    """Return a line without its time, level and spans."""
    text = _TRACING_HEAD.sub("", text, count=1) if _TRACING_HEAD.match(text) else _TIME_HEAD.sub("", text, count=1)
    return _SPAN.sub("", text, count=1).strip()


def normalised(text: str) -> str:
    """Return the message of a line, masked; at most 300 characters.

    >>> normalised('f()@/x/sppark-0.1.14/a.cuh:158 failed: "out of memory"')
    'f()@a.cuh failed: "out of memory"'
    """
    message = _VALID_PARTITIONS.sub(_share_valid, message_of(text)[: 4 * MAX_MESSAGE_LENGTH])
    pieces: list[str] = []
    end = 0
    for match in KEPT.finditer(message):
        pieces += (_masked(message[end : match.start()]), _without_pci(match.group()))
        end = match.end()
    pieces.append(_masked(message[end:]))
    return " ".join("".join(pieces).split())[:MAX_MESSAGE_LENGTH]


def versions_and_places(text: str) -> str:
    """Return the versions and the lines of source that a text names: what tells builds of one failure apart."""
    versions = VERSION.findall(text)
    places = (f"{name}:{line}" for name, line in PLACE.findall(text))
    return " ".join(sorted({*versions, *places}))


def source_file(text: str) -> str:
    """Return the base name of the first source file that a text places a line in; empty without one."""
    match = PLACE.search(text)
    return match[1] if match else ""


def _masked(text: str) -> str:
    for pattern, replacement in MASKS:
        text = pattern.sub(replacement, text)
    return text


def _without_pci(text: str) -> str:
    return re.sub(r"\([^)]*\)", "(<pci>)", text) if text.startswith("Xid") else text


def _share_valid(match: re.Match[str]) -> str:
    valid, count = int(match[1][:9]), int(match[2][:9])
    return f"{'no' if valid == 0 else 'all' if valid == count else 'some'} partitions valid"
