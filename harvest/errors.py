"""What can go wrong in a harvest, by what an operator would do about it; exit codes as in the README."""

from __future__ import annotations

EXIT_OK = 0
EXIT_UNACCOUNTED = 1
EXIT_USAGE = 2
EXIT_QUARANTINED = 3
EXIT_NOTHING_CHANGED = 4
EXIT_BUG = 70


class HarvestError(Exception):
    """Base of all errors of this part; `exit_code` is what the program ends with."""

    exit_code = EXIT_USAGE


class UsageError(HarvestError):
    """The command line asks for something that cannot be done; nothing was read or written."""


class PolicyError(HarvestError):
    """The policy file has a key or a value that it should not have; nothing was read or written."""


class SignatureError(HarvestError):
    """The signatures file is not one, or a signature fails its own sample; nothing was read or written."""


class UnaccountedRuns(HarvestError):
    """A run is in no place or in two, or a launched rental has no run: nothing was switched."""

    exit_code = EXIT_UNACCOUNTED


class StoreUnreadable(HarvestError):
    """The store cannot be listed or read; the published tables are as before."""

    exit_code = EXIT_NOTHING_CHANGED


class ObjectMissing(HarvestError):
    """An object that was listed is not there any more."""

    exit_code = EXIT_NOTHING_CHANGED


class DataNewer(HarvestError):
    """The data folder was written by a newer version; nothing was changed."""

    exit_code = EXIT_NOTHING_CHANGED


class DataBusy(HarvestError):
    """Another harvest writes the same data folder; nothing was changed."""

    exit_code = EXIT_NOTHING_CHANGED


class DataUnwritable(HarvestError):
    """The data folder cannot be read or written (disk full, rights); the published tables are as before."""

    exit_code = EXIT_NOTHING_CHANGED


class SummaryUnwritten(HarvestError):
    """The file of --summary cannot be written; the tables are published nevertheless."""

    exit_code = EXIT_NOTHING_CHANGED
