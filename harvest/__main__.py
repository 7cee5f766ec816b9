"""`harvest`: parses, calls one function, prints its result, returns a code."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from harvest import errors
from harvest.errors import HarvestError

EPILOG = """exit codes: 0 all accepted (an empty store too, and says so); 1 runs do not add up, nothing switched;
2 usage; 3 done, but something was refused (see `rejects`); 4 store, data folder or disk cannot be read or written,
data of a newer version, or another harvest at work: nothing changed; 70 our own bug"""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="harvest",
        description="Bundles -> published tables.",
        epilog=EPILOG,
        formatter_class=form,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser(
        "run", help="do one harvest", description="Take in what is new in the store, judge it, score the machines, "
        "and publish the tables by one switch.", epilog=EPILOG, formatter_class=form, allow_abbrev=False,
    )  # fmt: skip
    run.add_argument("--store", required=True, metavar="URL", help="bundles: file:///FOLDER or s3://BUCKET/PREFIX")
    run.add_argument("--data", required=True, type=Path, metavar="DIR", help="where the tables are published")
    run.add_argument("--launches", metavar="URL", help="launch records, where they have a store of their own")
    run.add_argument("--policy", type=Path, metavar="FILE", help="default: DIR/policy.toml, else the one shipped")
    run.add_argument("--summary", type=Path, metavar="FILE", help="write the result there too, as JSON")
    run.add_argument("--engine", choices=["local"], default="local", help="where bundles are read: this machine")
    run.add_argument(
        "--as-of", type=_instant, metavar="T", help="judge as of then, like 2026-12-01T05:00:00Z; default: now"
    )
    run.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the code is as in the help."""
    args = build_parser().parse_args(argv)
    try:
        return _run(args)
    except HarvestError as error:
        print(f"harvest: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("harvest: stopped. The published tables are as before; run the same command again.", file=sys.stderr)
        return errors.EXIT_NOTHING_CHANGED
    except Exception:  # noqa: BLE001  # the outermost line: our own bug, told with its traceback
        traceback.print_exc()
        print("harvest: this is a bug of lastwords; the published tables are as before.", file=sys.stderr)
        return errors.EXIT_BUG


def _run(args: argparse.Namespace) -> int:
    # Imported here, so that --help is quick and that a worker process can limit its threads before polars starts.
    from harvest import engine, pipeline, settings, steps

    settings.check_summary_path(args.summary)
    order = pipeline.Order(
        store_url=args.store,
        launches_url=args.launches,
        data=args.data.absolute(),
        as_of=args.as_of,
        policy=settings.read_policy(args.policy, args.data),
        signatures_text=settings.read_signatures(),
    )
    progress = steps.ProgressText(sys.stderr.isatty(), time.monotonic)
    timed = steps.Steps(
        time.monotonic, lambda event: print(progress.text_of(event), end="", file=sys.stderr, flush=True)
    )
    summary = pipeline.harvest(order, engine.local_processes, timed)
    print(summary.as_json() if args.json else summary.as_text(), flush=True)
    settings.write_summary(args.summary, summary.as_json())
    return summary.exit_code


def _instant(text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an instant like 2026-12-01T05:00:00Z") from None
    if instant.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text!r} has no zone; in UTC it ends with Z")
    return instant.astimezone(UTC)


if __name__ == "__main__":
    sys.exit(main())
