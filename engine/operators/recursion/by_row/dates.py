"""Functions of dates and moments as functions of one row."""

from __future__ import annotations

import operator
from calendar import monthrange
from collections.abc import Callable, Mapping, Sequence
from datetime import MAXYEAR, MINYEAR, date
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from bamquery.data_types.type_groups import is_interval
from bamquery.engine.operators.recursion.by_row.values import (
    DATE,
    DAY,
    DAYS,
    MOMENT,
    LeftToDeviceError,
    RowFunction,
    check_bounds,
    strict_binary,
    strict_unary,
)
from bamquery.plan.expressions import Expression, Literal

_1970: Final = date(1970, 1, 1).toordinal()
_PARTS: Final[Mapping[str, Callable[[date], int]]] = MappingProxyType(
    {
        "year": lambda day: day.year,
        "quarter": lambda day: (day.month + 2) // 3,
        "month": lambda day: day.month,
        "day": lambda day: day.day,
        "dayofweek": lambda day: day.isoweekday() % 7,
        "isodow": date.isoweekday,
        "dayofyear": lambda day: day.timetuple().tm_yday,
    }
)


def cast_days(function: RowFunction, own: pa.DataType, kind: pa.DataType) -> RowFunction | None:
    """A date as the moment that it begins at, a moment as the day that it is in."""
    if (own, kind) == (DATE, MOMENT):
        return strict_unary(lambda days: days * DAY, function)
    return strict_unary(lambda moment: moment // DAY, function) if (own, kind) == (MOMENT, DATE) else None


def move_moment(function: RowFunction, own: pa.DataType, span: Expression, sign: int) -> RowFunction | None:
    """A moment and an INTERVAL that is the same for all rows."""
    if own != MOMENT or not isinstance(span, Literal) or not is_interval(span.type):
        return None
    found = span.value.as_py()
    if found is None:
        return lambda row: None
    rest = sign * (found.days * DAY + found.nanoseconds // 1000)
    months = sign * found.months
    bounds = DAYS[MOMENT]
    if not months:
        return check_bounds(bounds, strict_unary(lambda moment: moment + rest, function))
    return check_bounds(bounds, strict_unary(lambda moment: _later(moment, months) + rest, function))


def add_days(
    functions: Sequence[RowFunction], kinds: Sequence[pa.DataType], kind: pa.DataType
) -> RowFunction | None:
    """A date and a number of days."""
    return (
        check_bounds(DAYS[DATE], strict_binary(operator.add, functions)) if kinds[0] == kind == DATE else None
    )


def days_between(
    functions: Sequence[RowFunction], kinds: Sequence[pa.DataType], kind: pa.DataType
) -> RowFunction | None:
    """Days from the second date to the first."""
    return strict_binary(operator.sub, functions) if kinds[0] == kinds[1] == DATE else None


def part(unit: Expression, function: RowFunction, own: pa.DataType) -> RowFunction | None:
    """A part of a date's name, of those that the day says."""
    if own not in DAYS or not isinstance(unit, Literal):
        return None
    compute = _PARTS.get(unit.value.as_py())
    if compute is None:
        return None
    unit_days = 1 if own == DATE else DAY
    return strict_unary(lambda value: compute(date.fromordinal(value // unit_days + _1970)), function)


def _later(moment: int, months: int) -> int:
    """So many months later; a month that is too short gives its last day."""
    days, rest = divmod(moment, DAY)
    day = date.fromordinal(days + _1970)
    year, month = divmod(12 * day.year + day.month - 1 + months, 12)
    if not MINYEAR <= year <= MAXYEAR:
        raise LeftToDeviceError
    last = monthrange(year, month + 1)[1]
    return (date(year, month + 1, min(day.day, last)).toordinal() - _1970) * DAY + rest


SIGNS: Final[Mapping[str, int]] = MappingProxyType({"add_interval": 1, "subtract_interval": -1})
"""Of the functions that move a moment."""
DATE_CALLS: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {"add_days": add_days, "days_between": days_between}
)
