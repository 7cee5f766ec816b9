"""The program `bench`: arguments in, one call, a result printed, an exit code."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import traceback
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from bench import PRODUCER
from bench.errors import EXIT_BUG, EXIT_NOT_PASSED, EXIT_NOT_STORED, EXIT_PASSED, BenchError
from bench.identity import IdentityFlags, marketplace_id, positive_number

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}
_ENDS = """exit codes of `bench run`:
  0  evidence stored, the run passed
  1  evidence stored, the run did not pass: the instance may go
  2  usage
  3  closing stored, some evidence is lost for good
  4  not stored: keep the instance
  70 our own bug"""


def main(argv: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if argv is None else argv)
    given, command = _split_command(given)
    options = build_parser().parse_args(given)
    options.command = command
    try:
        code: int = options.act(options)
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_NOT_PASSED
    except Exception:  # noqa: BLE001 - the outermost line: a bug of ours must say so, with its own exit code
        traceback.print_exc()
        return EXIT_BUG
    return code


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all subcommands."""
    parser = argparse.ArgumentParser(
        prog="bench", description="Record a benchmark on a rented machine: nothing of it is lost."
    )
    parser.add_argument("--version", action="version", version=PRODUCER)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_run(commands)
    _add_inspect(commands)
    _add_simulate(commands)
    return parser


def _split_command(argv: list[str]) -> tuple[list[str], list[str]]:
    """argparse would drop a second `--`, which may be the command's own."""
    return (argv[: argv.index("--")], argv[argv.index("--") + 1 :]) if "--" in argv else (argv, [])


