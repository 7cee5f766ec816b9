"""The page of one run: why did it end so, whose fault, what now?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from harvest.contract import Outcome
from reports import format as fmt
from reports import paths, sentences
from reports.causes import Causes, Explanation
from reports.charts import Chart
from reports.dataset import RunDetails
from reports.ends import end_notes, end_phrase
from reports.logs import LogTail, last_line, log_tails, shown_seqs
from reports.pages import run_evidence, run_machine
from reports.parts import Badge, Cell, Fact, Grid, Link, headings, outcome_badge
from reports.telemetry import run_charts, telemetry_grid

Row = Mapping[str, Any]
MAX_PROOF_ROWS = 500


@dataclass(frozen=True, slots=True)
class RunPage:
    """Everything the run page shows, as text."""

    path: str
    title: str
    heading: str
    badge: Badge
    lead: sentences.Lead
    threshold_warning: str
    root: run_evidence.Root | None
    no_root: str
    last_line: str
    explanation: Explanation | None
    explanation_href: str
    fingerprint: Link | None
    facts: tuple[Fact, ...]
    verdict: tuple[Fact, ...]
    stages: Grid
    end_notes: tuple[str, ...]
    charts: tuple[Chart, ...]
    telemetry: Grid
    telemetry_errors: str
    proofs: Grid
    threshold: str
    money: tuple[Fact, ...]
    settings: Grid
    software: tuple[Fact, ...]
    plan_warnings: tuple[str, ...]
    identity: tuple[Fact, ...]
    hardware: tuple[Fact, ...]
    gpus: Grid
    logs: tuple[LogTail, ...]
    evidence: tuple[Fact, ...]
    missing: tuple[str, ...]
    trouble: tuple[str, ...]
    bundle: tuple[Fact, ...]


def run_page(run: Row, details: RunDetails, causes: Causes, unreadable: tuple[str, ...] = ()) -> RunPage:
    """Return the page of a run. It depends on this run alone: no clock, no count over other runs.

    Args:
        run: its row of `runs`.
        details: its stages, proofs, telemetry and logs; each may be empty.
        causes: the words of the verdict explained.
        unreadable: names of tables that could not be read for its date.
    """
    stages = details.stages.sort("stage_index").to_dicts()
    root = run_evidence.root_evidence(run)
    is_whole = run["outcome"] != Outcome.PASSED
    tails = log_tails(details.logs, run["streams"] or (), root, is_whole=is_whole, bundle=run["bundle_key"] or "")
    explanation = causes.explain("cause", run["cause"]) or causes.explain("outcome", run["outcome"])
    deciding = sentences.deciding_stage(stages)
    last = last_line(details.logs, deciding["stage"]) if deciding else ""
    return RunPage(
        path=paths.run_page(run["run_id"]),
        title=f"Run {fmt.short_run_id(run['run_id'])}: {outcome_badge(run['outcome']).word}",
        heading=_heading(run),
        badge=outcome_badge(run["outcome"]),
        lead=sentences.lead(run, stages, causes),
        threshold_warning=sentences.threshold_warning(run),
        root=run_evidence.root_block(run, shown_seqs(tails)),
        no_root="" if run["outcome"] == Outcome.PASSED else "No line of any log says why.",
        last_line=last,
        explanation=explanation if explanation is not None and explanation.is_written else None,
        explanation_href=_explanation_href(run, causes),
        fingerprint=_fingerprint(run),
        facts=_facts(run, stages, last),
        verdict=_verdict(run),
        stages=_stages_grid(stages),
        end_notes=tuple(f"{stage['stage']}: {note}" for stage in stages for note in end_notes(stage)),
        charts=run_charts(run, stages, details.telemetry, sentences.began_at(run)),
        telemetry=telemetry_grid(details.telemetry),
        telemetry_errors=_telemetry_errors(details.telemetry),
        proofs=_proofs_grid(details.proofs),
        threshold=sentences.threshold_sentence(run),
        money=_money(run),
        settings=run_machine.settings_grid(run),
        software=run_machine.software_facts(run),
        plan_warnings=run_machine.plan_warnings(run),
        identity=run_machine.identity_facts(run),
        hardware=run_machine.hardware_facts(run),
        gpus=run_machine.gpus_grid(run),
        logs=tails,
        evidence=run_evidence.evidence_facts(run, details, unreadable),
        missing=tuple(run["missing_evidence"] or ()),
        trouble=run_evidence.trouble(run),
        bundle=_bundle(run),
    )


def _heading(run: Row) -> str:
    parts = [fmt.gpus_text(run["gpu_model"], run["num_gpus"])]
    if run["machine_id"] is not None:
        parts.append(f"machine {run['machine_id']}")
    if run["instance_label"]:
        parts.append(run["instance_label"])
    return " · ".join((*parts, fmt.instant(sentences.began_at(run))))


def _explanation_href(run: Row, causes: Causes) -> str:
    for kind in ("cause", "outcome"):
        explanation = causes.explain(kind, run[kind])
        if explanation is not None and explanation.is_written:
            return paths.cause_anchor(kind, explanation.slug)
    return ""


def _fingerprint(run: Row) -> Link | None:
    if run["fingerprint_id"] is None:
        return None
    return Link(run["fingerprint_title"] or run["fingerprint_id"], paths.failure_page(run["fingerprint_id"]))


def _facts(run: Row, stages: Sequence[Row], last: str) -> tuple[Fact, ...]:
    """The figures that the sentence rests on. A rate that was not measured carries the end and the last line."""
    rate_note = f"last line: {last}" if run["rate_proofs_per_hour"] is None and last else ""
    proofs = sentences.proofs_phrase(run) or "none asked for"
    return (
        Fact("Proofs", proofs),
        Fact("Rate", sentences.rate_phrase(run, stages), rate_note),
        Fact("Judged against", _min_rate(run), _source(run)),
        Fact("Lasted", fmt.duration(sentences.run_wall_s(run))),
        Fact("Cost", fmt.usd(run["usd_spent"]), f"at {fmt.usd_per_hour(run['price_usd_per_hour'])}"),
    )


def _min_rate(run: Row) -> str:
    value = run["min_rate_proofs_per_hour"]
    return "no min rate" if value is None else fmt.rate(value)


def _source(run: Row) -> str:
    return f"min rate from: {run['min_rate_source']}" if run["min_rate_source"] else ""


def _verdict(run: Row) -> tuple[Fact, ...]:
    return (
        Fact("Outcome", fmt.words(run["outcome"])),
        Fact("Blame", fmt.words(run["blame"])),
        Fact("Cause", fmt.words(run["cause"])),
        Fact("Certainty", fmt.words(run["certainty"])),
        Fact("Action", fmt.words(run["action"])),
        Fact("Rule", run["rule"] or fmt.NOT_KNOWN),
        Fact("Counts for the machine's score", "yes" if run["is_scored"] else "no"),
    )


def _stages_grid(stages: Sequence[Row]) -> Grid:
    rows = tuple(
        (
            Cell(stage["stage"], note=" ".join(stage["argv"] or ())),
            Cell(end_phrase(stage), tone=_end_tone(stage)),
            Cell(fmt.minute(stage["started_at"]), at=fmt.rfc3339(stage["started_at"])),
            Cell(fmt.duration(stage["wall_s"]), sort=str(stage["wall_s"] or "")),
            Cell(fmt.duration(_cpu_s(stage)), sort=str(_cpu_s(stage) or "")),
            Cell(fmt.bytes_text(stage["max_rss_bytes"]), sort=str(stage["max_rss_bytes"] or "")),
            Cell(_ready(stage)),
        )
        for stage in stages
    )
    titles = headings(
        "Stage:code",
        "End",
        "Started (UTC):time",
        "Lasted:number",
        "Processor time:number",
        "Peak memory:number",
        "Ready after:number",
    )
    return Grid("stages", "Stages and their ends", titles, rows, "No process's start or end was recorded.")


def _end_tone(stage: Row) -> str:
    if stage["exit_code"] == 0 and not stage["is_end_hidden"]:
        return "good"
    return "warn" if stage["end_kind"] == "stopped_by_runner" else "bad"


def _cpu_s(stage: Row) -> float | None:
    parts = (stage["user_cpu_s"], stage["system_cpu_s"])
    return None if None in parts else float(sum(parts))


def _ready(stage: Row) -> str:
    if stage["ready_at"] is None or stage["started_at"] is None:
        return "–"
    return fmt.duration((stage["ready_at"] - stage["started_at"]).total_seconds())


def _proofs_grid(proofs: pl.DataFrame) -> Grid:
    rows = tuple(
        (
            Cell(str(proof["proof_index"])),
            Cell(proof["phase"]),
            Cell(proof["status"], tone="good" if proof["status"] == "completed" else "bad", note=proof["error"] or ""),
            Cell(fmt.duration(proof["wall_s"]), sort=str(proof["wall_s"] or "")),
            Cell(fmt.duration(proof["prove_s"]), sort=str(proof["prove_s"] or "")),
            Cell(fmt.duration(proof["queue_s"]), sort=str(proof["queue_s"] or "")),
        )
        for proof in proofs.sort("proof_index").head(MAX_PROOF_ROWS).to_dicts()
    )
    titles = headings("Proof:number", "Phase", "Status", "Wall time:number", "Prove time:number", "In queue:number")
    return Grid("proofs", "Proofs that the benchmark reported", titles, rows, "The benchmark reported no proof.")


def _telemetry_errors(telemetry: pl.DataFrame) -> str:
    errors = telemetry["error"].drop_nulls()
    if errors.is_empty():
        return ""
    return f"{fmt.counted(len(errors), 'sample')} could not be taken; the first because: {errors[0]}"


def _money(run: Row) -> tuple[Fact, ...]:
    return (
        Fact("Price", fmt.usd_per_hour(run["price_usd_per_hour"])),
        Fact("A proof earns", fmt.usd_per_proof(run["usd_per_proof"])),
        Fact("A proof cost", _achieved(run)),
        Fact("Min rate that follows from the price", fmt.rate(run["min_rate_from_price_proofs_per_hour"])
             if run["min_rate_from_price_proofs_per_hour"] is not None else fmt.NOT_KNOWN),
        Fact("Min rate in force", _min_rate(run), _source(run)),
        Fact("Spent", fmt.usd(run["usd_spent"]), _spent_source(run)),
        Fact("Lost", fmt.usd(run["usd_lost"])),
    )  # fmt: skip


def _achieved(run: Row) -> str:
    value = run["usd_per_proof_achieved"]
    return f"{fmt.NOT_MEASURED}: no rate" if value is None else fmt.usd_per_proof(value)


def _spent_source(run: Row) -> str:
    source = run["usd_spent_source"]
    return f"worked out from {fmt.words(source)}" if source else ""


def _bundle(run: Row) -> tuple[Fact, ...]:
    objects = "" if run["object_count"] is None else fmt.counted(run["object_count"], "object")
    return (
        Fact("Run id", run["run_id"]),
        Fact("Bundle", run["bundle_key"] or fmt.NOT_KNOWN, ", ".join(
            part for part in (objects, "" if run["stored_bytes"] is None else fmt.bytes_text(run["stored_bytes"])) if part)),
        Fact("First object stored", fmt.instant(run["first_stored_at"])),
        Fact("Newest object stored", fmt.instant(run["last_stored_at"])),
        Fact("Recorded by", f"lastwords {run['runner_version']}" if run["runner_version"] else fmt.NOT_KNOWN),
        Fact("Closed by", fmt.words(run["finished_by"]), fmt.words(run["end_reason"]) if run["end_reason"] else ""),
    )  # fmt: skip
