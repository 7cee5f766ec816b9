"""The words of the run page: why it ended so, whose fault, what now; the rate; the threshold worked out. Pure.

A run is a row of `runs` (a mapping by column name), stages are its rows of `stages`. A figure that was not
measured is never a zero: it is said in words, with the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.keys import run_time
from harvest.contract import Action, Blame, Certainty, Outcome
from reports import format as fmt
from reports.causes import Causes
from reports.ends import end_phrase

Row = Mapping[str, Any]

_FAULTS = {
    Blame.MACHINE: "the machine is to blame",
    Blame.SOFTWARE: "the software is to blame, not the machine",
    Blame.CONFIGURATION: "the configuration is to blame, not the machine",
    Blame.ENVIRONMENT: "the environment is to blame, not the machine",
    Blame.BENCHMARK_SCRIPT: "the benchmark script is to blame, not the machine",
    Blame.NONE: "nobody is to blame",
    Blame.UNKNOWN: "whose fault it was is not known",
}
_CERTAINTIES = {
    Certainty.DIRECT: "told directly by the evidence",
    Certainty.INFERRED: "inferred from the evidence",
    Certainty.FLEET: "from the behaviour of the whole fleet",
}
_ACTIONS = {
    Action.EXCLUDE_MACHINE: "rent another machine; the list decides whether this one comes back",
    Action.FILTER_OFFER: "filter such offers out before renting",
    Action.FIX_IMAGE: "fix the image before the next rental",
    Action.FIX_SCRIPT: "fix the benchmark script before the next rental",
    Action.RETRY: "run it again, nothing needs to be changed first",
    Action.INVESTIGATE: "read the lines below, no rule explains them yet",
    Action.NONE: "nothing to do",
}


@dataclass(frozen=True, slots=True)
class Lead:
    """The sentence that a run page begins with, in its three parts."""

    why: str
    fault: str
    now: str

    @property
    def text(self) -> str:
        return f"{self.why}; {self.fault}: {self.now}."


def lead(run: Row, stages: Sequence[Row], causes: Causes) -> Lead:
    """Return why a run ended so, whose fault it was, and what to do now."""
    return Lead(_why(run, stages, causes), fault_phrase(run["blame"], run["certainty"]), action_phrase(run["action"]))


def fault_phrase(blame: str | None, certainty: str | None) -> str:
    """Return whose fault it was and how that is known; a word that is not known is shown as it is."""
    fault = _FAULTS[Blame(blame or Blame.UNKNOWN)] if (blame or Blame.UNKNOWN) in set(Blame) else f"blame: {blame}"
    if blame in (None, Blame.NONE, Blame.UNKNOWN) or certainty not in set(Certainty):
        return fault
    return f"{fault} ({_CERTAINTIES[Certainty(certainty)]})"


def action_phrase(action: str | None) -> str:
    """Return what to do now; without a verdict somebody has to look."""
    word = action or Action.INVESTIGATE
    return _ACTIONS[Action(word)] if word in set(Action) else fmt.words(word)


def deciding_stage(stages: Sequence[Row]) -> Row | None:
    """Return the stage whose end decides: the last benchmark, else the last stage; null without stages."""
    benchmarks = [each for each in stages if each["stage"] == "benchmark"]
    return next(reversed(benchmarks or stages), None)


def _why(run: Row, stages: Sequence[Row], causes: Causes) -> str:
    story = _STORIES.get(run["outcome"], _untrusted)(run, stages)
    if run["outcome"] == Outcome.PASSED:
        return story
    title = cause_title(run, causes)
    return f"{title}: {story}" if title else _sentence_case(story)


def cause_title(run: Row, causes: Causes) -> str:
    """Return the cause's short name, else the fingerprint's where a root message was found, else nothing."""
    explanation = causes.explain("cause", run["cause"]) if run["blame"] != Blame.UNKNOWN else None
    if explanation is not None and explanation.is_written:
        return explanation.title
    root_title = str(run["fingerprint_title"] or "") if run["fingerprint_kind"] == "root" else ""
    return root_title or (explanation.title if explanation is not None else "")


def _ended(run: Row, stages: Sequence[Row]) -> str:
    """Return `the benchmark exited with code 1 after 10 min 20 s, with none of 12 proofs completed`."""
    stage = deciding_stage(stages)
    end = "the run ended, and no process's end was recorded"
    if stage is not None:
        end = f"{_the_stage(stage['stage'])} {end_phrase(stage)}{_after(stage['wall_s'])}"
    proofs = proofs_phrase(run)
    return f"{end}, with {proofs}" if proofs else end


def _passed(run: Row, _stages: Sequence[Row]) -> str:
    rate, threshold = run["rate_proofs_per_hour"], run["min_rate_proofs_per_hour"]
    if rate is None:
        return "The run passed: its command exited with code 0, and no rate was asked for"
    against = "" if threshold is None else f", at or above the {fmt.plain_rate(threshold)} asked for"
    return _sentence_case(f"{proofs_phrase(run)} at {fmt.rate(rate)}{against}")


def _too_slow(run: Row, _stages: Sequence[Row]) -> str:
    threshold = run["min_rate_proofs_per_hour"]
    asked = "its min rate" if threshold is None else f"the {fmt.plain_rate(threshold)} it was judged against"
    return f"{proofs_phrase(run)}, but only at {fmt.rate(run['rate_proofs_per_hour'])}, below {asked}"


def _incomplete(run: Row, stages: Sequence[Row]) -> str:
    stage = deciding_stage(stages)
    if stage is not None and stage["is_end_hidden"]:
        return f"{_ended(run, stages)}, but that end is a shell's word and proves nothing"
    return f"{_ended(run, stages)}, and its rate was not measured"


def _vanished(run: Row, _stages: Sequence[Row]) -> str:
    where = f" during {_the_stage(run['last_stage'])}" if run["last_stage"] else ""
    silence = f"the instance fell silent{where}{_alive(run)}, and no end was ever stored"
    proofs = proofs_phrase(run)
    return f"{silence}; {proofs} until then" if proofs else silence


def _interrupted(run: Row, stages: Sequence[Row]) -> str:
    reason = {
        "terminated": "the runner was told to stop",
        "runner_killed": "the runner was killed",
        "host_restarted": "the host was restarted",
    }.get(run["end_reason"] or "", "the run was broken off")
    where = f" during {_the_stage(run['last_stage'])}" if run["last_stage"] else ""
    proofs = proofs_phrase(run)
    return f"{reason}{where}{_lasted(run)}" + (f", with {proofs}" if proofs else "")


def _never_started(_run: Row, _stages: Sequence[Row]) -> str:
    return "the instance was rented, but no run ever began on it"


def _untrusted(_run: Row, _stages: Sequence[Row]) -> str:
    return "nothing that this run stored could be trusted, so it has no outcome"


_STORIES: Mapping[str | None, Callable[[Row, Sequence[Row]], str]] = {
    Outcome.PASSED: _passed,
    Outcome.TOO_SLOW: _too_slow,
    Outcome.INCOMPLETE: _incomplete,
    Outcome.FAILED: _ended,
    Outcome.PARTIAL: _ended,
    Outcome.TIMED_OUT: _ended,
    Outcome.INTERRUPTED: _interrupted,
    Outcome.VANISHED: _vanished,
    Outcome.NEVER_STARTED: _never_started,
}


def proofs_phrase(run: Row) -> str:
    """Return how many proofs completed: `all 12 proofs completed`, `none of 12 proofs completed`; empty: not asked.

    A batch that gave no summary leaves only what the daemon's log counts, and that is said.
    """
    asked, completed = run["proofs_requested"], run["proofs_completed"]
    if completed is None:
        return _uncounted(asked, run["proofs_completed_by_daemon"])
    if asked is None:
        return f"{fmt.counted(completed, 'proof')} completed"
    if completed >= asked:
        return f"all {asked} proofs completed"
    return f"{'none' if completed == 0 else completed} of {asked} proofs completed"


def _uncounted(asked: int | None, by_daemon: int | None) -> str:
    of_asked = "" if asked is None else f" of {asked}"
    if by_daemon:
        return f"{by_daemon}{of_asked} proofs completed by the daemon's count"
    return "" if asked is None else f"no result for any of {asked} proofs"


def rate_phrase(run: Row, stages: Sequence[Row]) -> str:
    """Return the rate; one that was not measured is said in words with the end, never as a number."""
    if run["rate_proofs_per_hour"] is not None:
        return fmt.rate(run["rate_proofs_per_hour"])
    stage = deciding_stage(stages)
    if stage is None:
        return f"{fmt.NOT_MEASURED}: no process's end was recorded"
    return f"{fmt.NOT_MEASURED}: {_the_stage(stage['stage'])} {end_phrase(stage)}"


def threshold_sentence(run: Row) -> str:
    """Return the min rate worked out from price and earnings, and what the run was really judged against."""
    price, earns, used = run["price_usd_per_hour"], run["usd_per_proof"], run["min_rate_proofs_per_hour"]
    worked_out = run["min_rate_from_price_proofs_per_hour"]
    judged = "this run had no min rate" if used is None else f"this run was judged against {fmt.plain_rate(used)}"
    if worked_out is None:
        missing = "price" if price is None else "earnings per proof"
        return f"The {missing} is not known, so no min rate follows from it; {judged}."
    return f"{fmt.usd_per_hour(price)} / {fmt.usd_per_proof(earns)} = {fmt.rate(worked_out)}; {judged}."


def threshold_warning(run: Row) -> str:
    """Return what is wrong where the min rate and the price disagree; empty where they agree or cannot be compared."""
    if run["is_min_rate_consistent"] is not False:
        return ""
    used, worked_out = run["min_rate_proofs_per_hour"], run["min_rate_from_price_proofs_per_hour"]
    side = "below" if used < worked_out else "above"
    source = f" (from: {run['min_rate_source']})" if run["min_rate_source"] else ""
    return (
        f"The min rate {fmt.plain_rate(used)}{source} and the price disagree: it is "
        f"{fmt.percent(abs(used / worked_out - 1))} {side} the {fmt.plain_rate(worked_out)} at which this machine "
        "pays for itself. Correct the threshold before trusting keep or destroy decisions."
    )


def _the_stage(stage: str) -> str:
    return f"the {stage}"


def _after(seconds: float | None) -> str:
    return "" if seconds is None else f" after {fmt.duration(seconds)}"


def _lasted(run: Row) -> str:
    return _after(run_wall_s(run))


def _alive(run: Row) -> str:
    seconds = run_wall_s(run)
    return "" if seconds is None else f" {fmt.duration(seconds)} after its start"


def run_wall_s(run: Row) -> float | None:
    """Return how long a run lasted: to its end by the runner's clock, else to its last sign of life in the store."""
    if run["started_at"] is not None and run["ended_at"] is not None:
        return float((run["ended_at"] - run["started_at"]).total_seconds())
    if run["last_stored_at"] is not None and run["first_stored_at"] is not None:
        return float((run["last_stored_at"] - run["first_stored_at"]).total_seconds())
    return None


def began_at(run: Row) -> Any:
    """Return when a run began: by the runner's clock, else the time in its id."""
    return run["started_at"] or run_time(run["run_id"])


def _sentence_case(text: str) -> str:
    return text[:1].upper() + text[1:]
