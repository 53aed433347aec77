"""Python values of one place of a statement as Arrow columns."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

_NULLS: Final = ("NaTType", "NAType")  # of pandas, which need not be there
_KINDS: Final[Mapping[type[Any], str]] = MappingProxyType(
    {
        type(None): "",
        bool: "boolean",
        int: "integer",
        float: "float",
        str: "text",
        bytes: "bytes",
        bytearray: "bytes",
        Decimal: "decimal",
        datetime.datetime: "timestamp",
        datetime.date: "date",
        datetime.time: "time",
    }
)
"""Of a value's exact type; "" is NULL."""


def value_columns(values: Sequence[Any]) -> list[pa.Array[Any]] | None:
    """A column for each kind of value that there is, null where a value is of another kind.

    They have the types that the same values would have as constants of a statement, but for integers,
    which are BIGINT, or HUGEINT where one does not fit. None: there are values of other kinds, or some that
    no type holds.
    """
    kinds = [_KINDS.get(type(value)) for value in values]
    if None in kinds:
        values = list(map(_to_python_value, values))
        kinds = [_kind(value) for value in values]
    different = sorted({kind for kind in kinds if kind})
    if None in kinds:
        return None
    columns = []
    for kind in different:
        of_kind = [value if own == kind else None for value, own in zip(values, kinds, strict=True)]
        try:
            columns.append(_ARRAYS[kind](of_kind if len(different) > 1 or "" in kinds else values))
        except (pa.ArrowException, ValueError, OverflowError):
            return None
    return columns


def _to_python_value(value: Any) -> Any:
    """Python's own value in place of numpy's and of pandas' nulls."""
    if type(value).__name__ in _NULLS:
        return None
    if type(value).__module__ != "numpy" or getattr(value, "shape", None) != ():
        return value
    return value.item() if value.dtype.kind in "biufU" else value


def _kind(value: Any) -> str | None:
    if type(value).__name__ == "Timestamp" and not getattr(value, "nanosecond", 0):
        return "timestamp"  # pandas', as fine as Python's
    return _KINDS.get(type(value))


def _integers(values: Sequence[Any]) -> pa.Array[Any]:
    try:
        return pa.array(values, pa.int64())
    except OverflowError:
        huge = [None if value is None else Decimal(value) for value in values]
        return pa.array(huge, pa.decimal128(38, 0))


def _decimals(values: Sequence[Any]) -> pa.Array[Any]:
    column: pa.Array[Any] = pa.array(values)
    if not pa.types.is_decimal128(column.type):
        raise ValueError("more digits than a DECIMAL has")
    if column.type.scale < 0:
        return pc.cast(column, pa.decimal128(min(column.type.precision - column.type.scale, 38), 0))
    return column


def _timestamps(values: Sequence[Any]) -> pa.Array[Any]:
    zoned = {value.tzinfo is not None for value in values if value is not None}
    if len(zoned) > 1:
        raise ValueError("timestamps with and without a zone")
    return pa.array(values, pa.timestamp("us", "UTC" if True in zoned else None))


def _times(values: Sequence[Any]) -> pa.Array[Any]:
    if any(value is not None and value.tzinfo is not None for value in values):
        raise ValueError("times with a zone")
    return pa.array(values, pa.time64("us"))


def _array_of_type(kind: pa.DataType) -> Callable[[Sequence[Any]], pa.Array[Any]]:
    return lambda values: pa.array(values, kind)


_ARRAYS: Final[Mapping[str, Callable[[Sequence[Any]], pa.Array[Any]]]] = MappingProxyType(
    {
        "boolean": _array_of_type(pa.bool_()),
        "integer": _integers,
        "float": _array_of_type(pa.float64()),
        "text": _array_of_type(pa.large_string()),
        "bytes": _array_of_type(pa.large_binary()),
        "decimal": _decimals,
        "timestamp": _timestamps,
        "date": _array_of_type(pa.date32()),
        "time": _times,
    }
)
