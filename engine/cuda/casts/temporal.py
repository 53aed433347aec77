"""Casts between dates, times and timestamps. A timestamp with a zone is an instant, seen in UTC."""

from __future__ import annotations

from typing import Any

import pylibcudf as plc

from bamquery.data_types.limits import stored_limits
from bamquery.engine.cuda.casts.outcome import Outcome
from bamquery.engine.cuda.kernels import Kernels
from bamquery.engine.cuda.numeric.integers import Integers, rounded_quotient
from bamquery.engine.cuda.temporal.date_parts import as_dates_or_times
from bamquery.engine.formulas.time_units import UNITS_PER_SECOND, units_per_day


def _scale_units(kernels: Kernels, values: Integers, factor: int, kind: Any) -> Outcome:
    limit = _largest_timestamp(kind) // factor
    failed = kernels.fill_null(values.is_outside(-limit, limit))
    return Outcome(as_dates_or_times(kernels, values * factor, kind), failed)


def _largest_timestamp(kind: Any) -> int:
    """Of a timestamp's type, in its units; as far before 1970."""
    limits = stored_limits(kind)
    assert limits is not None
    return limits[1]


def timestamp_to_timestamp(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> Outcome:
    """To a coarser unit half away from zero; it fails where the type does not reach."""
    values = Integers.from_column(kernels, column)
    before, after = UNITS_PER_SECOND[own.unit], UNITS_PER_SECOND[kind.unit]
    if before == after:
        return Outcome(as_dates_or_times(kernels, values, kind))
    if before < after:
        return _scale_units(kernels, values, after // before, kind)
    values = rounded_quotient(values, before // after)
    most = _largest_timestamp(kind)
    failed = kernels.fill_null(values.is_outside(-most, most))
    return Outcome(as_dates_or_times(kernels, values, kind), failed)


def timestamp_to_date(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> Outcome:
    """The day it is in, of nanoseconds that of the nearest microsecond."""
    values, per_day = Integers.from_column(kernels, column), units_per_day(own)
    if own.unit == "ns":
        values, per_day = rounded_quotient(values, 1000), per_day // 1000
    return Outcome(as_dates_or_times(kernels, values // per_day, kind))


def timestamp_to_time(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> Outcome:
    """The time of day of the timestamp nearest in the type's unit."""
    values = Integers.from_column(kernels, column)
    before, after = UNITS_PER_SECOND[own.unit], UNITS_PER_SECOND[kind.unit]
    if before > after:
        values = rounded_quotient(values, before // after) % units_per_day(kind)
    else:
        values = values % units_per_day(own) * (after // before)
    return Outcome(as_dates_or_times(kernels, values, kind))


def time_to_time(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> Outcome:
    """Between units, half away from zero: 24:00:00 is a time."""
    values = Integers.from_column(kernels, column)
    before, after = UNITS_PER_SECOND[own.unit], UNITS_PER_SECOND[kind.unit]
    values = values * (after // before) if before <= after else rounded_quotient(values, before // after)
    return Outcome(as_dates_or_times(kernels, values, kind))


def date_to_timestamp(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> Outcome:
    """Midnight; fails where the type does not reach."""
    return _scale_units(kernels, Integers.from_column(kernels, column), units_per_day(kind), kind)
