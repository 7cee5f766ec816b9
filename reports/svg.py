"""A chart as inline SVG: what is read without scripts. Colours come from the page's styles by class."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from markupsafe import Markup, escape

from reports.charts import Chart, Level, Panel, Series, Span, panel_top
from reports.visible import visible

WIDTH = 860
_LEFT, _RIGHT = 52, 12
_PANEL_HEIGHT, _SPAN_ROW, _TITLE = 96, 20, 18
_GAP, _AXIS = 14, 30
_TICKS = 5


@dataclass(frozen=True, slots=True)
class _Scale:
    """From values to pixels within one panel whose drawing area begins at `top`."""

    low: float
    high: float
    highest: float
    top: float

    def x(self, value: float) -> float:
        return round(_LEFT + (value - self.low) / (self.high - self.low) * (WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        return round(self.top + _PANEL_HEIGHT * (1 - min(max(value / self.highest, 0.0), 1.0)), 1)


def svg(chart: Chart) -> Markup:
    """Return the whole drawing. Text in it is escaped; nothing in it can act."""
    low, high = chart.x_range
    body, top = Markup(""), 4.0
    for panel in chart.panels:
        scale = _Scale(low, high, panel_top(panel), top + _TITLE)
        body += _panel(panel, scale) + _marks(chart, scale)
        top += _height(panel) + _TITLE + _GAP
    body += _x_axis(chart, _Scale(low, high, 1, top - _GAP))
    return Markup(
        '<svg class="chart-svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" aria-label="{label}">'
        "{body}</svg>"
    ).format(w=WIDTH, h=round(top - _GAP + _AXIS), label=_text(f"{chart.title}. {chart.description}"), body=body)


def _height(panel: Panel) -> float:
    return _SPAN_ROW * len(panel.spans) if panel.kind == "spans" else _PANEL_HEIGHT


def _panel(panel: Panel, scale: _Scale) -> Markup:
    name = f"{panel.title} ({panel.unit})" if panel.unit else panel.title
    title = Markup('<text class="chart-title" x="{}" y="{}">{}</text>').format(_LEFT, scale.top - 7, _text(name))
    if panel.kind == "spans":
        return title + _joined(_span(span, row, scale) for row, span in enumerate(panel.spans))
    levels = _joined(_level(level, scale) for level in panel.levels)
    if panel.kind == "bars":
        drawn = _bars(panel, scale)
    else:
        drawn = _joined(_series(series, number, panel, scale) for number, series in enumerate(panel.series))
    return title + _frame(scale) + levels + drawn + _legend(panel, scale)


def _marks(chart: Chart, scale: _Scale) -> Markup:
    line = Markup('<line class="chart-mark" x1="{x}" x2="{x}" y1="{}" y2="{}"/>')
    return _joined(line.format(scale.top, scale.top + _PANEL_HEIGHT, x=scale.x(mark.start)) for mark in chart.marks)


def _frame(scale: _Scale) -> Markup:
    """The vertical axis: 0, the middle and the top, each with a thin line."""
    lines = Markup("")
    for value in (0.0, scale.highest / 2, scale.highest):
        y = scale.y(value)
        lines += Markup(
            '<line class="chart-grid" x1="{}" x2="{}" y1="{y}" y2="{y}"/>'
            '<text class="chart-tick" x="{}" y="{}" text-anchor="end">{}</text>'
        ).format(_LEFT, WIDTH - _RIGHT, _LEFT - 5, round(y + 4, 1), _tick(value), y=y)
    return lines


def _tick(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.2g}"


def _level(level: Level, scale: _Scale) -> Markup:
    y = scale.y(level.low)
    if level.high is None:
        return Markup(
            '<line class="chart-level" x1="{}" x2="{b}" y1="{y}" y2="{y}"/>'
            '<text class="chart-note" x="{b}" y="{}" text-anchor="end">{}</text>'
        ).format(_LEFT, round(y - 3, 1), _text(level.name), b=WIDTH - _RIGHT, y=y)
    high = scale.y(level.high)
    return Markup('<rect class="chart-band" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>').format(
        _LEFT, high, WIDTH - _LEFT - _RIGHT, round(y - high, 1), _text(level.name)
    )


def _series(series: Series, number: int, panel: Panel, scale: _Scale) -> Markup:
    points = [None if y is None else (scale.x(x), scale.y(y)) for x, y in zip(series.x, series.y, strict=True)]
    drawn = [point for point in points if point is not None]
    if panel.kind == "points" or len(drawn) == 1:
        circles = _joined(Markup('<circle cx="{}" cy="{}" r="3"/>').format(*point) for point in drawn)
        return Markup('<g class="chart-points series-{}">{}</g>').format(series.color, circles)
    path = "".join(" " if point is None else f"L{point[0]},{point[1]}" for point in points)
    strokes = "".join(f"M{stroke[1:]}" for stroke in path.split())
    return Markup('<path class="chart-line series-{} dash-{}" d="{}"/>').format(series.color, number % 4, strokes)


def _bars(panel: Panel, scale: _Scale) -> Markup:
    columns = sorted({x for series in panel.series for x in series.x})
    width = round(max(2.0, (WIDTH - _LEFT - _RIGHT) / max(len(columns), 1) * 0.7), 1)
    base = dict.fromkeys(columns, 0.0)
    drawn = Markup("")
    for series in panel.series:
        for x, y in zip(series.x, series.y, strict=True):
            low, high = scale.y(base[x]), scale.y(base[x] + (y or 0))
            base[x] += y or 0
            drawn += Markup('<rect class="series-{}" x="{}" y="{}" width="{}" height="{}"/>').format(
                series.color, round(scale.x(x) - width / 2, 1), high, width, round(low - high, 1)
            )
    return drawn


def _span(span: Span, row: int, scale: _Scale) -> Markup:
    """A row of its own for each stage: its bar and its name, so that short ones can be read too."""
    start, end, y = scale.x(span.start), scale.x(span.end), scale.top + row * _SPAN_ROW
    is_late = start > WIDTH * 0.6
    return Markup(
        '<rect class="chart-span tone-{}" x="{}" y="{}" width="{}" height="14" rx="2"/>'
        '<text class="chart-span-name" x="{}" y="{}" text-anchor="{}">{}</text>'
    ).format(
        span.tone or "plain", start, y, round(max(2.0, end - start), 1),
        round(start - 5 if is_late else start + 5, 1), y + 11, "end" if is_late else "start", _text(span.name),
    )  # fmt: skip


def _legend(panel: Panel, scale: _Scale) -> Markup:
    if len(panel.series) < 2:
        return Markup("")
    x, drawn = float(WIDTH - _RIGHT), Markup("")
    for series in reversed(panel.series):
        x -= 6.4 * len(series.name) + 22
        drawn += Markup(
            '<rect class="series-{}" x="{}" y="{}" width="10" height="10"/>'
            '<text class="chart-note" x="{}" y="{}">{}</text>'
        ).format(
            series.color, round(x, 1), scale.top - 16, round(x + 14, 1), scale.top - 7, _text(series.name)
        )  # fmt: skip
    return drawn


def _x_axis(chart: Chart, scale: _Scale) -> Markup:
    drawn = Markup("")
    for number in range(_TICKS):
        value = scale.low + (scale.high - scale.low) * number / (_TICKS - 1)
        anchor = "start" if number == 0 else "end" if number == _TICKS - 1 else "middle"
        drawn += Markup('<text class="chart-tick" x="{}" y="{}" text-anchor="{}">{}</text>').format(
            scale.x(value), round(scale.top + 14, 1), anchor, _x_label(value, chart, scale)
        )
    title = "UTC" if chart.is_date else "minutes since the start"
    return drawn + Markup('<text class="chart-note" x="{}" y="{}" text-anchor="middle">{}</text>').format(
        (WIDTH + _LEFT - _RIGHT) // 2, round(scale.top + 27, 1), title
    )


def _x_label(value: float, chart: Chart, scale: _Scale) -> str:
    if chart.is_date:
        return datetime.fromtimestamp(value, UTC).strftime("%m-%d %H:%M")
    return f"{value:.0f}" if scale.high - scale.low >= 20 else f"{value:.1f}"


def _joined(parts: Iterable[Markup]) -> Markup:
    return Markup("").join(parts)


def _text(text: str) -> Markup:
    return escape(visible(text))
