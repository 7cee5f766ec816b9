"""The site's folder: written beside the old one, then put in its place by one rename; a stranger's is left alone."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reports.errors import SiteBusy, SiteNotOurs, SiteNotWritten

MARKER = ".lastwords-site.json"
_MARKER_TEXT = json.dumps({"site": "lastwords", "format": 1}) + "\n"
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def refuse_foreign(site: Path) -> None:
    """Raise SiteNotOurs where the folder is a file, or holds something and no marker of ours."""
    if not site.exists():
        return
    if site.is_dir() and (not any(site.iterdir()) or (site / MARKER).is_file()):
        return
    raise SiteNotOurs(
        f"{site} exists and was not written by `reports build` (it has no {MARKER}). "
        "Nothing was touched; name an empty or a new folder with --site."
    )


@contextmanager
def new_site(site: Path) -> Iterator[Path]:
    """Give a fresh folder beside the site, with our marker in it; whatever is left of it in the end is removed.

    Raises:
        SiteBusy: another build is writing the same site.
        SiteNotWritten: the folder cannot be made.
    """
    neighbour = site.parent / f".{site.name}.building"
    try:
        lock = _make_locked(neighbour)
        (neighbour / MARKER).write_text(_MARKER_TEXT, encoding="utf-8")
    except OSError as error:
        raise not_written(neighbour, error) from error
    try:
        yield neighbour
    finally:
        shutil.rmtree(neighbour, ignore_errors=True)
        os.close(lock)


def _make_locked(neighbour: Path) -> int:
    """Make the folder and lock it. One that exists and is not locked was left by a build that died."""
    neighbour.mkdir(parents=True, exist_ok=True)
    lock = os.open(neighbour, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise SiteBusy(f"{neighbour} is being written by another build. Nothing was touched; wait for it.") from error
    for left in neighbour.iterdir():
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    return lock


def switch(neighbour: Path, site: Path) -> None:
    """Put the new site in the old one's place. Where the kernel can exchange two names, no reader sees a gap.

    After an exchange the old site stands under the neighbour's name, where `new_site` removes it.

    Raises:
        SiteNotWritten: the rename was refused; the old site is kept.
    """
    try:
        if not site.exists():
            neighbour.rename(site)
        elif not _exchange(neighbour, site):
            _replace(neighbour, site)
    except OSError as error:
        raise not_written(site, error) from error


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names in one step; false where the system or the file system cannot."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:  # not Linux, or an old C library
        return False
    if rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number), str(other))


def _replace(neighbour: Path, site: Path) -> None:
    old = site.parent / f".{site.name}.old"
    shutil.rmtree(old, ignore_errors=True)
    site.rename(old)
    try:
        neighbour.rename(site)
    except OSError:
        old.rename(site)
        raise
    shutil.rmtree(old, ignore_errors=True)


def not_written(place: Path, error: OSError) -> SiteNotWritten:
    """Return the error for a write that the system refused."""
    return SiteNotWritten(
        f"{place} cannot be written: {error.strerror or error}. The old site is kept; "
        "make room or give the right to write, then run the same command again."
    )
