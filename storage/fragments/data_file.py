"""Writes file one of a fragment: columns one after the other, and Arrow's metadata around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native
from bamquery.errors import CancelledError, StorageError
from bamquery.storage.files.buffers import view
from bamquery.storage.files.filesystem import WritableFile
from bamquery.storage.format import arrow_ipc
from bamquery.storage.format.arrow_ipc import Batch, FileBlock
from bamquery.storage.format.arrow_schema import record_batch, reserved_bytes, stored_schema
from bamquery.storage.format.file_region import FileRegion
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
from bamquery.storage.fragments.choose_packing import FORCED
from bamquery.storage.fragments.column_writer import WrittenColumn, write_column
from bamquery.storage.fragments.dictionaries import plain_buffers, unify
from bamquery.storage.fragments.row_source import RowSource
from bamquery.storage.fragments.string_dictionary import StringDictionary

_NOWHERE: Final = Extent(0, 0)


def write_data_file(
    file: WritableFile,
    path: Path,
    columns: FragmentSource,
) -> WrittenFile:
    """Write file one.

    Raises:
        StorageError: the file cannot be written, or a column of the source does not fit the schema.
        CancelledError: the source says so.
    """
    if not columns.rows:
        columns = replace(columns, encoding="plain")
    return (_PlainFile if columns.encoding == "plain" else _EncodedFile)(file, path, columns).write()


@dataclass(frozen=True)
class FragmentSource:
    """Rows to be written, and how.

    Attributes:
        schema: of the table.
        source: the rows.
        encoding: whether columns may be encoded.
        cancelled: is asked between chunks.
    """

    schema: pa.Schema
    source: RowSource
    encoding: Encoding
    cancelled: Callable[[], bool]

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.source.rows

    def chunks(self, index: int) -> Iterator[pa.Array[Any]]:
        """Of a column.

        Raises:
            CancelledError: the write was cancelled.
        """
        for chunk in self.source.column(index):
            if self.cancelled():
                raise CancelledError("the writing of a fragment was cancelled")
            yield chunk


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

    def __init__(self, file: WritableFile, path: Path, columns: FragmentSource) -> None:
        self._file = file
        self._path = path
        self._source = columns
        self._schema = columns.schema
        self._position = 0
        self._metadata: list[tuple[Extent, int]] = []

    def _write_metadata(self, data: bytes, at: int) -> None:
        self._file.write_at(at, [data])
        self._metadata.append((Extent(at, len(data)), _native.crc32c(data)))
        self._position = max(self._position, at + len(data))

    def _write_column(
        self,
        index: int,
        dictionary: tuple[pa.Array[Any], DictionaryLayout] | None,
        chunks: Iterator[pa.Array[Any]] | None = None,
        type_: pa.DataType | None = None,
    ) -> WrittenColumn:
        """The source's column, or what `chunks` make of it, which are of `type_`."""
        field = self._schema.field(index)
        with _name_column_in_errors(field.name, self._path):
            column = write_column(
                self._file,
                self._position,
                field.type if type_ is None else type_,
                self._source.rows,
                self._source.chunks(index) if chunks is None else chunks,
                dictionary=dictionary,
                encoding=self._source.encoding,
            )
        self._position = column.end
        return column

    def _unify(self, index: int) -> pa.Array[Any]:
        field = self._schema.field(index)
        with _name_column_in_errors(field.name, self._path):
            values: pa.Array[Any] = unify(field.type, self._source.chunks(index))
            return values

    def _write_dictionary(self, values: pa.Array[Any]) -> DictionaryLayout:
        """Its buffers, behind what was written before."""
        offsets, contents = plain_buffers(values)
        stored = []
        for part in [contents] if offsets is None else [offsets, contents]:
            region = FileRegion(self._file, self._position)
            region.append([part])
            stored.append(region.finish())
            self._position = align(stored[-1].end)
        return DictionaryLayout(
            size=len(values),
            offsets=None if offsets is None else stored[0],
            values=stored[-1],
            offsets_crc=0 if offsets is None else _native.crc32c(offsets),
            values_crc=_native.crc32c(contents),
        )

    def _finish(
        self, layout: FragmentLayout, columns: Sequence[WrittenColumn], batch: FileBlock, *blocks: FileBlock
    ) -> WrittenFile:
        """Write the footer; `blocks` are those of dictionaries."""
        end = self._position
        self._write_metadata(
            arrow_ipc.file_tail(stored_schema(self._schema, layout), blocks, batch, end), end
        )
        layout = replace(layout, metadata=tuple(self._metadata))
        return WrittenFile(layout, [column.statistics for column in columns], self._position)


