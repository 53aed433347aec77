"""date_part, date_trunc, epoch and days. Timestamps with a zone are instants and are read in UTC."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np
import pyarrow as pa

from bamquery.engine.cpu.calendar import (
    UNITS_PER_SECOND,
    Integers,
    century,
    days_and_rest,
    decade,
    first_day_of_iso_year,
    first_day_of_month,
    first_day_of_year,
    first_day_of_years,
    iso_week,
    iso_weekday,
    iso_year,
    millennium,
    months_of,
    truncated,
    units_per_day,
    year_and_week,
    year_of,
)
from bamquery.engine.cpu.casts.temporal import rounded_quotient
from bamquery.engine.cpu.kernels import (
    Column,
    Datum,
    Implementation,
    booleans_of,
    from_values,
    nulls,
    operand,
    valid,
    values_of,
)
from bamquery.errors import ExecutionError
from bamquery.type_names import type_name

_DAY_PARTS: Final[Mapping[str, Callable[[Integers], Integers]]] = MappingProxyType(
    {
        "year": year_of,
        "quarter": lambda days: months_of(days) % 12 // 3 + 1,
        "month": lambda days: months_of(days) % 12 + 1,
        "day": lambda days: days - first_day_of_month(months_of(days)) + 1,
        "dayofweek": lambda days: iso_weekday(days) % 7,
        "isodow": iso_weekday,
        "dayofyear": lambda days: days - first_day_of_year(days) + 1,
        "week": iso_week,
        "isoyear": iso_year,
        "yearweek": year_and_week,
        "decade": decade,
        "century": century,
        "millennium": millennium,
        "era": lambda days: (year_of(days) > 0).astype(np.int64),
    }
)
_TIME_PARTS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {"hour": (3600, 24), "minute": (60, 60), "second": (1, 60)}
)
"""Seconds of the unit, and how many of it there are."""
_FRACTIONS: Final[Mapping[str, int]] = MappingProxyType(
    {"millisecond": 10**3, "microsecond": 10**6, "nanosecond": 10**9}
)
"""How many of the unit a second has; they are counted from the minute."""

_DAY_STARTS: Final[Mapping[str, Callable[[Integers], Integers]]] = MappingProxyType(
    {
        "year": first_day_of_year,
        "quarter": lambda days: first_day_of_month(months_of(days) // 3 * 3),
        "month": lambda days: first_day_of_month(months_of(days)),
        "week": lambda days: days - iso_weekday(days) + 1,
        "isoyear": first_day_of_iso_year,
        "decade": lambda days: first_day_of_years(truncated(year_of(days), 10) * 10),
        "century": lambda days: first_day_of_years(truncated(year_of(days), 100) * 100),
        "millennium": lambda days: first_day_of_years(truncated(year_of(days), 1000) * 1000),
    }
)


def _unit_and_column(arguments: Sequence[Datum]) -> tuple[str | None, Column]:
    unit, column = arguments
    assert isinstance(unit, pa.Scalar), "the binder passes literals only"
    assert isinstance(column, pa.Array)
    name: str | None = unit.as_py()
    return name, column


def _seconds(column: Column, rest: Integers) -> Integers:
    return rest // (units_per_day(column.type) // 86_400 or 1)


def _date_part(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    unit, column = _unit_and_column(arguments)
    if unit is None:
        return nulls(len(column), kind)
    days, rest = days_and_rest(column)
    if unit in _TIME_PARTS:
        size, count = _TIME_PARTS[unit]
        part = _seconds(column, rest) // size % count
    elif unit in _FRACTIONS:
        per_second, wanted = units_per_day(column.type) // 86_400, _FRACTIONS[unit]
        if not per_second:  # a date has no time
            return from_values(np.zeros_like(rest), kind, valid(column))
        part = rest % (60 * per_second)
        part = part * (wanted // per_second) if wanted >= per_second else part // (per_second // wanted)
    else:
        part = _DAY_PARTS[unit](days)
    return from_values(part, kind, valid(column))


def _date_trunc(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    unit, column = _unit_and_column(arguments)
    if unit is None:
        return nulls(len(column), kind)
    days, rest = days_and_rest(column)
    per_day = units_per_day(kind)
    if unit in _FRACTIONS:
        step = max(per_day // 86_400 // _FRACTIONS[unit], 1)
        return from_values(values_of(column).astype(np.int64) - rest % step, kind, valid(column))
    if unit in _TIME_PARTS:
        step = max(per_day * _TIME_PARTS[unit][0] // 86_400, 1)
        return from_values(values_of(column).astype(np.int64) - rest % step, kind, valid(column))
    start = _DAY_STARTS[unit](days) if unit in _DAY_STARTS else days
    low = np.iinfo(np.int32 if per_day == 1 else np.int64).min // per_day + 1
    validity = valid(column)
    early = start < low
    if validity is not None:
        early &= booleans_of(validity)
    if early.any():
        raise ExecutionError(f"{type_name(kind)} overflow: the {unit} begins before the earliest value")
    return from_values(start * per_day, kind, validity)


def _epoch(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    column = arguments[0]
    assert isinstance(column, pa.Array)
    values = values_of(column).astype(np.int64, copy=False)
    unit = getattr(column.type, "unit", "day")
    if pa.types.is_date32(column.type):
        seconds = values * 86_400.0
    elif unit == "ns":  # through microseconds, as DuckDB
        seconds = rounded_quotient(values, 1000) / UNITS_PER_SECOND["us"]
    else:
        seconds = values / UNITS_PER_SECOND[unit]
    return from_values(seconds, kind, valid(column))


def _add_days(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    date, days = arguments
    later = np.add(operand(date), operand(days), dtype=np.int64)
    limits = np.iinfo(np.int32)
    validity = valid(date, days)
    outside = (later < limits.min) | (later > limits.max)
    if validity is not None:
        outside &= booleans_of(validity)
    if outside.any():
        raise ExecutionError(
            f"{type_name(kind)} overflow: a date {int(np.max(np.abs(later)))} days from 1970"
        )
    return from_values(later.astype(np.int32), kind, validity)


def _days_between(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    later, earlier = arguments
    return from_values(
        np.subtract(operand(later), operand(earlier), dtype=np.int64), kind, valid(later, earlier)
    )


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType(
    {
        "date_part": _date_part,
        "date_trunc": _date_trunc,
        "epoch": _epoch,
        "add_days": _add_days,
        "days_between": _days_between,
    }
)
