"""Object storage as the runner sees it: create a key once, ask for it, read it. Standard library only.

`file://` is a folder; `s3://bucket/prefix` is anything that speaks S3 (`bench.s3`).
"""

from __future__ import annotations

import errno
import os
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from bench.errors import ObjectExists, ObjectMissing, StoreRefused, StoreUnreachable, UsageError


class Store(Protocol):
    """Every method raises StoreUnreachable (try again) or StoreRefused (no use), each naming the store."""

    url: str
    credential: str
    """How the runner may write, as `opening.store_credential` says it: `file`, `keys` or `grant`."""

    def put_new(self, key: str, data: bytes, stored_at: datetime | None = None) -> None:
        """Create the object, whole or not at all. Raises ObjectExists where the key is taken.

        `stored_at` dates the object where the store can (a folder); others use their own clock.
        """

    def get(self, key: str) -> bytes:
        """Return the object's bytes. Raises ObjectMissing."""

    def list_keys(self, prefix: str) -> list[str]:
        """Return all keys that begin with `prefix`, sorted."""


def open_store(url: str) -> Store:
    """Return the store that a URL names. Nothing is asked of it yet.

    Raises:
        UsageError: the URL is of no kind that is known, or lacks a part.
    """
    parts = urlsplit(url)
    if parts.scheme == "file":
        return FileStore(url, _folder_of(url))
    if parts.scheme == "s3":
        from bench.s3 import s3_store  # kept out of the way of a start with a local store

        return s3_store(url, os.environ)
    raise UsageError(f"store {url!r} is neither file:///FOLDER nor s3://BUCKET/PREFIX. Nothing was started.")


def _folder_of(url: str) -> Path:
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise UsageError(f"store {url!r} needs an absolute path, as in file:///var/lib/lastwords/store.")
    return Path(unquote(parts.path))


class FileStore:
    """A folder as a store: an object is a file that appears whole under its key, and is never replaced."""

    credential = "file"

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url.rstrip("/")
        self.folder = folder

    def put_new(self, key: str, data: bytes, stored_at: datetime | None = None) -> None:
        path = self.folder / key
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _create_whole(path, data, stored_at)
        except FileExistsError:
            raise ObjectExists(f"{self.url}: {key!r} is already there; it was left as it is.") from None
        except OSError as error:
            raise _refused(self.url, key, error) from error

    def get(self, key: str) -> bytes:
        try:
            return (self.folder / key).read_bytes()
        except FileNotFoundError:
            raise ObjectMissing(f"{self.url} has no object {key!r}.") from None
        except OSError as error:
            raise _refused(self.url, key, error) from error

    def list_keys(self, prefix: str) -> list[str]:
        root = self.folder / prefix
        return sorted(str(each.relative_to(self.folder)) for each in root.rglob("*") if each.is_file())


def _create_whole(path: Path, data: bytes, stored_at: datetime | None) -> None:
    """Write to a neighbour, then link: unlike a rename, a link refuses a name that is taken."""
    descriptor, temporary = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        os.chmod(temporary, 0o644)
        if stored_at is not None:
            os.utime(temporary, (stored_at.timestamp(), stored_at.timestamp()))
        os.link(temporary, path)
    finally:
        os.unlink(temporary)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refused(url: str, key: str, error: OSError) -> StoreRefused | StoreUnreachable:
    text = f"{url} did not take {key!r}: {error.strerror} ({errno.errorcode.get(error.errno or 0, '?')})"
    if error.errno in (errno.EIO, errno.ETIMEDOUT, errno.ESTALE, errno.EAGAIN):
        return StoreUnreachable(text)
    return StoreRefused(text)
