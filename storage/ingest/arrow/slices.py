"""Large record batches of Arrow IPC files, a run of rows at a time.

pyarrow reads a record batch whole, and some writers put a whole table into one. Where its buffers are not
compressed, rows [a, b) of a column are a range of bytes, so they are read by themselves. Offsets in the
file's metadata (Message.fbs and File.fbs of https://github.com/apache/arrow/tree/main/format, whose slot
numbers are used here) are believed only as far as they stay within the file.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.storage.format.storable_types import DataType
from bamquery.storage.ingest.sources.source import BATCH_ROWS

Array: TypeAlias = "pa.Array[Any]"
"""Short for annotations."""

_MAGIC: Final = b"ARROW1"
_RECORD_BATCH: Final = 3
_LITTLE_ENDIAN: Final = 0
_BYTE: Final = 8
"""Rows that a byte of a bitmap tells of: runs begin with one."""
_LONGEST_METADATA: Final = 64 << 20
_BLOCK: Final = struct.Struct("<qi4xq")
_PAIR: Final = struct.Struct("<qq")  # FieldNode: length, nulls; Buffer: offset, length
_ENDS: Final = struct.Struct("<i6s")


@dataclass(frozen=True, slots=True)
class BatchBlock:
    """Where the file has a record batch message."""

    offset: int
    metadata_length: int
    body_length: int


class LargeBatch:
    """One record batch whose columns can be read by rows."""

    def __init__(self, descriptor: int, block: BatchBlock, schema: pa.Schema) -> None:
        """Read its metadata.

        Raises:
            ValueError: it is damaged. NotImplementedError: it can only be read whole.
        """
        self._descriptor = descriptor
        self._schema = schema
        self._body = block.offset + block.metadata_length
        self._body_length = block.body_length
        prefix = _read_at(descriptor, block.offset, min(block.metadata_length, _LONGEST_METADATA))
        start = 8 if prefix.startswith(b"\xff\xff\xff\xff") else 4
        message = _Table.root(prefix[start:])
        if message.number(1, "<B") != _RECORD_BATCH:
            raise ValueError("a message is not the record batch that the footer says it is")
        batch = message.table(2)
        if batch.has(3):
            raise NotImplementedError("compressed")
        self.rows = batch.number(0, "<q")
        self._nodes = batch.structs(1, _PAIR)
        self._buffers = batch.structs(2, _PAIR)
        if self.rows < 0:
            raise ValueError("a record batch has fewer rows than none")
        self._places: list[tuple[int, int]] = []
        node = buffer = 0
        for field in schema:
            self._places.append((node, buffer))
            nodes, buffers = _size(field.type)
            node, buffer = node + nodes, buffer + buffers
        if (node, buffer) != (len(self._nodes), len(self._buffers)):
            raise ValueError("a record batch has other buffers than its schema says")

    def can_slice(self, column: int) -> bool:
        """Whether `read` takes the column; views, nested and dictionary columns have no rows of bytes."""
        type_ = self._schema.field(column).type
        return _is_string(type_) or (_width(type_) > 0 and not pa.types.is_dictionary(type_))

    def read(self, column: int, first: int, rows: int) -> Array:
        """Rows [first, first + rows) of a column; `first` is a multiple of 8. To be validated by the caller.

        Raises:
            ValueError: buffers are shorter than the rows, or offsets point outside. OSError: the disk failed.
        """
        type_ = self._schema.field(column).type
        node, buffer = self._places[column]
        nulls = self._nodes[node][1]
        validity = self._range(buffer, first // 8, -(-rows // 8)) if nulls else None
        if _is_string(type_):
            return self._read_text(type_, buffer, first, rows, validity)
        bits = _width(type_)
        values = self._range(buffer + 1, first * bits // 8, -(-rows * bits // 8))
        return pa.Array.from_buffers(type_, rows, [validity, values])

    def _read_text(
        self, type_: DataType, buffer: int, first: int, rows: int, validity: pa.Buffer | None
    ) -> Array:
        large = pa.types.is_large_string(type_) or pa.types.is_large_binary(type_)
        width = 8 if large else 4
        stored = self._range(buffer + 1, first * width, (rows + 1) * width)
        offsets: NDArray[np.signedinteger[Any]] = np.frombuffer(
            memoryview(stored), np.int64 if large else np.int32
        )
        start, end = int(offsets[0]), int(offsets[-1])
        if not 0 <= start <= end:
            raise ValueError("offsets of strings do not ascend")
        data = self._range(buffer + 2, start, end - start)
        rebased = pa.py_buffer(offsets - offsets[0])
        return pa.Array.from_buffers(type_, rows, [validity, rebased, data])

    def _range(self, buffer: int, start: int, length: int) -> pa.Buffer:
        offset, size = self._buffers[buffer]
        if start + length > size or not 0 <= offset <= offset + size <= self._body_length:
            raise ValueError("a buffer is shorter than its rows, or outside of its record batch")
        return pa.py_buffer(_read_at(self._descriptor, self._body + offset + start, length))


def blocks(descriptor: int) -> list[BatchBlock]:
    """The record batches of a file of the IPC file format, by its footer.

    Raises:
        ValueError: the footer is damaged. NotImplementedError: the file is of a big-endian machine.
    """
    size = os.fstat(descriptor).st_size
    length, magic = _ENDS.unpack(_read_at(descriptor, max(size - _ENDS.size, 0), _ENDS.size))
    if magic != _MAGIC or not 0 < length <= min(size, _LONGEST_METADATA):
        raise ValueError("the footer is missing")
    footer = _Table.root(_read_at(descriptor, size - _ENDS.size - length, length))
    if footer.table(1).number(0, "<h") != _LITTLE_ENDIAN:
        raise NotImplementedError("big-endian")
    found = [BatchBlock(*block) for block in footer.structs(3, _BLOCK)]
    if any(min(b.offset, b.metadata_length, b.body_length) < 0 for b in found):
        raise ValueError("the footer points outside of the file")
    return found


def slices(rows: int, at_once: int = BATCH_ROWS) -> Iterator[tuple[int, int]]:
    """First row and number of rows of the runs in which a large batch is read: of about `at_once` rows."""
    step = min(max(at_once // _BYTE, 1) * _BYTE, BATCH_ROWS)
    for first in range(0, rows, step):
        yield first, min(step, rows - first)


class _Table:
    """A flatbuffers table. Every access stays within the bytes, or raises ValueError."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._position = position
        self._vtable = position - self._unpack("<i", position)
        self._vtable_size = self._unpack("<H", self._vtable)

    @classmethod
    def root(cls, data: bytes) -> _Table:
        """The outermost table."""
        if len(data) < 4:
            raise ValueError("the metadata is too short")
        return cls(data, struct.unpack_from("<I", data)[0])

    def has(self, slot: int) -> bool:
        """Whether the field is there."""
        return self._field(slot) is not None

    def number(self, slot: int, format_: str) -> int:
        """A number, 0 where it is left out."""
        field = self._field(slot)
        return 0 if field is None else self._unpack(format_, field)

    def table(self, slot: int) -> _Table:
        """The table a field refers to."""
        return _Table(self._data, self._target(slot))

    def structs(self, slot: int, layout: struct.Struct) -> list[tuple[int, ...]]:
        """The structs of a vector, none where it is left out."""
        if not self.has(slot):
            return []
        start = self._target(slot)
        length = self._unpack("<I", start) * layout.size
        if start + 4 + length > len(self._data):
            raise ValueError("the metadata is cut off")
        return list(layout.iter_unpack(self._data[start + 4 : start + 4 + length]))

    def _field(self, slot: int) -> int | None:
        entry = 4 + 2 * slot
        if entry + 2 > self._vtable_size:
            return None
        offset = self._unpack("<H", self._vtable + entry)
        return self._position + offset if offset else None

    def _target(self, slot: int) -> int:
        field = self._field(slot)
        if field is None:
            raise ValueError("the metadata lacks a field")
        return field + self._unpack("<I", field)

    def _unpack(self, format_: str, position: int) -> int:
        if not 0 <= position <= len(self._data) - struct.calcsize(format_):
            raise ValueError("the metadata points outside of itself")
        return int(struct.unpack_from(format_, self._data, position)[0])


