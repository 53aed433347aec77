"""The metadata of Arrow IPC files (flatbuffers), built by us because no writer aligns buffers to 4,096 bytes.

After https://github.com/apache/arrow/tree/main/format: Schema.fbs, Message.fbs and File.fbs, metadata version
V5. Slot numbers are those of the fields in these files.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import flatbuffers
import pyarrow as pa

from bamquery.storage.format.layout import ALIGNMENT, Extent, align

MAGIC: Final = b"ARROW1"
HEAD: Final = MAGIC + bytes(2)
END_OF_STREAM: Final = b"\xff\xff\xff\xff" + bytes(4)

_PREFIX: Final = struct.Struct("<Ii")  # continuation marker, length of the metadata with its padding
_CONTINUATION: Final = 0xFFFFFFFF
_VERSION_5: Final = 4
_MESSAGE_SCHEMA, _MESSAGE_DICTIONARY_BATCH, _MESSAGE_RECORD_BATCH = 1, 2, 3

# Members of the union Type that tables use.
_INT, _FLOATING_POINT, _BOOL, _DECIMAL, _DATE, _TIME, _TIMESTAMP = 2, 3, 6, 7, 8, 9, 10
_STRUCT, _LARGE_BINARY, _LARGE_UTF8, _LARGE_LIST = 13, 19, 20, 21
_TIME_UNITS: Final = {"s": 0, "ms": 1, "us": 2, "ns": 3}
_DATE_UNIT_DAY: Final = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """What a record batch message says: rows, nodes of its columns, buffers relative to the body.

    A node is an array's rows and how many of them are null; behind a list's or struct's come its children's.
    """

    rows: int
    nodes: Sequence[tuple[int, int]]
    buffers: Sequence[Extent]
    body_length: int


@dataclass(frozen=True, slots=True)
class FileBlock:
    """Where the footer finds a message: its offset, metadata (prefix included) and body."""

    offset: int
    metadata_length: int
    body_length: int


def schema_message(schema: pa.Schema) -> bytes:
    """The message that opens a file, behind `HEAD`; its length is a multiple of 8."""
    metadata = _message(_MESSAGE_SCHEMA, lambda builder: _schema(builder, schema), 0)
    return _encapsulate(metadata, align(_PREFIX.size + len(metadata), 8))


def record_batch_message(batch: Batch, at: int, end: int | None = None) -> bytes:
    """A message at byte `at` of the file, padded so that its body starts at a multiple of 4,096, or at `end`.

    Its length depends on the number of nodes and buffers only.
    """
    metadata = _message(
        _MESSAGE_RECORD_BATCH, lambda builder: _record_batch(builder, batch), batch.body_length
    )
    return _aligned_message(metadata, at) if end is None else _encapsulate(metadata, end - at)


def dictionary_batch_message(dictionary_id: int, batch: Batch, at: int) -> bytes:
    """As `record_batch_message`, for the only batch of one column's dictionary."""

    def header(builder: Any) -> int:
        data = _record_batch(builder, batch)
        builder.StartObject(3)
        builder.PrependInt64Slot(0, dictionary_id, 0)
        builder.PrependUOffsetTRelativeSlot(1, data, 0)
        return int(builder.EndObject())

    return _aligned_message(_message(_MESSAGE_DICTIONARY_BATCH, header, batch.body_length), at)


