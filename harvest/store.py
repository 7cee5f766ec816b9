"""Object storage as the harvest sees it: list, read, and ask for its clock. Nothing here ever writes.

`file://` is a folder; `s3://bucket/prefix` is anything that speaks S3 (`harvest.object_storage`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from harvest.errors import ObjectMissing, StoreUnreadable, UsageError

_TEMPORARY_PREFIX = ".new-"
"""Names of files that a runner is still writing into a folder: not objects yet."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One object as a listing shows it; `stored_at` is by the store's clock."""

    key: str
    bytes: int
    stored_at: datetime


class ObjectStore(Protocol):
    """Every method raises StoreUnreadable, naming the store, where it gives no answer or says no."""

    url: str

    def list(self, prefix: str) -> list[StoredObject]:
        """Return the objects whose keys begin with `prefix`, sorted by key."""

    def get(self, key: str) -> bytes:
        """Return an object's bytes. Raises ObjectMissing."""

    def now(self) -> datetime:
        """Return the store's clock."""


def open_store(url: str) -> ObjectStore:
    """Return the store that a URL names. Nothing is asked of it yet.

    Raises:
        UsageError: the URL is of no kind that is known, lacks a part, or needs an extra that is not installed.
    """
    parts = urlsplit(url)
    if parts.scheme == "file":
        return FolderStore(url, _folder_of(url))
    if parts.scheme == "s3":
        return _bucket_store(url)
    raise UsageError(f"store {url!r} is neither file:///FOLDER nor s3://BUCKET/PREFIX. Nothing was read.")


def _bucket_store(url: str) -> ObjectStore:
    try:
        from harvest.object_storage import open_bucket  # its package comes with the extra `s3`
    except ModuleNotFoundError as error:
        raise UsageError(
            f"store {url!r} needs {error.name!r}, which is not installed. Nothing was read; "
            "run: pip install 'lastwords[s3]'"
        ) from error
    return open_bucket(url, os.environ)


def _folder_of(url: str) -> Path:
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise UsageError(f"store {url!r} needs an absolute path, as in file:///var/lib/lastwords/store.")
    return Path(unquote(parts.path))


class FolderStore:
    """A folder as a store: a file is an object, its mtime is when it was stored. Symbolic links are not followed."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url.rstrip("/")
        self.folder = folder

    def list(self, prefix: str) -> list[StoredObject]:
        if not self.folder.is_dir():
            raise StoreUnreadable(
                f"{self.url} is not a folder on this machine. Nothing was changed; check --store, or mount it first."
            )
        root = self.folder / prefix
        try:
            found = list(self._objects(root)) if root.is_dir() and not root.is_symlink() else []
        except OSError as error:
            raise _unreadable(self.url, prefix, error) from error
        return sorted(found, key=lambda each: each.key)

    def _objects(self, folder: Path) -> Iterator[StoredObject]:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from self._objects(Path(entry.path))
                elif entry.is_file(follow_symlinks=False) and not entry.name.startswith(_TEMPORARY_PREFIX):
                    yield self._object(entry)

    def _object(self, entry: os.DirEntry[str]) -> StoredObject:
        status = entry.stat(follow_symlinks=False)
        # whole microseconds from the kernel's nanoseconds: a float would round
        stored_at = datetime.fromtimestamp(status.st_mtime_ns // 10**9, UTC)
        stored_at = stored_at.replace(microsecond=status.st_mtime_ns % 10**9 // 1000)
        return StoredObject(str(Path(entry.path).relative_to(self.folder)), status.st_size, stored_at)

    def get(self, key: str) -> bytes:
        try:
            descriptor = os.open(self.folder / key, os.O_RDONLY | os.O_NOFOLLOW)
            with open(descriptor, "rb") as file:
                return file.read()
        except FileNotFoundError:
            raise ObjectMissing(f"{self.url} has no object {key!r}.") from None
        except OSError as error:
            raise _unreadable(self.url, key, error) from error

    def now(self) -> datetime:
        return datetime.now(UTC)


def _unreadable(url: str, key: str, error: OSError) -> StoreUnreadable:
    return StoreUnreadable(
        f"{url} did not give {key!r}: {error.strerror}. The published tables are as before; run the same command again."
    )
