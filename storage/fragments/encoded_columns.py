"""Columns of an encoded fragment while their rows come, which need not all be there at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from bamquery.storage.format.file_region import FileTail
from bamquery.storage.format.layout import DictionaryLayout
from bamquery.storage.format.storable_types import is_string_like
from bamquery.storage.fragments.choose_packing import FORCED
from bamquery.storage.fragments.column_writer import ColumnWriter, WrittenColumn, write_column
from bamquery.storage.fragments.dictionaries import unify, write_dictionary
from bamquery.storage.fragments.regions import ColumnSpace, MemorySpace
from bamquery.storage.fragments.row_source import (
    RowSource,
    column_chunks,
    name_column_in_errors,
    require_type,
)
from bamquery.storage.fragments.string_dictionary import StringDictionary

RunAll = Callable[[Sequence[Callable[[], None]]], None]
"""Does all of these, each once and in any order, at the same time or not; raises what the first of them that
failed has raised, once none of them runs."""


def run_in_turn(tasks: Sequence[Callable[[], None]]) -> None:
    """A `RunAll` of one thread."""
    for task in tasks:
        task()


class EncodedColumn(Protocol):
    """A column of which more rows may come."""

    @property
    def held_bytes(self) -> int:
        """Of memory that its rows take."""
        ...

    def add(self, chunk: pa.Array[Any]) -> None:
        """Take the next rows.

        Raises:
            ValueError: the chunk is of another type, or damaged.
            StorageError: a file cannot be written.
        """
        ...

    def flush(self) -> None:
        """Keep no more rows as they came than make no vector yet: it may be long until more come."""
        ...

    def close(self) -> None:
        """No rows follow: compute what can be without the file.

        Raises:
            ValueError: a row is not UTF-8.
        """
        ...

    def finish(self, tail: FileTail) -> WrittenColumn:
        """After `close`: write what is not in the file yet.

        Raises:
            ValueError: a dictionary has more values than its type can count.
            StorageError: the file cannot be written, or a value is outside of its type.
        """
        ...


def encoded_column(type_: pa.DataType, space: Callable[[], ColumnSpace], rows: int = 0) -> EncodedColumn:
    """A column of that type; `space` is for its bytes, `rows` says how many are to be expected."""
    if is_string_like(type_):
        return _Strings(type_, space, rows)
    if isinstance(type_, pa.DictionaryType):
        return _Dictionary(type_)
    return _Values(type_, space, rows)


class EncodedRows:
    """Rows that are encoded as they come, and kept in memory until they are written as one fragment.

    There must be some by then: a fragment of none is plain.
    """

    def __init__(self, schema: pa.Schema, folder: Path | None = None) -> None:
        """`folder`: of the table, for errors."""
        self.rows = 0
        """How many came."""
        self._schema = schema
        self._folder = folder
        self._columns = [encoded_column(field.type, MemorySpace) for field in schema]
        self._is_closed = False
        # Strings take longest: their columns are not the last to be begun.
        self._by_work = sorted(
            range(len(schema)), key=lambda index: not is_string_like(schema.field(index).type)
        )

    @property
    def held_bytes(self) -> int:
        """Of memory that they take, about as many as the fragment's file will."""
        return sum(column.held_bytes for column in self._columns)

    def add(self, source: RowSource, cancelled: Callable[[], bool], run_all: RunAll = run_in_turn) -> None:
        """Take more rows, behind those that came before. After an error this is of no use any more.

        Args:
            source: the rows; threads may read several of its columns at the same time.
            cancelled: asked between chunks.
            run_all: does what is to be done for each column.

        Raises:
            StorageError: a column of the source does not fit the schema.
            CancelledError: `cancelled` said so.
        """

        def add_column(index: int) -> None:
            column = self._columns[index]
            with name_column_in_errors(self._schema.field(index).name, self._folder):
                for chunk in column_chunks(source, index, cancelled):
                    column.add(chunk)
                column.flush()

        run_all([partial(add_column, index) for index in self._by_work])
        self.rows += source.rows

    def close(self, run_all: RunAll = run_in_turn) -> None:
        """No rows follow: compute what can be before there is a file.

        Raises:
            StorageError: a column's rows cannot be stored.
        """

        def close_column(index: int) -> None:
            with name_column_in_errors(self._schema.field(index).name, self._folder):
                self._columns[index].close()

        run_all([partial(close_column, index) for index in self._by_work])
        self._is_closed = True

    def finish(self, index: int, tail: FileTail) -> WrittenColumn:
        """See `EncodedColumn.finish`, of that column."""
        if not self._is_closed:
            self.close()
        return self._columns[index].finish(tail)


