from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
from polars.testing import assert_frame_equal

from bench.contract import BUNDLE_TABLES
from data import FOLDER
from harvest.contract import MACHINES, PUBLISHED_TABLES, RUNS, Outcome
from harvest.schema_page import COMMAND, schema_page
from harvest.tables import conform, frame_bytes
from tests.builders import make_frame, make_runs

PAGE = schema_page()


def test_the_stored_page_is_in_step_with_the_contracts() -> None:
    stored = (FOLDER / "SCHEMA.md").read_text(encoding="utf-8")
    assert stored == PAGE, f"data/SCHEMA.md is not in step with the contracts; run: {COMMAND}"


def test_each_column_of_each_table_stands_on_the_page_with_its_unit() -> None:
    for table in (*BUNDLE_TABLES.values(), *PUBLISHED_TABLES.values()):
        for column in table.columns:
            assert f"| `{column.name}` | `{column.type}` | {column.unit} |" in PAGE, (table.name, column.name)


def test_the_page_says_where_each_published_table_lies() -> None:
    assert "### `runs/date=YYYY-MM-DD/*.parquet`" in PAGE
    assert "### `bad_machines.parquet`" in PAGE


def test_a_vocabulary_is_listed_with_all_its_words() -> None:
    assert f"| Outcome | {', '.join(f'`{word.value}`' for word in Outcome)} |" in PAGE


def test_no_line_of_a_table_is_torn_by_a_bar_in_its_text() -> None:
    bar_count = "| column | type | unit | null | meaning |".count("|")
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {bar_count}


def test_the_lines_for_polars_open_a_published_folder(tmp_path: Path) -> None:
    runs = make_runs({}, {"machine_id": 7})
    publish(tmp_path, runs)
    lines = re.search(r"```python\n(import polars.*?)```", PAGE, re.DOTALL)
    assert lines is not None
    opened: dict[str, Any] = {}
    exec(lines[1].replace("DATA", str(tmp_path)), opened)
    assert_frame_equal(conform(opened["runs"], RUNS), runs)
    assert opened["machines"].columns == list(MACHINES.column_names)


def publish(data: Path, runs: pl.DataFrame) -> None:
    """Lay out two tables as a harvest does: a generation, and links that lead to it."""
    folder = data / ".generations" / "1"
    (folder / "runs" / "date=2026-11-02").mkdir(parents=True)
    (folder / "runs" / "date=2026-11-02" / "part.parquet").write_bytes(frame_bytes(runs, RUNS, "test"))
    machine = {"machine_id": 7, "cohort_id": "0" * 12, "same_gpus_as": [], "state": "unknown"}
    counts = {column.name: 0 for column in MACHINES.columns if column.type == "int64" and not column.is_nullable}
    (folder / "machines.parquet").write_bytes(
        frame_bytes(make_frame(MACHINES, {**counts, **machine}), MACHINES, "test")
    )
    (data / ".current").symlink_to(".generations/1")
    (data / "runs").symlink_to(".current/runs")
    (data / "machines.parquet").symlink_to(".current/machines.parquet")
