"""date_part, date_trunc, epoch and days. Timestamps with a zone are instants and are read in UTC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np
import pyarrow as pa

from bamquery.data_types.limits import LARGEST_DAY
from bamquery.data_types.names import type_name
from bamquery.engine.cpu.calendar import CALENDAR, days_of, memoize_dense, remainder
from bamquery.engine.cpu.casts.temporal import rounded_quotient
from bamquery.engine.cpu.kernels import (
    Column,
    Datum,
    Implementation,
    boolean_values,
    from_values,
    nulls,
    operand,
    stored_values,
    valid_rows,
)
from bamquery.engine.formulas.time_units import FRACTIONS, TIME_PARTS, UNITS_PER_SECOND, units_per_day
from bamquery.errors import ExecutionError


def _unit_and_column(arguments: Sequence[Datum]) -> tuple[str | None, Column]:
    unit, column = arguments
    assert isinstance(unit, pa.Scalar), "the binder passes literals only"
    assert isinstance(column, pa.Array)
    name: str | None = unit.as_py()
    return name, column


def _date_part(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    unit, column = _unit_and_column(arguments)
    if unit is None:
        return nulls(len(column), kind)
    per_second = units_per_day(column.type) // 86_400
    if unit in TIME_PARTS or unit in FRACTIONS:
        values = stored_values(column).astype(np.int64, copy=False)
        if not per_second:  # a date has no time
            return from_values(np.zeros_like(values), kind, valid_rows(column))
    if unit in TIME_PARTS:
        size, count = TIME_PARTS[unit]
        part = values // (per_second * size)
        # Days have whole hours; a time may be that of 24:00:00, which is of no next day.
        if not (unit == "hour" and pa.types.is_time(column.type)):
            part = remainder(part, count)
    elif unit in FRACTIONS:
        wanted = FRACTIONS[unit]
        part = remainder(values, 60 * per_second)
        part = part * (wanted // per_second) if wanted >= per_second else part // (per_second // wanted)
    else:
        part = memoize_dense(CALENDAR.parts[unit])(days_of(column))
    return from_values(part, kind, valid_rows(column))


def _date_trunc(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    unit, column = _unit_and_column(arguments)
    if unit is None:
        return nulls(len(column), kind)
    per_day = units_per_day(kind)
    if unit in FRACTIONS or unit in TIME_PARTS:
        own = FRACTIONS[unit] * 86_400 if unit in FRACTIONS else 86_400 // TIME_PARTS[unit][0]
        step = max(per_day // own, 1)  # a day has a whole number of steps
        values = stored_values(column).astype(np.int64, copy=False)
        return from_values(values // step * step, kind, valid_rows(column))
    days = days_of(column)
    start = memoize_dense(CALENDAR.starts[unit])(days) if unit in CALENDAR.starts else days
    low = np.iinfo(np.int32 if per_day == 1 else np.int64).min // per_day + 1
    validity = valid_rows(column)
    early = start < low
    if validity is not None:
        early &= boolean_values(validity)
    if early.any():
        raise ExecutionError(f"{type_name(kind)} overflow: the {unit} begins before the earliest value")
    return from_values(start * per_day, kind, validity)


def _epoch(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    column = arguments[0]
    assert isinstance(column, pa.Array)
    values = stored_values(column).astype(np.int64, copy=False)
    unit = getattr(column.type, "unit", "day")
    if pa.types.is_date32(column.type):
        seconds = values * 86_400.0
    elif unit == "ns":  # through microseconds, as DuckDB
        seconds = rounded_quotient(values, 1000) / UNITS_PER_SECOND["us"]
    else:
        seconds = values / UNITS_PER_SECOND[unit]
    return from_values(seconds, kind, valid_rows(column))


def _add_days(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    date, days = arguments
    later = np.add(operand(date), operand(days), dtype=np.int64)
    validity = valid_rows(date, days)
    outside = abs(later) > LARGEST_DAY
    if validity is not None:
        outside &= boolean_values(validity)
    if outside.any():
        raise ExecutionError(
            f"{type_name(kind)} overflow: a date {int(np.max(np.abs(later)))} days from 1970"
        )
    return from_values(later.astype(np.int32), kind, validity)


def _count_days_between(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    later, earlier = arguments
    return from_values(
        np.subtract(operand(later), operand(earlier), dtype=np.int64), kind, valid_rows(later, earlier)
    )


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        "date_part": _date_part,
        "date_trunc": _date_trunc,
        "epoch": _epoch,
        "add_days": _add_days,
        "days_between": _count_days_between,
    }
)
