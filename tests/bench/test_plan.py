"""Plans: what is read, what is refused, and by which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.errors import UsageError
from bench.plan import parse_plan, read_plan, resolved, with_command, with_settings


def test_the_cuzk_plan_fills_in_its_settings() -> None:
    plan = resolved(with_settings(read_plan("cuzk"), {"proofs": "2"}), Path("/run/folder"))
    assert [stage.name for stage in plan.stages] == ["daemon", "preload", "warmup", "benchmark"]
    assert plan.stages[0].argv == ("cuzk-daemon", "--config", "/run/folder/cuzk.toml")
    assert plan.stages[-1].argv[-4:] == ("--count", "2", "-j", "3")
    assert "partition_workers = 16" in plan.files["cuzk.toml"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('name = "x"\ntimeout = 3', "unknown key 'timeout'"),
        ('name = "x"\n[[stage]]\nname = "a"\nargs = ["b"]\nargv = ["b"]', "unknown key 'args' in stage 'a'"),
        ('name = "x"\n[[stage]]\nname = "a"', "needs 'argv'"),
        ('name = "x"\ntimeout_s = -1', "must be seconds above 0"),
        ("name = ", "is not TOML"),
    ],
)
def test_a_typo_in_a_plan_is_named_before_anything_starts(text: str, told: str) -> None:
    with pytest.raises(UsageError, match="Nothing was started") as refused:
        parse_plan(text, "mine.toml")
    assert told in str(refused.value)


def test_a_placeholder_that_nothing_fills_is_refused() -> None:
    plan = parse_plan('name = "x"\n[[stage]]\nname = "a"\nargv = ["{typo}"]', "mine.toml")
    with pytest.raises(UsageError, match=r"nothing fills '\{typo\}'"):
        resolved(plan, Path("/run"))


def test_braces_of_a_command_are_its_own() -> None:
    plan = resolved(with_command(read_plan("command"), ["echo", "{a}"], "benchmark"), Path("/run"))
    assert plan.stages[0].argv == ("echo", "{a}")
