"""Values that a plan holds: conversion between types, as a device casts a column."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from bamquery.data_types import type_groups as types
from bamquery.data_types.limits import stored_limits
from bamquery.data_types.names import type_name
from bamquery.plan.literals import interval_strings, time_strings
from bamquery.plan.literals import number_strings as parsing
from bamquery.plan.literals.scalars import scalar

_DIGITS: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_SECONDS_PER_DAY: Final = 86_400
_KEPT: Final = 4096
_LONGEST_KEPT: Final = 64
"""Bytes of a string."""


class NotConvertedError(ValueError):
    """Two types between which constants are not converted here; a device may know how."""


def convert(value: pa.Scalar[Any], kind: pa.DataType) -> pa.Scalar[Any]:
    """The value as one of type `kind`.

    Raises:
        ValueError: it has none there, in words; `NotConvertedError` if no value of its type has.
    """
    if value.type == kind:
        return value
    if not value.is_valid:
        return scalar(None, kind)
    return _read_once(value, kind) if _is_kept(value) else _read(value, kind)


def _is_kept(value: pa.Scalar[Any]) -> bool:
    """Whether what it is converted to is kept: not of long texts, nor where -0 and 0 are equal."""
    if pa.types.is_large_string(value.type):
        text = value.as_buffer()  # type: ignore[attr-defined]
        return bool(text.size <= _LONGEST_KEPT)
    kind = value.type
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind) or _is_counted(kind))


def _read(value: pa.Scalar[Any], kind: pa.DataType) -> pa.Scalar[Any]:
    source = types.value_type(value.type)
    plain = count(value) if _is_counted(source) else value.as_py()
    for is_kind, read in _TARGETS:
        if is_kind(kind):
            return read(plain, source, kind)
    raise _conversion_error(source, kind)


_read_once = functools.lru_cache(maxsize=_KEPT)(_read)
"""The same constants come again: in the next statement, and in places of one."""


def _is_counted(kind: pa.DataType) -> bool:
    return pa.types.is_temporal(kind) and not types.is_interval(kind)


def count(value: pa.Scalar[Any]) -> int:
    """Days of a date, or units of a time or timestamp, since the epoch."""
    units: int = value.value  # type: ignore[attr-defined]
    return units


def from_count(units: int, kind: pa.DataType) -> pa.Scalar[Any]:
    """The date, time or timestamp so many days or units from the epoch; ValueError outside the type."""
    storage = pa.int32() if pa.types.is_date(kind) else pa.int64()
    limits = stored_limits(kind)
    if limits is not None and not limits[0] <= units <= limits[1]:
        raise ValueError(f"a time outside what {type_name(kind)} holds")
    result: pa.Scalar[Any] = scalar(units, storage).cast(kind)
    return result


def _conversion_error(source: pa.DataType, kind: pa.DataType) -> NotConvertedError:
    return NotConvertedError(f"{type_name(source)} does not convert to {type_name(kind)}")


def _unreadable(text: str, kind: pa.DataType) -> ValueError:
    return ValueError(f"'{text}' is not a value of type {type_name(kind)}")


def _out_of_range(value: object, kind: pa.DataType) -> ValueError:
    return ValueError(f"{value} does not fit into {type_name(kind)}")


def _boolean(value: Any, source: pa.DataType, kind: pa.DataType) -> pa.Scalar[Any]:
    if types.is_string(source):
        truth = parsing.boolean(value)
        if truth is None:
            raise _unreadable(value, kind)
        return scalar(truth, kind)
    if types.is_numeric(source):
        return scalar(value != 0, kind)
    raise _conversion_error(source, kind)


def _to_exact(value: Any, source: pa.DataType, kind: Any, scale: int) -> Decimal:
    """The value rounded to so many digits after the point: halves away from zero, but for a float to even."""
    if pa.types.is_floating(source):
        if not math.isfinite(value):
            raise _out_of_range(value, kind)
        if types.is_integral(kind):
            return Decimal(round(value))
        with np.errstate(over="ignore"):
            scaled = float(np.float64(value) * 10.0**scale)
        # The power that a float takes, not the exact one; also what would be too long to round exactly.
        if not abs(scaled) < 10.0**kind.precision:
            raise _out_of_range(value, kind)
        return parsing.round_number(Decimal(scaled), 0).scaleb(-scale, parsing.EXACT)
    if types.is_string(source):
        number = parsing.number_reader(kind)(value)
        if number is None:
            raise _unreadable(value, kind)
        return parsing.round_number(number, scale)
    if pa.types.is_boolean(source) or types.is_numeric(source):
        return parsing.round_number(Decimal(value), scale)
    raise _conversion_error(source, kind)


def _integer(value: Any, source: pa.DataType, kind: pa.DataType) -> pa.Scalar[Any]:
    number = value if pa.types.is_integer(source) else int(_to_exact(value, source, kind, 0))
    smallest, largest = types.integer_range(kind)
    if not smallest <= number <= largest:
        raise _out_of_range(value, kind)
    result: pa.Scalar[Any] = scalar(number, kind)
    return result


def _decimal(value: Any, source: pa.DataType, kind: Any) -> pa.Scalar[Any]:
    number = _to_exact(value, source, kind, kind.scale)
    if number.copy_abs() >= Decimal(10) ** (kind.precision - kind.scale):
        raise _out_of_range(value, kind)
    result: pa.Scalar[Any] = scalar(number, kind)
    return result


def _to_float(value: Any, source: pa.DataType, kind: pa.DataType) -> pa.Scalar[Any]:
    if types.is_string(source):
        number = parsing.parse_float(value)
        if number is None:
            raise _unreadable(value, kind)
    elif pa.types.is_boolean(source) or types.is_numeric(source):
        number = float(value)
    else:
        raise _conversion_error(source, kind)
    with np.errstate(over="ignore"):
        narrow = np.float32(number) if pa.types.is_float32(kind) else np.float64(number)
    if np.isinf(narrow) and math.isfinite(number) and pa.types.is_floating(source):
        raise _out_of_range(value, kind)
    return scalar(narrow, kind)


def _to_string(value: Any, source: pa.DataType, kind: pa.DataType) -> pa.Scalar[Any]:
    if types.is_string(source):
        return scalar(value, kind)
    if pa.types.is_integer(source):
        return scalar(str(value), kind)
    if types.is_interval(source):
        return scalar(interval_strings.write(value.months, value.days, value.nanoseconds // 1000), kind)
    raise _conversion_error(source, kind)


def _blob(value: Any, source: pa.DataType, kind: pa.DataType) -> pa.Scalar[Any]:
    if not types.is_string(source):
        raise _conversion_error(source, kind)
    content = parsing.blob(value)
    if content is None:
        raise _unreadable(value, kind)
    return scalar(content, kind)


def _date(value: Any, source: Any, kind: pa.DataType) -> pa.Scalar[Any]:
    if types.is_string(source):
        days = time_strings.date(value)
        if days is None:
            raise _unreadable(value, kind)
        return from_count(days, kind)
    if pa.types.is_timestamp(source):
        # Nanoseconds are rounded to microseconds first.
        digits = min(_DIGITS[source.unit], 6)
        moment = _rescale_seconds(value, _DIGITS[source.unit], digits)
        return from_count(moment // (10**digits * _SECONDS_PER_DAY), kind)
    raise _conversion_error(source, kind)


def _timestamp(value: Any, source: Any, kind: Any) -> pa.Scalar[Any]:
    digits = _DIGITS[kind.unit]
    if types.is_string(source):
        units = time_strings.timestamp(value, digits, in_utc=kind.tz is not None)
        if units is None:
            raise _unreadable(value, kind)
        return from_count(units, kind)
    if pa.types.is_date(source):
        return from_count(value * _SECONDS_PER_DAY * 10**digits, kind)
    if pa.types.is_timestamp(source):
        return from_count(_rescale_seconds(value, _DIGITS[source.unit], digits), kind)
    raise _conversion_error(source, kind)


def _time(value: Any, source: Any, kind: Any) -> pa.Scalar[Any]:
    digits = _DIGITS[kind.unit]
    per_day = _SECONDS_PER_DAY * 10**digits
    if types.is_string(source):
        units = time_strings.time(value, digits)
        if units is None:
            raise _unreadable(value, kind)
        return from_count(units, kind)
    if pa.types.is_time64(source):
        return from_count(_rescale_seconds(value, _DIGITS[source.unit], digits), kind)
    if pa.types.is_timestamp(source):
        return from_count(_rescale_seconds(value, _DIGITS[source.unit], digits) % per_day, kind)
    raise _conversion_error(source, kind)


def interval_scalar(months: int, days: int, microseconds: int) -> pa.Scalar[Any]:
    """An interval of these parts."""
    parts: Any = (months, days, microseconds * 1000)
    return scalar(parts, types.INTERVAL)


def _interval(value: Any, source: pa.DataType, kind: pa.DataType) -> pa.Scalar[Any]:
    if not types.is_string(source):
        raise _conversion_error(source, kind)
    parts = interval_strings.parse_interval(value)
    if parts is None:
        raise _unreadable(value, kind)
    months, days, microseconds = parts
    return interval_scalar(months, days, microseconds)


def _rescale_seconds(units: int, digits: int, wanted: int) -> int:
    """Units of 10**-digits seconds in those of 10**-wanted, halves away from zero."""
    if wanted >= digits:
        return int(units * 10 ** (wanted - digits))
    return int(parsing.round_number(Decimal(units).scaleb(wanted - digits, parsing.EXACT), 0))


_Reader = Callable[[Any, Any, Any], "pa.Scalar[Any]"]
_TARGETS: Final[tuple[tuple[Callable[[pa.DataType], bool], _Reader], ...]] = (
    (pa.types.is_boolean, _boolean),
    (pa.types.is_integer, _integer),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_floating, _to_float),
    (types.is_string, _to_string),
    (pa.types.is_large_binary, _blob),
    (pa.types.is_date, _date),
    (pa.types.is_timestamp, _timestamp),
    (pa.types.is_time64, _time),
    (types.is_interval, _interval),
)
