"""Steps as text: on a terminal one line that is written over, in a log plain lines, and not too many of them."""

from __future__ import annotations

from collections.abc import Callable

from harvest.steps import Progress, StepDone

_LOG_INTERVAL_S = 10.0
_TERMINAL_INTERVAL_S = 0.1
_CLEAR_LINE = "\r\x1b[K"


class ProgressText:
    """Turns what steps tell into what is to be written next, often nothing; `clock` gives seconds, only ever rising."""

    def __init__(self, is_terminal: bool, clock: Callable[[], float]) -> None:
        self._is_terminal = is_terminal
        self._interval_s = _TERMINAL_INTERVAL_S if is_terminal else _LOG_INTERVAL_S
        self._clock = clock
        self._told_s = clock()

    def text_of(self, event: StepDone | Progress) -> str:
        """Return the text to write, with all line ends it needs."""
        if isinstance(event, StepDone):
            clear = _CLEAR_LINE if self._is_terminal else ""
            return f"{clear}harvest: {event.step}: {event.count:,} {event.unit}, {event.wall_s:.1f} s\n"
        if self._clock() - self._told_s < self._interval_s:
            return ""
        self._told_s = self._clock()
        line = f"harvest: {event.step}: {event.done_count:,} of {event.total_count:,} {event.unit}"
        return f"{_CLEAR_LINE}{line}" if self._is_terminal else f"{line}\n"
