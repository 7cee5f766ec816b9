"""How long each step of the line took and how much it handled; told as it happens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

Item = TypeVar("Item")


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
