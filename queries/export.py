"""A Parquet copy of a table's rows, for the systems that BamQuery is compared with and checked by.

The rows are taken from the fragments' Arrow files by pyarrow alone, so a fault in BamQuery's own reading
cannot hide in the copy.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet

from bamquery.errors import StorageError
from bamquery.queries.arrow import arrow
from bamquery.storage.ingest import Progress
from bamquery.storage.snapshot import Snapshot

# DuckDB's own choice for a row group; pieces of this size are all that is in memory.
ROW_GROUP: Final = 122_880
_SOURCE: Final = b"bamquery.rows"
_parquet: Final[Any] = pyarrow.parquet


def export_path(database: Path, table: str) -> Path:
    """Where a table's copy lies: beside the database."""
    return database.with_name(f"{database.name}.{table}.parquet")


def export(snapshot: Snapshot, columns: Sequence[str], path: Path, progress: Progress | None = None) -> bool:
    """Write a table's columns as Parquet, unless the file holds exactly these rows already.

    Returns:
        Whether it was written.

    Raises:
        StorageError: it cannot be written.
    """
    source = _fingerprint(snapshot, columns)
    if _source_of(path) == source:
        return False
    schema = pa.schema([snapshot.schema.field(name) for name in columns]).with_metadata({_SOURCE: source})
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with (
            (progress or Progress()).show(f"Exporting {snapshot.name}", snapshot.rows) as tell,
            _parquet.ParquetWriter(partial, schema) as writer,
        ):
            rows = 0
            for fragment in snapshot.fragments:
                with arrow.memory_map(str(fragment.path)) as mapped, arrow.ipc.open_file(mapped) as file:
                    batch = file.get_batch(0).select(list(columns))
                    for start in range(0, batch.num_rows, ROW_GROUP):
                        writer.write_batch(batch.slice(start, ROW_GROUP).cast(schema))
                        tell(rows + start, 0)
                    rows += batch.num_rows
        partial.replace(path)
    except OSError as error:
        raise StorageError(f"cannot write the Parquet copy: {error}", path) from error
    finally:
        partial.unlink(missing_ok=True)
    return True


def require_copy(path: Path, columns: Sequence[str]) -> None:
    """Raise `StorageError` if a file is not Parquet with these columns."""
    try:
        names = _parquet.read_schema(path).names
    except (OSError, pa.ArrowInvalid) as error:
        raise StorageError(f"cannot be read as Parquet: {error}", path) from error
    missing = [name for name in columns if name not in names]
    if missing:
        raise StorageError(f"is not a copy of the table: it has no column {', '.join(missing)}", path)


def _fingerprint(snapshot: Snapshot, columns: Sequence[str]) -> bytes:
    """Fragments are written once under random names, so their names stand for their rows."""
    names = [[fragment.id for fragment in snapshot.fragments], list(columns)]
    return hashlib.sha256(json.dumps(names).encode()).hexdigest().encode()


def _source_of(path: Path) -> bytes | None:
    try:
        metadata = _parquet.read_schema(path).metadata or {}
    except (OSError, pa.ArrowInvalid):
        return None
    found: bytes | None = metadata.get(_SOURCE)
    return found
