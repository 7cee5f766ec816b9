"""Public failure reports (threads cited in `handed_cases.jsonl`): what the first judgement makes of their text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.contract import LOGS, TELEMETRY
from data import FOLDER
from harvest.contract import Blame, BundleState
from harvest.diagnosis.evidence import RunEvidence
from harvest.diagnosis.rules import Verdict, judge
from harvest.diagnosis.signatures import parse_signatures
from harvest.tables import empty_frame
from tests.builders import make_frame

CASES = [json.loads(line) for line in (Path(__file__).parent / "handed_cases.jsonl").read_text("utf-8").splitlines()]
SIGNATURES = parse_signatures((FOLDER / "signatures.toml").read_text(encoding="utf-8"))


def verdict(case: dict[str, Any]) -> Verdict:
    """Judge a case as a failed run whose daemon's log is the report's text and nothing else."""
    rows = [
        {"seq": seq, "stream": "daemon", "text": text, "terminator": 1, "is_continued": False}
        for seq, text in enumerate(case["snippet"].split("\n"))
    ]
    stage = {"stage_index": 0, "stage": "benchmark", "end_kind": "exited", "exit_code": 1, "runner_signals": []}
    run = {"bundle_state": str(BundleState.FINISHED), "end_reason": "finished"}
    return judge(RunEvidence(run, [stage], [], make_frame(LOGS, *rows), empty_frame(TELEMETRY)), SIGNATURES)


def test_how_many_cases_get_their_root_line_by_a_signature(capsys: pytest.CaptureFixture[str]) -> None:
    ids = {each.id for each in SIGNATURES.signatures}
    verdicts = [verdict(case) for case in CASES]
    by_signature = sum(each.rule in ids for each in verdicts)
    answered = sum(each.blame != Blame.UNKNOWN for each in verdicts)
    with capsys.disabled():
        print(f"\nhanded cases: {len(CASES)}; root line by a signature: {by_signature}; not `unknown`: {answered}")
    assert by_signature >= 10


def test_no_case_blames_a_machine_that_was_not_at_fault() -> None:
    wrong = [
        case["id"] for case in CASES if verdict(case).blame == "machine" and not case["class"].startswith("machine")
    ]
    assert wrong == []
