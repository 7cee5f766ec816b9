"""Secrets go, evidence stays."""

from __future__ import annotations

import time

import pytest

from bench.redact import Redactor, address_hash, make_redactor

KEY = b"a key of this run"
NOTHING_KNOWN = make_redactor({}, KEY)


def redacted(text: str, redactor: Redactor = NOTHING_KNOWN) -> str:
    return redactor.redact(text)[0]


@pytest.mark.parametrize(
    ("rule", "line", "left"),
    [
        ("aws_key_id", "key AKIAIOSFODNN7EXAMPLE used", "key [REDACTED:aws_key_id] used"),
        ("github", f"cloning with ghp_{'a1B2' * 9}", "cloning with [REDACTED:github]"),
        ("github", f"github_pat_{'11AAB_' * 6}", "[REDACTED:github]"),
        ("gitlab", "glpat-x1Y2z3A4b5C6d7E8f9G0", "[REDACTED:gitlab]"),
        ("hugging_face", f"login hf_{'aBcD1' * 7}.", "login [REDACTED:hugging_face]."),
        ("slack", "xoxb-123456789012-abcdefABCDEF", "[REDACTED:slack]"),
        ("jwt", "got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmN end", "got [REDACTED:jwt] end"),
        ("authorization", "> Authorization: Basic dXNlcjpwYXNz", "> Authorization: Basic [REDACTED:authorization]"),
        ("bearer", 'curl -H "X: Bearer 0123456789abcdef0"', 'curl -H "X: Bearer [REDACTED:bearer]"'),
        ("url_password", "redis://user:p4ss@cache:6379/0", "redis://user:[REDACTED:url_password]@cache:6379/0"),
        (
            "url_signature",
            "PUT https://s/b/k?X-Amz-Date=1&X-Amz-Signature=ab12cd&x=1",
            "PUT https://s/b/k?X-Amz-Date=1&X-Amz-Signature=[REDACTED:url_signature]&x=1",
        ),
        ("private_key", "-----BEGIN OPENSSH PRIVATE KEY-----", "[REDACTED:private_key]"),
        (
            "private_key",
            r'{"k": "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n", "n": 1}',
            r'{"k": "[REDACTED:private_key]\n", "n": 1}',
        ),
        ("assignment", "+ export VAST_API_KEY=0a1b2c3d4e", "+ export VAST_API_KEY=[REDACTED:assignment]"),
    ],
)
def test_a_known_kind_of_secret_is_replaced_and_counted(rule: str, line: str, left: str) -> None:
    assert NOTHING_KNOWN.redact(line) == (left, {rule: 1})


@pytest.mark.parametrize(
    "line",
    [
        "sector 7 commR bagboea4b5abcbtk4ut6jrlehuhgg2ym6qz7ljqtwrkkbbqswarv3psiyzyqtlnxp",
        "proof=" + "9f86d081884c7d65" * 24,
        "v28-proof-of-spacetime-fallback-merkletree-poseidon_hasher-8-0-0-7d739b8cf60f1b0709eeebee7730e297683552e4.params",
        'cudaGetLastError()@sppark-0.1.14/ntt/kernels/gs_mixed_radix_wide.cu:220 failed: "an illegal memory access"',
        "listening on http://127.0.0.1:9820/ user@host",
        "INFO hf_hub_download_of_parameter_files_begins_now_and_here",
        "the bearer authentication of this daemon is off",
        "TOKENIZERS_PARALLELISM=false max_token=4096 tokens: 512",
        "error: PRIVATE mount namespace",
        "",
    ],
)
def test_a_line_of_evidence_stays_as_it_is(line: str) -> None:
    assert NOTHING_KNOWN.redact(line) == (line, {})


def test_the_values_of_secret_named_variables_are_replaced() -> None:
    redactor = make_redactor({"HF_TOKEN": "tok-123456", "db_password": "hunter22", "HOME": "/root/of/it"}, KEY)
    assert redactor.redact("tok-123456 hunter22 /root/of/it") == (
        "[REDACTED:env] [REDACTED:env] /root/of/it",
        {"env": 2},
    )


