"""Dates and times made of their parts or counts, counted, and told apart."""

from __future__ import annotations

import calendar
import functools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.data_types.limits import FIRST_SECOND
from bamquery.data_types.names import type_name
from bamquery.data_types.type_groups import integer_range
from bamquery.engine.cpu.calendar import (
    CALENDAR,
    Integers,
    days_and_rest,
    days_of,
    first_day_of_month,
    memoize_dense,
    months_of,
    subtract_checked,
    truncate_divide,
)
from bamquery.engine.cpu.kernels import (
    Column,
    Datum,
    Implementation,
    as_column,
    boolean_values,
    from_values,
    operand,
    stored_values,
    take,
    valid_rows,
)
from bamquery.engine.cpu.numeric.rounding import half_away_from_zero
from bamquery.engine.cpu.value_kernels import python_value, row_count
from bamquery.engine.formulas.time_units import DAY_SECONDS, MOST_WHOLE_DAYS, OF_MICROSECONDS, units_per_day
from bamquery.errors import ExecutionError

_FIRST_MICROSECOND: Final = FIRST_SECOND * 10**6
_DAY_MICROSECONDS: Final = DAY_SECONDS * 10**6
_MICROSECONDS: Final[Mapping[str, int]] = MappingProxyType(
    {"microsecond": 1, "millisecond": 10**3, "second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6}
)
"""Of the units that a day has a fixed number of."""
_MONTHS: Final[Mapping[str, int]] = MappingProxyType(
    {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200, "millennium": 12_000}
)
_EPOCH_JULIAN_DAY: Final = 2_440_588
_FURTHEST_YEAR: Final = 6_000_000
"""Beyond any date; spares the calendar what it could not hold."""
_DAY_NAMES: Final = ("Sunday", *list(calendar.day_name)[:6])
_MONTH_NAMES: Final = tuple(calendar.month_name)[1:]


def _last_day(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    (column,) = arguments
    assert isinstance(column, pa.Array)
    days = days_of(column)
    last = first_day_of_month(months_of(days) + 1) - 1
    known = valid_rows(column)
    late = last >= integer_range(pa.int32())[1] - 1
    if (late if known is None else late & boolean_values(known)).any():
        raise ExecutionError(f"last_day(): the month's last day is outside what {type_name(kind)} holds")
    return from_values(last.astype(np.int32), kind, valid_rows(column))


NAMES: Final[Mapping[str, tuple[tuple[str, ...], Callable[[Integers], Integers]]]] = MappingProxyType(
    {
        "dayname": (_DAY_NAMES, memoize_dense(lambda days: CALENDAR.iso_weekday(days) % 7)),
        "monthname": (_MONTH_NAMES, memoize_dense(lambda days: months_of(days) % 12)),
    }
)
"""Functions of dates that give one of some names, and which one it is."""


@functools.cache
def column_of_names(names: tuple[str, ...]) -> Column:
    """The names as an array."""
    column: Column = pa.array(names, pa.large_string())
    return column


def _name(names: tuple[str, ...], place: Callable[[Integers], Integers]) -> Implementation:
    def apply(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
        (column,) = arguments
        assert isinstance(column, pa.Array)
        days = days_of(column)
        return take(column_of_names(names), from_values(place(days), pa.int64(), valid_rows(column)))

    return apply


def _julian(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    (column,) = arguments
    assert isinstance(column, pa.Array)
    days, rest = days_and_rest(column)
    return from_values(days + _EPOCH_JULIAN_DAY + rest / units_per_day(column.type), kind, valid_rows(column))


# Made of parts.


def _columns(arguments: Sequence[Datum]) -> tuple[list[Any], NDArray[np.bool_], Column | None]:
    """Stored values of all arguments; rows on which all are known."""
    rows = row_count(arguments)
    columns = [as_column(argument, rows) for argument in arguments]
    known = valid_rows(*columns)
    return [stored_values(column) for column in columns], _mask(known, rows), known


def _fail_where(failed: NDArray[np.bool_], what: str, parts: Sequence[Any]) -> None:
    if failed.any():
        row = int(np.argmax(failed))
        given = ", ".join(str(part[row]) for part in parts)
        raise ExecutionError(f"{what}({given}): there is no such {what.removeprefix('make_')}")


def _days_of(
    year: Integers, month: Integers, day: Integers, known: NDArray[np.bool_]
) -> tuple[Integers, NDArray[np.bool_]]:
    """Days since 1970, and where the parts are of no date."""
    year, month = np.clip(year, -_FURTHEST_YEAR, _FURTHEST_YEAR), month.astype(np.int64)
    fine = (month >= 1) & (month <= 12) & known
    months = np.where(fine, (year - 1970) * 12 + month - 1, 0)
    first = first_day_of_month(months)
    length = first_day_of_month(months + 1) - first
    days = first + np.clip(day, 1, 31) - 1
    low, high = integer_range(pa.int32())
    fine &= (day >= 1) & (day <= length) & (days > low) & (days < high)
    return days, known & ~fine


def _make_date(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    parts, known, validity = _columns(arguments)
    days, failed = _days_of(parts[0], parts[1], parts[2], known)
    _fail_where(failed, "make_date", parts)
    return from_values(np.where(known, days, 0).astype(np.int32), kind, validity)


def _clock(parts: Sequence[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Microseconds of hours, minutes and seconds (floats), and where there is no such time."""
    hour, minute, second = parts
    with np.errstate(invalid="ignore"):
        within = (second >= 0) & (second < 61)
    whole = np.trunc(np.where(within, second, 0.0))
    fraction = half_away_from_zero((np.where(within, second, 0.0) - whole) * 1e6)
    micros = whole.astype(np.int64) * 10**6 + fraction.astype(np.int64)
    fine = (hour >= 0) & (hour <= 23) & (minute >= 0) & (minute <= 59) & within
    fine |= (hour == 24) & (minute == 0) & (second == 0)
    hours, minutes = np.where(fine, hour, 0), np.where(fine, minute, 0)
    return (hours * 60 + minutes) * (60 * 10**6) + micros, ~fine


def _make_time(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    parts, known, validity = _columns(arguments)
    micros, failed = _clock(parts)
    _fail_where(failed & known, "make_time", parts)
    return from_values(micros, kind, validity)


def _make_timestamp(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    parts, known, validity = _columns(arguments)
    days, no_date = _days_of(parts[0], parts[1], parts[2], known)
    micros, no_time = _clock(parts[3:])
    far = np.abs(days) > 2**63 // _DAY_MICROSECONDS
    moments = np.where(far, 0, days) * _DAY_MICROSECONDS
    with np.errstate(over="ignore"):
        moments = moments + micros
    # The sum of a day and a time of it is below neither, or it wrapped.
    far |= (moments < _FIRST_MICROSECOND) | (moments == integer_range(pa.int64())[1])
    _fail_where((no_date | no_time | far) & known, "make_timestamp", parts)
    return from_values(np.where(known, moments, 0), kind, validity)


# Counts since 1970.


def _from_count(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """A timestamp of a count of its units since 1970."""
    (column,) = arguments
    assert isinstance(column, pa.Array)
    values, known = stored_values(column), valid_rows(column)
    limit = np.iinfo(np.int64).max  # DuckDB keeps it, and its negative, for itself
    failed = (values == limit) | (values == -limit)
    if known is not None:
        failed &= boolean_values(known)
    if failed.any():
        raise ExecutionError(f"{values[int(np.argmax(failed))]} is outside what {type_name(kind)} holds")
    return from_values(values, kind, known)


def _from_seconds(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """A timestamp of seconds since 1970, as DOUBLE, to the nearest microsecond."""
    (column,) = arguments
    assert isinstance(column, pa.Array)
    values, known = stored_values(column), valid_rows(column)
    with np.errstate(all="ignore"):
        micros = half_away_from_zero(values * 1e6)
        fine = np.abs(micros) < 2.0**63
    failed = ~fine if known is None else ~fine & boolean_values(known)
    if failed.any():
        raise ExecutionError(
            f"{values[int(np.argmax(failed))]} seconds are outside what {type_name(kind)} holds"
        )
    return from_values(np.where(fine, micros, 0.0).astype(np.int64), kind, known)


def _to_count(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """A time's or timestamp's count of its units."""
    (column,) = arguments
    assert isinstance(column, pa.Array)
    return from_values(stored_values(column), kind, valid_rows(column))


# Differences. Dates count days (in date_diff), the others microseconds.


def _spans(arguments: Sequence[Datum]) -> tuple[Integers, Integers, str, Column | None, int]:
    start, end, unit = arguments
    per_day = units_per_day(start.type)
    both = [np.asarray(operand(datum)).astype(np.int64, copy=False) for datum in (start, end)]
    return both[0], both[1], python_value(unit), valid_rows(start, end), per_day


def _mask(known: Column | None, rows: int) -> NDArray[np.bool_]:
    return np.ones(rows, np.bool_) if known is None else boolean_values(known)


def _date_diff(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """How many beginnings of a unit lie between two moments; weeks: how many whole ones."""
    start, end, unit, known, per_day = _spans(arguments)
    if unit in _MICROSECONDS:
        mask = _mask(known, row_count(arguments))
        until, since = (_count_units(values, unit, per_day, mask) for values in (end, start))
        count = subtract_checked(until, since, mask, "date_diff()")
    elif unit == "day":
        count = end // per_day - start // per_day
    elif unit == "week":
        count = truncate_divide(end // per_day - start // per_day, 7)
    elif unit == "isoyear":
        count = CALENDAR.iso_year(end // per_day) - CALENDAR.iso_year(start // per_day)
    else:
        count = _count_months(end // per_day, unit) - _count_months(start // per_day, unit)
    return from_values(np.broadcast_to(count, (row_count(arguments),)), kind, known)


def _count_units(values: Integers, unit: str, per_day: int, known: NDArray[np.bool_]) -> Integers:
    size = _MICROSECONDS[unit]
    if per_day != 1:
        return values // size
    if unit in OF_MICROSECONDS and ((np.abs(values) > MOST_WHOLE_DAYS) & known).any():
        raise ExecutionError("BIGINT overflow in date_diff(): a date has too many microseconds")
    with np.errstate(over="ignore"):
        return values * (_DAY_MICROSECONDS // size)


def _count_months(days: Integers, unit: str) -> Integers:
    months = months_of(days)
    if unit in ("month", "quarter"):
        return truncate_divide(months + 1970 * 12, _MONTHS[unit])
    return truncate_divide(months // 12 + 1970, _MONTHS[unit] // 12)


def _date_sub(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """How many whole units lie between two moments."""
    start, end, unit, known, per_day = _spans(arguments)
    fixed = {**_MICROSECONDS, "day": _DAY_MICROSECONDS, "week": 7 * _DAY_MICROSECONDS}
    if unit in ("day", "week") and getattr(arguments[0].type, "tz", None) is not None:
        # By the calendar, which reaches further than a number of microseconds.
        (from_day, from_rest), (to_day, to_rest) = (np.divmod(v, per_day) for v in (start, end))
        days = to_day - from_day
        days = days - ((days > 0) & (to_rest < from_rest)) + ((days < 0) & (to_rest > from_rest))
        count = truncate_divide(days, fixed[unit] // _DAY_MICROSECONDS)
    elif unit in fixed:
        mask = _mask(known, row_count(arguments))
        count = truncate_divide(subtract_checked(end, start, mask, "date_sub()"), fixed[unit])
    else:
        count = truncate_divide(whole_months(start, end, per_day), _MONTHS[unit])
    return from_values(np.broadcast_to(count, (row_count(arguments),)), kind, known)


def whole_months(start: Integers, end: Integers, per_day: int) -> Integers:
    """Months from one moment to the other; from any later day to the last of a month is a whole one."""
    first, last = np.minimum(start, end), np.maximum(start, end)
    (from_day, from_rest), (to_day, to_rest) = (np.divmod(values, per_day) for values in (first, last))
    from_month, to_month = months_of(from_day), months_of(to_day)
    from_place = from_day - first_day_of_month(from_month)
    to_place = to_day - first_day_of_month(to_month)
    length = first_day_of_month(to_month + 1) - first_day_of_month(to_month)
    from_place = np.where(to_place == length - 1, np.minimum(from_place, length - 1), from_place)
    early = (to_place < from_place) | ((to_place == from_place) & (to_rest < from_rest))
    months = to_month - from_month - early
    signed: Integers = np.where(start <= end, months, -months)
    return signed


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        "last_day": _last_day,
        **{name: _name(*names) for name, names in NAMES.items()},
        "julian": _julian,
        "make_date": _make_date,
        "make_time": _make_time,
        "make_timestamp": _make_timestamp,
        "from_count": _from_count,
        "from_seconds": _from_seconds,
        "to_count": _to_count,
        "date_diff": _date_diff,
        "date_sub": _date_sub,
    }
)