class _PlainFile(_DataFile):
    """A row of the file is a row."""

    def write(self) -> WrittenFile:
        """Write all of it."""
        schema = self._schema
        self._write_metadata(arrow_ipc.HEAD + arrow_ipc.schema_message(schema), 0)
        dictionaries: dict[int, tuple[pa.Array[Any], DictionaryLayout]] = {}
        blocks: list[FileBlock] = []
        for index, field in enumerate(schema):
            if pa.types.is_dictionary(field.type):
                values = self._unify(index)
                block, layout = self._write_dictionary_batch(len(blocks), values)
                dictionaries[index] = values, layout
                blocks.append(block)
        # Columns go before the message that describes them: its numbers are not known yet, its length is.
        start = self._position
        buffer_count = sum(3 if is_string_like(field.type) else 2 for field in schema)
        placeholder = Batch(0, [(0, 0)] * len(schema), [_NOWHERE] * buffer_count, 0)
        body = self._position = start + len(arrow_ipc.record_batch_message(placeholder, start))
        columns = [self._write_column(index, dictionaries.get(index)) for index in range(len(schema))]
        found = FragmentLayout(self._source.rows, tuple(column.layout for column in columns), ())
        place = Extent(body, self._position - body)
        batch = record_batch(schema, found, [column.null_count for column in columns], place)
        self._write_metadata(arrow_ipc.record_batch_message(batch, start), start)
        return self._finish(found, columns, FileBlock(start, body - start, place.length), *blocks)

    def _write_dictionary_batch(
        self, number: int, values: pa.Array[Any]
    ) -> tuple[FileBlock, DictionaryLayout]:
        start = self._position
        placeholder = Batch(0, [(0, 0)], [_NOWHERE] * (3 if is_string_like(values.type) else 2), 0)
        body = self._position = start + len(arrow_ipc.dictionary_batch_message(number, placeholder, start))
        layout = self._write_dictionary(values)
        stored = [layout.values] if layout.offsets is None else [layout.offsets, layout.values]
        buffers = [_NOWHERE, *(Extent(extent.offset - body, extent.length) for extent in stored)]
        batch = Batch(len(values), [(len(values), 0)], buffers, self._position - body)
        self._write_metadata(arrow_ipc.dictionary_batch_message(number, batch, start), start)
        return FileBlock(start, body - start, batch.body_length), layout


class _EncodedFile(_DataFile):
    """Which columns are encoded turns out as they are written: room is left for what is said of them."""

    def write(self) -> WrittenFile:
        """Write all of it."""
        schema, rows = self._schema, self._source.rows
        body = self._position = align(len(arrow_ipc.HEAD) + reserved_bytes(schema))
        columns: list[WrittenColumn] = []
        for index, field in enumerate(schema):
            if is_string_like(field.type):
                columns.append(self._write_strings(index))
                continue
            dictionary = None
            if pa.types.is_dictionary(field.type):
                values = self._unify(index)
                dictionary = values, self._write_dictionary(values)
            columns.append(self._write_column(index, dictionary))
        vectors = np.arange(vector_count(rows) + 1, dtype=np.int64)
        layouts = tuple(self._write_cells(column, vectors) for column in columns)
        encoded = [column.encoding is not None for column in layouts]
        lists = None
        if any(encoded) and not all(encoded):
            lists = self._write_ends(np.minimum(vectors * VECTOR_ROWS, rows))
        padding = align(self._position) - self._position
        if padding:
            self._file.write_at(self._position, [bytes(padding)])
            self._position += padding
        found = FragmentLayout(rows, layouts, (), "auto", lists)
        head = arrow_ipc.HEAD + arrow_ipc.schema_message(stored_schema(schema, found))
        place = Extent(body, self._position - body)
        batch = record_batch(schema, found, [column.null_count for column in columns], place)
        start = len(head)
        self._write_metadata(head + arrow_ipc.record_batch_message(batch, start, body), 0)
        return self._finish(found, columns, FileBlock(start, body - start, place.length))

    def _write_strings(self, index: int) -> WrittenColumn:
        """By a dictionary, where few of them are different."""
        type_ = self._schema.field(index).type
        with _name_column_in_errors(self._schema.field(index).name, self._path):
            found = StringDictionary(type_, self._source.chunks(index))
        if not found.is_worth or FORCED["symbols"]:
            return self._write_column(index, None, found.strings())
        values, chunks = found.sorted_codes()
        dictionary = values, self._write_dictionary(values)
        column = self._write_column(index, dictionary, chunks, pa.dictionary(pa.int32(), type_))
        encoding = column.layout.encoding
        assert encoding is not None
        encoding = replace(encoding, plain_bytes=found.plain_bytes)
        return replace(column, layout=replace(column.layout, encoding=encoding))

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
        extent = Extent(self._position, ends.nbytes)
        padding = align(extent.end, CELLS_ALIGNMENT) - extent.end
        self._file.write_at(extent.offset, [view(ends), bytes(padding)])
        self._position = extent.end + padding
        return extent


@contextmanager
def _name_column_in_errors(column: str, path: Path) -> Iterator[None]:
    """Values that do not fit are the source's fault: say which column."""
    try:
        yield
    except (ValueError, IndexError, pa.ArrowException) as error:
        raise StorageError(f'column "{column}" cannot be written: {error}', path) from error
