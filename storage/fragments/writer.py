"""Writes fragments: two Arrow files from a stream of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import pyarrow as pa

from bamquery import _native
from bamquery.errors import CancelledError, StorageError
from bamquery.storage.files.filesystem import FileSystem, WritableFile
from bamquery.storage.format import arrow_ipc
from bamquery.storage.format.arrow_ipc import Batch, FileBlock
from bamquery.storage.format.file_region import FileRegion
from bamquery.storage.format.fragment_entry import FragmentEntry
from bamquery.storage.format.layout import ColumnLayout, DictionaryLayout, Extent, FragmentLayout, align
from bamquery.storage.format.storable_types import is_string_like, require_stored_schema
from bamquery.storage.fragments.column_writer import WrittenColumn, write_column
from bamquery.storage.fragments.dictionaries import plain_buffers, unify
from bamquery.storage.statistics.vectors_file import vectors_file

__all__ = ["BatchRows", "FragmentEntry", "PassingRows", "RowSource", "write_fragment"]

_NOWHERE: Final = Extent(0, 0)


class RowSource(Protocol):
    """What a fragment is made of."""

    @property
    def rows(self) -> int:
        """Exact number of rows."""
        ...

    def column(self, index: int) -> Iterator[pa.Array[Any]]:
        """Chunks of one column in row order, of any length, together `rows` long.

        Called once per column, in any order; twice for dictionary columns, with the same values.
        """
        ...


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
    source: RowSource,
    *,
    cancelled: Callable[[], bool] = lambda: False,
) -> FragmentEntry:
    """Write and sync `<id>.arrow` and `<id>.vectors.arrow` in `folder`; the folder itself is not synced.

    Memory is that of one column's chunk, its bitmap and statistics, never of the whole fragment. `cancelled`
    is asked between chunks.

    Raises:
        StorageError: the disk is full or fails, or a column of the source does not fit the schema.
        CancelledError: the write was cancelled.

    Files written until then stay for the caller to remove.
    """
    require_stored_schema(schema)
    data_path = folder / f"{fragment_id}.arrow"
    file = filesystem.create(data_path)
    try:
        layout, statistics, size = _write_data(file, data_path, schema, source, cancelled)
        file.sync()
    finally:
        file.close()
    vectors = vectors_file(schema, layout, statistics)
    file = filesystem.create(folder / f"{fragment_id}.vectors.arrow")
    try:
        file.write_at(0, [vectors.data])
        file.sync()
    finally:
        file.close()
    return FragmentEntry(fragment_id, source.rows, size, **vectors.entry_members)


class _DataFile:
    """File one while it is written: metadata runs, one behind the other, with bodies between them."""

    def __init__(self, file: WritableFile) -> None:
        self.file = file
        self.position = 0
        self.metadata: list[tuple[Extent, int]] = []

    def write_metadata(self, data: bytes) -> None:
        self.file.write_at(self.position, [data])
        self.metadata.append((Extent(self.position, len(data)), _native.crc32c(data)))
        self.position += len(data)


def _write_data(
    file: WritableFile, path: Path, schema: pa.Schema, source: RowSource, cancelled: Callable[[], bool]
) -> tuple[FragmentLayout, list[pa.StructArray], int]:
    """Write file one; its layout, the statistics of each column, and its size."""
    data = _DataFile(file)
    data.write_metadata(arrow_ipc.HEAD + arrow_ipc.schema_message(schema))
    dictionaries: dict[int, tuple[pa.Array[Any], DictionaryLayout]] = {}
    dictionary_blocks: list[FileBlock] = []
    for index, field in enumerate(schema):
        if pa.types.is_dictionary(field.type):
            with _naming(field.name, path):
                values = unify(field.type, _check_cancelled(source.column(index), cancelled))
            block, layout = _write_dictionary(data, len(dictionary_blocks), values)
            dictionaries[index] = values, layout
            dictionary_blocks.append(block)
    # Columns go before the message that describes them: its numbers are not known yet, but its length is.
    start = data.position
    buffer_count = sum(3 if is_string_like(field.type) else 2 for field in schema)
    placeholder = Batch(0, [0] * len(schema), [_NOWHERE] * buffer_count, 0)
    body = end = start + len(arrow_ipc.record_batch_message(placeholder, start))
    columns: list[WrittenColumn] = []
    for index, field in enumerate(schema):
        with _naming(field.name, path):
            chunks = _check_cancelled(source.column(index), cancelled)
            column = write_column(
                file, end, field.type, source.rows, chunks, dictionary=dictionaries.get(index)
            )
        columns.append(column)
        end = column.end
    buffers = [buffer for column in columns for buffer in _relative_buffers(column.layout, body)]
    batch = Batch(source.rows, [column.null_count for column in columns], buffers, end - body)
    data.write_metadata(arrow_ipc.record_batch_message(batch, start))
    data.position = end
    data.write_metadata(
        arrow_ipc.file_tail(schema, dictionary_blocks, FileBlock(start, body - start, end - body), end)
    )
    layouts = tuple(column.layout for column in columns)
    fragment = FragmentLayout(source.rows, layouts, tuple(data.metadata))
    return fragment, [column.statistics for column in columns], data.position


def _write_dictionary(
    data: _DataFile, number: int, values: pa.Array[Any]
) -> tuple[FileBlock, DictionaryLayout]:
    offsets, contents = plain_buffers(values)
    parts = [contents] if offsets is None else [offsets, contents]
    extents: list[Extent] = []
    end = 0
    for part in parts:
        extents.append(Extent(end, part.nbytes))
        end = align(end + part.nbytes)
    batch = Batch(len(values), [0], [_NOWHERE, *extents], end)
    start = data.position
    data.write_metadata(arrow_ipc.dictionary_batch_message(number, batch, start))
    body = data.position
    stored = []
    for part, extent in zip(parts, extents, strict=True):
        region = FileRegion(data.file, body + extent.offset)
        region.append([part])
        stored.append(region.finish())
    data.position = body + end
    layout = DictionaryLayout(
        size=len(values),
        offsets=None if offsets is None else stored[0],
        values=stored[-1],
        offsets_crc=0 if offsets is None else _native.crc32c(offsets),
        values_crc=_native.crc32c(contents),
    )
    return FileBlock(start, body - start, end), layout


def _relative_buffers(layout: ColumnLayout, body: int) -> list[Extent]:
    """A column's buffers as a record batch lists them; no validity bitmap is an empty one."""
    listed = [layout.validity, layout.values]
    if layout.offsets is not None:
        listed.insert(1, layout.offsets)
    return [_NOWHERE if buffer is None else Extent(buffer.offset - body, buffer.length) for buffer in listed]


def _check_cancelled(
    chunks: Iterator[pa.Array[Any]], cancelled: Callable[[], bool]
) -> Iterator[pa.Array[Any]]:
    for chunk in chunks:
        if cancelled():
            raise CancelledError("the writing of a fragment was cancelled")
        yield chunk


@contextmanager
def _naming(column: str, path: Path) -> Iterator[None]:
    """Values that do not fit are the source's fault: say which column."""
    try:
        yield
    except (ValueError, IndexError, pa.ArrowException) as error:
        raise StorageError(f'column "{column}" cannot be written: {error}', path) from error
