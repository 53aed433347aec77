"""The calendar (`bamquery.engine.calendar`) over numpy arrays.

Arrow's own kernels stop at the year 32767; numpy's calendar does not.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.calendar import Calendar
from bamquery.engine.cpu.kernels import Column, values_of
from bamquery.engine.time_units import units_per_day

Integers = NDArray[np.int64]


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


def truncated(values: Integers, divisor: int) -> Integers:
    """Quotient toward zero."""
    quotient = values // divisor
    inexact: Integers = quotient + ((quotient < 0) & (quotient * divisor != values))
    return inexact


def _flags(values: Integers, condition: Any) -> Any:
    return condition.astype(np.int64)


CALENDAR: Final = Calendar(months_of, first_day_of_month, truncated, _flags)
