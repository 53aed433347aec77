"""Casts between dates, times and timestamps. A timestamp with a zone is an instant, seen in UTC."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.data_types.limits import stored_limits
from bamquery.engine.cpu.calendar import days_of
from bamquery.engine.cpu.casts.outcome import Outcome, failed_where_valid, null_where_failed
from bamquery.engine.cpu.kernels import Column, Kind, from_values, stored_values, valid_rows
from bamquery.engine.formulas.time_units import UNITS_PER_SECOND, units_per_day


def rounded_quotient(values: NDArray[np.int64], divisor: int) -> NDArray[np.int64]:
    """Nearest integer to values / divisor, half away from zero."""
    quotient, rest = np.divmod(values, divisor)
    # The floor is one too low above the half, and at it where the value is not negative.
    adjusted: NDArray[np.int64] = quotient + ((rest * 2 > divisor) | ((rest * 2 == divisor) & (values >= 0)))
    return adjusted


def _scale_units(values: NDArray[np.int64], factor: int, column: Column, kind: Kind) -> Outcome:
    limit = _largest_timestamp(kind) // factor
    failed = failed_where_valid((values > limit) | (values < -limit), column)
    with np.errstate(over="ignore"):
        stored = from_values(values * np.int64(factor), kind, valid_rows(column))
    return Outcome(null_where_failed(failed, stored), failed)


def _largest_timestamp(kind: Kind) -> int:
    """Of a timestamp's type, in its units; as far before 1970."""
    limits = stored_limits(kind)
    assert limits is not None
    return limits[1]


def timestamp_to_timestamp(column: Column, kind: Kind) -> Outcome:
    """To a coarser unit half away from zero; it fails where the type does not reach."""
    values = stored_values(column)
    own, wanted = UNITS_PER_SECOND[column.type.unit], UNITS_PER_SECOND[kind.unit]
    if own == wanted:
        return Outcome(from_values(values, kind, valid_rows(column)))
    if own < wanted:
        return _scale_units(values, wanted // own, column, kind)
    stored = rounded_quotient(values, own // wanted)
    most = _largest_timestamp(kind)
    failed = failed_where_valid((stored > most) | (stored < -most), column)
    return Outcome(null_where_failed(failed, from_values(stored, kind, valid_rows(column))), failed)


def timestamp_to_date(column: Column, kind: Kind) -> Outcome:
    """The day it is in, of nanoseconds that of the nearest microsecond."""
    if column.type.unit == "ns":
        microseconds = pa.timestamp("us")
        column = from_values(rounded_quotient(stored_values(column), 1000), microseconds, valid_rows(column))
    return Outcome(from_values(days_of(column).astype(np.int32), kind, valid_rows(column)))


def timestamp_to_time(column: Column, kind: Kind) -> Outcome:
    """The time of day of the timestamp nearest in the type's unit."""
    own, wanted = UNITS_PER_SECOND[column.type.unit], UNITS_PER_SECOND[kind.unit]
    values = stored_values(column)
    if own > wanted:
        return Outcome(
            from_values(
                rounded_quotient(values, own // wanted) % units_per_day(kind), kind, valid_rows(column)
            )
        )
    return Outcome(
        from_values(values % units_per_day(column.type) * (wanted // own), kind, valid_rows(column))
    )


def time_to_time(column: Column, kind: Kind) -> Outcome:
    """Between units, half away from zero: 24:00:00 is a time."""
    own, wanted = UNITS_PER_SECOND[column.type.unit], UNITS_PER_SECOND[kind.unit]
    values = stored_values(column)
    stored = rounded_quotient(values, own // wanted) if own > wanted else values * (wanted // own)
    return Outcome(from_values(stored, kind, valid_rows(column)))


def date_to_timestamp(column: Column, kind: Kind) -> Outcome:
    """Midnight; fails where the type does not reach."""
    return _scale_units(stored_values(column).astype(np.int64), units_per_day(kind), column, kind)
