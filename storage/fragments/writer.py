"""Writes fragments: two Arrow files from a stream of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from bamquery.storage.files.filesystem import FileSystem
from bamquery.storage.format.fragment_entry import FragmentEntry
from bamquery.storage.format.layout import Encoding
from bamquery.storage.format.storable_types import require_stored_schema
from bamquery.storage.fragments.data_file import FragmentSource, write_data_file
from bamquery.storage.fragments.encoded_columns import EncodedRows
from bamquery.storage.fragments.row_source import RowSource
from bamquery.storage.statistics.vectors_file import vectors_file

__all__ = ["BatchRows", "FragmentEntry", "PassingRows", "RowSource", "write_fragment"]


@dataclass(frozen=True)
class BatchRows:
    """Record batches in memory, as a source of rows."""

    batches: Sequence[pa.RecordBatch]

    @property
    def rows(self) -> int:
        """Rows of all batches."""
        return sum(batch.num_rows for batch in self.batches)

    def column(self, index: int) -> Iterator[pa.Array[Any]]:
        """One chunk a batch."""
        return (batch.column(index) for batch in self.batches)


class PassingRows:
    """Record batches of one schema that are given up chunk by chunk as they are read.

    Their memory then serves whoever makes the next rows while it is still warm, instead of going back to the
    system and coming from it anew, which costs more than all checksums and statistics. As a source of rows it
    can be used once; only columns of dictionaries stay to the end.
    """

    def __init__(self, batches: Sequence[pa.RecordBatch]) -> None:
        """The caller keeps no reference to the batches: what somebody holds is not free."""
        self.rows = sum(batch.num_rows for batch in batches)
        width = batches[0].num_columns if batches else 0
        self._columns = [[batch.column(index) for batch in batches] for index in range(width)]

    def column(self, index: int) -> Iterator[pa.Array[Any]]:
        """One chunk a batch."""
        chunks = self._columns[index]
        if chunks and pa.types.is_dictionary(chunks[0].type):
            return iter(chunks)
        self._columns[index] = []
        chunks.reverse()
        return (chunks.pop() for _ in range(len(chunks)))


def write_fragment(
    filesystem: FileSystem,
    folder: Path,
    fragment_id: str,
    schema: pa.Schema,
    source: RowSource | EncodedRows,
    *,
    encoding: Encoding = "plain",
    cancelled: Callable[[], bool] = lambda: False,
) -> FragmentEntry:
    """Write and sync `<id>.arrow` and `<id>.vectors.arrow` in `folder`; the folder itself is not synced.

    With `encoding` "auto" each column is stored as is smaller, by a sample of its first rows; rows that are
    encoded already are so.

    Memory is that of one column's chunk, its bitmap and statistics, never of the whole fragment; of codes of
    dictionaries a whole column's. `cancelled` is asked between chunks.

    Raises:
        StorageError: the disk is full or fails, or a column of the source does not fit the schema.
        CancelledError: the write was cancelled.

    Files written until then stay for the caller to remove.
    """
    require_stored_schema(schema)
    data_path = folder / f"{fragment_id}.arrow"
    file = filesystem.create(data_path)
    try:
        written = write_data_file(file, data_path, FragmentSource(schema, source, encoding, cancelled))
        file.sync()
    finally:
        file.close()
    vectors = vectors_file(schema, written.layout, written.statistics)
    file = filesystem.create(folder / f"{fragment_id}.vectors.arrow")
    try:
        file.write_at(0, [vectors.data])
        file.sync()
    finally:
        file.close()
    return FragmentEntry(fragment_id, source.rows, written.size, **vectors.entry_members)
