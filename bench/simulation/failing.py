"""The last lines of what fails, and the end of a daemon that dies of it. Pure."""

from __future__ import annotations

from random import Random

from bench.contract import EndKind, KernelLog
from bench.simulation.daemon_log import instant_text, tracing_line
from bench.simulation.facts import RunFacts
from bench.simulation.recording import Recording, StageEnd
from bench.simulation.scenarios import KERNEL, Said, Shape

_LINE_STEP_S = 0.004
_DYING = (Shape.DAEMON_DIES, Shape.WARMUP_FAILS)


def say_failure(recording: Recording, facts: RunFacts, at_s: float, job_id: str) -> None:
    """Note the scenario's lines, the telling one among them, a few milliseconds apart."""
    for number, said in enumerate(facts.scenario.lines):
        stream = failure_stream(said, facts)
        if stream is not None:
            said_s = at_s + number * _LINE_STEP_S
            recording.say(said_s, stream, failure_text(said, facts, recording, said_s, job_id))


def failure_stream(said: Said, facts: RunFacts) -> str | None:
    """Return where a line goes; null where it is the kernel's and cannot be read there."""
    if said.stream != KERNEL or facts.machine.kernel_log == KernelLog.READABLE:
        return said.stream
    return said.else_to or None


def failure_text(said: Said, facts: RunFacts, recording: Recording, at_s: float, job_id: str) -> str:
    """Return a line with its places filled in."""
    places = {"job": job_id, "pci": facts.machine.pci_address, "pid": str(_daemon_pid(recording))}
    text = _filled(said.text, places)
    at = recording.at(at_s)
    if said.level == "GO":
        return f"{instant_text(at)[:-4]}Z\t{text}"
    if said.level:
        fields = tuple((name, _filled(value, places)) for name, value in said.fields)
        return tracing_line(at, said.level, said.target, text, fields)
    return text


def _filled(text: str, places: dict[str, str]) -> str:
    for name, value in places.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _daemon_pid(recording: Recording) -> int:
    return next((int(row["pid"]) for row in recording.stages if row["stage"] == "daemon"), 1)


def play_daemon_end(recording: Recording, facts: RunFacts, at_s: float, random: Random) -> None:
    """End the daemon where its failure is one that ends it; else it lives on."""
    scenario = facts.scenario
    if scenario.shape not in _DYING or (scenario.ended_by is None and scenario.exit_code is None):
        return
    end = StageEnd(
        EndKind.SIGNALLED if scenario.ended_by else EndKind.EXITED,
        exit_code=scenario.exit_code,
        signal=None if scenario.ended_by is None else int(scenario.ended_by),
        oom_kill_count=scenario.oom_kill_count,
    )
    if scenario.xid is not None and scenario.blame == "machine":
        recording.gpu_lost_s = at_s
    limit = facts.machine.memory_limit_bytes
    largest = limit if scenario.oom_kill_count and limit else facts.budget_bytes * 3 // 5
    recording.end_stage(at_s, "daemon", end, random.uniform(4.0, 6.0) * at_s, largest)