def _add_run(commands: Any) -> None:
    run = commands.add_parser(
        "run",
        help="one run, from opening to closing",
        usage="bench run --store URL [options] [-- COMMAND ...]",
        epilog=_ENDS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.add_argument("--store", required=True, metavar="URL", help="file:///FOLDER or s3://BUCKET/PREFIX")
    run.add_argument(
        "--plan", default="command", metavar="FILE|NAME", help="what to run (built in: command, cuzk, redis)"
    )
    run.add_argument("--set", action="append", default=[], type=_pair, metavar="NAME=VALUE", help="a plan's setting")
    run.add_argument("--log", action="append", default=[], type=_pair, metavar="NAME=PATH", help="follow this file too")
    run.add_argument("--stage", default="benchmark", help="name of what stands after -- (default: benchmark)")
    run.add_argument("--timeout-s", type=positive_number, metavar="N", help="limit of the whole run")
    run.add_argument("--price-usd-per-hour", type=positive_number, metavar="X")
    run.add_argument("--usd-per-proof", type=positive_number, metavar="X", help="what a proof earns (default: 0.008)")
    run.add_argument(
        "--min-rate", type=positive_number, metavar="X", help="proofs per hour (default: price / usd per proof)"
    )
    run.add_argument(
        "--machine-id", type=marketplace_id, metavar="N", help="the marketplace's id of the physical machine"
    )
    run.add_argument("--spool", type=Path, metavar="DIR", help="where evidence lies until it is stored")
    run.add_argument(
        "--keep-at-most", type=duration_s, default=1800.0, metavar="30m", help="how long to try to store it"
    )
    run.add_argument("--json", action="store_true", help="print the receipt as JSON")
    run.set_defaults(act=_run)


def _add_inspect(commands: Any) -> None:
    inspect = commands.add_parser("inspect", help="what a bundle holds")
    inspect.add_argument("bundle", metavar="URL_OR_DIR")
    inspect.add_argument("--logs", metavar="STREAM", help="print this stream, byte for byte")
    inspect.add_argument("--json", action="store_true")
    inspect.set_defaults(act=_inspect)


def _add_simulate(commands: Any) -> None:
    simulate = commands.add_parser("simulate", help="a synthetic fleet as real bundles, with its ground truth")
    simulate.add_argument("--store", required=True, metavar="URL")
    simulate.add_argument("--machines", type=int, required=True, metavar="N")
    simulate.add_argument("--days", type=int, required=True, metavar="D")
    simulate.add_argument("--seed", type=int, required=True, metavar="S")
    simulate.add_argument("--end", type=_instant, metavar="T", help="RFC 3339; default: now, cut to the minute")
    simulate.add_argument("--runs-per-day", type=positive_number, default=0.5, metavar="X", help="of each machine")
    simulate.add_argument("--log-lines", type=int, default=200, metavar="N", help="of each run")
    simulate.add_argument("--truth", type=Path, metavar="FILE", help="write the truth there, as Parquet")
    simulate.add_argument("--json", action="store_true")
    simulate.set_defaults(act=_simulate)


def duration_s(text: str) -> float:
    """Return the seconds of `90`, `90s`, `30m` or `2h`."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration, as in 90s, 30m or 2h")
    return float(match[1]) * _SECONDS[match[2]]


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals or not value:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _instant(text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time, as in 2026-12-01T00:00:00Z") from None
    return instant if instant.tzinfo else instant.replace(tzinfo=timezone.utc)


def _run(options: argparse.Namespace) -> int:
    from bench.last_words import last_words, not_stored_words
    from bench.plan import read_plan, with_command, with_follow, with_settings
    from bench.redact import make_redactor
    from bench.runner import RunConfig, environment_of_process, run
    from bench.spool import default_base
    from bench.store import open_store

    environment = environment_of_process()
    plan = with_settings(read_plan(options.plan), dict(options.set))
    plan = with_command(with_follow(plan, dict(options.log)), options.command, options.stage)
    flags = IdentityFlags(options.machine_id, options.price_usd_per_hour, options.usd_per_proof, options.min_rate)
    spool_base = (options.spool or default_base(environment)).absolute()
    config = RunConfig(
        open_store(options.store), plan, flags, spool_base, environment, options.timeout_s, options.keep_at_most
    )
    receipt = run(config)
    if not receipt.is_passed:
        print(last_words(receipt, make_redactor(environment, b"")), file=sys.stderr)
    if receipt.exit_code == EXIT_NOT_STORED:
        print(not_stored_words(receipt), file=sys.stderr)
    found = {"run_id": receipt.run_id, "is_passed": receipt.is_passed, "exit_code": receipt.exit_code}
    word = "passed" if receipt.is_passed else "did not pass"
    print(json.dumps(found) if options.json else f"run {receipt.run_id} {word}; exit code {receipt.exit_code}")
    return receipt.exit_code


def _inspect(options: argparse.Namespace) -> int:
    from bench.inspect import read_bundle

    bundle = read_bundle(options.bundle)
    if options.logs is not None:
        for line in bundle.stream(options.logs):
            sys.stdout.buffer.write(line)
        return EXIT_PASSED
    faults = bundle.faults()
    found = {
        "bundle": bundle.name,
        "objects": {name: len(data) for name, data in sorted(bundle.objects.items())},
        "stages": bundle.rows("stages"),
        "faults": faults,
    }
    print(json.dumps(found, default=str, indent=None if options.json else 2))
    return EXIT_NOT_PASSED if faults else EXIT_PASSED


def _simulate(options: argparse.Namespace) -> int:
    from bench.simulation.settings import SimulationSettings
    from bench.simulation.simulate import simulate
    from bench.store import open_store

    end = options.end or datetime.now(timezone.utc).replace(second=0, microsecond=0)
    settings = SimulationSettings(
        machines=options.machines,
        days=options.days,
        seed=options.seed,
        end=end,
        runs_per_day=options.runs_per_day,
        log_lines=options.log_lines,
        truth_file=options.truth,
    )
    summary = simulate(settings, open_store(options.store), _progress)
    print(summary)
    return EXIT_PASSED


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\rsimulate: {done} of {total} runs", end="\n" if done == total else "", file=sys.stderr, flush=True)
    elif done == total:
        print(f"simulate: {done} of {total} runs", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
