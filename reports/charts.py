"""A chart described once: `reports.svg` draws it for everyone, `reports.figure` for where scripts run. Pure.

A chart is one or more panels on a common horizontal axis. The axis is minutes since a start, or seconds since
1970 (UTC).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

MAX_POINTS = 400
HALF_DAY_S = 43_200


@dataclass(frozen=True, slots=True)
class Series:
    """One line, set of points, or set of stacked bars; a null y is a gap. `color` indexes the palette."""

    name: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    color: int = 0


@dataclass(frozen=True, slots=True)
class Level:
    """A horizontal line, or a band where `high` is given."""

    name: str
    low: float
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the horizontal axis, e.g. a stage."""

    name: str
    start: float
    end: float
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One drawing area; the vertical axis begins at 0. `kind`: `line`, `points`, `bars` (stacked, one a day), `spans`."""

    title: str
    unit: str
    series: tuple[Series, ...] = ()
    levels: tuple[Level, ...] = ()
    spans: tuple[Span, ...] = ()
    kind: str = "line"


@dataclass(frozen=True, slots=True)
class Chart:
    """Panels over one axis. `description` says in words what is to be seen.

    `marks` are spans whose starts are marked through all panels; `ends` fix the axis, else it holds what is drawn;
    `is_drawing_only` says that scripts would add nothing.
    """

    id: str
    title: str
    description: str
    panels: tuple[Panel, ...]
    is_date: bool = False
    marks: tuple[Span, ...] = ()
    ends: tuple[float, float] | None = None
    is_drawing_only: bool = False

    @property
    def x_range(self) -> tuple[float, float]:
        """The axis's ends; never empty."""
        if self.ends is not None:
            return self.ends
        positions = [x for panel in self.panels for x in panel_xs(panel)]
        pad = HALF_DAY_S if any(panel.kind == "bars" for panel in self.panels) else 0
        low, high = min(positions, default=0.0) - pad, max(positions, default=1.0) + pad
        return (low, high) if high > low else (low - 0.5, high + 0.5)


def on_one_axis(charts: Sequence[Chart]) -> tuple[Chart, ...]:
    """Return the charts with the same ends, so that what happened at one time stands at one place in each."""
    ranges = [chart.x_range for chart in charts]
    ends = (min((low for low, _ in ranges), default=0.0), max((high for _, high in ranges), default=1.0))
    return tuple(replace(chart, ends=ends) for chart in charts)


def panel_xs(panel: Panel) -> list[float]:
    """Return every horizontal position in a panel."""
    of_spans = [x for span in panel.spans for x in (span.start, span.end)]
    return [x for series in panel.series for x in series.x] + of_spans


def panel_top(panel: Panel) -> float:
    """Return the largest value that a panel must hold, with a little air; 1 where there is nothing."""
    values = [level.high if level.high is not None else level.low for level in panel.levels]
    if panel.kind == "bars":
        sums: dict[float, float] = {}
        for series in panel.series:
            for x, y in zip(series.x, series.y, strict=True):
                sums[x] = sums.get(x, 0) + (y or 0)
        values += sums.values()
    else:
        values += [y for series in panel.series for y in series.y if y is not None]
    return max(values, default=0) * 1.08 or 1.0


def thinned(x: Sequence[float], y: Sequence[float | None]) -> tuple[tuple[float, ...], tuple[float | None, ...]]:
    """Return at most `MAX_POINTS` points: each stretch's lowest and highest value, a gap where it has none."""
    if len(x) <= MAX_POINTS:
        return tuple(x), tuple(y)
    size = -(-len(x) // (MAX_POINTS // 2))
    kept: list[int] = []
    for start in range(0, len(x), size):
        indexes = range(start, min(start + size, len(x)))
        measured = [i for i in indexes if y[i] is not None] or [start]
        ends = {min(measured, key=lambda i: y[i] or 0), max(measured, key=lambda i: y[i] or 0)}
        kept += sorted(ends)
    return tuple(x[i] for i in kept), tuple(y[i] for i in kept)
