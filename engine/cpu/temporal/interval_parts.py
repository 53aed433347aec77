"""What an interval is made of: parts, sums in one unit, its normal form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np
import pyarrow as pa

from bamquery.engine.cpu.calendar import (
    Integers,
    truncate_divide,
)
from bamquery.engine.cpu.kernels import Column, Datum, Implementation, as_column, from_values
from bamquery.engine.cpu.temporal.interval_columns import (
    DAY_MICROSECONDS,
    DAYS_PER_MONTH,
    MONTH_MICROSECONDS,
    UNIT_DAYS,
    UNIT_MICROSECONDS,
    UNIT_MONTHS,
    Intervals,
    known_mask,
    order_key,
)
from bamquery.engine.cpu.value_kernels import python_value, row_count
from bamquery.engine.formulas.time_units import DAY_SECONDS
from bamquery.errors import ExecutionError

_YEAR_SECONDS: Final = 31_557_600
"""365 days and a quarter: what epoch() takes a year for."""

_PARTS: Final[Mapping[str, Callable[[Intervals], Integers]]] = MappingProxyType(
    {
        "millennium": lambda span: truncate_divide(span.months, 12_000),
        "century": lambda span: truncate_divide(span.months, 1200),
        "decade": lambda span: truncate_divide(span.months, 120),
        "year": lambda span: truncate_divide(span.months, 12),
        "quarter": lambda span: truncate_divide(np.fmod(span.months, 12), 3) + 1,
        "month": lambda span: np.fmod(span.months, 12),
        "day": lambda span: span.days,
        "hour": lambda span: truncate_divide(span.microseconds, UNIT_MICROSECONDS["hour"]),
        "minute": lambda span: truncate_divide(
            np.fmod(span.microseconds, UNIT_MICROSECONDS["hour"]), 60 * 10**6
        ),
        "second": lambda span: truncate_divide(
            np.fmod(span.microseconds, UNIT_MICROSECONDS["minute"]), 10**6
        ),
        "millisecond": lambda span: truncate_divide(
            np.fmod(span.microseconds, UNIT_MICROSECONDS["minute"]), 1000
        ),
        "microsecond": lambda span: np.fmod(span.microseconds, UNIT_MICROSECONDS["minute"]),
    }
)


def _part(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    span = Intervals.from_datum(arguments[0], row_count(arguments))
    return from_values(_PARTS[python_value(arguments[1])](span), kind, span.known)


def _seconds(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """As epoch() counts: years of 365 days and a quarter, months of 30 days."""
    span = Intervals.from_datum(arguments[0], row_count(arguments))
    years = truncate_divide(span.months, 12)
    whole = years * _YEAR_SECONDS + (span.months - years * 12) * (DAYS_PER_MONTH * DAY_SECONDS)
    seconds = (whole + span.days * DAY_SECONDS) + span.microseconds / 1e6
    return from_values(seconds, kind, span.known)


def _microseconds(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    rows = row_count(arguments)
    span = Intervals.from_datum(arguments[0], rows)
    wide = span.months * float(MONTH_MICROSECONDS) + span.days * float(DAY_MICROSECONDS) + span.microseconds
    if ((np.abs(wide) >= 2.0**63) & known_mask(span.known, rows)).any():
        raise ExecutionError("BIGINT overflow: an INTERVAL has more microseconds than it holds")
    with np.errstate(over="ignore"):
        count = span.months * MONTH_MICROSECONDS + span.days * DAY_MICROSECONDS + span.microseconds
    return from_values(count, kind, span.known)


def _milliseconds(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """Whole ones of each part."""
    span = Intervals.from_datum(arguments[0], row_count(arguments))
    days = span.months * DAYS_PER_MONTH + span.days
    count = days * (DAY_MICROSECONDS // 1000) + truncate_divide(span.microseconds, 1000)
    return from_values(count, kind, span.known)


def _trunc(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    """Without what is smaller than the unit."""
    span = Intervals.from_datum(arguments[0], row_count(arguments))
    unit = python_value(arguments[1])
    months, days, micros = span.months, span.days, span.microseconds
    nothing = np.zeros_like(months)
    if unit in UNIT_MONTHS:
        size = UNIT_MONTHS[unit]
        months, days, micros = truncate_divide(months, size) * size, nothing, nothing
    elif unit in UNIT_DAYS:
        size = UNIT_DAYS[unit]
        days, micros = truncate_divide(days, size) * size, nothing
    else:
        size = UNIT_MICROSECONDS[unit]
        micros = truncate_divide(micros, size) * size
    return Intervals(months, days, micros, span.known).column("date_trunc()")


def _normalize(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    return (
        Intervals.from_datum(arguments[0], row_count(arguments)).normalize().column("normalized_interval()")
    )


def _order(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    return order_key(as_column(arguments[0], row_count(arguments)))


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        "interval_part": _part,
        "interval_seconds": _seconds,
        "interval_milliseconds": _milliseconds,
        "interval_microseconds": _microseconds,
        "interval_order": _order,
        "interval_trunc": _trunc,
        "interval_normalize": _normalize,
    }
)
