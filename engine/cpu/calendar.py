"""The calendar (`bamquery.engine.formulas.calendar`) over numpy arrays.

Arrow's own kernels stop at the year 32767; numpy's calendar does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.cpu.kernels import Column, stored_values
from bamquery.engine.formulas.calendar import Calendar
from bamquery.engine.formulas.time_units import units_per_day
from bamquery.errors import ExecutionError

Integers = NDArray[np.int64]

_MANY: Final = 1024
"""Numbers from which it matters that one is asked about once."""
_OFTEN: Final = 4
"""Numbers for each different one, at least."""


def days_and_rest(column: Column) -> tuple[Integers, Integers]:
    """Days since 1970-01-01 and units into the day (of UTC), for a date, time or timestamp column."""
    values = stored_values(column).astype(np.int64, copy=False)
    per_day = units_per_day(column.type)
    if per_day == 1:
        return values, np.zeros_like(values)
    days = values // per_day
    return days, values - days * per_day  # a third of the time of `divmod`


def days_of(column: Column) -> Integers:
    """Days since 1970-01-01 (of UTC), for a date, time or timestamp column."""
    values = stored_values(column).astype(np.int64, copy=False)
    per_day = units_per_day(column.type)
    return values if per_day == 1 else values // per_day


def memoize_dense(function: Callable[[Integers], Integers]) -> Callable[[Integers], Integers]:
    """The same function, which is asked once for each number where many lie close together.

    Days of a chunk do: ten years have 3,653 of them.
    """

    def apply(values: Integers) -> Integers:
        if np.size(values) < _MANY:  # a constant is one
            return function(values)
        low, high = int(values.min()), int(values.max())
        if high - low >= len(values) // _OFTEN:
            return function(values)
        return function(np.arange(low, high + 1))[values - low]

    return apply


@memoize_dense
def months_of(days: Integers) -> Integers:
    """Months since January 1970."""
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


@memoize_dense
def first_day_of_month(months: Integers) -> Integers:
    """Day on which a month (since January 1970) begins."""
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def remainder(values: Integers, divisor: int) -> Integers:
    """`values % divisor`, in less than half the time."""
    whole = values // divisor
    whole *= divisor
    return values - whole


def truncate_divide(values: Integers, divisor: int) -> Integers:
    """Quotient toward zero."""
    quotient = values // divisor
    inexact: Integers = quotient + ((quotient < 0) & (quotient * divisor != values))
    return inexact


def subtract_checked(values: Integers, others: Integers, known: NDArray[np.bool_], what: str) -> Integers:
    """`values - others` on rows that are known.

    Raises:
        ExecutionError: it is outside of 64 bits; `what` was computed.
    """
    with np.errstate(over="ignore"):
        difference = values - others
    wrapped = ((values < 0) != (others < 0)) & ((difference < 0) != (values < 0)) & known
    if wrapped.any():
        raise ExecutionError(f"BIGINT overflow in {what}: the moments are too far apart")
    return difference


def _flags(values: Integers, condition: Any) -> Any:
    return condition.astype(np.int64)


CALENDAR: Final = Calendar(months_of, first_day_of_month, truncate_divide, _flags)
