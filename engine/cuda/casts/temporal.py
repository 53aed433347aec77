"""Casts between dates, times and timestamps. A timestamp with a zone is an instant, seen in UTC."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.binaryop import BinaryOperator

from bamquery.engine.cuda.casts.outcome import Outcome
from bamquery.engine.cuda.integers import Integers, rounded_quotient
from bamquery.engine.cuda.kernels import INT64, Kernels
from bamquery.engine.cuda.temporal import as_dates_or_times
from bamquery.engine.time_units import UNITS_PER_SECOND, units_per_day
from bamquery.plan.types import integer_range


def _scaled(kernels: Kernels, values: Integers, factor: int, kind: Any) -> Outcome:
    limit = (2**63 - 1) // factor
    failed = kernels.filled(values.outside(-limit, limit))
    return Outcome(as_dates_or_times(kernels, values * factor, kind), failed)


def timestamp_to_timestamp(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> Outcome:
    """To a coarser unit half away from zero; to a finer one it fails where 64 bits do not reach."""
    values = Integers.stored(kernels, column)
    before, after = UNITS_PER_SECOND[own.unit], UNITS_PER_SECOND[kind.unit]
    if before < after:
        return _scaled(kernels, values, after // before, kind)
    if before > after:
        values = rounded_quotient(values, before // after)
    return Outcome(as_dates_or_times(kernels, values, kind))


def timestamp_to_date(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> Outcome:
    """The day it is in."""
    days = Integers.stored(kernels, column) // units_per_day(own)
    failed = kernels.filled(days.outside(*integer_range(pa.int32())))
    return Outcome(as_dates_or_times(kernels, days, kind), failed)


def timestamp_to_time(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> Outcome:
    """The time of day of the timestamp nearest in the type's unit."""
    values = Integers.stored(kernels, column)
    before, after = UNITS_PER_SECOND[own.unit], UNITS_PER_SECOND[kind.unit]
    if before > after:
        values = rounded_quotient(values, before // after) % units_per_day(kind)
    else:
        values = values % units_per_day(own) * (after // before)
    return Outcome(as_dates_or_times(kernels, values, kind))


def time_to_time(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> Outcome:
    """Between units, half away from zero; what would become midnight stays just before it."""
    values = Integers.stored(kernels, column)
    before, after = UNITS_PER_SECOND[own.unit], UNITS_PER_SECOND[kind.unit]
    if before <= after:
        return Outcome(as_dates_or_times(kernels, values * (after // before), kind))
    values = rounded_quotient(values, before // after)
    last = kernels.number(units_per_day(kind) - 1)
    most = kernels.where(
        kernels.binary(BinaryOperator.LESS, values.column, last, plc.DataType(plc.TypeId.BOOL8)),
        values.column,
        last,
    )
    if column.null_count():
        most = kernels.where(kernels.is_valid(column), most, kernels.null(pa.int64()))
    return Outcome(as_dates_or_times(kernels, Integers(kernels, kernels.convert(most, INT64)), kind))


def date_to_timestamp(kernels: Kernels, column: plc.Column, own: Any, kind: Any) -> Outcome:
    """Midnight; fails where 64 bits do not reach."""
    return _scaled(kernels, Integers.stored(kernels, column), units_per_day(kind), kind)
