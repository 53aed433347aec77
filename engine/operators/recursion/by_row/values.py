"""Values of columns as Python's: of dates and moments the numbers that they are compared by."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import pyarrow as pa

from bamquery.data_types.type_groups import HUGEINT

Row: TypeAlias = tuple[Any, ...]
RowFunction: TypeAlias = Callable[[Row], Any]

MOST_CHARACTERS: Final = 1024
"""Of a text: longer ones are for a device, which knows how much memory they take."""
DATE: Final = pa.date32()
MOMENT: Final = pa.timestamp("us")
DAY: Final = 86_400 * 10**6
"""Microseconds."""

_SIGNED: Final = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_UNSIGNED: Final = (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
WHOLE: Final[Mapping[pa.DataType, tuple[int, int]]] = MappingProxyType(
    {
        **{kind: (-(1 << kind.bit_width - 1), (1 << kind.bit_width - 1) - 1) for kind in _SIGNED},
        **{kind: (0, (1 << kind.bit_width) - 1) for kind in _UNSIGNED},
        HUGEINT: (1 - 10**38, 10**38 - 1),
    }
)
"""Whole numbers, and their least and greatest one."""
_FIRST_DAY: Final = -719_162
_LAST_DAY: Final = 2_932_896
DAYS: Final[Mapping[pa.DataType, tuple[int, int]]] = MappingProxyType(
    {DATE: (_FIRST_DAY, _LAST_DAY), MOMENT: (_FIRST_DAY * DAY, _LAST_DAY * DAY)}
)
"""Dates by days, moments by microseconds from 1970, in the years that Python's calendar has."""
_OTHERS: Final = (pa.bool_(), pa.float64(), pa.large_string())


class LeftToDeviceError(Exception):
    """These rows are not for Python: a device computes them, or says what is wrong with them."""


def is_for_rows(kind: pa.DataType) -> bool:
    """Whether columns of a type can be Python values."""
    return kind in WHOLE or kind in DAYS or kind in _OTHERS


def rows_of(columns: Sequence[Any], count: int) -> list[Row]:
    """So many rows of some columns of such types.

    Raises:
        LeftToDeviceError: a text is long, a number infinite or none, a date far from now.
    """
    return list(zip(*map(_values, columns), strict=True)) if columns else [()] * count


def value_of(scalar: Any) -> Any:
    """A constant of such a type.

    Raises:
        LeftToDeviceError: it is a long text, a number infinite or none, or a date far from now.
    """
    kind = scalar.type
    value = scalar.value if kind in DAYS else scalar.as_py()
    if value is None:
        return None
    if kind in DAYS:
        return _require_day(value, kind)
    if isinstance(value, str):
        return short(value)
    if isinstance(value, float):
        return finite(value)
    return int(value) if kind == HUGEINT else value


def column_of(values: Iterable[Any], kind: pa.DataType) -> pa.Array[Any]:
    """The column of some values."""
    if kind == DATE:
        return pa.array(values, pa.int32()).view(kind)
    if kind == MOMENT:
        return pa.array(values, pa.int64()).view(kind)
    return pa.array(values, kind)


def _values(column: Any) -> list[Any]:
    kind = column.type
    if kind in DAYS:
        found: list[Any] = column.view(pa.int32() if kind == DATE else pa.int64()).to_pylist()
        for value in found:
            if value is not None:
                _require_day(value, kind)
        return found
    found = column.to_pylist()
    if kind == HUGEINT:
        return [None if value is None else int(value) for value in found]
    for value in found:
        if isinstance(value, str):
            short(value)
        elif isinstance(value, float):
            finite(value)
    return found


def _require_day(value: int, kind: pa.DataType) -> int:
    low, high = DAYS[kind]
    if not low <= value <= high:
        raise LeftToDeviceError
    return value


def short(value: str) -> str:
    """The text.

    Raises:
        LeftToDeviceError: it is long.
    """
    if len(value) > MOST_CHARACTERS:
        raise LeftToDeviceError
    return value


def finite(value: float) -> float:
    """The number.

    Raises:
        LeftToDeviceError: it is infinite or none.
    """
    if not math.isfinite(value):
        raise LeftToDeviceError
    return value


def strict_unary(compute: Callable[[Any], Any], argument: RowFunction) -> RowFunction:
    """What is null of null."""

    def function(row: Row) -> Any:
        value = argument(row)
        return None if value is None else compute(value)

    return function


def strict_binary(compute: Callable[[Any, Any], Any], arguments: Sequence[RowFunction]) -> RowFunction:
    """What is null where one of two is."""
    left, right = arguments

    def function(row: Row) -> Any:
        one = left(row)
        if one is None:
            return None
        other = right(row)
        return None if other is None else compute(one, other)

    return function


def check_bounds(bounds: tuple[int, int], argument: RowFunction) -> RowFunction:
    """The number; beyond the bounds it is left to a device."""
    low, high = bounds

    def function(row: Row) -> Any:
        value = argument(row)
        if value is None or low <= value <= high:
            return value
        raise LeftToDeviceError

    return function