def file_tail(schema: pa.Schema, dictionaries: Sequence[FileBlock], batch: FileBlock, at: int) -> bytes:
    """Everything from byte `at`, behind the last body, to the end of a file of a multiple of 4,096 bytes."""
    builder = _builder()
    schema_offset = _schema(builder, schema)
    dictionary_blocks = _blocks(builder, dictionaries)
    batch_blocks = _blocks(builder, [batch])
    builder.StartObject(5)
    builder.PrependInt16Slot(0, _VERSION_5, 0)
    builder.PrependUOffsetTRelativeSlot(1, schema_offset, 0)
    builder.PrependUOffsetTRelativeSlot(2, dictionary_blocks, 0)
    builder.PrependUOffsetTRelativeSlot(3, batch_blocks, 0)
    builder.Finish(builder.EndObject())
    footer = bytes(builder.Output())
    # The footer starts at a multiple of 8; length and magic behind it take 4 + 6 bytes.
    footer += bytes((6 - len(footer)) % 8)
    end = struct.pack("<i", len(footer)) + MAGIC
    size = align(at + len(END_OF_STREAM) + len(footer) + len(end))
    gap = size - at - len(END_OF_STREAM) - len(footer) - len(end)
    return END_OF_STREAM + bytes(gap) + footer + end


def _builder() -> Any:
    builder = flatbuffers.Builder(1024)
    # Written even where they are zero, so that a message's length does not depend on its numbers.
    builder.ForceDefaults(True)
    return builder


def _message(kind: int, header: Callable[[Any], int], body_length: int) -> bytes:
    builder = _builder()
    header_offset = header(builder)
    builder.StartObject(5)
    builder.PrependInt16Slot(0, _VERSION_5, 0)
    builder.PrependUint8Slot(1, kind, 0)
    builder.PrependUOffsetTRelativeSlot(2, header_offset, 0)
    builder.PrependInt64Slot(3, body_length, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


def _encapsulate(metadata: bytes, length: int) -> bytes:
    assert length >= _PREFIX.size + len(metadata), length
    prefix = _PREFIX.pack(_CONTINUATION, length - _PREFIX.size)
    return prefix + metadata + bytes(length - _PREFIX.size - len(metadata))


def _aligned_message(metadata: bytes, at: int) -> bytes:
    return _encapsulate(metadata, align(at + _PREFIX.size + len(metadata), ALIGNMENT) - at)


def _record_batch(builder: Any, batch: Batch) -> int:
    builder.StartVector(16, len(batch.buffers), 8)
    for buffer in reversed(batch.buffers):
        builder.PrependInt64(buffer.length)
        builder.PrependInt64(buffer.offset)
    buffers = builder.EndVector()
    builder.StartVector(16, len(batch.nodes), 8)
    for rows, null_count in reversed(batch.nodes):
        builder.PrependInt64(null_count)
        builder.PrependInt64(rows)
    nodes = builder.EndVector()
    builder.StartObject(5)
    builder.PrependInt64Slot(0, batch.rows, 0)
    builder.PrependUOffsetTRelativeSlot(1, nodes, 0)
    builder.PrependUOffsetTRelativeSlot(2, buffers, 0)
    return int(builder.EndObject())


def _blocks(builder: Any, blocks: Sequence[FileBlock]) -> int:
    builder.StartVector(24, len(blocks), 8)
    for block in reversed(blocks):
        builder.PrependInt64(block.body_length)
        builder.Pad(4)
        builder.PrependInt32(block.metadata_length)
        builder.PrependInt64(block.offset)
    return int(builder.EndVector())


def _schema(builder: Any, schema: pa.Schema) -> int:
    fields = []
    dictionary_id = 0
    for field in schema:
        is_dictionary = pa.types.is_dictionary(field.type)
        fields.append(_field(builder, field, dictionary_id if is_dictionary else None))
        dictionary_id += is_dictionary
    fields_offset = _offsets(builder, fields)
    builder.StartObject(4)
    builder.PrependInt16Slot(0, 0, 0)  # little-endian
    builder.PrependUOffsetTRelativeSlot(1, fields_offset, 0)
    return int(builder.EndObject())


def _offsets(builder: Any, tables: Sequence[int]) -> int:
    builder.StartVector(4, len(tables), 4)
    for offset in reversed(tables):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())


