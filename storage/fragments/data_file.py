"""Writes file one of a fragment: columns one after the other, and Arrow's metadata around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native
from bamquery.storage.files.buffers import view
from bamquery.storage.files.filesystem import WritableFile
from bamquery.storage.format import arrow_ipc
from bamquery.storage.format.arrow_ipc import Batch, FileBlock
from bamquery.storage.format.arrow_schema import record_batch, reserved_bytes, stored_schema
from bamquery.storage.format.file_region import FileTail
from bamquery.storage.format.layout import (
    CELLS_ALIGNMENT,
    VECTOR_ROWS,
    ColumnLayout,
    DictionaryLayout,
    Encoding,
    Extent,
    FragmentLayout,
    align,
    vector_count,
)
from bamquery.storage.format.storable_types import is_string_like
from bamquery.storage.fragments.column_writer import WrittenColumn, write_column
from bamquery.storage.fragments.dictionaries import unify, write_dictionary
from bamquery.storage.fragments.encoded_columns import EncodedRows, encoded_column
from bamquery.storage.fragments.regions import FileSpace
from bamquery.storage.fragments.row_source import RowSource, column_chunks, name_column_in_errors

_NOWHERE: Final = Extent(0, 0)


@dataclass(frozen=True)
class FragmentSource:
    """Rows to be written, and how.

    Attributes:
        schema: of the table.
        source: the rows, which may be encoded already.
        encoding: whether columns may be encoded; they may where they are.
        cancelled: is asked between chunks.
    """

    schema: pa.Schema
    source: RowSource | EncodedRows
    encoding: Encoding
    cancelled: Callable[[], bool]


def write_data_file(file: WritableFile, path: Path, rows: FragmentSource) -> WrittenFile:
    """Write file one.

    Raises:
        StorageError: the file cannot be written, or a column of the source does not fit the schema.
        CancelledError: the source says so.
    """
    source = rows.source
    if isinstance(source, EncodedRows) or (rows.encoding != "plain" and source.rows):
        return _EncodedFile(file, path, rows.schema, source, rows.cancelled).write()
    return _PlainFile(file, path, rows.schema, source, rows.cancelled).write()


@dataclass(frozen=True)
class WrittenFile:
    """File one, once it is written.

    Attributes:
        layout: where all is.
        statistics: of each column.
        size: in bytes.
    """

    layout: FragmentLayout
    statistics: list[pa.StructArray]
    size: int


class _DataFile:
    """File one while it is written: metadata runs, with bodies between them."""

    def __init__(self, file: WritableFile, path: Path, schema: pa.Schema) -> None:
        self._tail = FileTail(file)
        self._path = path
        self._schema = schema
        self._metadata: list[tuple[Extent, int]] = []

    def _write_metadata(self, data: bytes, at: int) -> None:
        self._tail.file.write_at(at, [data])
        self._metadata.append((Extent(at, len(data)), _native.crc32c(data)))
        self._tail.position = max(self._tail.position, at + len(data))

    def _finish(
        self, layout: FragmentLayout, columns: Sequence[WrittenColumn], batch: FileBlock, *blocks: FileBlock
    ) -> WrittenFile:
        """Write the footer; `blocks` are those of dictionaries."""
        end = self._tail.position
        self._write_metadata(
            arrow_ipc.file_tail(stored_schema(self._schema, layout), blocks, batch, end), end
        )
        layout = replace(layout, metadata=tuple(self._metadata))
        return WrittenFile(layout, [column.statistics for column in columns], self._tail.position)


class _PlainFile(_DataFile):
    """A row of the file is a row."""

    def __init__(
        self,
        file: WritableFile,
        path: Path,
        schema: pa.Schema,
        source: RowSource,
        cancelled: Callable[[], bool],
    ) -> None:
        super().__init__(file, path, schema)
        self._source = source
        self._cancelled = cancelled

    def write(self) -> WrittenFile:
        """Write all of it."""
        schema = self._schema
        self._write_metadata(arrow_ipc.HEAD + arrow_ipc.schema_message(schema), 0)
        dictionaries: dict[int, tuple[pa.Array[Any], DictionaryLayout]] = {}
        blocks: list[FileBlock] = []
        for index, field in enumerate(schema):
            if pa.types.is_dictionary(field.type):
                with name_column_in_errors(field.name, self._path):
                    values = unify(field.type, self._chunks(index))
                block, layout = self._write_dictionary_batch(len(blocks), values)
                dictionaries[index] = values, layout
                blocks.append(block)
        # Columns go before the message that describes them: its numbers are not known yet, its length is.
        start = self._tail.position
        buffer_count = sum(3 if is_string_like(field.type) else 2 for field in schema)
        placeholder = Batch(0, [(0, 0)] * len(schema), [_NOWHERE] * buffer_count, 0)
        body = self._tail.position = start + len(arrow_ipc.record_batch_message(placeholder, start))
        columns = [self._write_column(index, dictionaries.get(index)) for index in range(len(schema))]
        found = FragmentLayout(self._source.rows, tuple(column.layout for column in columns), ())
        place = Extent(body, self._tail.position - body)
        batch = record_batch(schema, found, [column.null_count for column in columns], place)
        self._write_metadata(arrow_ipc.record_batch_message(batch, start), start)
        return self._finish(found, columns, FileBlock(start, body - start, place.length), *blocks)

    def _chunks(self, index: int) -> Iterator[pa.Array[Any]]:
        return column_chunks(self._source, index, self._cancelled)

    def _write_column(
        self, index: int, dictionary: tuple[pa.Array[Any], DictionaryLayout] | None
    ) -> WrittenColumn:
        field, rows = self._schema.field(index), self._source.rows
        with name_column_in_errors(field.name, self._path):
            return write_column(self._tail, field.type, rows, self._chunks(index), dictionary=dictionary)

    def _write_dictionary_batch(
        self, number: int, values: pa.Array[Any]
    ) -> tuple[FileBlock, DictionaryLayout]:
        start = self._tail.position
        placeholder = Batch(0, [(0, 0)], [_NOWHERE] * (3 if is_string_like(values.type) else 2), 0)
        body = self._tail.position = start + len(
            arrow_ipc.dictionary_batch_message(number, placeholder, start)
        )
        layout = write_dictionary(self._tail, values)
        stored = [layout.values] if layout.offsets is None else [layout.offsets, layout.values]
        buffers = [_NOWHERE, *(Extent(extent.offset - body, extent.length) for extent in stored)]
        batch = Batch(len(values), [(len(values), 0)], buffers, self._tail.position - body)
        self._write_metadata(arrow_ipc.dictionary_batch_message(number, batch, start), start)
        return FileBlock(start, body - start, batch.body_length), layout


class _EncodedFile(_DataFile):
    """Which columns are encoded turns out as they are written: room is left for what is said of them."""

    def __init__(
        self,
        file: WritableFile,
        path: Path,
        schema: pa.Schema,
        source: RowSource | EncodedRows,
        cancelled: Callable[[], bool],
    ) -> None:
        super().__init__(file, path, schema)
        self._source = source
        self._cancelled = cancelled

    def write(self) -> WrittenFile:
        """Write all of it."""
        schema, rows = self._schema, self._source.rows
        body = self._tail.position = align(len(arrow_ipc.HEAD) + reserved_bytes(schema))
        columns = [self._write_column(index) for index in range(len(schema))]
        vectors = np.arange(vector_count(rows) + 1, dtype=np.int64)
        layouts = tuple(self._write_cells(column, vectors) for column in columns)
        encoded = [column.encoding is not None for column in layouts]
        lists = None
        if any(encoded) and not all(encoded):
            lists = self._write_ends(np.minimum(vectors * VECTOR_ROWS, rows))
        padding = align(self._tail.position) - self._tail.position
        if padding:
            self._tail.file.write_at(self._tail.position, [bytes(padding)])
            self._tail.position += padding
        found = FragmentLayout(rows, layouts, (), "auto", lists)
        head = arrow_ipc.HEAD + arrow_ipc.schema_message(stored_schema(schema, found))
        place = Extent(body, self._tail.position - body)
        batch = record_batch(schema, found, [column.null_count for column in columns], place)
        start = len(head)
        self._write_metadata(head + arrow_ipc.record_batch_message(batch, start, body), 0)
        return self._finish(found, columns, FileBlock(start, body - start, place.length))

    def _write_column(self, index: int) -> WrittenColumn:
        field, source, tail = self._schema.field(index), self._source, self._tail
        with name_column_in_errors(field.name, self._path):
            if isinstance(source, EncodedRows):
                return source.finish(index, tail)
            rows = source.rows
            column = encoded_column(field.type, lambda: FileSpace(tail.file, tail.position, rows), rows)
            for chunk in column_chunks(source, index, self._cancelled):
                column.add(chunk)
            column.close()
            return column.finish(tail)

    def _write_cells(self, column: WrittenColumn, vectors: NDArray[np.int64]) -> ColumnLayout:
        """Arrow's offsets of an encoded column, and of its dictionary; the column's layout with them."""
        encoding, dictionary = column.layout.encoding, column.layout.dictionary
        if encoding is None:
            return column.layout
        assert column.cells is not None
        encoding = replace(encoding, cells=self._write_ends(column.cells))
        if dictionary is not None:
            lists = self._write_ends(np.minimum(vectors, 1) * dictionary.size)
            encoding = replace(encoding, lists=lists)
        return replace(column.layout, encoding=encoding)

    def _write_ends(self, ends: NDArray[np.int64]) -> Extent:
        extent = Extent(self._tail.position, ends.nbytes)
        padding = align(extent.end, CELLS_ALIGNMENT) - extent.end
        self._tail.file.write_at(extent.offset, [view(ends), bytes(padding)])
        self._tail.position = extent.end + padding
        return extent
