"""The files around a harvest that are no tables: the policy, the signatures, the summary."""

from __future__ import annotations

from pathlib import Path

import data
from harvest.diagnosis.signatures import parse_signatures
from harvest.errors import PolicyError, SummaryUnwritten, UsageError
from harvest.policy import Policy, parse_policy

POLICY_NAME = "policy.toml"


def read_policy(given: Path | None, data_folder: Path) -> Policy:
    """Return the policy of the file given, else of the data folder's own, else of the one shipped.

    Raises:
        PolicyError: it cannot be read, or a key or value of it is wrong; the file is named.
    """
    own = data_folder / POLICY_NAME
    path = given or (own if own.exists() else data.FOLDER / POLICY_NAME)
    try:
        return parse_policy(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(f"policy {path} cannot be read: {error}. Nothing was changed; name another file.") from error
    except PolicyError as error:
        raise PolicyError(f"{path}: {error}") from error


def read_signatures() -> str:
    """Return the text of the shipped signatures, each of which finds its own sample.

    Raises:
        SignatureError: one of them does not, or is not one.
    """
    text = (data.FOLDER / "signatures.toml").read_text(encoding="utf-8")
    parse_signatures(text)
    return text


def check_summary_path(path: Path | None) -> None:
    """Raise UsageError where a summary could not be written: better before the harvest than after it."""
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise UsageError(f"--summary {path}: name a file in a folder that is there. Nothing was changed.")


def write_summary(path: Path | None, text: str) -> None:
    """Write the summary, whole or not at all; a null path is no summary.

    Raises:
        SummaryUnwritten: it could not be written; the tables are published.
    """
    if path is None:
        return
    neighbour = path.with_name(f".{path.name}.new")
    try:
        neighbour.write_text(f"{text}\n", encoding="utf-8")
        neighbour.rename(path)
    except OSError as error:
        raise SummaryUnwritten(
            f"--summary {path} cannot be written: {error.strerror}. The harvest is done and its tables are published; "
            "only this file is missing: print it with --json."
        ) from error
