"""Which error record is the root: the earliest that is no echo, the daemon's before any other's. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from harvest.diagnosis.evidence import Origin, RunEvidence
from harvest.diagnosis.records import ErrorRecord

ORDER = (Origin.DAEMON, Origin.SETUP, Origin.STAGE, Origin.BENCHMARK)
"""The client's words come last: its output never names the cause of a daemon's failure."""


def root_record(evidence: RunEvidence, records: Sequence[ErrorRecord]) -> ErrorRecord | None:
    """Return the root among the records (in the order captured), null without any.

    A record that a signature explains goes before one of the same origin that nothing explains but its being an error;
    an echo is the root only where nothing else is there.
    """
    spoken = [each for each in records if not each.is_echo]
    for origin in ORDER:
        own = [each for each in spoken if each.root.origin == origin]
        known = [each for each in own if each.signature_id is not None or each.is_crash]
        if own:
            return (known or own)[0]
    return next((each for each in records if each.is_echo), None)
