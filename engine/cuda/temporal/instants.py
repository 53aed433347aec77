"""Dates and times told apart, counted and moved by constant intervals."""

from __future__ import annotations

import calendar
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.binaryop import BinaryOperator

from bamquery.data_types.limits import LARGEST_DAY, LAST_MOMENT_DAY, LAST_MOMENT_REST
from bamquery.data_types.type_groups import integer_range
from bamquery.engine.cuda.kernels import FLOAT64, Implementation, Kernels, Operand, argument_rows
from bamquery.engine.cuda.numeric.integers import Integers
from bamquery.engine.cuda.temporal.calendar import CALENDAR, first_day_of_month, months_of
from bamquery.engine.cuda.temporal.date_parts import as_dates_or_times
from bamquery.engine.cuda.transfer.upload import upload
from bamquery.engine.cuda.value_errors import fail_call
from bamquery.engine.formulas.time_units import MOST_WHOLE_DAYS, OF_MICROSECONDS, units_per_day

_DAY_MICROSECONDS: Final = 86_400 * 10**6
_MICROSECONDS: Final[Mapping[str, int]] = MappingProxyType(
    {"microsecond": 1, "millisecond": 10**3, "second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6}
)
_YEARS: Final[Mapping[str, int]] = MappingProxyType(
    {"year": 1, "decade": 10, "century": 100, "millennium": 1000}
)
_EPOCH_JULIAN_DAY: Final = 2_440_588
_LAST_DAY: Final = integer_range(pa.int32())[1] - 1
_MOST_MONTHS: Final = 12 * 6_000_000
_DAY_NAMES: Final = ["Sunday", *list(calendar.day_name)[:6]]
_MONTH_NAMES: Final = list(calendar.month_name)[1:]


def _values(kernels: Kernels, arguments: Sequence[Operand], place: int = 0) -> Integers:
    return Integers.from_column(kernels, kernels.column(arguments[place].datum, argument_rows(arguments)))


def _days(kernels: Kernels, arguments: Sequence[Operand], place: int = 0) -> Integers:
    return _values(kernels, arguments, place) // units_per_day(arguments[place].kind)


def _last_day(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    last = first_day_of_month(months_of(_days(kernels, arguments)) + 1) - 1
    failed = last >= _LAST_DAY
    if kernels.any_true(failed):
        fail_call(kernels, "last_day", arguments, kind, failed)
    return as_dates_or_times(kernels, last, kind)


def _name(names: Sequence[str], place: Callable[[Integers], Integers]) -> Implementation:
    def apply(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
        strings: Any = pa.array(names, pa.large_string())
        column = upload(kernels.session, strings)
        kernels.session.synchronize()  # the array's copy is done
        places = place(_days(kernels, arguments)).column
        beyond = kernels.fill_null(places, kernels.number(len(names)))
        return kernels.gather([column], beyond, nullify=True)[0]

    return apply


def _julian(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    per_day = units_per_day(arguments[0].kind)
    values = _values(kernels, arguments)
    whole = kernels.convert((values // per_day + _EPOCH_JULIAN_DAY).column, FLOAT64)
    rest = kernels.convert((values % per_day).column, FLOAT64)
    double: Any = pa.float64()
    part = kernels.binary(BinaryOperator.DIV, rest, kernels.number(float(per_day), double), FLOAT64)
    return kernels.binary(BinaryOperator.ADD, whole, part, FLOAT64)


def _to_count(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    return _values(kernels, arguments).column


def _date_diff(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
    """How many beginnings of a unit lie between two moments; weeks: how many whole ones."""
    unit = arguments[2].literal
    per_day = units_per_day(arguments[0].kind)
    if unit in _MICROSECONDS:
        start, end = (_values(kernels, arguments, i) for i in (0, 1))
        if unit in OF_MICROSECONDS and per_day == 1:
            failed = kernels.logical_or(
                *(v.is_outside(-MOST_WHOLE_DAYS, MOST_WHOLE_DAYS) for v in (start, end))
            )
            if kernels.any_true(failed):
                fail_call(kernels, "date_diff", arguments, kind, failed)
        start, end = (_count_units(values, unit, per_day) for values in (start, end))
        count = end - start
        if unit == "microsecond":
            negative = [values.flags(values < 0) for values in (start, end, count)]
            # Where the signs differ the difference has that of the end, or it wrapped.
            wrapped = (negative[1] - negative[0]) * (negative[2] - negative[1])
            failed = wrapped.is_outside(0, 0)
            if kernels.any_true(failed):
                fail_call(kernels, "date_diff", arguments, kind, failed)
        return count.column
    start, end = (_days(kernels, arguments, i) for i in (0, 1))
    if unit == "week":
        return (end - start).truncate_divide(7).column
    if unit != "day":
        start, end = (_count_months(days, unit) for days in (start, end))
    return (end - start).column


def _count_units(values: Integers, unit: str, per_day: int) -> Integers:
    size = _MICROSECONDS[unit]
    return values * (_DAY_MICROSECONDS // size) if per_day == 1 else values // size


def _count_months(days: Integers, unit: str) -> Integers:
    if unit == "isoyear":
        year: Integers = CALENDAR.iso_year(days)
        return year
    months = months_of(days)
    if unit in _YEARS:
        return (months // 12 + 1970).truncate_divide(_YEARS[unit])
    return (months + 1970 * 12).truncate_divide(3 if unit == "quarter" else 1)


def _shift(name: str, sign: int) -> Implementation:
    """A moment and a constant interval."""

    def apply(kernels: Kernels, arguments: Sequence[Operand], kind: pa.DataType) -> plc.Column:
        span = arguments[1].literal
        if span is None:
            return kernels.nulls(argument_rows(arguments), kind)
        months, days, micros = sign * span.months, sign * span.days, sign * (span.nanoseconds // 1000)
        values = _values(kernels, arguments)
        if pa.types.is_time64(kind):
            return as_dates_or_times(kernels, (values + micros) % _DAY_MICROSECONDS, kind)
        day = values // _DAY_MICROSECONDS
        carried, clock = divmod(micros, _DAY_MICROSECONDS)
        rest = values - day * _DAY_MICROSECONDS + clock
        # With a time zone the clock comes first where any part goes back, and last otherwise.
        instant: Any = kind
        clock_first = instant.tz is not None and min(months, days, micros) < 0
        if clock_first:
            day = day + carried + rest // _DAY_MICROSECONDS
        failures = []
        if months:
            day = _months_later(kernels, day, months)
            failures.append(day.is_outside(-LARGEST_DAY, LARGEST_DAY))
        day = day + days
        if not clock_first:
            day = day + carried + rest // _DAY_MICROSECONDS
        rest = rest % _DAY_MICROSECONDS
        last = kernels.logical_and(day.equals(LAST_MOMENT_DAY), rest > LAST_MOMENT_REST)
        failed = kernels.logical_or(day.is_outside(-LAST_MOMENT_DAY, LAST_MOMENT_DAY), last)
        for too_far in failures:
            failed = kernels.logical_or(failed, too_far)
        if kernels.any_true(failed):
            fail_call(kernels, name, arguments, kind, failed)
        return as_dates_or_times(kernels, day * _DAY_MICROSECONDS + rest, kind)

    return apply


def _months_later(kernels: Kernels, days: Integers, months: int) -> Integers:
    """The same day of a later month, or its last one."""
    here = months_of(days)
    place = days - first_day_of_month(here)
    there = here + max(min(months, _MOST_MONTHS), -_MOST_MONTHS)
    first = first_day_of_month(there)
    last = first_day_of_month(there + 1) - first - 1
    kept = kernels.where(kernels.fill_null(place <= last), place.column, last.column)
    return first + Integers(kernels, kept)


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        "last_day": _last_day,
        "dayname": _name(_DAY_NAMES, lambda days: CALENDAR.iso_weekday(days) % 7),
        "monthname": _name(_MONTH_NAMES, lambda days: months_of(days) % 12),
        "julian": _julian,
        "to_count": _to_count,
        "date_diff": _date_diff,
        "add_interval": _shift("add_interval", 1),
        "subtract_interval": _shift("subtract_interval", -1),
    }
)
