"""The process that seals: journal ranges and rows in, Parquet files out. The only part of a run that loads pyarrow.

Reads one JSON job a line on standard input, writes the sealed file, answers with one JSON line: its listing and what
was redacted. If pyarrow crashes, this process dies and the run goes on.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.lines import split_lines
from bench.redact import Redactor, make_redactor
from bench.seal import seal_rows

MODULE = "bench.sealer"


def main() -> int:
    redactor: Redactor | None = None
    for line in sys.stdin.buffer:
        job = json.loads(line)
        if redactor is None:
            redactor = make_redactor(os.environ, bytes.fromhex(job["address_key"]))
        print(json.dumps(seal_job(job, redactor)), flush=True)
    return 0


def seal_job(job: Mapping[str, Any], redactor: Redactor) -> dict[str, Any]:
    """Seal one object and write it to `job["file"]`; return its listing, and redactions by rule and by stream."""
    by_rule: Counter[str] = Counter()
    by_stream: Counter[str] = Counter()
    rows = job["rows"] if "rows" in job else _log_rows(job["chunks"], redactor, by_rule, by_stream)
    sealed = seal_rows(job["table"], rows, job["run_id"], job["part"])
    path = Path(job["file"])
    with path.with_suffix(".new").open("wb") as file:
        file.write(sealed.data)
        file.flush()
        os.fsync(file.fileno())
    path.with_suffix(".new").rename(path)
    return {**sealed.listing(), "redactions": by_rule, "stream_redactions": by_stream}


def _log_rows(
    chunks: list[dict[str, Any]], redactor: Redactor, by_rule: Counter[str], by_stream: Counter[str]
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for chunk in chunks:
        with Path(chunk["path"]).open("rb") as file:
            content = os.pread(file.fileno(), chunk["end"] - chunk["start"], chunk["start"])
        for seq, line in enumerate(split_lines(content, is_cut=chunk["is_cut"]), chunk["first_seq"]):
            text, raw = line.as_text()
            clean, counts = redactor.redact(text)
            if counts:
                by_rule.update(counts)
                by_stream[chunk["stream"]] += sum(counts.values())
                raw = None  # the bytes hold the secret too
            rows.append(
                {
                    "seq": seq,
                    "stream": chunk["stream"],
                    "captured_at": chunk["at"],
                    "text": clean,
                    "raw": raw,
                    "terminator": line.terminator,
                    "is_continued": line.is_continued,
                }
            )
    return rows


if __name__ == "__main__":
    sys.exit(main())
