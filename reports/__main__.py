"""`reports`: parses, calls one function, prints its result, returns a code."""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from dataclasses import asdict
from pathlib import Path

import data
from harvest import policy
from reports import build, errors
from reports.causes import Causes, parse_causes

EPILOG = """exit codes: 0 site switched; 1 pages do not match the data, nothing switched; 2 usage;
3 site switched, but some pages lack data; 4 tables unreadable or newer, disk full, folder not ours:
old site kept; 70 our own bug"""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="reports", description="Published tables -> a static site.", epilog=EPILOG, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    one = commands.add_parser(
        "build", help="build the site of a data folder", epilog=EPILOG, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    one.add_argument("--data", type=Path, required=True, metavar="DIR", help="folder with the published tables")
    one.add_argument(
        "--site", required=True, metavar="DIR", help="where the site is to stand: new, empty, or an older site of ours"
    )
    one.add_argument("--policy", type=Path, metavar="FILE", help="default: DATA/policy.toml, else the one shipped")
    one.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run one command; the code is as in the help."""
    args = build_parser().parse_args(argv)
    started = time.monotonic()
    try:
        site = _site_folder(args.site)
        report = build.build_site(args.data, site, _causes(), _harvest_interval_s(args), _told)
    except errors.ReportError as error:
        print(f"reports: {error}", file=sys.stderr)
        return error.exit_code
    except Exception:  # noqa: BLE001  # the outermost line: our own bug, told with its traceback
        traceback.print_exc()
        print("reports: this is a bug of lastwords; the old site is kept.", file=sys.stderr)
        return errors.EXIT_BUG
    _print_report(report, site / "index.html", time.monotonic() - started, is_json=args.json)
    return errors.EXIT_INCOMPLETE if report.unreadable else errors.EXIT_OK


def _site_folder(text: str) -> Path:
    if "://" in text:
        raise errors.UsageError(f"--site {text!r} is an address; name a folder. Nothing was read or written.")
    return Path(text).absolute()


def _causes() -> Causes:
    path = data.FOLDER / "causes.toml"
    return parse_causes(path.read_text(encoding="utf-8")) if path.is_file() else Causes()


def _harvest_interval_s(args: argparse.Namespace) -> float:
    own = args.data / "policy.toml"
    path = args.policy or (own if own.is_file() else data.FOLDER / "policy.toml")
    try:
        return policy.parse_policy(path.read_text(encoding="utf-8")).harvest_interval_s
    except (OSError, UnicodeDecodeError) as error:
        raise errors.UsageError(
            f"policy {path} cannot be read: {error}. The old site is kept; name another with --policy."
        ) from error
    except policy.PolicyError as error:  # type: ignore[attr-defined]  # parts share harvest.policy alone, and it raises this
        raise errors.UsageError(f"{path}: {error}") from error


def _told(line: str) -> None:
    """Progress: one line that is written over on a terminal, plain lines elsewhere."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)


def _print_report(report: build.BuildReport, index: Path, wall_s: float, *, is_json: bool) -> None:
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    for table in report.unreadable:
        print(f"reports: {table} could not be read; its pages say so. Run the harvest again.", file=sys.stderr)
    if is_json:
        print(json.dumps({**asdict(report), "index": str(index), "wall_s": round(wall_s, 3)}))
    else:
        print(
            f"{index}\n{report.page_count:,} pages in {wall_s:.1f} s: {report.run_count:,} runs, "
            f"{report.machine_count:,} machines, {report.failure_count:,} kinds of failure; as of {report.as_of or 'no harvest'}"
        )


if __name__ == "__main__":
    sys.exit(main())