def _field(builder: Any, field: pa.Field[Any], dictionary_id: int | None) -> int:
    """Children of lists and structs have no dictionaries of their own."""
    name = builder.CreateString(field.name)
    metadata = None if field.metadata is None else _offsets(builder, _key_values(builder, field.metadata))
    encoding = None
    value_type: Any = field.type
    if dictionary_id is not None:
        value_type = field.type.value_type
        _, index_type = _type(builder, field.type.index_type)
        builder.StartObject(4)
        builder.PrependInt64Slot(0, dictionary_id, 0)
        builder.PrependUOffsetTRelativeSlot(1, index_type, 0)
        builder.PrependBoolSlot(2, False, False)
        encoding = builder.EndObject()
    member, type_ = _type(builder, value_type)
    inner = [value_type.field(place) for place in range(value_type.num_fields)] if encoding is None else []
    children = _offsets(builder, [_field(builder, child, None) for child in inner])
    builder.StartObject(7)
    builder.PrependUOffsetTRelativeSlot(0, name, 0)
    builder.PrependBoolSlot(1, field.nullable, False)
    builder.PrependUint8Slot(2, member, 0)
    builder.PrependUOffsetTRelativeSlot(3, type_, 0)
    if encoding is not None:
        builder.PrependUOffsetTRelativeSlot(4, encoding, 0)
    builder.PrependUOffsetTRelativeSlot(5, children, 0)
    if metadata is not None:
        builder.PrependUOffsetTRelativeSlot(6, metadata, 0)
    return int(builder.EndObject())


def _key_values(builder: Any, metadata: Mapping[bytes, bytes]) -> list[int]:
    pairs = []
    for key, value in metadata.items():
        key_offset, value_offset = builder.CreateString(key), builder.CreateString(value)
        builder.StartObject(2)
        builder.PrependUOffsetTRelativeSlot(0, key_offset, 0)
        builder.PrependUOffsetTRelativeSlot(1, value_offset, 0)
        pairs.append(int(builder.EndObject()))
    return pairs


def _type(builder: Any, type_: Any) -> tuple[int, int]:
    """Member of the union Type, and the offset of its table."""
    types = pa.types
    timezone = builder.CreateString(type_.tz) if types.is_timestamp(type_) and type_.tz is not None else None
    builder.StartObject(3)
    if types.is_integer(type_):
        member = _INT
        builder.PrependInt32Slot(0, type_.bit_width, 0)
        builder.PrependBoolSlot(1, types.is_signed_integer(type_), False)
    elif types.is_floating(type_):
        member = _FLOATING_POINT
        builder.PrependInt16Slot(0, {32: 1, 64: 2}[type_.bit_width], 0)
    elif types.is_boolean(type_):
        member = _BOOL
    elif types.is_decimal128(type_):
        member = _DECIMAL
        builder.PrependInt32Slot(0, type_.precision, 0)
        builder.PrependInt32Slot(1, type_.scale, 0)
        builder.PrependInt32Slot(2, 128, 128)
    elif types.is_date32(type_):
        member = _DATE
        builder.PrependInt16Slot(0, _DATE_UNIT_DAY, 1)
    elif types.is_time64(type_):
        member = _TIME
        builder.PrependInt16Slot(0, _TIME_UNITS[type_.unit], 1)
        builder.PrependInt32Slot(1, 64, 32)
    elif types.is_timestamp(type_):
        member = _TIMESTAMP
        builder.PrependInt16Slot(0, _TIME_UNITS[type_.unit], 0)
        if timezone is not None:
            builder.PrependUOffsetTRelativeSlot(1, timezone, 0)
    elif types.is_large_string(type_):
        member = _LARGE_UTF8
    elif types.is_large_binary(type_):
        member = _LARGE_BINARY
    elif types.is_large_list(type_):
        member = _LARGE_LIST
    elif types.is_struct(type_):
        member = _STRUCT
    else:
        raise AssertionError(f"{type_} is not a stored type")
    return member, int(builder.EndObject())
