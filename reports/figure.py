"""A chart as a plotly figure: plain data (the library is needed in the browser alone), and JSON that is safe in a page."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from reports.charts import Chart, Level, Panel, Series, panel_top
from reports.visible import visible

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Colours that stay apart for colour-blind readers; source: Okabe and Ito, Color Universal Design (2008)."""
_DASHES = ("solid", "dash", "dot", "dashdot")
_PANEL_PX, _GAP_PX = 104, 40
_MARGIN_PX = {"l": 56, "r": 14, "t": 40, "b": 44}
_FEW_POINTS = 60


def figure(chart: Chart) -> dict[str, Any]:
    """Return the figure; every string in it is escaped, since plotly takes labels for a kind of HTML."""
    number = len(chart.panels)
    plot_px = number * (_PANEL_PX + _GAP_PX) - _GAP_PX
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {
        "height": plot_px + _MARGIN_PX["t"] + _MARGIN_PX["b"],
        "margin": _MARGIN_PX,
        "legend": {"orientation": "h", "x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom"},
        "barmode": "stack",
        "hovermode": "x unified",
        "xaxis": _x_axis(chart, number),
        "annotations": [],
        "shapes": _mark_shapes(chart),
    }
    for index, panel in enumerate(chart.panels):
        axis = "" if index == 0 else str(index + 1)
        layout[f"yaxis{axis}"] = _y_axis(panel, index * (_PANEL_PX + _GAP_PX) / plot_px, _PANEL_PX / plot_px)
        layout["annotations"].append(_title(panel, axis))
        layout["shapes"] += [_level_shape(level, axis) for level in panel.levels]
        traces += [_trace(series, panel, axis, order, chart) for order, series in enumerate(panel.series)]
    return {"data": traces, "layout": layout}


def _x_axis(chart: Chart, panel_count: int) -> dict[str, Any]:
    low, high = chart.x_range
    ends = [_date(low), _date(high)] if chart.is_date else [low, high]
    title = "UTC" if chart.is_date else "minutes since the start"
    anchor = "y" if panel_count < 2 else f"y{panel_count}"
    look = {"title": {"text": title, "standoff": 6}, "anchor": anchor, "nticks": 8}
    return {"type": "date" if chart.is_date else "linear", "range": ends, **look}


def _y_axis(panel: Panel, from_top: float, height: float) -> dict[str, Any]:
    return {
        "domain": [max(0.0, round(1 - from_top - height, 4)), round(1 - from_top, 4)],
        "range": [0, panel_top(panel)],
        "nticks": 4,
    }


def _title(panel: Panel, axis: str) -> dict[str, Any]:
    place = {"xref": "paper", "yref": f"y{axis} domain", "x": 0, "y": 1, "xanchor": "left", "yanchor": "bottom"}
    unit = f" ({_safe(panel.unit)})" if panel.unit else ""
    return {**place, "text": f"<b>{_safe(panel.title)}</b>{unit}", "showarrow": False}


def _trace(series: Series, panel: Panel, axis: str, order: int, chart: Chart) -> dict[str, Any]:
    x = [_date(each) for each in series.x] if chart.is_date else list(series.x)
    color = PALETTE[series.color % len(PALETTE)]
    trace: dict[str, Any] = {
        "x": x,
        "y": list(series.y),
        "name": _safe(series.name),
        "yaxis": f"y{axis}",
        "xaxis": "x",
        "legendgroup": _safe(series.name),
        "showlegend": len(panel.series) > 1 and not axis,
    }
    if panel.kind == "bars":
        return {**trace, "type": "bar", "marker": {"color": color}}
    look = {"line": {"color": color, "width": 1.5, "dash": _DASHES[order % len(_DASHES)]}, "marker": {"color": color}}
    return {**trace, "type": "scatter", "mode": _mode(series, panel), **look}


def _mode(series: Series, panel: Panel) -> str:
    """Return how a series is drawn: a line alone would hide a single sample between two gaps."""
    if panel.kind == "points":
        return "markers"
    return "lines+markers" if len(series.x) <= _FEW_POINTS else "lines"


def _level_shape(level: Level, axis: str) -> dict[str, Any]:
    place = {"xref": "paper", "yref": f"y{axis}", "x0": 0, "x1": 1, "y0": level.low, "layer": "below"}
    if level.high is not None:
        return {**place, "type": "rect", "y1": level.high, "line": {"width": 0}, "fillcolor": "rgba(127,127,127,.18)"}
    label = {"text": _safe(level.name), "textposition": "end"}
    return {**place, "type": "line", "y1": level.low, "line": {"dash": "dash", "width": 1}, "label": label}


def _mark_shapes(chart: Chart) -> list[dict[str, Any]]:
    place = {"type": "line", "xref": "x", "yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
    look = {"line": {"width": 1, "dash": "dot"}}
    return [{**place, **look, "x0": mark.start, "x1": mark.start} for mark in chart.marks]


def _date(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _safe(text: str) -> str:
    return html.escape(visible(text))


def json_block(data: Mapping[str, Any]) -> Markup:
    """Return data as JSON that cannot leave its script element: `<`, `>` and `&` are escaped within strings."""
    text = json.dumps(data, separators=(",", ":"), sort_keys=True, allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # our own data, and no character of markup is left in it