def _read_at(descriptor: int, offset: int, length: int) -> bytes:
    pieces = []
    while length:
        piece = os.pread(descriptor, length, offset)
        if not piece:
            raise ValueError("the file is truncated")
        pieces.append(piece)
        offset += len(piece)
        length -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _is_string(type_: DataType) -> bool:
    return (
        pa.types.is_string(type_)
        or pa.types.is_binary(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_large_binary(type_)
    )


def _width(type_: DataType) -> int:
    """Bits of a value, 0 where they vary."""
    if pa.types.is_nested(type_) or isinstance(type_, pa.BaseExtensionType):
        return 0
    try:
        return int(type_.bit_width)
    except ValueError:
        return 0


def _size(type_: DataType) -> tuple[int, int]:
    """How many nodes and buffers a column of the type has in a record batch.

    Raises:
        NotImplementedError: that depends on its values.
    """
    if isinstance(type_, pa.BaseExtensionType):
        return _size(type_.storage_type)
    if pa.types.is_null(type_):
        return 1, 0
    if pa.types.is_dictionary(type_) or _width(type_):
        return 1, 2
    if _is_string(type_):
        return 1, 3
    if pa.types.is_struct(type_):
        return _with_children(1, [field.type for field in type_])
    if pa.types.is_fixed_size_list(type_):
        return _with_children(1, [type_.value_type])
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return _with_children(2, [type_.value_type])
    raise NotImplementedError(str(type_))


def _with_children(buffers: int, children: list[DataType]) -> tuple[int, int]:
    sizes = [_size(child) for child in children]
    return 1 + sum(nodes for nodes, _ in sizes), buffers + sum(count for _, count in sizes)
