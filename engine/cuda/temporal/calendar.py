"""The calendar (`bamquery.engine.formulas.calendar`) over columns of a GPU.

libcudf's own functions of dates stop at years of 16 bits. The arithmetic is Howard Hinnant's
(https://howardhinnant.github.io/date_algorithms.html): years begin in March, eras have 400 years.
"""

from __future__ import annotations

from typing import Final

from bamquery.engine.cuda.numeric.integers import Integers
from bamquery.engine.formulas.calendar import Calendar

_DAYS_OF_ERA: Final = 146_097
_FIRST_MARCH: Final = 719_468
"""Days from 0000-03-01 to 1970-01-01."""


def months_of(days: Integers) -> Integers:
    """Months since January 1970."""
    shifted = days + _FIRST_MARCH
    era = shifted // _DAYS_OF_ERA
    day = shifted - era * _DAYS_OF_ERA  # of the era
    leaps = day.truncate_divide(1460) - day.truncate_divide(36_524) + day.truncate_divide(146_096)
    year = (day - leaps).truncate_divide(365)
    day_of_year = day - (year * 365 + year.truncate_divide(4) - year.truncate_divide(100))
    month = (day_of_year * 5 + 2).truncate_divide(153)  # March is 0
    return (era * 400 + year) * 12 + month + (2 - 1970 * 12)


def first_day_of_month(months: Integers) -> Integers:
    """Day on which a month (since January 1970) begins."""
    shifted = months + (1970 * 12 - 2)
    years = shifted // 12
    month = shifted - years * 12
    era = years // 400
    year = years - era * 400
    day = (
        year * 365
        + year.truncate_divide(4)
        - year.truncate_divide(100)
        + (month * 153 + 2).truncate_divide(5)
    )
    return era * _DAYS_OF_ERA + day - _FIRST_MARCH


CALENDAR: Final = Calendar(months_of, first_day_of_month, Integers.truncate_divide, Integers.flags)
