"""Hostile text made harmless to look at: what a terminal or a text direction would act on becomes visible.

Everything from a bundle may hold anything. Markup is escaped by the template engine; this module takes care of
what escaping does not: escape sequences are dropped, other control characters and the marks that turn the
direction of text, or that have no width, are shown by a sign or by their number.
"""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor moves
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC: titles, hyperlinks
    r"|\x1b[PX^_][^\x1b]*(?:\x1b\\)?"  # DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-Z\\^-~]"  # two-byte escapes
)
_ODD = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
MAX_LINE_CHARACTERS = 2_000


def visible(text: str) -> str:
    """Return the text with every control character and direction mark replaced by something to see.

    >>> visible("a\\x00b")
    'a\u2400b'
    >>> visible("abc\u202edef")
    'abc\u27e8U+202E\u27e9def'
    """
    return _ODD.sub(_sign, text) if _ODD.search(text) else text


def _sign(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"


def without_escapes(text: str) -> str:
    """Return the text without terminal escape sequences; what is left of a broken one stays for `visible`."""
    return _ESCAPES.sub("", text) if "\x1b" in text else text


def shown_line(text: str) -> str:
    """Return a log line as it is shown: no escape sequences, oddities visible, over-long lines cut and said so."""
    line = visible(without_escapes(text))
    if len(line) <= MAX_LINE_CHARACTERS:
        return line
    return f"{line[:MAX_LINE_CHARACTERS]} … ({len(line) - MAX_LINE_CHARACTERS:,} more characters)"


def clipped(text: str, characters: int) -> str:
    """Return the text as one shown line of at most so many characters, for tables."""
    line = " ".join(shown_line(text).split())
    return line if len(line) <= characters else f"{line[: characters - 1]}…"
