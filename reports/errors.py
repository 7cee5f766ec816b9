"""What can go wrong while a site is built, by what an operator would do about it."""

from __future__ import annotations

EXIT_OK = 0
EXIT_MISMATCH = 1
EXIT_USAGE = 2
EXIT_INCOMPLETE = 3
EXIT_REFUSED = 4
EXIT_BUG = 70


class ReportError(Exception):
    """Base of all errors of this part; `exit_code` is what the program ends with."""

    exit_code = EXIT_REFUSED


class UsageError(ReportError):
    """The command line asks for something that cannot be done; nothing was read or written."""

    exit_code = EXIT_USAGE


class DataUnreadable(ReportError):
    """The data folder or one of its tables is not there or cannot be read; the old site is kept."""


class DataNewer(ReportError):
    """A table was written by a newer version than this one; the old site is kept."""


class SiteNotOurs(ReportError):
    """The site folder holds something that this program did not write; nothing was touched."""


class SiteBusy(ReportError):
    """Another build writes the same site; nothing was touched."""


class SiteNotWritten(ReportError):
    """The site cannot be written (disk full, rights); the old site is kept."""


class PagesDoNotMatch(ReportError):
    """A link leads nowhere, or the pages are not those that the tables ask for; nothing was switched."""

    exit_code = EXIT_MISMATCH
