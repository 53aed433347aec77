"""A database's folder: the marker file that tells it from others, and how it is made."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from bamquery.errors import CorruptionError, StorageError
from bamquery.storage.files.filesystem import FileSystem
from bamquery.storage.files.locks import TOKEN_BITS
from bamquery.storage.files.regular_file import read_small_file

MARKER: Final = "bamquery.json"
FORMAT: Final = "bamquery database"
FORMAT_VERSION: Final = 1
_LARGEST_MARKER: Final = 1 << 16


def read_marker(folder: Path) -> None:
    """Check that the folder is a database's, and that this BamQuery reads its format.

    Raises:
        FileNotFoundError: it has no marker.
        CorruptionError: the marker is damaged.
        StorageError: of a later BamQuery.
    """
    path = folder / MARKER
    data = read_small_file(path, _LARGEST_MARKER)
    try:
        marker = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CorruptionError(f"damaged: {error}", path) from error
    if (
        not isinstance(marker, dict)
        or marker.get("format") != FORMAT
        or type(marker.get("format_version")) is not int
    ):
        raise CorruptionError("damaged: it does not say that this is a BamQuery database", path)
    if marker["format_version"] > FORMAT_VERSION:
        raise StorageError(
            f"of a later BamQuery (format {marker['format_version']}, this one knows {FORMAT_VERSION}): "
            "upgrade",
            folder,
        )


def require_unused(folder: Path, names: Sequence[str]) -> None:
    """Refuse to make a database where something else is; drafts of markers are litter of a crash."""
    other = [name for name in names if not name.startswith(f"{MARKER}.")]
    if other:
        raise StorageError(
            f"not a BamQuery database (no {MARKER}), nor empty ({sorted(other)[0]!r}): name another folder",
            folder,
        )


def create_folder(folder: Path, filesystem: FileSystem) -> None:
    """Make the folder, its parents and its marker, on the drive once it returns; another process may, too."""
    for path in reversed(_walk_up_to_existing(folder)):
        existed = path.exists()
        filesystem.make_directory(path)
        try:
            # Also where it existed: another process may have made it and died before its sync.
            filesystem.sync_directory(path.parent)
        except StorageError:
            if not existed:
                raise
    # Not `secrets`, which loads OpenSSL.
    token = int.from_bytes(os.urandom(8)) % (1 << TOKEN_BITS)
    draft = folder / f"{MARKER}.{token:0{TOKEN_BITS // 4}x}.tmp"
    try:
        _write_marker(draft, filesystem)
        try:
            filesystem.publish(draft, folder / MARKER)
        except FileExistsError:
            pass  # another process was quicker: one marker is like the other
        except StorageError:
            if not (folder / MARKER).exists():  # it may also have vacuumed the draft
                raise
    except BaseException:
        with suppress(StorageError, FileNotFoundError):
            filesystem.remove(draft)
        raise
    filesystem.remove(draft)


def _write_marker(draft: Path, filesystem: FileSystem) -> None:
    file = filesystem.create(draft)
    try:
        file.write_at(0, [json.dumps({"format": FORMAT, "format_version": FORMAT_VERSION}).encode() + b"\n"])
        file.sync()
    finally:
        file.close()


def _walk_up_to_existing(folder: Path) -> list[Path]:
    """The folder and its parents up to the first that exists."""
    found = [folder]
    while not found[-1].exists():
        found.append(found[-1].parent)
    return found