def test_the_longer_of_two_values_goes_first() -> None:
    redactor = make_redactor({"A_TOKEN": "secret", "B_TOKEN": "secret-and-more"}, KEY)
    assert redacted("secret-and-more", redactor) == "[REDACTED:env]"


def test_a_value_that_is_a_word_of_the_replacement_does_not_spoil_it() -> None:
    redactor = make_redactor({"A_TOKEN": "REDACTED", "B_TOKEN": "abcdef"}, KEY)
    assert redacted("abcdef", redactor) == "[REDACTED:env]"


def test_a_short_value_stays_since_it_may_be_an_everyday_word() -> None:
    assert redacted("true", make_redactor({"USE_TOKEN": "true"}, KEY)) == "true"


def test_a_key_file_in_a_variable_is_found_line_by_line() -> None:
    redactor = make_redactor({"SSH_PRIVATE_KEY": "-----BEGIN X-----\nb3BlbnNzaC1rZXktdjE\n-----END X-----\n"}, KEY)
    assert redacted("> b3BlbnNzaC1rZXktdjE", redactor) == "> [REDACTED:env]"


def test_what_is_replaced_already_is_not_counted_twice() -> None:
    redactor = make_redactor({"DB_PASSWORD": "hunter22"}, KEY)
    assert redactor.redact("redis://u:hunter22@h DB_PASSWORD=hunter22") == (
        "redis://u:[REDACTED:env]@h DB_PASSWORD=[REDACTED:env]",
        {"env": 2},
    )


def test_the_public_address_becomes_a_pseudonym_that_fits_the_openings_hash() -> None:
    redactor = make_redactor({"PUBLIC_IPADDR": "203.0.113.7"}, KEY)
    digest = address_hash("203.0.113.7", KEY)
    assert digest is not None
    assert redactor.redact("ssh root@203.0.113.7:22.") == (f"ssh root@[IP:{digest[:8]}]:22.", {"public_ip": 1})


@pytest.mark.parametrize("text", ["1203.0.113.7", "203.0.113.70", "9.203.0.113.7", "203.0.113.7.9"])
def test_an_address_inside_other_digits_stays(text: str) -> None:
    assert redacted(text, make_redactor({"PUBLIC_IPADDR": "203.0.113.7"}, KEY)) == text


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "auto", ""])
def test_an_address_that_names_no_one_stays(address: str) -> None:
    assert redacted(f"at {address}:9820", make_redactor({"PUBLIC_IPADDR": address}, KEY)) == f"at {address}:9820"


def test_two_spellings_of_an_address_have_one_hash() -> None:
    assert address_hash("2001:DB8::0:7", KEY) == address_hash("2001:db8::7", KEY)


@pytest.mark.parametrize(
    ("argv", "left"),
    [
        (["curl", "--token", "abc"], ["curl", "--token", "[REDACTED:option]"]),
        (["run", "--hf-token=abc", "x"], ["run", "--hf-token=[REDACTED:option]", "x"]),
        (["cuzk-bench", "batch", "-t", "porep"], ["cuzk-bench", "batch", "-t", "porep"]),
        (["get", "https://u:pw@h/"], ["get", "https://u:[REDACTED:url_password]@h/"]),
        ([], []),
    ],
)
def test_a_command_line_loses_its_secrets(argv: list[str], left: list[str]) -> None:
    assert NOTHING_KNOWN.redact_argv(argv) == left


@pytest.mark.parametrize(
    "unit",
    [
        "password",
        "eyJ",
        "eyJ.",
        "://",
        "://a:",
        "Bearer ",
        "Bearer a",
        "hf_a",
        "ghp_a",
        "PRIVATE -----BEGIN A",
        "TOKEN=",
    ],
)
def test_a_hostile_line_of_64_kib_costs_little(unit: str) -> None:
    line = (unit * 65536)[:65536]
    started_s = time.perf_counter()
    NOTHING_KNOWN.redact(line)
    assert time.perf_counter() - started_s < 0.5
