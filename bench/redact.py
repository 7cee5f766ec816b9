"""Secrets out before a byte leaves the instance. Pure; line by line, a line at most 64 KiB.

First the values that the runner knows (its own secret-named variables, its public address), then a few rules
for well-known kinds. Each rule runs only on a line that holds one of its keywords, so that a line without a
hit costs a handful of substring searches. There is no rule for bare hex: proofs, sectors and CIDs are hex.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_SECRET_WORDS = "PASSWORD|SECRET|TOKEN|API_KEY|ACCESS_KEY|PRIVATE_KEY|CONNECTION_STRING"
_SECRET_NAME = re.compile(rf"(?:^|_)(?:{_SECRET_WORDS})$|^LASTWORDS_GRANT$")
_SECRET_OPTION = re.compile(r"--?(?:[a-z0-9]+-)*(?:password|secret|token|api-key|access-key|private-key|grant)$")
_SHORTEST_LITERAL = 6
_SHORTEST_LITERAL_LINE = 16
"""Of a value of several lines: its short lines may be everyday words."""

ENVIRONMENT_RULE = "env"
ADDRESS_RULE = "public_ip"
OPTION_RULE = "option"


@dataclass(frozen=True)
class Rule:
    """One kind of secret. Group `keep`, where the pattern has one, stays in front of the replacement."""

    name: str
    keywords: tuple[str, ...]
    pattern: re.Pattern[str]


def _rule(name: str, keywords: str, secret: str, *, keep: str = "", flags: re.RegexFlag = re.ASCII) -> Rule:
    """Declare a rule; `keep` stands before the secret and stays. What is already replaced is left alone."""
    before = rf"(?P<keep>{keep})(?!\[REDACTED:)" if keep else ""
    return Rule(name, tuple(keywords.split()), re.compile(before + secret, flags | re.ASCII))


# Each pattern starts at the edge of a token or at a fixed text: a long line costs one pass, not one for each start.
RULES = (
    _rule("aws_key_id", "AKIA ASIA", r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _rule("github", "ghp_ gho_ ghu_ ghs_ ghr_", r"(?<![A-Za-z0-9_])gh[pousr]_[A-Za-z0-9]{36,255}"),
    _rule("github", "github_pat_", r"(?<![A-Za-z0-9_])github_pat_[A-Za-z0-9_]{22,255}"),
    _rule("gitlab", "glpat- gldt- glrt-", r"(?<![A-Za-z0-9_-])gl(?:pat|dt|rt)-[A-Za-z0-9_.-]{20,255}"),
    _rule("hugging_face", "hf_", r"(?<![A-Za-z0-9_])hf_[A-Za-z0-9]{30,255}(?![A-Za-z0-9_])"),
    _rule("slack", "xox", r"(?<![A-Za-z0-9-])xox[abeoprs]-[A-Za-z0-9-]{10,255}"),
    _rule("jwt", "eyJ", r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    _rule(
        "authorization",
        "uthorization UTHORIZATION",
        r"[^\s\"',]+",
        keep=r"authorization[\"']?\s?[:=]\s?[\"']?(?:bearer|basic|token)\s",
        flags=re.IGNORECASE,
    ),
    _rule(
        "bearer",
        "Bearer bearer BEARER",
        r"(?=[a-z._~+/=-]{0,255}[0-9])[a-z0-9._~+/=-]{16,}",
        keep=r"(?<![a-z0-9])bearer\s",
        flags=re.IGNORECASE,
    ),
    _rule("url_password", "://", r"[^\s/@?#]{1,255}(?=@)", keep=r"://[^\s/:@?#]{0,255}:"),
    _rule(
        "url_signature",
        "X-Amz- x-amz- X-Goog- x-goog-",
        r"[^\s&\"',]+",
        keep=r"x-(?:amz|goog)-(?:signature|security-token|credential)(?:=|:\s?)",
        flags=re.IGNORECASE,
    ),
    _rule(
        "private_key",
        "PRIVATE",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[^-]*-----END [A-Z0-9 ]{0,60}-----|.*)",
    ),
    _rule(
        "assignment",
        "PASSWORD= SECRET= TOKEN= API_KEY= ACCESS_KEY= PRIVATE_KEY= CONNECTION_STRING= LASTWORDS_GRANT=",
        r"[^\s\"']{6,}",
        keep=rf"(?:{_SECRET_WORDS}|LASTWORDS_GRANT)=[\"']?",
    ),
)

_RULE_BY_KEYWORD = tuple((keyword, rule) for rule in RULES for keyword in rule.keywords)


@dataclass(frozen=True)
class Redactor:
    """What is replaced in this run; build it with `make_redactor`.

    `literals` are the values of secret-named variables, longest first; `address` the public address, with the
    text that takes its place. Both may be empty.
    """

    literals: tuple[str, ...]
    address: str
    address_replacement: str

    def redact(self, text: str) -> tuple[str, dict[str, int]]:
        """Return the text with its secrets replaced, and how often each rule did so (empty: none did)."""
        counts: dict[str, int] = defaultdict(int)
        if [literal for literal in self.literals if literal in text]:
            pattern = "|".join(map(re.escape, self.literals))
            text, counts[ENVIRONMENT_RULE] = re.subn(pattern, _mark(ENVIRONMENT_RULE), text)
        if self.address and self.address in text:
            text, count = re.subn(_address_pattern(self.address), self.address_replacement, text)
            counts[ADDRESS_RULE] += count
        for rule in dict.fromkeys([rule for keyword, rule in _RULE_BY_KEYWORD if keyword in text]):
            text, count = rule.pattern.subn(_replacement(rule), text)
            counts[rule.name] += count
        return text, {name: count for name, count in counts.items() if count} if counts else {}

    def redact_argv(self, argv: Sequence[str]) -> list[str]:
        """Return a command line with its secrets replaced, also the value that follows `--token` and the like."""
        return [
            _mark(OPTION_RULE) if _SECRET_OPTION.match(before) else self._argument(argument)
            for before, argument in zip(["", *argv], argv)  # noqa: B905 - strict= needs equal lengths; one is longer
        ]

    def _argument(self, argument: str) -> str:
        option, equals, _ = argument.partition("=")
        if equals and _SECRET_OPTION.match(option):
            return f"{option}={_mark(OPTION_RULE)}"
        return self.redact(argument)[0]


def make_redactor(environment: Mapping[str, str], address_key: bytes) -> Redactor:
    """Return the redactor for a process with these variables.

    Args:
        address_key: key of the address hash, the same that `public_ip_hash` was made with.
    """
    address = environment.get("PUBLIC_IPADDR", "").strip()
    digest = address_hash(address, address_key)
    if digest is None or _is_everybodys(address):
        return Redactor(_secret_literals(environment), "", "")
    return Redactor(_secret_literals(environment), address, f"[IP:{digest[:8]}]")


def address_hash(address: str, key: bytes) -> str | None:
    """Return a keyed hash of an IP address (16 hex), null where the text is no address.

    Two spellings of one address give one hash. It is a pseudonym: who has the key can try all addresses.
    """
    try:
        canonical = ipaddress.ip_address(address.strip()).compressed
    except ValueError:
        return None
    return hmac.new(key, canonical.encode(), hashlib.sha256).hexdigest()[:16]


def is_secret_name(name: str) -> bool:
    """Return whether a variable's name says that its value is a secret, e.g. `HF_TOKEN`.

    >>> is_secret_name("VAST_API_KEY"), is_secret_name("TOKENIZERS_PARALLELISM")
    (True, False)
    """
    return _SECRET_NAME.search(name.upper()) is not None


def _secret_literals(environment: Mapping[str, str]) -> tuple[str, ...]:
    literals = {each for name, value in environment.items() if is_secret_name(name) for each in _parts(value)}
    return tuple(sorted(literals, key=lambda each: (-len(each), each)))


def _parts(value: str) -> list[str]:
    """A value as it can stand in one line of a log: a key file in a variable is many lines."""
    lines = value.strip().splitlines()
    shortest = _SHORTEST_LITERAL if len(lines) == 1 else _SHORTEST_LITERAL_LINE
    return [line.strip() for line in lines if len(line.strip()) >= shortest]


def _is_everybodys(address: str) -> bool:
    """127.0.0.1 and 0.0.0.0 name no one, and listening addresses are evidence."""
    parsed = ipaddress.ip_address(address)
    return parsed.is_loopback or parsed.is_unspecified


def _address_pattern(address: str) -> str:
    return rf"(?<![\w.:]){re.escape(address)}(?![\w]|\.\d)" if ":" in address else _ipv4_pattern(address)


def _ipv4_pattern(address: str) -> str:
    """1.2.3.4 stands neither in 11.2.3.4 nor in 1.2.3.45 nor in 1.2.3.4.5."""
    return rf"(?<![0-9])(?<![0-9]\.){re.escape(address)}(?![0-9]|\.[0-9])"


def _replacement(rule: Rule) -> str:
    return rf"\g<keep>{_mark(rule.name)}" if "keep" in rule.pattern.groupindex else _mark(rule.name)


def _mark(rule: str) -> str:
    return f"[REDACTED:{rule}]"
