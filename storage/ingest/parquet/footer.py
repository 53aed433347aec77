"""What a Parquet file's footer says of the sizes of its column chunks.

Arrow gives the same as `RowGroupMetaData.column`, and ends the process there where size statistics are
damaged: https://github.com/apache/arrow/blob/main/cpp/src/parquet/metadata.cc throws through a function that
pyarrow calls as one that does not. No other library at hand reads a footer alone, so the few numbers that are
needed are read here: https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift in
https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from bamquery.errors import IngestError
from bamquery.storage.database.file_access import open_arrow

_Item = TypeVar("_Item")

_END: Final = b"PAR1"
_DEEPEST: Final = 24
"""Structures and lists within each other; whole footers have 6."""
_LONGEST_VARINT: Final = 10
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT, _UUID = range(1, 14)
_FIXED_BYTES: Final = {_TRUE: 0, _FALSE: 0, _BYTE: 1, _DOUBLE: 8, _UUID: 16}
_DICTIONARY_ENCODINGS: Final = (2, 8)
"""PLAIN_DICTIONARY and RLE_DICTIONARY."""


class ColumnChunk(NamedTuple):
    """What is stored of one column of one row group.

    Attributes:
        bytes: as they are before compression.
        has_dictionary: whether values may be numbers of a dictionary's.
    """

    bytes: int
    has_dictionary: bool


def column_chunks(path: Path) -> Iterator[list[ColumnChunk]]:
    """For each row group its column chunks, in the order of the schema's leaves.

    What the footer leaves out is 0 or no dictionary. It is read at once, and looked at as far as is
    asked for: that of thousands of row groups takes seconds.

    Raises:
        IngestError: the footer is damaged.
        OSError: the file cannot be read.
    """
    with open_arrow(path) as file:
        size = file.size()
        ending = 4 + len(_END)
        file.seek(max(size - ending, 0))
        tail = file.read(ending)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != _END or length > size - ending:
            raise IngestError("footer: is cut off (the file may be truncated)", path)
        file.seek(size - ending - length)
        footer = file.read(length)
    try:
        yield from _Reader(footer).row_groups()
    except IndexError as error:
        raise IngestError("footer: is damaged: it ends within a value", path) from error
    except ValueError as error:
        raise IngestError(f"footer: is damaged: {error}", path) from error


class _Reader:
    """Values of Thrift's compact protocol, each after the one before; IndexError and ValueError at damage."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._place = 0

    def row_groups(self) -> Iterator[list[ColumnChunk]]:
        """The value `FileMetaData`."""
        for number, kind in self._fields():
            if (number, kind) == (4, _LIST):
                count, found = self._list_start()
                for _ in range(count):
                    if found == _STRUCT:
                        yield self._row_group()
                    else:
                        self._skip(found, 1, is_item=True)
            else:
                self._skip(kind)

    def _row_group(self) -> list[ColumnChunk]:
        chunks: list[ColumnChunk] = []
        for number, kind in self._fields():
            if (number, kind) == (1, _LIST):
                chunks = self._list(_STRUCT, self._chunk)
            else:
                self._skip(kind)
        return chunks

    def _chunk(self) -> ColumnChunk:
        found = ColumnChunk(0, False)
        for number, kind in self._fields():
            if (number, kind) == (3, _STRUCT):
                found = self._chunk_metadata()
            else:
                self._skip(kind)
        return found

    def _chunk_metadata(self) -> ColumnChunk:
        size, has_page = 0, False
        encodings: list[int] = []
        for number, kind in self._fields():
            if (number, kind) == (2, _LIST):
                encodings = self._list(_I32, self._integer)
            elif (number, kind) == (6, _I64):
                size = self._integer()
            else:
                has_page |= number == 11
                self._skip(kind)
        return ColumnChunk(max(size, 0), has_page or any(code in _DICTIONARY_ENCODINGS for code in encodings))

    def _fields(self) -> Iterator[tuple[int, int]]:
        """Numbers and types of a structure's members; each value is to be read before the next."""
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            yield number, head & 15

    def _list(self, kind: int, item: Callable[[], _Item]) -> list[_Item]:
        count, found = self._list_start()
        if found != kind:
            for _ in range(count):
                self._skip(found, 1, is_item=True)
            return []
        return [item() for _ in range(count)]

    def _list_start(self) -> tuple[int, int]:
        head = self._byte()
        count = head >> 4
        return (self._varint() if count == 15 else count), head & 15

    def _skip(self, kind: int, depth: int = 0, *, is_item: bool = False) -> None:
        """Go past a value; in a list a boolean has a byte of its own."""
        if kind in (_I16, _I32, _I64):
            self._varint()
        elif kind == _BINARY:
            self._advance(self._varint())
        elif kind in _FIXED_BYTES:
            self._advance(1 if is_item and kind <= _FALSE else _FIXED_BYTES[kind])
        elif depth == _DEEPEST:
            raise ValueError(f"it has more than {_DEEPEST} structures within each other")
        elif kind == _STRUCT:
            self._skip_structure(depth + 1)
        elif kind in (_LIST, _SET):
            count, of = self._list_start()
            for _ in range(count):
                self._skip(of, depth + 1, is_item=True)
        elif kind == _MAP:
            if count := self._varint():
                kinds = self._byte()
                for _ in range(count):
                    self._skip(kinds >> 4, depth + 1, is_item=True)
                    self._skip(kinds & 15, depth + 1, is_item=True)
        else:
            raise ValueError(f"there is no type {kind}")

    def _skip_structure(self, depth: int) -> None:
        """Go past members and the end; most of a footer are integers, so these are gone past here."""
        content, place = self._content, self._place
        while head := content[place]:
            place += 1
            kind = head & 15
            integers = (head < 16) + (_I16 <= kind <= _I64)  # the first is the member's number
            for _ in range(integers):
                while content[place] > 127:
                    place += 1
                place += 1
            if not _I16 <= kind <= _I64:
                self._place = place
                self._skip(kind, depth)
                place = self._place
        self._place = place + 1

    def _advance(self, count: int) -> None:
        self._place += count
        if self._place > len(self._content):
            raise IndexError

    def _byte(self) -> int:
        value = self._content[self._place]
        self._place += 1
        return value

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 7 * _LONGEST_VARINT, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a number has more than 64 bits")

    def _integer(self) -> int:
        coded = self._varint()
        return coded >> 1 ^ -(coded & 1)
