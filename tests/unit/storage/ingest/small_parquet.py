"""Parquet files of one column as old writers made them: with a converted type and no logical one."""

from __future__ import annotations

import struct
from collections.abc import Sequence

I32, I64, TEXT, LIST, STRUCT = 5, 6, 8, 9, 12
INT64 = 2

Field = tuple[int, int, object]
"""Number, type and value of a member in Thrift's compact protocol."""


def int64_file(name: str, converted_type: int, values: Sequence[int]) -> bytes:
    """A file of required INT64 values, plain and not compressed; see parquet.thrift for the numbers."""
    data = struct.pack(f"<{len(values)}q", *values)
    page = _struct(
        [
            (1, I32, 0),
            (2, I32, len(data)),
            (3, I32, len(data)),
            (5, STRUCT, [(1, I32, len(values)), (2, I32, 0), (3, I32, 3), (4, I32, 3)]),
        ]
    )
    size = len(page) + len(data)
    chunk = [
        (1, I32, INT64),
        (2, LIST, (I32, [0])),
        (3, LIST, (TEXT, [name])),
        (4, I32, 0),
        (5, I64, len(values)),
        (6, I64, size),
        (7, I64, size),
        (9, I64, 4),
    ]
    root = [(4, TEXT, "schema"), (5, I32, 1)]
    column = [(1, I32, INT64), (3, I32, 0), (4, TEXT, name), (6, I32, converted_type)]
    group = [
        (1, LIST, (STRUCT, [[(2, I64, 4), (3, STRUCT, chunk)]])),
        (2, I64, size),
        (3, I64, len(values)),
    ]
    footer = _struct(
        [
            (1, I32, 1),
            (2, LIST, (STRUCT, [root, column])),
            (3, I64, len(values)),
            (4, LIST, (STRUCT, [group])),
        ]
    )
    return b"PAR1" + page + data + footer + struct.pack("<I", len(footer)) + b"PAR1"


def _struct(fields: Sequence[Field]) -> bytes:
    written, before = b"", 0
    for number, kind, value in fields:
        written += bytes([(number - before) << 4 | kind]) + _value(kind, value)
        before = number
    return written + b"\0"


def _value(kind: int, value: object) -> bytes:
    if kind in (I32, I64):
        return _varint(value << 1 ^ value >> 63)
    if kind == TEXT:
        return _varint(len(value)) + value.encode()
    if kind == STRUCT:
        return _struct(value)
    of, items = value
    return bytes([len(items) << 4 | of]) + b"".join(_value(of, item) for item in items)


def _varint(value: int) -> bytes:
    written = b""
    while value >= 128:
        written += bytes([value & 127 | 128])
        value >>= 7
    return written + bytes([value])
