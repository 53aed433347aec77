"""A fragment's file by its path, as a stream of decoded columns: for who wants rows and no database."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from bamquery.errors import CorruptionError, StorageError
from bamquery.storage.files.mapped_files import MAPPED_FILES
from bamquery.storage.files.regular_file import open_regular, read_content, regular_size
from bamquery.storage.format.fragment_entry import FragmentEntry
from bamquery.storage.format.layout import FragmentLayout
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.plain_size import column_bytes
from bamquery.storage.fragments.reader import FragmentReader
from bamquery.storage.readers.block_reader import ReadCounters
from bamquery.storage.readers.mapped_reader import MappedReader
from bamquery.storage.statistics.vectors_file import (
    FORMAT_KEY,
    LAYOUT_KEY,
    SCHEMA_KEY,
    describe_vectors_file,
)
from bamquery.storage.tables.folder import TableFolder
from bamquery.storage.tables.known_manifests import read_manifest
from bamquery.text.identifiers import suggestion

_DATA: Final = ".arrow"
_VECTORS: Final = ".vectors.arrow"
_BATCH_BYTES: Final = 32 << 20
"""About what the columns of a batch take, all together."""
_MOST_VECTORS: Final = 1024
"""Of a batch."""


def open_fragment(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
    """The rows of a fragment of a table, in order, as plain Arrow whatever its columns' encodings.

    ```python
    path = "taxi.bq/tables/trips/fragments/0123456789abcdef-0000.arrow"
    frame = polars.DataFrame(bamquery.open_fragment(path))
    ```

    Rows are read as the reader is, 32 MiB of them at a time, and compared with their checksums. Columns have
    the names and types under which they were written, which ALTER TABLE may have changed since. The file must
    have its `.vectors.arrow` beside it; what is in a table's folder is also compared with its manifest.

    Args:
        path: `<id>.arrow`, in the folder `fragments` of a table, or copied elsewhere.
        columns: names of those wanted, in the order wanted; None: all.

    Raises:
        StorageError: it is no fragment, has no such column, or cannot be read; the message says what would
            do instead.
        CorruptionError: it is not as it was written. Of values, the reader says so when it comes to them.
    """
    file = Path(os.path.abspath(path))
    fragment = _open(file)
    names = fragment.schema.names if columns is None else list(columns)
    if not names:
        raise StorageError("has rows of columns only: name at least one", file)
    for name in names:
        if name not in fragment.schema.names:
            raise StorageError(
                f'has no column "{name}".{suggestion(name, fragment.schema.names)} Its columns: '
                f"{', '.join(fragment.schema.names)}",
                file,
            )
    schema = pa.schema([fragment.schema.field(name) for name in names])
    return pa.RecordBatchReader.from_batches(schema, fragment_batches(fragment, schema))


def fragment_batches(fragment: Fragment, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of those of its columns, decoded, verified, 32 MiB at a time.

    Raises:
        CorruptionError: a vector is not as it was written.
        StorageError: the file cannot be read.
    """
    indexes = [fragment.column_index(name) for name in schema.names]
    total = sum(column_bytes(fragment, index) for index in indexes)
    step = min(max(1, _BATCH_BYTES * fragment.vector_count // max(total, 1)), _MOST_VECTORS)
    blocks = MappedReader(fragment.path, fragment.data_bytes)
    try:
        reader = FragmentReader(fragment, blocks)
        for start in range(0, fragment.vector_count, step):
            vectors = np.arange(start, min(start + step, fragment.vector_count), dtype=np.int64)
            arrays = [reader.stream(name, vectors, ReadCounters()) for name in schema.names]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
    finally:
        blocks.close()
        MAPPED_FILES.forget(fragment.path)


def _open(file: Path) -> Fragment:
    if file.name.endswith(_VECTORS):
        data = file.with_name(file.name.removesuffix(_VECTORS) + _DATA)
        raise StorageError(f"has zone maps and checksums of a fragment, whose columns are in {data}", file)
    if file.is_dir():
        raise StorageError(
            "is a folder: name a file of a table's folder fragments; bamquery.connect opens databases", file
        )
    vectors = file.with_name(file.stem + _VECTORS)
    try:
        size = regular_size(file)
        if file.suffix != _DATA:
            raise StorageError("is no fragment, whose names end in .arrow: con.load takes other files", file)
        regular_size(vectors)
    except FileNotFoundError as error:
        raise StorageError(_missing_file(file, vectors), file) from error
    entry, schema = _committed_entry(file) or _entry_of_vectors_file(file, vectors, size)
    return Fragment.open(file.parent, entry, schema)


def _missing_file(file: Path, vectors: Path) -> str:
    if not os.path.lexists(file):
        return "there is no such file: a table's fragments are in <database>/tables/<table>/fragments"
    return (
        f"is no fragment, or was copied without {vectors.name}, which has its checksums: put that beside it; "
        "other Arrow files are opened by pyarrow.ipc, or loaded by con.load"
    )


def _committed_entry(file: Path) -> tuple[FragmentEntry, pa.Schema] | None:
    """What the latest manifest that names the fragment says of it; None where none does.

    Raises:
        CorruptionError: a manifest is damaged.
    """
    folder = TableFolder(file.parent.parent)
    if file.parent != folder.fragments:
        return None
    for version in reversed(folder.versions()):
        try:
            manifest = read_manifest(folder.manifest(version))
        except FileNotFoundError:  # vacuum took it meanwhile
            continue
        for entry in manifest.fragments:
            if entry.id == file.stem and manifest.schema is not None:
                return entry, manifest.evolution.columns(manifest.schema, entry).written
    return None


def _entry_of_vectors_file(file: Path, vectors: Path, size: int) -> tuple[FragmentEntry, pa.Schema]:
    """The same by the vectors file alone, whose first and last bytes nothing vouches for then.

    Raises:
        CorruptionError: it cannot be read.
    """
    with open_regular(vectors) as descriptor:
        data = pa.py_buffer(read_content(descriptor, vectors, os.fstat(descriptor).st_size))
    try:
        metadata: Any = pa.ipc.open_file(data).schema.metadata or {}
        if FORMAT_KEY not in metadata:
            raise ValueError("it is not a vectors file of BamQuery")
        layout = FragmentLayout.from_json(metadata[LAYOUT_KEY], vectors)
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(metadata[SCHEMA_KEY])))
        members = describe_vectors_file(data).entry_members
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError) as error:
        raise CorruptionError(f"it cannot be read: {error}", vectors) from error
    if not layout.rows:
        raise CorruptionError("it describes a fragment without rows", vectors)
    return FragmentEntry(file.stem, layout.rows, size, **members), schema
