"""Values that a plan holds: conversion between types as DuckDB's casts do it.

Strings are read as DuckDB reads them; a number that falls between two values of an exact type is rounded,
halves away from zero (from floating point: to even).
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any, Final

import pyarrow as pa

from bamquery.plan import types
from bamquery.type_names import type_name

_EXACT: Final = Context(prec=100)
_TRUE: Final = frozenset({"true", "t", "1", "yes", "y"})
_FALSE: Final = frozenset({"false", "f", "0", "no", "n"})
_DATE: Final = r"\s*(\d{1,4})[-/](\d{1,2})[-/](\d{1,2})"
_CLOCK: Final = r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9})\d*)?)?"
_ZONE: Final = r"(?:\s*(?:Z|UTC|([+-])(\d{2}):?(\d{2})?))?\s*"
_TIMESTAMP_TEXT: Final = re.compile(rf"{_DATE}(?:(?:[T\s]\s*){_CLOCK}{_ZONE})?\s*", re.ASCII)
_TIME_TEXT: Final = re.compile(rf"\s*{_CLOCK}\s*", re.ASCII)
_EPOCH: Final = datetime.date(1970, 1, 1).toordinal()
_PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_SECONDS_PER_DAY: Final = 86_400


def convert(value: pa.Scalar[Any], kind: pa.DataType) -> pa.Scalar[Any]:
    """The value as one of type `kind`.

    Raises:
        ValueError: it has none there, in words; or the two types do not convert here (`NotConvertedError`).
    """
    if value.type == kind:
        return value
    if not value.is_valid:
        return pa.scalar(None, kind)
    source = types.value_type(value.type)
    for applies, read in _TARGETS:
        if applies(kind):
            return read(value.as_py() if _is_plain(source) else _ticks(value), source, kind)
    raise NotConvertedError(_refusal(source, kind))


class NotConvertedError(ValueError):
    """Two types between which there is no conversion of constants."""


def _is_plain(kind: pa.DataType) -> bool:
    return not pa.types.is_temporal(kind)


def _ticks(value: Any) -> int:
    """Days of a date, or units of a time or timestamp since the epoch."""
    return int(value.value)


def _stored_as(value: Any, storage: pa.DataType, kind: pa.DataType) -> pa.Scalar[Any]:
    """The scalar of a type whose values are kept as those of another."""
    result: pa.Scalar[Any] = pa.scalar(value, storage).cast(kind)
    return result


def _refusal(source: pa.DataType, kind: pa.DataType) -> str:
    return f"{type_name(source)} does not convert to {type_name(kind)}"


def _unreadable(text: str, kind: pa.DataType) -> ValueError:
    return ValueError(f"'{text}' is not a value of type {type_name(kind)}")


def _out_of_range(value: object, kind: pa.DataType) -> ValueError:
    return ValueError(f"{value} does not fit into {type_name(kind)}")


def _boolean(value: Any, source: pa.DataType, kind: pa.DataType) -> pa.Scalar[Any]:
    if types.is_string(source):
        text = value.strip().lower()
        if text not in _TRUE | _FALSE:
            raise _unreadable(value, kind)
        return pa.scalar(text in _TRUE, kind)
    if types.is_numeric(source):
        return pa.scalar(value != 0, kind)
    raise NotConvertedError(_refusal(source, kind))


def _number(value: Any, source: pa.DataType, kind: pa.DataType) -> Decimal:
    """The number that a string, boolean or number stands for, exactly."""
    if types.is_string(source):
        try:
            return Decimal(value.strip())
        except InvalidOperation:
            raise _unreadable(value, kind) from None
    if pa.types.is_boolean(source) or types.is_numeric(source):
        return Decimal(value)
    raise NotConvertedError(_refusal(source, kind))


def _exact(value: Any, source: pa.DataType, kind: pa.DataType, scale: int) -> Decimal:
    number = _number(value, source, kind)
    if not number.is_finite():
        raise _out_of_range(value, kind)
    to_even = pa.types.is_floating(source) and scale == 0
    try:
        rounding = ROUND_HALF_EVEN if to_even else ROUND_HALF_UP
        return number.quantize(Decimal(1).scaleb(-scale), rounding, _EXACT)
    except InvalidOperation:
        raise _out_of_range(value, kind) from None


def _integer(value: Any, source: pa.DataType, kind: pa.DataType) -> pa.Scalar[Any]:
    number = int(_exact(value, source, kind, 0))
    smallest, largest = types.integer_range(kind)
    if not smallest <= number <= largest:
        raise _out_of_range(value, kind)
    return pa.scalar(number, kind)


def _decimal(value: Any, source: pa.DataType, kind: Any) -> pa.Scalar[Any]:
    number = _exact(value, source, kind, kind.scale)
    if abs(number) >= Decimal(10) ** (kind.precision - kind.scale):
        raise _out_of_range(value, kind)
    result: pa.Scalar[Any] = pa.scalar(number, kind)
    return result


def _floating(value: Any, source: pa.DataType, kind: pa.DataType) -> pa.Scalar[Any]:
    if pa.types.is_floating(source):
        number = value
    elif types.is_string(source):
        try:
            number = float(value.strip())
        except ValueError:
            raise _unreadable(value, kind) from None
    else:
        number = float(_number(value, source, kind))
    result = _stored_as(number, pa.float64(), kind)
    if math.isinf(result.as_py()) and math.isfinite(number):
        raise _out_of_range(value, kind)
    return result


def _string(value: Any, source: pa.DataType, kind: pa.DataType) -> pa.Scalar[Any]:
    if types.is_string(source):
        return pa.scalar(value, kind)
    if pa.types.is_integer(source):
        return pa.scalar(str(value), kind)
    raise NotConvertedError(_refusal(source, kind))


def _date(value: Any, source: Any, kind: Any) -> pa.Scalar[Any]:
    if types.is_string(source):
        days, _, _ = _read_timestamp(value, kind)
        return _stored_as(days, pa.int32(), kind)
    if pa.types.is_timestamp(source):
        return _stored_as(value // (_PER_SECOND[source.unit] * _SECONDS_PER_DAY), pa.int32(), kind)
    raise NotConvertedError(_refusal(source, kind))


def _timestamp(value: Any, source: Any, kind: Any) -> pa.Scalar[Any]:
    per_second = _PER_SECOND[kind.unit]
    if types.is_string(source):
        days, nanoseconds, offset = _read_timestamp(value, kind)
        # Without a zone of its own, a type keeps the clock's reading and drops the text's zone.
        seconds = days * _SECONDS_PER_DAY - (offset if kind.tz is not None else 0)
        ticks = seconds * per_second + nanoseconds * per_second // 1_000_000_000
    elif pa.types.is_date(source):
        ticks = value * _SECONDS_PER_DAY * per_second
    elif pa.types.is_timestamp(source):
        ticks = value * per_second // _PER_SECOND[source.unit]
    else:
        raise NotConvertedError(_refusal(source, kind))
    if not -(1 << 63) < ticks < 1 << 63:
        raise ValueError(f"a time outside what {type_name(kind)} holds")
    return _stored_as(ticks, pa.int64(), kind)


def _time(value: Any, source: Any, kind: Any) -> pa.Scalar[Any]:
    if types.is_string(source):
        found = _TIME_TEXT.fullmatch(value)
        if found is None:
            raise _unreadable(value, kind)
        nanoseconds = _read_clock(found.groups(), value, kind)
        return _stored_as(nanoseconds * _PER_SECOND[kind.unit] // 1_000_000_000, pa.int64(), kind)
    if pa.types.is_time64(source):
        return _stored_as(value * _PER_SECOND[kind.unit] // _PER_SECOND[source.unit], pa.int64(), kind)
    raise NotConvertedError(_refusal(source, kind))


def _read_timestamp(text: str, kind: pa.DataType) -> tuple[int, int, int]:
    """Days since the epoch, nanoseconds since midnight, and the zone's offset east of UTC in seconds."""
    found = _TIMESTAMP_TEXT.fullmatch(text)
    if found is None:
        raise _unreadable(text, kind)
    year, month, day, *clock, sign, zone_hours, zone_minutes = found.groups()
    try:
        days = datetime.date(int(year), int(month), int(day)).toordinal() - _EPOCH
    except ValueError:
        raise _unreadable(text, kind) from None
    nanoseconds = 0 if clock[0] is None else _read_clock(clock, text, kind)
    offset = int(zone_hours or 0) * 3_600 + int(zone_minutes or 0) * 60
    return days, nanoseconds, -offset if sign == "-" else offset


def _read_clock(parts: Sequence[str | None], text: str, kind: pa.DataType) -> int:
    """Nanoseconds since midnight from hour, minute, second and fraction."""
    hour, minute, second = (int(part or 0) for part in parts[:3])
    if hour > 23 or minute > 59 or second > 59:
        raise _unreadable(text, kind)
    return (hour * 3_600 + minute * 60 + second) * 1_000_000_000 + int((parts[3] or "").ljust(9, "0"))


_Reader = Callable[[Any, pa.DataType, Any], "pa.Scalar[Any]"]
_TARGETS: Final[tuple[tuple[Callable[[pa.DataType], bool], _Reader], ...]] = (
    (pa.types.is_boolean, _boolean),
    (pa.types.is_integer, _integer),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_floating, _floating),
    (types.is_string, _string),
    (pa.types.is_date, _date),
    (pa.types.is_timestamp, _timestamp),
    (pa.types.is_time64, _time),
)
