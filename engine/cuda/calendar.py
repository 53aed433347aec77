"""The proleptic Gregorian calendar on whole columns, for every date that 64 bits can name.

libcudf's own functions of dates stop at years of 16 bits. The arithmetic is Howard Hinnant's
(https://howardhinnant.github.io/date_algorithms.html): years begin in March, eras have 400 years.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa

from bamquery.engine.cuda.integers import Integers

DAY_SECONDS: Final = 86_400
UNITS_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}

_DAYS_OF_ERA: Final = 146_097
_FIRST_MARCH: Final = 719_468
"""Days from 0000-03-01 to 1970-01-01."""


def units_per_day(kind: pa.DataType) -> int:
    """Stored units in a day: 1 for dates, 86,400 times the unit's for times and timestamps."""
    if isinstance(kind, (pa.TimestampType, pa.Time32Type, pa.Time64Type)):
        return DAY_SECONDS * UNITS_PER_SECOND[kind.unit]
    return 1


def months_of(days: Integers) -> Integers:
    """Months since January 1970."""
    shifted = days + _FIRST_MARCH
    era = shifted // _DAYS_OF_ERA
    day = shifted - era * _DAYS_OF_ERA  # of the era
    leaps = day.truncated(1460) - day.truncated(36_524) + day.truncated(146_096)
    year = (day - leaps).truncated(365)
    day_of_year = day - (year * 365 + year.truncated(4) - year.truncated(100))
    month = (day_of_year * 5 + 2).truncated(153)  # March is 0
    return (era * 400 + year) * 12 + month + (2 - 1970 * 12)


def first_day_of_month(months: Integers) -> Integers:
    """Day on which a month (since January 1970) begins."""
    shifted = months + (1970 * 12 - 2)
    years = shifted // 12
    month = shifted - years * 12
    era = years // 400
    year = years - era * 400
    day = year * 365 + year.truncated(4) - year.truncated(100) + (month * 153 + 2).truncated(5)
    return era * _DAYS_OF_ERA + day - _FIRST_MARCH


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


def year_and_week(days: Integers) -> Integers:
    """The ISO year's number and the week's two digits; below the year 0 the week counts down."""
    years, weeks = iso_year(days), iso_week(days)
    sign = years.flags(years > 0) * 2 - 1
    return years * 100 + weeks * sign


def decade(days: Integers) -> Integers:
    """Tens of years."""
    return year_of(days).truncated(10)


def counted_from_one(length: int) -> Callable[[Integers], Integers]:
    """Centuries and millennia, of which none is 0: 2000 is of the 20th."""

    def count(days: Integers) -> Integers:
        years = year_of(days)
        positive = years.flags(years > 0)
        # (year - 1) / length + 1 where it is positive, else year / length - 1.
        return (years - positive).truncated(length) + positive * 2 - 1

    return count


def first_day_of_years(days: Integers, length: int) -> Integers:
    """1 January of the year that is a multiple of `length`, toward zero."""
    years = year_of(days).truncated(length) * length
    return first_day_of_month((years - 1970) * 12)


def first_day_of_iso_year(days: Integers) -> Integers:
    """The Monday on which the ISO year begins: that of the week with 4 January."""
    fourth = first_day_of_month((iso_year(days) - 1970) * 12) + 3
    return fourth - iso_weekday(fourth) + 1
