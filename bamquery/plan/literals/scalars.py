"""Constants of Python's plain values, without what `pyarrow.scalar` looks at first.

It asks pandas whether a value is one of its objects, and imports pandas for that where it is installed,
which takes longer than all else that a program's first query does.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa

_MOST_DIGITS: Final = 38
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


def scalar(value: object, kind: pa.DataType) -> pa.Scalar[Any]:
    """What `pyarrow.scalar` gives, of a value that Arrow takes for the type.

    Raises:
        pa.ArrowInvalid, pa.ArrowTypeError: the value is not of the type, or does not fit.
    """
    found: pa.Scalar[Any]
    if value is None:
        found = _pa.nulls(1, kind)[0]
        return found
    try:
        buffers = _buffers(value, kind)
    except (struct.error, UnicodeEncodeError):  # pyarrow says it better
        buffers = None
    if buffers is None:
        found = _pa.scalar(value, kind)
    else:
        found = _pa.Array.from_buffers(kind, 1, [None, *map(pa.py_buffer, buffers)])[0]
    return found


def _buffers(value: Any, kind: pa.DataType) -> tuple[bytes, ...] | None:
    """What an array of the value is made of; None where that is left to pyarrow."""
    if type(value) is int:
        form = _INTEGERS.get(kind)
        return None if form is None else (struct.pack(form, value),)
    if type(value) is bool and kind == pa.bool_():
        return (bytes([value]),)
    if type(value) in (float, np.float64) and kind == pa.float64():
        return (struct.pack("<d", value),)
    if type(value) is np.float32 and kind == pa.float32():
        return (value.tobytes(),)
    if type(value) in (int, Decimal) and isinstance(kind, pa.Decimal128Type):
        return _unscaled_value(Decimal(value), kind)
    if type(value) is str and kind == pa.large_string():
        text = value.encode()
        return struct.pack("<qq", 0, len(text)), text
    return None


def _unscaled_value(value: Decimal, kind: pa.Decimal128Type[Any, Any]) -> tuple[bytes, ...] | None:
    """The number without its point; None where it has none that is exact and fits."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or not 0 <= kind.scale + exponent <= _MOST_DIGITS:
        return None
    number = int("".join(map(str, digits))) * 10 ** (kind.scale + exponent)
    if number >= 10**kind.precision:
        return None
    return ((-number if sign else number).to_bytes(16, "little", signed=True),)
