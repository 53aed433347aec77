"""Constants of Python's plain values, without what `pyarrow.scalar` looks at first.

It asks pandas whether a value is one of its objects, and imports pandas for that where it is installed,
which takes longer than all else that a program's first query does.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

_INTEGERS: Final[Mapping[pa.DataType, str]] = MappingProxyType(
    {
        pa.int8(): "<b",
        pa.int16(): "<h",
        pa.int32(): "<i",
        pa.int64(): "<q",
        pa.uint8(): "<B",
        pa.uint16(): "<H",
        pa.uint32(): "<I",
        pa.uint64(): "<Q",
        pa.timestamp("us", "UTC"): "<q",
    }
)
"""How a value is stored, by its type."""

_pa: Any = pa  # whose stubs choose by types that are known at run time only


def scalar(value: object, kind: pa.DataType) -> Any:
    """What `pyarrow.scalar` gives, of a value that Arrow takes for the type.

    Raises:
        pa.ArrowInvalid, pa.ArrowTypeError: the value is not of the type, or does not fit.
    """
    if value is None:
        return _pa.nulls(1, kind)[0]
    try:
        buffers = _buffers(value, kind)
    except (struct.error, UnicodeEncodeError):  # pyarrow says it better
        buffers = None
    if buffers is None:
        return _pa.scalar(value, kind)
    return _pa.Array.from_buffers(kind, 1, [None, *map(pa.py_buffer, buffers)])[0]


def _buffers(value: object, kind: pa.DataType) -> tuple[bytes, ...] | None:
    """What an array of the value is made of; None where that is left to pyarrow."""
    if type(value) is int:
        form = _INTEGERS.get(kind)
        return None if form is None else (struct.pack(form, value),)
    if type(value) is bool and kind == pa.bool_():
        return (bytes([value]),)
    if type(value) is float and kind == pa.float64():
        return (struct.pack("<d", value),)
    if type(value) is str and kind == pa.large_string():
        text = value.encode()
        return struct.pack("<qq", 0, len(text)), text
    return None
