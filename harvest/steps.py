"""How long each step of the line took and how much it handled; told as it happens, and as text for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

Item = TypeVar("Item")
_LOG_INTERVAL_S = 10.0
_TERMINAL_INTERVAL_S = 0.1
_CLEAR_LINE = "\r\x1b[K"


@dataclass(frozen=True, slots=True)
class StepDone:
    """A finished step; `count` is of what `unit` says."""

    step: str
    unit: str
    wall_s: float
    count: int


@dataclass(frozen=True, slots=True)
class Progress:
    """A step on its way: `done_count` of `total_count`."""

    step: str
    unit: str
    done_count: int
    total_count: int


Listener = Callable[[StepDone | Progress], None]


@dataclass(slots=True)
class Step:
    """A step that is being done: whoever does it sets `count`, or passes what it handles through `each`."""

    step: str
    unit: str
    listener: Listener
    count: int = 0

    def each(self, items: Iterable[Item], total_count: int) -> Iterator[Item]:
        """Pass the items on, count them, and tell how far they are."""
        for item in items:
            yield item
            self.count += 1
            self.listener(Progress(self.step, self.unit, self.count, total_count))


class Steps:
    """Measures steps with the clock it was given (seconds, only ever rising) and tells a listener."""

    def __init__(self, clock: Callable[[], float], listener: Listener) -> None:
        self._clock = clock
        self._listener = listener
        self._started_s = clock()
        self.done: list[StepDone] = []

    @contextmanager
    def step(self, name: str, unit: str) -> Iterator[Step]:
        """Measure what is done within; a step that raises is not done."""
        started_s = self._clock()
        step = Step(name, unit, self._listener)
        yield step
        self.done.append(StepDone(name, unit, self._clock() - started_s, step.count))
        self._listener(self.done[-1])

    @property
    def wall_s(self) -> float:
        """Seconds since the first step could begin."""
        return self._clock() - self._started_s


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
