"""The proleptic Gregorian calendar on whole columns, for every date that 64 bits can name.

Arrow's own kernels stop at the year 32767; numpy's calendar does not.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.kernels import Column, values_of

Integers = NDArray[np.int64]

DAY_SECONDS: Final = 86_400
UNITS_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def units_per_day(kind: pa.DataType) -> int:
    """Stored units in a day: 1 for dates, 86,400 times the unit's for times and timestamps."""
    if isinstance(kind, (pa.TimestampType, pa.Time32Type, pa.Time64Type)):
        return DAY_SECONDS * UNITS_PER_SECOND[kind.unit]
    return 1


def days_and_rest(column: Column) -> tuple[Integers, Integers]:
    """Days since 1970-01-01 and units into the day (of UTC), for a date, time or timestamp column."""
    values = values_of(column).astype(np.int64, copy=False)
    per_day = units_per_day(column.type)
    if per_day == 1:
        return values, np.zeros_like(values)
    days, rest = np.divmod(values, per_day)
    return days, rest


def months_of(days: Integers) -> Integers:
    """Months since January 1970."""
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


def first_day_of_month(months: Integers) -> Integers:
    """Day on which a month (since January 1970) begins."""
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def year_of(days: Integers) -> Integers:
    """The year; 0 is 1 BC."""
    return months_of(days) // 12 + 1970


def first_day_of_year(days: Integers) -> Integers:
    """1 January of the day's year."""
    return first_day_of_month(months_of(days) // 12 * 12)


def iso_weekday(days: Integers) -> Integers:
    """Monday 1 to Sunday 7; 1970-01-01 was a Thursday."""
    return (days + 3) % 7 + 1


def iso_week(days: Integers) -> Integers:
    """Week 1 to 53: the week is of the year that its Thursday is in."""
    thursday = days - iso_weekday(days) + 4
    return (thursday - first_day_of_year(thursday)) // 7 + 1


def iso_year(days: Integers) -> Integers:
    """The year that the day's week is of."""
    return year_of(days - iso_weekday(days) + 4)


def truncated(values: Integers, divisor: int) -> Integers:
    """Quotient toward zero."""
    quotient = values // divisor
    inexact: Integers = quotient + ((quotient < 0) & (quotient * divisor != values))
    return inexact


def decade(days: Integers) -> Integers:
    """Tens of years."""
    return truncated(year_of(days), 10)


def century(days: Integers) -> Integers:
    """2000 is of the 20th; there is no century 0."""
    return _counted_from_one(year_of(days), 100)


def millennium(days: Integers) -> Integers:
    """2000 is of the 2nd; there is no millennium 0."""
    return _counted_from_one(year_of(days), 1000)


def _counted_from_one(years: Integers, length: int) -> Integers:
    return np.where(years > 0, (years - 1) // length + 1, truncated(years, length) - 1)


def year_and_week(days: Integers) -> Integers:
    """The ISO year's number and the week's two digits; below the year 0 the week counts down."""
    years, weeks = iso_year(days), iso_week(days)
    return years * 100 + np.where(years > 0, weeks, -weeks)


def first_day_of_years(years: Integers) -> Integers:
    """1 January of years."""
    return first_day_of_month((years - 1970) * 12)


def first_day_of_iso_year(days: Integers) -> Integers:
    """The Monday on which the ISO year begins: that of the week with 4 January."""
    fourth = first_day_of_years(iso_year(days)) + 3
    return fourth - iso_weekday(fourth) + 1
