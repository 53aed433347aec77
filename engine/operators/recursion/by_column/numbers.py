"""Arithmetic and casts of numbers, dates and moments as functions of numpy's arrays.

Whole numbers know their bounds, so that whether a sum can leave its type is known without a look at each;
they are looked at where the bounds are too wide.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from bamquery.data_types.type_groups import HUGEINT, is_interval
from bamquery.engine.operators.recursion.by_column.values import (
    LIMITS,
    Column,
    ColumnFunction,
    Columns,
    MakeColumns,
    Valid,
    both,
    numpy_type,
    require_finite,
    with_bounds,
)
from bamquery.engine.operators.recursion.by_row.values import DATE, DAY, MOMENT, WHOLE, LeftToDeviceError
from bamquery.plan.expressions import Literal

_Bounds: TypeAlias = tuple[int, int] | None


def _whole(compute: Callable[..., Any], reach: Callable[..., _Bounds]) -> MakeColumns:
    """Whole numbers, dates or moments of such, where the result's bounds fit its type.

    `reach`: those bounds, of those of the arguments; None: there may be none.
    """

    def make(
        functions: Sequence[ColumnFunction], kinds: Sequence[pa.DataType], kind: pa.DataType
    ) -> ColumnFunction | None:
        if kind not in LIMITS:
            return None
        least, most = LIMITS[kind]
        stored = numpy_type(kind)
        is_stored = all(numpy_type(each) == stored for each in kinds)

        def function(columns: Columns) -> Column:
            found = [argument(columns) for argument in functions]
            bounds = reach(*found)
            if bounds is None or bounds[0] < least or bounds[1] > most:
                bounds = reach(
                    *[with_bounds(c.values, c.valid, k) for c, k in zip(found, kinds, strict=True)]
                )
                if bounds is None or bounds[0] < least or bounds[1] > most:
                    raise LeftToDeviceError
            values = compute(*[column.values for column in found])
            return Column(values if is_stored else values.astype(stored), _valid(found), *bounds)

        return function

    return make


def alike(make: MakeColumns) -> MakeColumns:
    """Where arguments and result are of one type."""
    return lambda functions, kinds, kind: (
        make(functions, kinds, kind) if all(each == kind for each in kinds) else None
    )


def _real(compute: Callable[..., Any]) -> MakeColumns:
    """Of DOUBLEs one, where it is finite."""

    def make(
        functions: Sequence[ColumnFunction], kinds: Sequence[pa.DataType], kind: pa.DataType
    ) -> ColumnFunction | None:
        def function(columns: Columns) -> Column:
            found = [argument(columns) for argument in functions]
            with np.errstate(all="ignore"):
                values = compute(*[column.values for column in found])
            return Column(require_finite(values), _valid(found))

        return function if all(each == pa.float64() for each in [*kinds, kind]) else None

    return make


def _number(compute: Callable[..., Any], reach: Callable[..., _Bounds]) -> MakeColumns:
    """Whole numbers or DOUBLEs."""
    of_whole, of_reals = alike(_whole(compute, reach)), _real(compute)
    return lambda functions, kinds, kind: (of_reals if kind == pa.float64() else of_whole)(
        functions, kinds, kind
    )


def _valid(columns: Columns) -> Valid:
    """Where neither of one or two is null."""
    valid = columns[-1].valid
    return valid if len(columns) == 1 else both(columns[0].valid, valid)


def cast(
    functions: Sequence[ColumnFunction], kinds: Sequence[pa.DataType], kind: pa.DataType
) -> ColumnFunction | None:
    """Whole numbers to other numbers, dates to moments and back."""
    (own,) = kinds
    if own in WHOLE and own != HUGEINT and kind == pa.float64():
        (argument,) = functions

        def to_double(columns: Columns) -> Column:
            column = argument(columns)
            return Column(column.values.astype(np.float64), column.valid)

        return to_double
    make = None
    if own in WHOLE and kind in WHOLE:
        make = _whole(lambda values: values, lambda one: (one.low, one.high))
    elif (own, kind) == (DATE, MOMENT):
        make = _whole(lambda days: days.astype(np.int64) * DAY, lambda one: (one.low * DAY, one.high * DAY))
    elif (own, kind) == (MOMENT, DATE):
        make = _whole(lambda moments: moments // DAY, lambda one: (one.low // DAY, one.high // DAY))
    return None if make is None else make(functions, kinds, kind)


def move_moments(span: Literal, sign: int) -> MakeColumns:
    """Moments moved by an INTERVAL of days and less that is the same for all rows."""
    found = span.value.as_py() if is_interval(span.type) else None
    if found is None or found.months:
        return lambda functions, kinds, kind: None
    rest = sign * (found.days * DAY + found.nanoseconds // 1000)
    move = alike(_whole(lambda moments: moments + rest, lambda one: (one.low + rest, one.high + rest)))
    return lambda functions, kinds, kind: move(functions, kinds, kind) if kind == MOMENT else None


def _sum(one: Column, other: Column) -> _Bounds:
    return one.low + other.low, one.high + other.high


def _difference(one: Column, other: Column) -> _Bounds:
    return one.low - other.high, one.high - other.low


def _opposite(one: Column) -> _Bounds:
    return -one.high, -one.low


def _product(one: Column, other: Column) -> _Bounds:
    corners = [a * b for a in (one.low, one.high) for b in (other.low, other.high)]
    return min(corners), max(corners)


def _magnitude(one: Column) -> _Bounds:
    return max(one.low, -one.high, 0), max(one.high, -one.low)


def _quotient(one: Column, other: Column) -> _Bounds:
    """Of numbers that are not below zero: numpy rounds other quotients down, and SQL towards zero."""
    return None if one.low < 0 or other.low <= 0 else (one.low // other.high, one.high // other.low)


def _remainder(one: Column, other: Column) -> _Bounds:
    if other.low <= 0:
        return None
    return -min(max(-one.low, 0), other.high - 1), min(max(one.high, 0), other.high - 1)


NUMBER_CALLS: Final[Mapping[str, MakeColumns]] = MappingProxyType(
    {
        "add": _number(operator.add, _sum),
        "subtract": _number(operator.sub, _difference),
        "multiply": _number(operator.mul, _product),
        "negate": _number(operator.neg, _opposite),
        "abs": _number(np.abs, _magnitude),
        "divide": _real(operator.truediv),
        "floor_divide": alike(_whole(operator.floordiv, _quotient)),
        "modulo": alike(_whole(np.fmod, _remainder)),
        "sqrt": _real(np.sqrt),
        "floor": _real(np.floor),
        "ceil": _real(np.ceil),
        "add_days": _whole(operator.add, _sum),
        "days_between": _whole(operator.sub, _difference),
    }
)
