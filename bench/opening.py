"""The opening's row: who, where, at what price, on what machine, with which plan."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench import __version__
from bench.clock import utc_now_text
from bench.contract import OPENING, SCHEMA_VERSION
from bench.hardware import probe_hardware
from bench.identity import IdentityFlags, work_out_identity
from bench.plan import Plan
from bench.redact import make_redactor


def opening_row(
    plan: Plan, spool_folder: Path, flags: IdentityFlags, environment: Mapping[str, str], address_key: bytes
) -> dict[str, Any]:
    """Return the row, without `run_id`, `settings_asked` and `store_credential`; secrets are replaced.

    Takes as long as the probes do.
    """
    redactor = make_redactor(environment, address_key)
    told = plan.as_json()
    for stage in told["stages"]:
        stage["argv"] = redactor.redact_argv(stage["argv"])
    return {
        **OPENING.empty_row(),
        **probe_hardware(spool_folder, environment).as_row(),
        **work_out_identity(flags, environment, address_key).as_row(),
        "schema_version": SCHEMA_VERSION,
        "started_at": utc_now_text(),
        "runner_version": __version__,
        "plan_name": plan.name,
        "plan": redactor.redact(json.dumps(told))[0],
        "settings": dict(plan.settings),
        "settings_sources": {},
        "versions": {},
        "proof_kind": plan.settings.get("proof_kind", plan.proof_kind),
        "plan_warnings": [],
        "input_files": [],
    }
