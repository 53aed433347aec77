"""Arithmetic with intervals: months move the calendar, days the date, microseconds the clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.data_types.limits import LARGEST_DAY, LAST_MOMENT_DAY, LAST_MOMENT_REST
from bamquery.data_types.names import type_name
from bamquery.engine.cpu.calendar import (
    Integers,
    first_day_of_month,
    months_of,
    subtract_checked,
    truncate_divide,
)
from bamquery.engine.cpu.kernels import (
    Column,
    Datum,
    Implementation,
    as_column,
    boolean_column,
    from_values,
    operand,
    valid_rows,
)
from bamquery.engine.cpu.temporal.interval_columns import (
    DAY_MICROSECONDS,
    DAYS_PER_MONTH,
    LARGEST_PART,
    MOST_MONTHS,
    SMALLEST_PART,
    UNIT_DAYS,
    UNIT_MICROSECONDS,
    UNIT_MONTHS,
    Intervals,
    known_mask,
    known_rows,
    moment_values,
)
from bamquery.engine.cpu.value_kernels import python_value, row_count
from bamquery.engine.formulas.time_units import DAY_SECONDS
from bamquery.errors import ExecutionError

_UPPER_BITS: Final = -(1 << 29)
"""Of a double: its products with months or days are exact with 64 bits, and so are those of the rest."""


# Made of numbers.


def _to_interval(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """So many of a unit."""
    count, unit = arguments
    rows = row_count(arguments)
    column = as_column(count, rows)
    known = valid_rows(column)
    name = python_value(unit)
    nothing = np.zeros(rows, np.int64)
    if pa.types.is_floating(column.type):
        with np.errstate(all="ignore"):
            micros = np.rint(np.asarray(operand(column)) * UNIT_MICROSECONDS[name])
            fine = np.abs(micros) < 2.0**63
        if (~fine & known_mask(known, rows)).any():
            raise ExecutionError(f"INTERVAL overflow: so many {name}s are more than an INTERVAL holds")
        return Intervals(nothing, nothing, np.where(fine, micros, 0).astype(np.int64), known).column(name)
    values = np.asarray(operand(column)).astype(np.int64)
    factor = UNIT_MONTHS.get(name) or UNIT_DAYS.get(name) or UNIT_MICROSECONDS[name]
    limit = (2**63 - 1) // factor
    # Not by abs(), which has no value for the least of 64 bits.
    if (((values > limit) | (values < -limit)) & known_mask(known, rows)).any():
        raise ExecutionError(f"INTERVAL overflow: so many {name}s are more than an INTERVAL holds")
    with np.errstate(over="ignore"):
        product = values * factor
    months, days, micros = (
        product if name in units else nothing for units in (UNIT_MONTHS, UNIT_DAYS, UNIT_MICROSECONDS)
    )
    return Intervals(months, days, micros, known).column(f"{name}s")


# Added to moments.


def _shift(sign: int) -> Implementation:
    def apply(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
        rows = row_count(arguments)
        values, known = moment_values(arguments[0], rows)
        span = Intervals.from_datum(arguments[1], rows)
        known = known_rows(known, span.known)
        if pa.types.is_time64(kind):
            moved = (values + sign * (span.microseconds % DAY_MICROSECONDS)) % DAY_MICROSECONDS
            return from_values(moved, kind, known)
        return from_values(shift_moments(values, span, sign, known_mask(known, rows), kind), kind, known)

    return apply


def shift_moments(
    values: Integers, span: Intervals, sign: int, known: NDArray[np.bool_], kind: pa.DataType
) -> Integers:
    """Microseconds since 1970, moved; a month that is too short gives its last day.

    Months come first and the clock last; with a time zone the clock first, where any part goes back.

    Raises:
        ExecutionError: a result is outside the type.
    """
    days, rest = np.divmod(values, DAY_MICROSECONDS)
    moved, clock = np.divmod(span.microseconds, DAY_MICROSECONDS)
    rest = rest + sign * clock
    carried, rest = sign * moved + rest // DAY_MICROSECONDS, rest % DAY_MICROSECONDS
    if span.months.any():
        instant: Any = kind
        parts = (span.months, span.days, span.microseconds)
        goes_back = np.logical_or.reduce([sign * part < 0 for part in parts])
        clock_first = goes_back & (instant.tz is not None)
        days, carried = days + np.where(clock_first, carried, 0), np.where(clock_first, 0, carried)
        month = months_of(days)
        place = days - first_day_of_month(month)
        month = np.clip(month + sign * span.months, -MOST_MONTHS, MOST_MONTHS)
        first, following = first_day_of_month(month), first_day_of_month(month + 1)
        days = np.where(span.months == 0, days, first + np.minimum(place, following - first - 1))
        if ((np.abs(days) > LARGEST_DAY) & known).any():
            raise ExecutionError(
                f"{type_name(kind)} overflow: a moment {int(np.abs(days).max())} days from 1970"
            )
    days = days + sign * span.days + carried
    if (_outside_timestamps(days, rest) & known).any():
        raise ExecutionError(f"{type_name(kind)} overflow: a moment {int(np.abs(days).max())} days from 1970")
    return np.where(known, days * DAY_MICROSECONDS + rest, 0)


def _outside_timestamps(days: Integers, rest: Integers) -> NDArray[np.bool_]:
    """Where a day and microseconds of it are beyond what a timestamp holds."""
    last = (days == LAST_MOMENT_DAY) & (rest > LAST_MOMENT_REST)
    beyond: NDArray[np.bool_] = (np.abs(days) > LAST_MOMENT_DAY) | last
    return beyond


def _add_time(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """A day and a time of it."""
    rows = row_count(arguments)
    (days, some), (clock, others) = (moment_values(argument, rows) for argument in arguments)
    known = known_rows(some, others)
    if (_outside_timestamps(days, clock) & known_mask(known, rows)).any():
        raise ExecutionError(f"{type_name(kind)} overflow: a day {int(np.abs(days).max())} days from 1970")
    with np.errstate(over="ignore"):
        return from_values(days * DAY_MICROSECONDS + clock, kind, known)


def _difference(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """From one moment to another: days, and microseconds of the same sign.

    Moments with a time zone may be further apart than 64 bits of microseconds reach.
    """
    rows = row_count(arguments)
    (later, some), (earlier, others) = (moment_values(argument, rows) for argument in arguments)
    known = known_rows(some, others)
    months = np.zeros(rows, np.int64)
    if getattr(arguments[0].type, "tz", None) is None:
        span = subtract_checked(later, earlier, known_mask(known, rows), "-")
        days = truncate_divide(span, DAY_MICROSECONDS)
        return Intervals(months, days, span - days * DAY_MICROSECONDS, known).column("-")
    (to_day, to_rest), (from_day, from_rest) = (np.divmod(v, DAY_MICROSECONDS) for v in (later, earlier))
    days, rest = to_day - from_day, to_rest - from_rest
    carried = ((days > 0) & (rest < 0)).astype(np.int64) - ((days < 0) & (rest > 0))
    return Intervals(months, days - carried, rest + carried * DAY_MICROSECONDS, known).column("-")


def _age(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """Whole months from one moment to another, and the days and the clock that are left."""
    rows = row_count(arguments)
    (later, some), (earlier, others) = (moment_values(argument, rows) for argument in arguments)
    known = known_rows(some, others)
    first, last = np.minimum(earlier, later), np.maximum(earlier, later)
    (from_day, from_rest), (to_day, to_rest) = (np.divmod(v, DAY_MICROSECONDS) for v in (first, last))
    from_month, to_month = months_of(from_day), months_of(to_day)
    months = to_month - from_month
    days = (to_day - first_day_of_month(to_month)) - (from_day - first_day_of_month(from_month))
    micros = to_rest - from_rest
    borrow: Any = micros < 0
    days, micros = days - borrow, micros + borrow * DAY_MICROSECONDS
    # What is missing is borrowed from the month of the earlier moment.
    lengths = first_day_of_month(from_month + 1) - first_day_of_month(from_month)
    borrow = days < 0
    months, days = months - borrow, days + borrow * lengths
    sign: Integers = np.where(later < earlier, -1, 1).astype(np.int64)
    return Intervals(months * sign, days * sign, micros * sign, known).column("age()")


# Arithmetic among themselves.


def _sum(sign: int) -> Implementation:
    def apply(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
        rows = row_count(arguments)
        a, b = (Intervals.from_datum(argument, rows) for argument in arguments)
        return Intervals(
            a.months + sign * b.months,
            a.days + sign * b.days,
            a.microseconds + sign * b.microseconds,
            known_rows(a.known, b.known),
        ).column("+" if sign > 0 else "-")

    return apply


def _negate(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    a = Intervals.from_datum(arguments[0], row_count(arguments))
    return Intervals(-a.months, -a.days, -a.microseconds, a.known).column("-")


def _times(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """By a whole number, part by part."""
    rows = row_count(arguments)
    a = Intervals.from_datum(arguments[0], rows)
    factor, known = moment_values(arguments[1], rows)
    known = known_rows(a.known, known)
    wide = [part.astype(np.float64) * factor for part in (a.months, a.days, a.microseconds)]
    if any(((np.abs(part) > 2.0**62) & known_mask(known, rows)).any() for part in wide):
        raise ExecutionError("INTERVAL overflow in *")
    with np.errstate(over="ignore"):
        return Intervals(a.months * factor, a.days * factor, a.microseconds * factor, known).column("*")


def _scale_by_double(*, divide: bool) -> Implementation:
    """By a DOUBLE: what is left of a month goes to days, what is left of a day to the clock."""

    def apply(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
        rows = row_count(arguments)
        a = Intervals.from_datum(arguments[0], rows)
        column = as_column(arguments[1], rows)
        factor: Any = operand(column)
        known = known_rows(a.known, valid_rows(column), boolean_column(factor != 0) if divide else None)
        with np.errstate(all="ignore"):
            if divide:
                factor = 1.0 / factor
            months, days = (np.asarray(part * factor, np.float64) for part in (a.months, a.days))
            fine = np.ones(rows, np.bool_)
            for part in (months, days):
                fine &= (part >= SMALLEST_PART) & (part <= LARGEST_PART)
            whole_months, whole_days = np.trunc(months), np.trunc(days)
            month_days = _six_digits(_multiply_subtract(a.months, factor, whole_months) * DAYS_PER_MONTH)
            rest = _multiply_subtract(a.days, factor, whole_days) + month_days - np.trunc(month_days)
            seconds = _six_digits(rest * DAY_SECONDS)
            carried = np.trunc(seconds / DAY_SECONDS)
            whole_days += carried + np.trunc(month_days)
            clock = a.microseconds.astype(np.float64)
            micros = np.rint(_multiply_subtract(clock, factor, (seconds - carried * DAY_SECONDS) * -1e6))
            fine &= np.abs(micros) < 2.0**63
        if (~fine & known_mask(known, rows)).any():
            raise ExecutionError(f"INTERVAL overflow in {'/' if divide else '*'}")
        parts = [np.where(fine, part, 0).astype(np.int64) for part in (whole_months, whole_days, micros)]
        return Intervals(parts[0], parts[1], parts[2], known).column("/" if divide else "*")

    return apply


def _multiply_subtract(part: Integers | NDArray[np.float64], factor: Any, whole: Any) -> NDArray[np.float64]:
    """``part * factor - whole``, rounded once, as processors do that multiply and add in one instruction."""
    double = np.asarray(factor, np.float64)
    upper = (double.view(np.int64) & _UPPER_BITS).view(np.float64).astype(np.longdouble)
    product: Any = (part * upper - whole) + part * (double - upper)
    return np.asarray(product, np.float64)


def _six_digits(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rounded as PostgreSQL does, so that three tenths of a month are nine days and not a little less."""
    return np.rint(values * 1e6) / 1e6


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        "to_interval": _to_interval,
        "add_interval": _shift(1),
        "subtract_interval": _shift(-1),
        "add_time": _add_time,
        "timestamp_difference": _difference,
        "age": _age,
        "interval_add": _sum(1),
        "interval_subtract": _sum(-1),
        "interval_negate": _negate,
        "interval_times": _times,
        "interval_scale": _scale_by_double(divide=False),
        "interval_divide": _scale_by_double(divide=True),
    }
)
