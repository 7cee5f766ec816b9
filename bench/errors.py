"""What can go wrong on the instance, by what an operator would do about it; exit codes as in the README."""

from __future__ import annotations

EXIT_PASSED = 0
EXIT_NOT_PASSED = 1
EXIT_USAGE = 2
EXIT_EVIDENCE_MISSING = 3
EXIT_NOT_STORED = 4
EXIT_BUG = 70


class BenchError(Exception):
    """Base of all errors of this part; `exit_code` is what the program ends with."""

    exit_code = EXIT_USAGE


class UsageError(BenchError):
    """The command line or the plan asks for something that cannot be done; nothing was started."""


class StoreError(BenchError):
    """The store did not take, or did not give, an object."""

    exit_code = EXIT_NOT_STORED


class StoreUnreachable(StoreError):
    """No answer, or an answer that says to try again: worth another try."""


class StoreRefused(StoreError):
    """The store said no (rights, a full disk, a redirect): another try gives the same answer."""


class ObjectExists(StoreRefused):
    """The key is taken; nothing was overwritten."""


class ObjectMissing(StoreError):
    """There is no object under that key."""


class SpoolError(BenchError):
    """The run's folder cannot be made or written; nothing was started."""

    exit_code = EXIT_NOT_STORED


class BundleUnreadable(BenchError):
    """What was given to `bench inspect` is not a bundle, or not whole."""

    exit_code = EXIT_NOT_STORED
