"""The data folder: generations of the published tables, and the switch from one to the next.

    <data>/.generations/<n>/    one whole set of tables; unchanged files are hard links to those of the one before
    <data>/.current             link to the newest; renaming a new link over it is the publish
    <data>/<table>              link through .current

Until `.current` is switched nobody sees the new generation, and whatever a dead harvest left is removed by the next.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.contract import SCHEMA_VERSION
from harvest.contract import DATED_TABLES, PUBLISHED_TABLES
from harvest.errors import DataNewer, DataUnwritable

GENERATIONS = ".generations"
CURRENT = ".current"
BAD_MACHINE_EXPORTS = ("bad_machines.csv", "bad_machines.json")
_NEW_SUFFIX = ".new"
_HASH_CHARACTERS = 16
_DATED_NAMES = frozenset(table.name for table in DATED_TABLES)


@dataclass(frozen=True, slots=True)
class NewGeneration:
    """A generation that is being filled; nobody reads it yet. `previous` is null in a new data folder."""

    folder: Path
    previous: Path | None

    @property
    def staging(self) -> Path:
        return self.folder / ".staging"

    def write(self, name: str, data: bytes) -> None:
        """Write a file of the generation's top."""
        _write_file(self.folder / name, data)

    def write_dated(self, table: str, date: str, data: bytes) -> None:
        """Write a table's file of one date, named by its content; the same content of before becomes a hard link."""
        name = Path(table) / f"date={date}" / f"{sha256(data).hexdigest()[:_HASH_CHARACTERS]}.parquet"
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if self.previous is not None and (self.previous / name).is_file():
            _link(self.previous / name, path)
        else:
            _write_file(path, data)

    def keep_dated(self, table: str, date: str) -> None:
        """Take over a table's files of one date from the generation before, as hard links."""
        for path in dated_files(self.previous, table, date):
            target = self.folder / table / path.parent.name / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            _link(path, target)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn an error of the file system within into DataUnwritable: the published tables are as before."""
    try:
        yield
    except OSError as error:
        where = error.filename or folder
        raise DataUnwritable(
            f"data folder {folder} cannot be read or written ({where}: {error.strerror or error}). "
            "The published tables are as before; make room or mend its rights, and run the same command again."
        ) from error


def current_generation(folder: Path) -> Path | None:
    """Return the published generation's folder; null where nothing was published yet.

    Raises:
        DataNewer: a table of it was written by a newer version.
        DataUnwritable: `.current` leads nowhere, or a table of it cannot be read.
    """
    current = folder / CURRENT
    if not current.is_symlink():
        return None
    generation = current.resolve()
    if not generation.is_dir():
        raise DataUnwritable(
            f"{current} leads to {generation}, which is not there. Nothing was changed; "
            "let it lead to a folder in .generations, or give another --data."
        )
    tops = (generation / f"{name}.parquet" for name in PUBLISHED_TABLES)
    _check_versions([*(path for path in tops if path.exists()), *generation.glob("*/date=*/*.parquet")])
    return generation


def _check_versions(paths: Iterable[Path]) -> None:
    for path in paths:
        try:
            version = (pq.read_metadata(path).metadata or {}).get(b"schema_version", b"").decode()
        except (pa.ArrowException, UnicodeDecodeError) as error:
            raise DataUnwritable(
                f"{path} is not a table any more ({error}). Nothing was changed; "
                "let .current lead to an older generation, or give another --data: the store still has everything."
            ) from error
        if not version.isdigit() or int(version) > SCHEMA_VERSION:
            raise DataNewer(
                f"{path} is of schema version {version or '?'}; this program knows {SCHEMA_VERSION}. "
                "Nothing was changed; use the newer lastwords, or give another --data."
            )


@contextmanager
def new_generation(folder: Path, previous: Path | None) -> Iterator[NewGeneration]:
    """Give an empty generation beside the published one; remove it where what is done within does not succeed.

    What earlier harvests left when they died is removed first.
    """
    number = int(previous.name) if previous is not None else 0
    for path in _generations(folder):
        if _number(path) > number or path.name.endswith(_NEW_SUFFIX):
            shutil.rmtree(path)
    new = folder / GENERATIONS / f"{number + 1}{_NEW_SUFFIX}"
    new.mkdir(parents=True)
    try:
        yield NewGeneration(new, previous)
    finally:
        shutil.rmtree(new, ignore_errors=True)  # not there any more where it was published


def publish(folder: Path, new: NewGeneration, kept_generation_count: int) -> None:
    """Make the filled generation the published one by a single rename; then remove the oldest ones."""
    shutil.rmtree(new.staging, ignore_errors=True)
    for name in _DATED_NAMES:
        (new.folder / name).mkdir(exist_ok=True)
    for inner, _, _ in os.walk(new.folder):
        _sync_folder(Path(inner))
    final = new.folder.with_name(new.folder.name.removesuffix(_NEW_SUFFIX))
    new.folder.rename(final)
    _sync_folder(final.parent)
    for name in _link_names():
        _switch_link(folder / name, f"{CURRENT}/{name}")
    _switch_link(folder / CURRENT, f"{GENERATIONS}/{final.name}")
    _sync_folder(folder)
    for old in sorted(_generations(folder), key=_number)[:-kept_generation_count]:
        shutil.rmtree(old, ignore_errors=True)  # published already: what stays is removed by a later harvest


def dated_files(generation: Path | None, table: str, date: str = "*") -> list[Path]:
    """Return a table's files of one date (of all dates), sorted; none where there is no such generation."""
    return sorted(generation.glob(f"{table}/date={date}/*.parquet")) if generation is not None else []


def dates_of(generation: Path | None, table: str) -> set[str]:
    """Return the dates of which a table has files in a generation."""
    return {path.parent.name.removeprefix("date=") for path in dated_files(generation, table)}


def _link_names() -> list[str]:
    tables = [name if name in _DATED_NAMES else f"{name}.parquet" for name in PUBLISHED_TABLES]
    return [*tables, *BAD_MACHINE_EXPORTS]


def _generations(folder: Path) -> list[Path]:
    root = folder / GENERATIONS
    return [path for path in root.iterdir() if _number(path) > 0] if root.is_dir() else []


def _number(path: Path) -> int:
    name = path.name.removesuffix(_NEW_SUFFIX)
    return int(name) if name.isascii() and name.isdigit() else 0


def _switch_link(path: Path, target: str) -> None:
    """Make `path` a link to `target`, relative and in one step, whatever link was there before."""
    if path.is_symlink() and os.readlink(path) == target:
        return
    neighbour = path.with_name(f".{path.name.lstrip('.')}{_NEW_SUFFIX}")
    neighbour.unlink(missing_ok=True)
    neighbour.symlink_to(target)
    neighbour.rename(path)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOTSUP):
            raise
        shutil.copy2(source, target)  # a file system without hard links: more room, the same tables


def _write_file(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
