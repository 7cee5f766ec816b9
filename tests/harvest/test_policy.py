from __future__ import annotations

import re
import tomllib

import pytest

from data import FOLDER
from harvest.errors import HarvestError, PolicyError
from harvest.policy import KEYS, parse_policy

SHIPPED = (FOLDER / "policy.toml").read_text(encoding="utf-8")


def with_line(key: str, line: str) -> str:
    """Return the shipped policy with the line of `key` replaced."""
    changed, count = re.subn(rf"(?m)^{key} = .*$", line, SHIPPED)
    assert count == 1
    return changed


def test_the_shipped_policy_is_whole_and_holds_the_agreed_numbers() -> None:
    policy = parse_policy(SHIPPED)
    assert (policy.vanished_after_s, policy.never_started_after_s) == (600, 7200)
    assert (policy.usd_per_proof, policy.min_run_count) == (0.008, 3)


def test_each_shipped_key_has_a_comment_that_names_its_source() -> None:
    blocks = SHIPPED.split("\n\n")
    for key in tomllib.loads(SHIPPED):
        block = next(each for each in blocks if re.search(rf"(?m)^{key} = ", each))
        assert "# Source: " in block, key


def test_text_that_is_not_toml_is_refused_and_says_where() -> None:
    with pytest.raises(PolicyError, match=r"not TOML: .*line 2"):
        parse_policy("min_run_count = 3\n= 4")


def test_a_typo_names_the_unknown_and_the_missing_key() -> None:
    with pytest.raises(PolicyError, match=r"unknown key 'min_run_cuont', missing key 'min_run_count'"):
        parse_policy(with_line("min_run_count", "min_run_cuont = 3"))


@pytest.mark.parametrize("value", ["true", "'600'", "0", "-1", "nan", "inf", "1" + "0" * 400, "[]", "2026-12-01"])
def test_a_value_that_is_no_sensible_number_is_refused_by_name(value: str) -> None:
    with pytest.raises(PolicyError, match=r"vanished_after_s is .* Nothing was changed"):
        parse_policy(with_line("vanished_after_s", f"vanished_after_s = {value}"))


def test_a_count_must_be_whole() -> None:
    with pytest.raises(PolicyError, match=r"min_run_count is 2\.5; a whole number"):
        parse_policy(with_line("min_run_count", "min_run_count = 2.5"))


def test_no_policy_can_say_that_one_failure_lists_a_machine() -> None:
    with pytest.raises(PolicyError, match="bad_failure_count is 1"):
        parse_policy(with_line("bad_failure_count", "bad_failure_count = 1"))


def test_bad_must_be_slower_than_slow() -> None:
    with pytest.raises(PolicyError, match=r"bad_rate_ratio is 0\.96"):
        parse_policy(with_line("bad_rate_ratio", "bad_rate_ratio = 0.96"))


def test_whole_seconds_come_out_as_floats_and_counts_as_whole_numbers() -> None:
    policy = parse_policy(SHIPPED)
    for name, kind in KEYS.items():
        assert type(getattr(policy, name)).__name__ == kind


def test_a_policy_error_is_a_usage_error() -> None:
    assert issubclass(PolicyError, HarvestError)
    assert PolicyError.exit_code == 2
