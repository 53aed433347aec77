"""A Parquet copy of a table's rows, for the systems that BamQuery is compared with and checked by.

Rows of plain fragments are taken from their Arrow files by pyarrow alone, so a fault in BamQuery's reading
cannot hide in the copy. Of fragments with encoded columns pyarrow sees bytes: these are decoded as
`open_fragment` does, by the decoder that queries have, too, and by nothing else of them. The copy is a folder
with one file for each fragment, written by several threads at a time: encoding is what takes long.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet

from bamquery.errors import StorageError
from bamquery.queries.trips.arrow import arrow
from bamquery.queries.trips.parquet_files import parquet_files
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.ingest import Progress
from bamquery.storage.tables.open_fragment import fragment_batches
from bamquery.storage.tables.snapshot import Snapshot

# DuckDB's own choice for a row group; pieces of this size, one a thread, are all that is in memory.
ROW_GROUP: Final = 122_880
_SOURCE: Final = b"bamquery.rows"
_parquet: Final[Any] = pyarrow.parquet


def export_path(database: Path, table: str) -> Path:
    """Where a table's copy lies: beside the database."""
    return database.with_name(f"{database.name}.{table}.parquet")


def export(
    snapshot: Snapshot,
    columns: Sequence[str],
    path: Path,
    progress: Progress | None = None,
    threads: int | None = None,
) -> bool:
    """Write a table's columns as a folder of Parquet files, unless it holds exactly these rows already.

    Args:
        snapshot: of the table.
        columns: their names.
        path: of the folder; what an earlier export left there is replaced.
        progress: hears of rows.
        threads: that encode; None: as many as there are cores.

    Returns:
        Whether it was written.

    Raises:
        StorageError: it cannot be written, or something else is there.
    """
    source = _fingerprint(snapshot, columns)
    if _is_copy(path, source, max(len(snapshot.fragments), 1)):
        return False
    schema = pa.schema([snapshot.schema.field(name) for name in columns]).with_metadata({_SOURCE: source})
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        partial.mkdir()
        with (progress or Progress()).show(f"Exporting {snapshot.name}", snapshot.rows) as tell:
            _write_parts(snapshot, schema, partial, _Counter(tell), threads or len(os.sched_getaffinity(0)))
        _make_room(path)
        partial.rename(path)
    except OSError as error:
        raise StorageError(f"cannot write the Parquet copy: {error}", path) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return True


class _Counter:
    """Rows that several threads have written."""

    def __init__(self, tell: Callable[[int, int], None]) -> None:
        self._tell = tell
        self._rows = 0
        self._lock = threading.Lock()

    def add(self, rows: int) -> None:
        with self._lock:
            self._rows += rows
            self._tell(self._rows, 0)


def _write_parts(
    snapshot: Snapshot, schema: pa.Schema, folder: Path, counter: _Counter, threads: int
) -> None:
    if not snapshot.fragments:
        _parquet.write_table(schema.empty_table(), folder / _part(0))
    failed = threading.Event()

    def write(place: int, source: Fragment) -> None:
        with _parquet.ParquetWriter(folder / _part(place), schema) as writer:
            for batch in _batches(source, schema):
                for start in range(0, batch.num_rows, ROW_GROUP):
                    if failed.is_set():
                        return
                    piece = batch.slice(start, ROW_GROUP)
                    writer.write_batch(piece.cast(schema))
                    counter.add(piece.num_rows)

    with ThreadPoolExecutor(threads, thread_name_prefix="export") as pool:
        parts = [pool.submit(write, *part) for part in enumerate(snapshot.fragments)]
        try:
            for part in parts:
                part.result()
        except BaseException:
            failed.set()
            raise


def _batches(fragment: Fragment, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if fragment.layout.is_encoded:
        yield from fragment_batches(fragment, schema.remove_metadata())
        return
    with arrow.memory_map(str(fragment.path)) as mapped, arrow.ipc.open_file(mapped) as file:
        yield file.get_batch(0).select(schema.names)


def _part(place: int) -> str:
    return f"part-{place:05}.parquet"


def _make_room(path: Path) -> None:
    """Remove an earlier copy: a folder, or the single file of earlier versions."""
    if path.is_dir() and not path.is_symlink():
        if any(_source_of(file) is None for file in path.iterdir()):
            raise StorageError("is in the way of the Parquet copy: it holds other files", path)
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def require_copy(path: Path, columns: Sequence[str]) -> None:
    """Raise `StorageError` if a path is not Parquet with these columns, a file or a folder of files."""
    files = parquet_files(path)
    if not files:
        raise StorageError("has no file *.parquet", path)
    for file in files:
        try:
            names = _parquet.read_schema(file).names
        except (OSError, pa.ArrowInvalid) as error:
            raise StorageError(f"cannot be read as Parquet: {error}", file) from error
        missing = [name for name in columns if name not in names]
        if missing:
            raise StorageError(f"is not a copy of the table: it has no column {', '.join(missing)}", file)


def _fingerprint(snapshot: Snapshot, columns: Sequence[str]) -> bytes:
    """Fragments are written once under random names, so their names stand for their rows."""
    names = [[fragment.id for fragment in snapshot.fragments], list(columns)]
    return hashlib.sha256(json.dumps(names).encode()).hexdigest().encode()


def _is_copy(path: Path, source: bytes, parts: int) -> bool:
    """Whether all parts are there: a folder gets its name when it is complete, but files can be removed."""
    if not path.is_dir():
        return False
    files = parquet_files(path)
    return len(files) == parts and all(_source_of(file) == source for file in files)


def _source_of(path: Path) -> bytes | None:
    try:
        metadata = _parquet.read_schema(path).metadata or {}
    except (OSError, pa.ArrowInvalid):
        return None
    found: bytes | None = metadata.get(_SOURCE)
    return found
