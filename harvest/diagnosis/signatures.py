"""Known causes by the lines that tell them: `data/signatures.toml`, checked, and as one search over lines. Pure.

Patterns are in the regular expressions of Rust's crate `regex` (what polars uses): no look-around, and no line,
however hostile, makes a search slow.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import polars as pl

from harvest.contract import Action, Blame, Certainty
from harvest.diagnosis.evidence import Origin
from harvest.errors import SignatureError

NEXT = "Nothing was judged; correct the signatures file (data/signatures.toml explains each key) and run again."


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a line says of a run: the verdict, and the words for people. Certainty is null where blame is `unknown`."""

    blame: Blame
    cause: str
    certainty: Certainty | None
    action: Action
    title: str


@dataclass(frozen=True, slots=True)
class Signature:
    """A pattern that names a known cause.

    `needles` are literal words of which every match contains one; `streams` limits it to lines of these origins (empty:
    all). Where it is known how many proofs had completed before the line, `at_first_proof` (none) and `after_a_proof`
    (at least one) stand in the place of `meaning`, if given.
    """

    id: str
    meaning: Meaning
    pattern: str
    needles: tuple[str, ...]
    streams: tuple[Origin, ...]
    at_first_proof: Meaning | None
    after_a_proof: Meaning | None
    source: str
    must_match: tuple[str, ...]
    must_not_match: tuple[str, ...]

    def meaning_after(self, completed: int | None) -> Meaning:
        """Return the verdict, given how many proofs had completed before the line; null: not known."""
        if completed is None:
            return self.meaning
        return (self.after_a_proof if completed else self.at_first_proof) or self.meaning


@dataclass(frozen=True, slots=True)
class Echo:
    """A line that only repeats that something else went wrong: never the root when another is there."""

    pattern: str
    needles: tuple[str, ...]
    must_match: tuple[str, ...]


_Entry = TypeVar("_Entry", Signature, Echo)


@dataclass(frozen=True, slots=True)
class Signatures:
    """All signatures, the first that matches a line wins, and all echoes."""

    signatures: tuple[Signature, ...]
    echoes: tuple[Echo, ...]

    @property
    def needles(self) -> list[str]:
        own = [needle for each in self.signatures for needle in each.needles]
        return own + [needle for each in self.echoes for needle in each.needles]

    def get(self, signature_id: str) -> Signature:
        """Return the signature of that id. Raises KeyError where there is none."""
        return {each.id: each for each in self.signatures}[signature_id]

    def signature_id(self) -> pl.Expr:
        """Return, for a frame with `text` (free of control sequences) and `origin`, the id of the line's signature."""
        tests = [pl.when(_matches(each)).then(pl.lit(each.id)) for each in self.signatures]
        return pl.coalesce(*tests, pl.lit(None, pl.String))

    def is_echo(self) -> pl.Expr:
        """Return, for a frame with `text`, whether the line is an echo."""
        return pl.any_horizontal(pl.lit(False), *(pl.col("text").str.contains(each.pattern) for each in self.echoes))


def _matches(signature: Signature) -> pl.Expr:
    is_match = pl.col("text").str.contains(signature.pattern)
    return is_match & pl.col("origin").is_in(list(signature.streams)) if signature.streams else is_match


def parse_signatures(text: str) -> Signatures:
    """Return the signatures and echoes that the TOML text holds.

    Raises:
        SignatureError: the text is not TOML, an entry has a wrong key or value, an id comes twice, or an entry does
            not do what its own samples say; the entry is named.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SignatureError(f"signatures: the text is not TOML: {error}. {NEXT}") from error
    if unknown := sorted(tables.keys() - {"signature", "echo"}):
        raise SignatureError(f"signatures: {unknown} stand beside [[signature]] and [[echo]]. {NEXT}")
    signatures = tuple(_checked(_signature, each, _name(each)) for each in tables.get("signature", ()))
    echoes = tuple(_checked(_echo, each, f"echo {each.get('pattern')!r}") for each in tables.get("echo", ()))
    ids = [each.id for each in signatures]
    if twice := sorted({each for each in ids if ids.count(each) > 1}):
        raise SignatureError(f"signatures: the ids {twice} come twice. {NEXT}")
    return Signatures(signatures, echoes)


def _name(entry: Mapping[str, Any]) -> str:
    return f"signature {entry.get('id')!r}"


def _checked(make: Callable[[Mapping[str, Any]], _Entry], entry: Mapping[str, Any], name: str) -> _Entry:
    try:
        made = make(entry)
        problems = _sample_problems(made)
    except (KeyError, TypeError, ValueError) as error:
        raise SignatureError(f"signatures: {name}: {error!r}. {NEXT}") from error
    except pl.exceptions.ComputeError as error:
        raise SignatureError(f"signatures: {name}: its pattern is not one: {error}. {NEXT}") from error
    if problems:
        raise SignatureError(f"signatures: {name}: {'; '.join(problems)}. {NEXT}")
    return made


def _signature(entry: Mapping[str, Any]) -> Signature:
    known = {each.name for each in fields(Signature)} - {"meaning"} | {each.name for each in fields(Meaning)}
    if unknown := sorted(entry.keys() - known):
        raise ValueError(f"unknown keys {unknown}")
    return Signature(
        id=str(entry["id"]),
        meaning=_meaning(entry),
        pattern=str(entry["pattern"]),
        needles=_texts(entry["needles"]),
        streams=tuple(Origin(each) for each in entry.get("streams", ())),
        at_first_proof=_meaning(entry["at_first_proof"]) if "at_first_proof" in entry else None,
        after_a_proof=_meaning(entry["after_a_proof"]) if "after_a_proof" in entry else None,
        source=str(entry["source"]),
        must_match=_texts(entry["must_match"]),
        must_not_match=_texts(entry["must_not_match"]),
    )


def _meaning(entry: Mapping[str, Any]) -> Meaning:
    certainty = Certainty(entry["certainty"]) if "certainty" in entry else None
    meaning = Meaning(
        Blame(entry["blame"]), str(entry["cause"]), certainty, Action(entry["action"]), str(entry["title"])
    )
    if (meaning.blame == Blame.UNKNOWN) != (certainty is None):
        raise ValueError("certainty is given exactly where blame is not `unknown`")
    return meaning


def _echo(entry: Mapping[str, Any]) -> Echo:
    return Echo(str(entry["pattern"]), _texts(entry["needles"]), _texts(entry["must_match"]))


def _texts(value: Any) -> tuple[str, ...]:
    """Return a list of at least one text."""
    if not isinstance(value, list) or not value or not all(isinstance(each, str) for each in value):
        raise ValueError(f"a list of texts was expected, not {value!r}")
    return tuple(value)


def _sample_problems(entry: Signature | Echo) -> list[str]:
    """Return what an entry's own samples say against it; each sample is one line."""
    unmatched = [each for each in entry.must_match if not _finds(entry, each)]
    matched = [each for each in getattr(entry, "must_not_match", ()) if _finds(entry, each)]
    return [
        *(f"must match {each!r} (pattern and needles), and does not" for each in unmatched),
        *(f"must not match {each!r}, and does" for each in matched),
    ]


def _finds(entry: Signature | Echo, line: str) -> bool:
    is_hit = pl.col("text").str.contains(entry.pattern) & pl.col("text").str.contains_any(list(entry.needles))
    return bool(pl.DataFrame({"text": [line]}).select(is_hit).item())
