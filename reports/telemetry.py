"""A run's stages and telemetry as charts on one time axis, and the same figures as a table."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from reports import format as fmt
from reports.charts import Chart, Level, Panel, Series, Span, on_one_axis, thinned
from reports.ends import short_end
from reports.parts import Cell, Grid, headings

_GIB = 2**30


@dataclass(frozen=True, slots=True)
class Measure:
    """A column of `telemetry` as it is shown: its values are divided by `divisor` to be in `unit`."""

    title: str
    unit: str
    column: str
    divisor: float


_OF_GPU = (
    Measure("GPU memory used", "GiB", "memory_used_bytes", _GIB),
    Measure("GPU busy", "%", "gpu_util_ratio", 0.01),
    Measure("GPU power", "W", "power_w", 1),
    Measure("GPU temperature", "°C", "temperature_c", 1),
    Measure("GPU clock", "MHz", "sm_clock_mhz", 1),
)
_OF_HOST = (
    Measure("Host memory of this container", "GiB", "cgroup_memory_bytes", _GIB),
    Measure("Host memory used", "GiB", "memory_used_bytes", _GIB),
    Measure("Processors busy", "%", "cpu_ratio", 0.01),
)
_BAD_ENDS = frozenset({"signalled", "timed_out", "unkillable"})


def run_charts(
    run: Mapping[str, Any], stages: Sequence[Mapping[str, Any]], telemetry: pl.DataFrame, start: datetime
) -> tuple[Chart, ...]:
    """Return a chart of the stages and one of the samples, on the same axis of minutes since the start.

    A chart that would be empty is left out. The stages' is a drawing alone: scripts would add nothing to it.
    """
    spans = tuple(span for stage in stages if (span := _span(stage, start, run["last_stored_at"])) is not None)
    samples = telemetry.with_columns(minutes=(pl.col("sampled_at") - start).dt.total_milliseconds() / 60_000)
    panels = _panels(run, samples)
    charts = []
    if spans:
        ends = ", ".join(f"{stage['stage']} {short_end(stage)}" for stage in stages)
        panel = Panel("Stages", "", spans=spans, kind="spans")
        charts.append(Chart("stages", "Stages", f"{ends}.", (panel,), is_drawing_only=True))
    if panels:
        told = f"{fmt.counted(samples.height, 'sample')}; the table below gives the same in numbers."
        charts.append(Chart("telemetry", "Telemetry", told, panels, marks=spans))
    return on_one_axis(charts)


def _panels(run: Mapping[str, Any], samples: pl.DataFrame) -> tuple[Panel, ...]:
    gpus = samples.filter(pl.col("gpu_index").is_not_null())
    host = samples.filter(pl.col("gpu_index").is_null())
    of_gpus = [_panel(gpus, each, _gpu_levels(gpus, each.column)) for each in _OF_GPU if _is_measured(gpus, each)]
    of_host = [_panel(host, each, _host_levels(run, each.column)) for each in _OF_HOST if _is_measured(host, each)]
    return (*of_gpus, *of_host)


def telemetry_grid(telemetry: pl.DataFrame) -> Grid:
    """Return lowest, middle, highest and last value of each measure, with the number of samples."""
    gpus = telemetry.filter(pl.col("gpu_index").is_not_null())
    host = telemetry.filter(pl.col("gpu_index").is_null())
    rows = [
        _grid_row(part.sort("sampled_at"), measure)
        for table, measures in ((gpus, _OF_GPU), (host, _OF_HOST))
        for measure in measures
        if _is_measured(table, measure)
        for part in table.partition_by("gpu_index", maintain_order=True)
    ]
    return Grid(
        "telemetry-table",
        "Telemetry in numbers",
        headings("Measure", "Lowest:number", "Median:number", "Highest:number", "Last:number", "Samples:number"),
        tuple(rows),
        "No telemetry arrived.",
    )


def _grid_row(part: pl.DataFrame, measure: Measure) -> tuple[Cell, ...]:
    index = part["gpu_index"][0]
    name = measure.title if index is None else f"{measure.title}, GPU {index}"
    values = [value / measure.divisor for value in part[measure.column].drop_nulls()]
    if not values:
        return (Cell(name), *(Cell(fmt.NOT_MEASURED) for _ in range(4)), Cell("0"))
    numbers = (min(values), statistics.median(values), max(values), values[-1])
    cells = (Cell(f"{number:,.1f}") for number in numbers)
    return (Cell(f"{name} ({measure.unit})"), *cells, Cell(fmt.count(len(values))))


def _is_measured(samples: pl.DataFrame, measure: Measure) -> bool:
    return samples[measure.column].drop_nulls().len() > 0


def _panel(samples: pl.DataFrame, measure: Measure, levels: tuple[Level, ...]) -> Panel:
    series = []
    for number, part in enumerate(samples.partition_by("gpu_index", maintain_order=True)):
        value = (pl.col(measure.column) / measure.divisor).round(3)
        rows = part.sort("minutes").select(pl.col("minutes").round(3), value=value)
        x, y = thinned(rows["minutes"].to_list(), rows["value"].to_list())
        index = part["gpu_index"][0]
        series.append(Series("host" if index is None else f"GPU {index}", x, y, number))
    return Panel(measure.title, measure.unit, tuple(series), levels)


def _gpu_levels(gpus: pl.DataFrame, column: str) -> tuple[Level, ...]:
    total = gpus["memory_total_bytes"].drop_nulls().max()
    if column != "memory_used_bytes" or not isinstance(total, int):
        return ()
    return (Level(f"total {fmt.bytes_text(total)}", total / _GIB),)


def _host_levels(run: Mapping[str, Any], column: str) -> tuple[Level, ...]:
    limit = {"cgroup_memory_bytes": run["memory_limit_bytes"], "memory_used_bytes": run["memory_bytes"]}.get(column)
    if limit is None:
        return ()
    name = "limit" if column == "cgroup_memory_bytes" else "total"
    return (Level(f"{name} {fmt.bytes_text(limit)}", limit / _GIB),)


def _span(stage: Mapping[str, Any], start: datetime, last_sign_at: datetime | None) -> Span | None:
    """A stage that did not end is drawn to the run's last sign of life."""
    ended_at = stage["ended_at"] or last_sign_at
    if stage["started_at"] is None or ended_at is None:
        return None
    begun_s = (stage["started_at"] - start).total_seconds()
    wall_s = stage["wall_s"] if stage["wall_s"] is not None else (ended_at - stage["started_at"]).total_seconds()
    is_bad = stage["end_kind"] in _BAD_ENDS or stage["exit_code"] not in (0, None)
    name = f"{stage['stage']} · {short_end(stage)} · {fmt.duration(max(wall_s, 0))}"
    return Span(name, round(begun_s / 60, 3), round((begun_s + max(wall_s, 0)) / 60, 3), "bad" if is_bad else "")
