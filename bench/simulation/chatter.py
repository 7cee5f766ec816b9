"""The ordinary lines between the telling ones: as many as a log needs to be as long as it was asked for. Pure."""

from __future__ import annotations

from random import Random

from bench.proofs import parse_batch
from bench.simulation.daemon_log import (
    LINES_PER_PARTITION,
    LINES_PER_SHORT_PARTITION,
    PARTITIONS_PER_PROOF,
    instant_text,
    partition_lines,
    short_partition,
)
from bench.simulation.recording import Line, ProofWindow, Recording


def fill_with_chatter(recording: Recording, log_lines: int, random: Random) -> None:
    """Add ordinary lines until the run has `log_lines`, spread over its proofs, else over its setup."""
    reported = parse_batch(line.text for line in recording.lines if line.stream.endswith(".stdout")).proofs
    missing = log_lines - len(recording.lines) - len(reported)
    if missing <= 0:
        return
    if not recording.windows:
        recording.lines += _download_lines(recording, missing, random)
        return
    share, rest = divmod(missing, len(recording.windows))
    engine_start_s = recording.windows[0].start_s
    for number, window in enumerate(recording.windows):
        count = share + (1 if number < rest else 0)
        recording.lines += _proof_lines(recording, window, engine_start_s, count, random)


def _proof_lines(
    recording: Recording, window: ProofWindow, engine_start_s: float, count: int, random: Random
) -> list[Line]:
    """Return exactly `count` lines about one proof: whole partitions while they fit, then short ones, then timings."""
    lines: list[Line] = []
    is_detailed = count >= PARTITIONS_PER_PROOF * LINES_PER_PARTITION
    size = LINES_PER_PARTITION if is_detailed else LINES_PER_SHORT_PARTITION
    block_count, rest = divmod(count, size)
    step_s = (window.end_s - window.start_s) / (block_count + 1)
    for block in range(block_count):
        at_s = window.start_s + (block + 0.5) * step_s
        partition, worker = block % PARTITIONS_PER_PROOF, block % 2
        since_s = at_s - engine_start_s
        if is_detailed:
            said = partition_lines(random, recording.at(at_s), since_s, window.job_id, partition, worker)
            lines += [Line(at_s, stream, text) for stream, text in said]
        else:
            texts = short_partition(random, since_s, window.job_id, partition, worker)
            lines += [Line(at_s, "daemon.stderr", text) for text in texts]
    last_s = window.start_s + (block_count + 0.5) * step_s
    for _ in range(rest):
        text = f"CUZK_TIMING: async_dealloc_ms={random.randrange(3, 400)}"
        lines.append(Line(last_s, "daemon.stderr", text))
    return lines


def _download_lines(recording: Recording, count: int, random: Random) -> list[Line]:
    """Return the progress that a download prints: what a run that never came further has to say."""
    until_s = recording.lines[-1].at_s - 1.0
    lines = []
    for number in range(count):
        at_s = 0.5 + (until_s - 0.5) * number / count
        stamp = instant_text(recording.at(at_s))[:-4]
        done_mib = int(30_900 * number / count) + random.randrange(8)
        text = f"{stamp}Z\tINFO\tparamfetch\tfastparamfetch/paramfetch.go:176\t{done_mib} MiB of 30937 MiB"
        lines.append(Line(at_s, "setup.stderr", text))
    return lines
