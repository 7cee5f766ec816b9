"""What `bench run` says when a run did not pass, for whoever sees only the entrypoint's output."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.contract import RUNNER_STREAM, EndKind
from bench.keys import bundle_prefix
from bench.redact import Redactor
from bench.runner import Receipt

TAIL_LINE_COUNT = 40
_TAIL_BYTES = 256 * 2**10


def end_sentence(row: Mapping[str, Any]) -> str:
    """Return how one stage ended, in a few words."""
    stage, kind = row["stage"], row["end_kind"]
    if kind == EndKind.NEVER_STARTED:
        return f"{stage} never started: {row['error']}"
    if row["signal"] is not None:
        how = f"was ended by signal {row['signal']} ({signal.Signals(row['signal']).name})"
    elif row["exit_code"] is not None:
        how = f"exited with code {row['exit_code']}"
    else:
        how = "did not end"
    reason = f", after the runner sent {_signals(row)}" if row["runner_signals"] else ""
    kills = f", with {row['oom_kill_count']} OOM kill(s) in its cgroup" if row["oom_kill_count"] else ""
    return f"{stage} {how} after {row['wall_s']:.1f} s{reason}{kills}"


def last_words(receipt: Receipt, redactor: Redactor) -> str:
    """Return the whole text: ends, proofs, rate against the min rate, where the evidence lies, the logs' last lines."""
    closing, opening = receipt.closing, receipt.opening
    lines = [f"bench: run {receipt.run_id} did not pass"]
    lines += [f"  {end_sentence(row)}" for row in receipt.stages]
    lines += [
        f"  proofs: completed {_count(closing['proofs_completed'])}, asked for {_count(closing['proofs_requested'])}"
    ]
    lines += [
        f"  rate: {_rate(closing['rate_proofs_per_hour'])}; min rate: {_rate(opening['min_rate_proofs_per_hour'])}"
    ]
    lines += [f"  evidence: {receipt.store_url}/{bundle_prefix(receipt.run_id)}"]
    lines += [f"  missing: {each}" for each in receipt.errors]
    for stream, path in receipt.log_paths.items():
        if stream != RUNNER_STREAM and (tail := _tail(Path(path), redactor)):
            lines += [f"--- last lines of {stream} ---", *tail]
    return "\n".join(lines)


def not_stored_words(receipt: Receipt) -> str:
    """Return what to do when the evidence did not reach the store."""
    return (
        f"bench: NOT STORED: the store did not take everything before --keep-at-most was over. All of it is in "
        f"{receipt.spool}; keep the instance, or copy that folder, before you destroy it."
    )


def _signals(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{signal.Signals(each['signal']).name} ({each['reason']})" for each in row["runner_signals"])


def _count(value: int | None) -> str:
    return "not measured" if value is None else str(value)


def _rate(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.1f} proofs/h"


def _tail(path: Path, redactor: Redactor) -> list[str]:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            text = file.read().decode("utf-8", "backslashreplace")
    except OSError:
        return []
    return [redactor.redact(line)[0] for line in text.splitlines()[-TAIL_LINE_COUNT:]]
