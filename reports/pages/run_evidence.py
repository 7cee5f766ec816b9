"""The root line in its surroundings, and which evidence is there and which is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harvest.contract import BundleState
from reports import format as fmt
from reports.dataset import RunDetails
from reports.parts import Fact
from reports.visible import shown_line

_STATES = {
    BundleState.FINISHED: "closed by the runner",
    BundleState.CLOSING_PARTIAL: "closed in a hurry: what came after may be missing",
    BundleState.VANISHED: "never closed: the instance fell silent",
    BundleState.NEVER_STARTED: "nothing was ever stored",
    BundleState.QUARANTINED: "in quarantine: something of it was refused",
    BundleState.IMPORTED: "imported from an older record",
}


@dataclass(frozen=True, slots=True)
class EvidenceLine:
    """One line that the verdict rests on. `role`: `root`, `context`, `echo`; `has_gap`: lines were left out before it."""

    role: str
    stream: str
    seq: int
    text: str
    href: str
    has_gap: bool


@dataclass(frozen=True, slots=True)
class Root:
    """The root line and its surroundings in the order captured; `href` leads to it in the log, where it is shown."""

    text: str
    stream: str
    seq: int
    href: str
    surroundings: tuple[EvidenceLine, ...]


def root_evidence(run: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the evidence line that the verdict rests on; null where no line was found."""
    return next((line for line in run["evidence"] or () if line["role"] == "root"), None)


def root_block(run: Mapping[str, Any], linkable: frozenset[int]) -> Root | None:
    """Return the root line with its surroundings; `linkable` are the lines that the page's logs show."""
    root = root_evidence(run)
    if root is None:
        return None
    lines = sorted(run["evidence"], key=lambda line: (line["seq"], line["stream"]))
    before = [None, *lines[:-1]]
    return Root(
        text=shown_line(root["text"]),
        stream=root["stream"],
        seq=root["seq"],
        href=_href(root["seq"], linkable),
        surroundings=tuple(
            _line(line, linkable, has_gap=last is not None and line["seq"] > last["seq"] + 1)
            for last, line in zip(before, lines, strict=True)
        ),
    )


def _line(line: Mapping[str, Any], linkable: frozenset[int], *, has_gap: bool) -> EvidenceLine:
    href = _href(line["seq"], linkable)
    return EvidenceLine(line["role"], line["stream"], line["seq"], shown_line(line["text"]), href, has_gap)


def _href(seq: int, linkable: frozenset[int]) -> str:
    return f"#L{seq}" if seq in linkable else ""


def evidence_facts(run: Mapping[str, Any], details: RunDetails, unreadable: tuple[str, ...]) -> tuple[Fact, ...]:
    """Return what each kind of evidence holds, one fact each; nothing there is said, not left out."""
    state = run["bundle_state"]
    streams = details.logs["stream"].n_unique()
    held = (
        ("stages", "Ends of processes", details.stages.height, "process"),
        ("proofs", "Proofs", details.proofs.height, "proof"),
        ("logs", f"Logs of {fmt.counted(streams, 'stream')}", details.logs.height, "line"),
        ("telemetry", "Telemetry", details.telemetry.height, "sample"),
    )
    closing = _STATES[BundleState(state)] if state in set(BundleState) else fmt.words(state)
    facts = (_held(label, number, noun, table in unreadable) for table, label, number, noun in held)
    return (Fact("Bundle", closing), *facts)


def _held(label: str, number: int, noun: str, is_unreadable: bool) -> Fact:
    if is_unreadable:
        return Fact(label, "could not be read from the published tables", tone="bad")
    many = "processes" if noun == "process" else ""
    return Fact(label, fmt.counted(number, noun, many), tone="" if number else "warn")


def trouble(run: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what went wrong with the recording itself: flags, the runner's own errors, lost bytes, refused tables."""
    lines = [f"Flag of the runner: {fmt.words(flag)}." for flag in run["runner_flags"] or ()]
    lines += [f"Flag of the harvest: {fmt.words(flag)}." for flag in run["flags"] or ()]
    lines += [f"The runner says: {error}" for error in run["runner_errors"] or ()]
    lines += [f"Something of table {table} was refused; see rejects." for table in run["bad_tables"] or ()]
    if run["lost_log_bytes"]:
        lines.append(f"{fmt.bytes_text(run['lost_log_bytes'])} of log could not be kept.")
    return tuple(lines)
