"""Arrow types as libcudf has them.

libcudf knows no time of day, no zone and no number of digits: plans and fields keep these, and a column
has what is left. Dictionaries are columns of their values on the GPU, and dictionaries again on the way out.
Decimals of few digits may stay *narrow*, in 64 bits, where late columns have them as their source.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.types import TypeId

from bamquery.data_types.type_groups import value_type

_PLAIN: Final[Mapping[pa.DataType, TypeId]] = MappingProxyType(
    {
        pa.bool_(): TypeId.BOOL8,
        pa.int8(): TypeId.INT8,
        pa.int16(): TypeId.INT16,
        pa.int32(): TypeId.INT32,
        pa.int64(): TypeId.INT64,
        pa.uint8(): TypeId.UINT8,
        pa.uint16(): TypeId.UINT16,
        pa.uint32(): TypeId.UINT32,
        pa.uint64(): TypeId.UINT64,
        pa.float32(): TypeId.FLOAT32,
        pa.float64(): TypeId.FLOAT64,
        pa.date32(): TypeId.TIMESTAMP_DAYS,
        pa.time64("us"): TypeId.INT64,  # since midnight
        pa.time64("ns"): TypeId.INT64,
        pa.string(): TypeId.STRING,
        pa.large_string(): TypeId.STRING,
        pa.binary(): TypeId.STRING,  # bytes are bytes: only functions of text look at them as UTF-8
        pa.large_binary(): TypeId.STRING,
        pa.null(): TypeId.INT8,
    }
)
_NARROW_DIGITS: Final = 18
"""Of which each number fits 64 bits."""
_TIMESTAMPS: Final[Mapping[str, TypeId]] = MappingProxyType(
    {
        "s": TypeId.TIMESTAMP_SECONDS,
        "ms": TypeId.TIMESTAMP_MILLISECONDS,
        "us": TypeId.TIMESTAMP_MICROSECONDS,
        "ns": TypeId.TIMESTAMP_NANOSECONDS,
    }
)


def device_type(kind: pa.DataType) -> plc.DataType:
    """The type of a column that holds values of `kind`; a dictionary's values.

    Decimals have 128 bits there as in files, whatever their digits; narrow ones are of a type of their own.
    """
    kind = value_type(kind)
    if pa.types.is_decimal128(kind):
        return plc.DataType(TypeId.DECIMAL128, -kind.scale)
    if pa.types.is_decimal64(kind):
        return plc.DataType(TypeId.DECIMAL64, -kind.scale)
    if pa.types.is_timestamp(kind):
        return plc.DataType(_TIMESTAMPS[kind.unit])
    return plc.DataType(_PLAIN[kind])


def narrow_kind(kind: pa.DataType) -> pa.DataType:
    """What values of a type may stay as in the GPU's memory: decimals of up to 18 digits in 64 bits."""
    if pa.types.is_decimal128(kind) and kind.precision <= _NARROW_DIGITS:
        return pa.decimal64(kind.precision, kind.scale)
    return kind


def is_narrow(kind: plc.DataType) -> bool:
    """Whether columns of a type are decimals of 64 bits, which no plan knows of."""
    return bool(kind.id() == TypeId.DECIMAL64)


def wide_type(kind: plc.DataType) -> plc.DataType:
    """The type that plans know columns by."""
    return plc.DataType(TypeId.DECIMAL128, kind.scale()) if is_narrow(kind) else kind