class _Values:
    """Anything but what has dictionaries, or might have."""

    def __init__(self, type_: pa.DataType, space: Callable[[], ColumnSpace], rows: int) -> None:
        self._writer = ColumnWriter(type_, space(), encoding="auto", rows=rows)

    @property
    def held_bytes(self) -> int:
        return self._writer.held_bytes

    def add(self, chunk: pa.Array[Any]) -> None:
        self._writer.add(chunk)

    def flush(self) -> None:
        self._writer.flush()

    def close(self) -> None:
        pass

    def finish(self, tail: FileTail) -> WrittenColumn:
        return self._writer.finish(tail)


class _Strings:
    """By a dictionary, so long as few of them are different."""

    def __init__(self, type_: Any, space: Callable[[], ColumnSpace], rows: int) -> None:
        self._type = type_
        self._space = space
        self._expected = rows
        self._rows = 0
        self._few: StringDictionary | None = StringDictionary(type_)
        self._writer: ColumnWriter | None = None
        self._values: pa.Array[Any] | None = None
        self._plain_bytes = 0

    @property
    def held_bytes(self) -> int:
        holder = self._writer if self._few is None else self._few
        return 0 if holder is None else holder.held_bytes

    def add(self, chunk: pa.Array[Any]) -> None:
        if chunk.type != self._type:
            raise ValueError(
                f"{len(chunk)} rows of {chunk.type} at row {self._rows}, of rows of {self._type}"
            )
        self._rows += len(chunk)
        if self._few is None:
            assert self._writer is not None
            self._writer.add(chunk)
        elif not self._few.add(chunk):
            self._take_apart(self._few)

    def flush(self) -> None:
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        if self._few is None:
            return
        if self._few.is_worth and not FORCED["symbols"]:
            self._pack_codes(self._few)
        else:
            self._take_apart(self._few)

    def finish(self, tail: FileTail) -> WrittenColumn:
        assert self._writer is not None
        if self._values is None:
            return self._writer.finish(tail)
        column = self._writer.finish(tail, write_dictionary(tail, self._values))
        encoding = column.layout.encoding
        assert encoding is not None
        encoding = replace(encoding, plain_bytes=self._plain_bytes)
        return replace(column, layout=replace(column.layout, encoding=encoding))

    def _take_apart(self, few: StringDictionary) -> None:
        """They are too many: what was taken for codes becomes strings again."""
        self._few = None
        self._writer = ColumnWriter(self._type, self._space(), encoding="auto", rows=self._expected)
        for strings in few.strings():
            self._writer.add(strings)

    def _pack_codes(self, few: StringDictionary) -> None:
        """In memory: where they lie in the file depends on the dictionary, which is written before them."""
        self._few = None
        self._plain_bytes = few.plain_bytes
        self._values, chunks = few.sorted_codes()
        self._writer = ColumnWriter(
            pa.dictionary(pa.int32(), self._type),
            MemorySpace(),
            dictionary=self._values,
            encoding="auto",
            rows=self._rows,
        )
        for chunk in chunks:
            self._writer.add(chunk)
        self._writer.flush()


class _Dictionary:
    """Codes that come with dictionaries of their own: which values there are is known at the end."""

    def __init__(self, type_: pa.DictionaryType[Any, Any]) -> None:
        self._type = type_
        self._chunks: list[Any] = []

    @property
    def held_bytes(self) -> int:
        return sum(chunk.indices.nbytes for chunk in self._chunks)

    def add(self, chunk: pa.Array[Any]) -> None:
        require_type(chunk, self._type)
        self._chunks.append(chunk)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def finish(self, tail: FileTail) -> WrittenColumn:
        values = unify(self._type, self._chunks)
        dictionary: tuple[Any, DictionaryLayout] = values, write_dictionary(tail, values)
        rows = sum(len(chunk) for chunk in self._chunks)
        return write_column(tail, self._type, rows, self._chunks, dictionary=dictionary, encoding="auto")
