"""Casts between dates, times and timestamps. A timestamp with a zone is an instant, seen in UTC."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.data_types.limits import stored_limits
from bamquery.engine.cpu.calendar import days_of
from bamquery.engine.cpu.casts.outcome import Outcome, failing, without
from bamquery.engine.cpu.kernels import Column, Kind, from_values, valid, values_of
from bamquery.engine.formulas.time_units import UNITS_PER_SECOND, units_per_day


def rounded_quotient(values: NDArray[np.int64], divisor: int) -> NDArray[np.int64]:
    """Nearest integer to values / divisor, half away from zero."""
    quotient, rest = np.divmod(values, divisor)
    # The floor is one too low above the half, and at it where the value is not negative.
    adjusted: NDArray[np.int64] = quotient + ((rest * 2 > divisor) | ((rest * 2 == divisor) & (values >= 0)))
    return adjusted


def _scaled(values: NDArray[np.int64], factor: int, column: Column, kind: Kind) -> Outcome:
    limit = _largest(kind) // factor
    failed = failing((values > limit) | (values < -limit), column)
    with np.errstate(over="ignore"):
        stored = from_values(values * np.int64(factor), kind, valid(column))
    return Outcome(without(failed, stored), failed)


def _largest(kind: Kind) -> int:
    """Of a timestamp's type, in its units; as far before 1970."""
    limits = stored_limits(kind)
    assert limits is not None
    return limits[1]


def timestamp_to_timestamp(column: Column, kind: Kind) -> Outcome:
    """To a coarser unit half away from zero; it fails where the type does not reach."""
    values = values_of(column)
    own, wanted = UNITS_PER_SECOND[column.type.unit], UNITS_PER_SECOND[kind.unit]
    if own == wanted:
        return Outcome(from_values(values, kind, valid(column)))
    if own < wanted:
        return _scaled(values, wanted // own, column, kind)
    stored = rounded_quotient(values, own // wanted)
    most = _largest(kind)
    failed = failing((stored > most) | (stored < -most), column)
    return Outcome(without(failed, from_values(stored, kind, valid(column))), failed)


def timestamp_to_date(column: Column, kind: Kind) -> Outcome:
    """The day it is in, of nanoseconds that of the nearest microsecond."""
    if column.type.unit == "ns":
        microseconds = pa.timestamp("us")
        column = from_values(rounded_quotient(values_of(column), 1000), microseconds, valid(column))
    return Outcome(from_values(days_of(column).astype(np.int32), kind, valid(column)))


def timestamp_to_time(column: Column, kind: Kind) -> Outcome:
    """The time of day of the timestamp nearest in the type's unit."""
    own, wanted = UNITS_PER_SECOND[column.type.unit], UNITS_PER_SECOND[kind.unit]
    values = values_of(column)
    if own > wanted:
        return Outcome(
            from_values(rounded_quotient(values, own // wanted) % units_per_day(kind), kind, valid(column))
        )
    return Outcome(from_values(values % units_per_day(column.type) * (wanted // own), kind, valid(column)))


def time_to_time(column: Column, kind: Kind) -> Outcome:
    """Between units, half away from zero: 24:00:00 is a time."""
    own, wanted = UNITS_PER_SECOND[column.type.unit], UNITS_PER_SECOND[kind.unit]
    values = values_of(column)
    stored = rounded_quotient(values, own // wanted) if own > wanted else values * (wanted // own)
    return Outcome(from_values(stored, kind, valid(column)))


def date_to_timestamp(column: Column, kind: Kind) -> Outcome:
    """Midnight; fails where the type does not reach."""
    return _scaled(values_of(column).astype(np.int64), units_per_day(kind), column, kind)
