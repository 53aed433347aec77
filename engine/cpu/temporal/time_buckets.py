"""time_bucket(): buckets of time from an origin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np
import pyarrow as pa

from bamquery.data_types.names import type_name
from bamquery.engine.cpu.calendar import (
    Integers,
    first_day_of_month,
    months_of,
    subtract_checked,
)
from bamquery.engine.cpu.kernels import Column, Datum, Implementation, from_values
from bamquery.engine.cpu.temporal.interval_columns import (
    DAY_MICROSECONDS,
    MOST_MONTHS,
    Intervals,
    known_mask,
    known_rows,
    moment_values,
)
from bamquery.engine.cpu.value_kernels import row_count
from bamquery.errors import ExecutionError

_MOST_DAYS: Final = (2**63 - 1) // DAY_MICROSECONDS
_FIRST_MONDAY: Final = 10_959 * DAY_MICROSECONDS
"""3 January 2000: where buckets of days and shorter ones begin."""
_FIRST_MONTH: Final = 30 * 12
"""January 2000: where buckets of months begin."""


def _time_bucket(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """The beginning of the moment's bucket; buckets go from an origin, in months or in microseconds."""
    rows = row_count(arguments)
    width, moment = Intervals.from_datum(arguments[0], rows), arguments[1]
    values, known = moment_values(moment, rows)
    origin: Integers | None = None
    if len(arguments) > 2:
        origin, from_known = moment_values(arguments[2], rows)
        known = known_rows(known, from_known)
    known = known_rows(known, width.known)
    mask = known_mask(known, rows)
    wide = np.abs(width.days * float(DAY_MICROSECONDS) + width.microseconds) >= 2.0**63
    if (mask & wide).any():
        raise ExecutionError("time_bucket(): a bucket has more microseconds than BIGINT holds")
    with np.errstate(over="ignore"):
        fixed = width.days * DAY_MICROSECONDS + width.microseconds
    if (mask & (width.months != 0) & (fixed != 0)).any():
        raise ExecutionError("time_bucket() cannot have buckets of months and of days or hours as well")
    if (mask & (width.months + fixed <= 0)).any():
        raise ExecutionError("time_bucket() needs buckets that are longer than nothing")
    by_month = mask & (width.months > 0)
    by_clock = mask & ~by_month
    begins = np.zeros(rows, np.int64)
    if by_clock.any():
        start = np.full(rows, _FIRST_MONDAY) if origin is None else origin
        size = np.where(by_clock, fixed, 1)
        # Of the origin only the place within a bucket matters, and the whole of it may be too far away.
        if getattr(moment.type, "tz", None) is None:
            start = np.fmod(start, size)
            away = subtract_checked(values, start, by_clock, "time_bucket()")
            first = subtract_checked(away, away % size, by_clock, "time_bucket()")
            begins = np.where(by_clock, -subtract_checked(-start, first, by_clock, "time_bucket()"), 0)
        else:  # by the calendar, to which nothing is too far away
            place = (values % size - start % size) % size
            begins = np.where(by_clock, subtract_checked(values, place, by_clock, "time_bucket()"), 0)
    if by_month.any():
        month = np.full(rows, _FIRST_MONTH) if origin is None else months_of(origin // DAY_MICROSECONDS)
        size = np.where(by_month, width.months, 1)
        months = (months_of(values // DAY_MICROSECONDS) - month) // size * size + month
        days = first_day_of_month(np.clip(months, -MOST_MONTHS, MOST_MONTHS))
        if (by_month & ((np.abs(months) > MOST_MONTHS) | (np.abs(days) > _MOST_DAYS))).any():
            raise ExecutionError(f"{type_name(kind)} overflow: a bucket begins before the earliest value")
        begins = np.where(by_month, np.where(by_month, days, 0) * DAY_MICROSECONDS, begins)
    return from_values(begins, kind, known)


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        "time_bucket": _time_bucket,
    }
)
