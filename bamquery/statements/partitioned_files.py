"""Rows of a query into files of folders `key=value`, one file after another."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bamquery.errors import CorruptionError, StorageError
from bamquery.output.cells import cell_strings
from bamquery.plan.bound_statements import Partitioning
from bamquery.storage.database.file_access import FileAccess
from bamquery.storage.files.filesystem import hold_folder
from bamquery.storage.ingest.many_files.hive_partitions import NULL_FOLDER, folder_name
from bamquery.text.identifiers import unique_names

Writer: TypeAlias = Callable[[Path, BinaryIO, Iterable[pa.RecordBatch]], int]
"""Takes what the file will be called, a stream to it, and its rows; returns how many they were."""

_Folders: TypeAlias = tuple[str, ...]
_LABEL: Final = re.compile(r"\{(i|uuid|uuidv4|uuidv7)\}")


def file_schema(schema: pa.Schema, partitioning: Partitioning) -> pa.Schema:
    """The columns that are in the files."""
    names = unique_names(schema.names)
    return pa.schema(
        [schema.field(place).with_name(names[place]) for place in _written_columns(schema, partitioning)]
    )


def write_partitions(
    batches: Iterator[pa.RecordBatch],
    folder: Path,
    partitioning: Partitioning,
    write: Writer,
    access: FileAccess,
) -> int:
    """Write all rows, of which those of one folder come together; returns how many they were.

    One file is open at a time, and has a hidden name until all are written: where that is not reached,
    neither files nor folders are left behind.

    Raises:
        AccessError: the folder is not to be written to, or a file in it.
        StorageError: it cannot be written to, or has files that are not to be replaced.
    """
    rows = 0
    with _Drafts(folder, partitioning, access) as drafts:
        for folders, own in _group_by_folder(batches, partitioning):
            with drafts.create(folders) as (path, file):
                rows += write(path, file, own)
        drafts.publish()
    return rows


def _group_by_folder(
    batches: Iterator[pa.RecordBatch], partitioning: Partitioning
) -> Iterator[tuple[_Folders, Iterator[pa.RecordBatch]]]:
    """The rows of each folder. They are to be taken before the next folder is asked for."""
    pieces = _pieces(batches, partitioning)
    waiting = next(pieces, None)

    def rest_of_folder(folders: _Folders) -> Iterator[pa.RecordBatch]:
        nonlocal waiting
        while (waiting := next(pieces, None)) is not None and waiting[0] == folders:
            yield waiting[1]

    while waiting is not None:
        folders, first = waiting
        yield folders, chain([first], rest_of_folder(folders))


def _pieces(
    batches: Iterator[pa.RecordBatch], partitioning: Partitioning
) -> Iterator[tuple[_Folders, pa.RecordBatch]]:
    """Slices of batches whose rows have one folder, with the columns of the files."""
    for batch in batches:
        names = unique_names(batch.schema.names)
        keys = [(names[place], cell_strings(batch.column(place))) for place in partitioning.keys]
        kept = batch.select(_written_columns(batch.schema, partitioning))
        starts = [
            *np.flatnonzero(_begins_run(batch.num_rows, [column for _, column in keys])),
            batch.num_rows,
        ]
        for first, end in pairwise(starts):
            folders = tuple(_folder(name, column[int(first)].as_py()) for name, column in keys)
            yield folders, kept.slice(int(first), int(end - first))


def _folder(key: str, value: str | None) -> str:
    if value == NULL_FOLDER:
        raise StorageError(f'column "{key}" has the text {NULL_FOLDER}, which stands for NULL in folders')
    return folder_name(key, value)


def _begins_run(rows: int, columns: Iterable[pa.Array[Any]]) -> Any:
    """Of each row, whether it is the first, or has another value than the row before it."""
    found = np.zeros(rows, np.bool_)
    found[:1] = True
    for column in columns:
        same: Any = pc.equal(column[1:], column[:-1])
        both_null = pc.and_(pc.is_null(column[1:]), pc.is_null(column[:-1]))
        found[1:] |= ~pc.or_(pc.fill_null(same, False), both_null).to_numpy(zero_copy_only=False)
    return found


def _written_columns(schema: pa.Schema, partitioning: Partitioning) -> list[int]:
    return [i for i in range(len(schema)) if partitioning.writes_keys or i not in partitioning.keys]


class _Drafts:
    """Files under hidden names, and the folders that were made for them; a context manager."""

    def __init__(self, folder: Path, partitioning: Partitioning, access: FileAccess) -> None:
        self._root = folder
        self._partitioning = partitioning
        self._access = access
        self._suffix = f".{os.getpid()}-{os.urandom(4).hex()}.tmp"
        self._files: list[Path] = []
        self._made: list[Path] = []
        self._folders: set[Path] = set()

    def __enter__(self) -> _Drafts:
        root = self._root
        self._access.check_folder(root)
        with self._failures(root):
            if os.path.lexists(root) and not root.is_dir():
                raise StorageError("is a file, and PARTITION_BY writes a folder: name another one", root)
            if root.is_dir():
                if self._partitioning.mode == "error" and any(root.iterdir()):
                    raise StorageError(
                        "is a folder that is not empty: OVERWRITE removes what is there, OVERWRITE_OR_IGNORE "
                        "replaces files of the same names, APPEND adds files",
                        root,
                    )
                if self._partitioning.mode == "overwrite":
                    self._old_files()  # before anything is written
        return self

    @contextmanager
    def create(self, folders: _Folders) -> Iterator[tuple[Path, BinaryIO]]:
        """A stream to the file of some folders, and its path."""
        folder = self._root
        self._make(folder)
        for name in folders:
            folder /= name
            self._make(folder)
        path = folder / self._name()
        with self._failures(path), self._access.target(path) as target:
            draft = self._draft(target)
            self._files.append(path)
            with draft.open("xb") as file:
                yield path, file

    def publish(self) -> None:
        """Give all files their names, once what was there is gone where it is to be."""
        # All are on disk before one is there: most of them are by now.
        for path in self._files:
            with self._failures(path), self._access.target(path) as target:
                descriptor = os.open(self._draft(target), os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
        if self._partitioning.mode == "overwrite" and self._root.is_dir():
            for old in self._old_files():
                with self._failures(old), self._hold_for_removal(old.parent) as folder:
                    os.unlink(old.name, dir_fd=folder)
                for parent in old.parents:
                    if parent == self._root:
                        break
                    with suppress(OSError), self._hold_for_removal(parent.parent) as folder:
                        os.rmdir(parent.name, dir_fd=folder)  # which fails while it holds other files
        for path in self._files:
            with self._failures(path), self._access.target(path) as target:
                self._draft(target).replace(target)
        self._files, self._made = [], []

    def __exit__(self, *_: object) -> None:
        for path in self._files:
            with suppress(OSError, StorageError), self._access.target(path) as target:
                self._draft(target).unlink(missing_ok=True)
        for folder in reversed(self._made):
            with suppress(OSError):
                folder.rmdir()

    @contextmanager
    def _hold_for_removal(self, folder: Path) -> Iterator[int]:
        """A folder to remove things in, to which no link below the root leads by now.

        Raises:
            AccessError: it is not to be written to. StorageError: a link has taken a folder's place.
        """
        try:
            held = hold_folder(folder, self._root)
        except CorruptionError as error:
            raise StorageError("a link took the place of a folder, and is not followed", folder) from error
        try:
            self._access.check_folder(Path(os.readlink(f"/proc/self/fd/{held}")))
            yield held
        finally:
            os.close(held)

    def _make(self, folder: Path) -> None:
        if folder in self._folders:
            return
        self._folders.add(folder)
        self._access.check_folder(folder)
        with self._failures(folder), suppress(FileExistsError):
            folder.mkdir()
            self._made.append(folder)

    def _name(self) -> str:
        made = {"i": lambda: "0", "uuidv7": _uuid7}

        def label(match: re.Match[str]) -> str:
            return made.get(match[1], lambda: str(uuid.uuid4()))()

        return f"{_LABEL.sub(label, self._partitioning.name)}.{self._partitioning.extension}"

    def _draft(self, target: Path) -> Path:
        return target.with_name(f".{target.name}{self._suffix}")

    def _old_files(self) -> list[Path]:
        """What OVERWRITE removes: files in folders `key=value`, and others of the same extension.

        Raises:
            StorageError: there is anything else, which nobody may want to be removed.
        """
        found = []
        mine = {self._draft(path) for path in self._files}
        for at, folders, files in os.walk(self._root):
            for name in (*folders, *files):
                path = Path(at, name)
                if path in mine:
                    continue
                is_ours = "=" in name if name in folders else self._is_data(path)
                if not is_ours or path.is_symlink():
                    raise StorageError(
                        f"is not removed: OVERWRITE removes folders KEY=VALUE and files "
                        f".{self._partitioning.extension} only, and nothing was changed",
                        path,
                    )
                if name in files:
                    found.append(path)
        return found

    def _is_data(self, path: Path) -> bool:
        return path.is_file() and path.name.endswith(f".{self._partitioning.extension}")

    @contextmanager
    def _failures(self, path: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StorageError(f"the output cannot be written: {error.strerror or error}", path) from error


def _uuid7() -> str:
    """RFC 9562: 48 bits of milliseconds, then chance."""
    import time  # noqa: PLC0415 (nobody asks for it but by name)

    random = int.from_bytes(os.urandom(10), "big")
    value = (time.time_ns() // 1_000_000) << 80 | random
    value = value & ~(0xF << 76) | 0x7 << 76
    return str(uuid.UUID(int=value & ~(0x3 << 62) | 0x2 << 62))
