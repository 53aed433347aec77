"""Casts between dates, times and timestamps. A timestamp with a zone is an instant, seen in UTC."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.cpu.calendar import days_of
from bamquery.engine.cpu.casts.outcome import Outcome, failing, without
from bamquery.engine.cpu.kernels import Column, Kind, from_values, valid, values_of
from bamquery.engine.time_units import UNITS_PER_SECOND, units_per_day

_SHORT_DAY = 2**32
"""Units of a day of which 64 bits may hold more days than 32 bits."""


def rounded_quotient(values: NDArray[np.int64], divisor: int) -> NDArray[np.int64]:
    """Nearest integer to values / divisor, half away from zero."""
    quotient, rest = np.divmod(values, divisor)
    # The floor is one too low above the half, and at it where the value is not negative.
    adjusted: NDArray[np.int64] = quotient + ((rest * 2 > divisor) | ((rest * 2 == divisor) & (values >= 0)))
    return adjusted


def _scaled(values: NDArray[np.int64], factor: int, column: Column) -> tuple[Any, Column | None]:
    limit = (2**63 - 1) // factor
    failed = failing((values > limit) | (values < -limit), column)
    with np.errstate(over="ignore"):
        return values * np.int64(factor), failed


def timestamp_to_timestamp(column: Column, kind: Kind) -> Outcome:
    """To a coarser unit half away from zero; to a finer one it fails where 64 bits do not reach."""
    values = values_of(column)
    own, wanted = UNITS_PER_SECOND[column.type.unit], UNITS_PER_SECOND[kind.unit]
    if own >= wanted:
        stored = values if own == wanted else rounded_quotient(values, own // wanted)
        return Outcome(from_values(stored, kind, valid(column)))
    stored, failed = _scaled(values, wanted // own, column)
    return Outcome(without(failed, from_values(stored, kind, valid(column))), failed)


def timestamp_to_date(column: Column, kind: Kind) -> Outcome:
    """The day it is in."""
    days = days_of(column)
    limits = np.iinfo(np.int32)
    if units_per_day(column.type) > _SHORT_DAY:
        return Outcome(from_values(days.astype(np.int32), kind, valid(column)))
    failed = failing((days > limits.max) | (days < limits.min), column)
    return Outcome(without(failed, from_values(days.astype(np.int32), kind, valid(column))), failed)


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
    """Between units, half away from zero; what would become midnight stays just before it."""
    own, wanted = UNITS_PER_SECOND[column.type.unit], UNITS_PER_SECOND[kind.unit]
    values = values_of(column)
    if own > wanted:
        stored = np.minimum(rounded_quotient(values, own // wanted), units_per_day(kind) - 1)
    else:
        stored = values * (wanted // own)
    return Outcome(from_values(stored, kind, valid(column)))


def date_to_timestamp(column: Column, kind: Kind) -> Outcome:
    """Midnight; fails where 64 bits do not reach."""
    stored, failed = _scaled(values_of(column).astype(np.int64), units_per_day(kind), column)
    return Outcome(without(failed, from_values(stored, kind, valid(column))), failed)
