"""Columns of a step as numpy's arrays: few calls are for all of their rows, and no frame is made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.data_types.type_groups import HUGEINT
from bamquery.engine.operators.recursion.by_column.texts import TextCodes
from bamquery.engine.operators.recursion.by_row.values import DATE, DAYS, MOMENT, WHOLE, LeftToDeviceError

Valid: TypeAlias = NDArray[np.bool_] | None
"""Which values are not null; None: all."""


class Column(NamedTuple):
    """Values of some rows, or one (without a dimension) for all of them.

    Attributes:
        values: of dates and moments the numbers that they are compared by, of texts their codes; anything
            where null.
        valid: which are not null.
        low: of whole numbers, dates, moments and codes one that none is below; those at nulls included.
        high: one that none is above.
    """

    values: Any
    valid: Valid
    low: int = 0
    high: int = 0


Columns: TypeAlias = Sequence[Column]
ColumnFunction: TypeAlias = Callable[[Columns], Column]
MakeColumns: TypeAlias = Callable[
    [Sequence[ColumnFunction], Sequence[pa.DataType], pa.DataType], ColumnFunction | None
]
"""A call's function of those of its arguments, of their types and its own; None: it is not for arrays."""

TEXT: Final = pa.large_string()
LIMITS: Final[Mapping[pa.DataType, tuple[int, int]]] = MappingProxyType(
    {**WHOLE, HUGEINT: WHOLE[pa.int64()], **DAYS, TEXT: (0, (1 << 31) - 1)}
)
"""The least and the greatest value of types whose columns know their bounds: of HUGEINTs those of 64 bits."""
_STORED: Final[Mapping[pa.DataType, pa.DataType]] = MappingProxyType(
    {DATE: pa.int32(), MOMENT: pa.int64(), HUGEINT: pa.int64(), TEXT: pa.int32()}
)
_OTHERS: Final = (pa.bool_(), pa.float64())


def is_for_columns(kind: pa.DataType) -> bool:
    """Whether columns of a type can be such arrays."""
    return kind in LIMITS or kind in _OTHERS


def numpy_type(kind: pa.DataType) -> np.dtype[Any]:
    """What the values of such a type are."""
    return np.dtype(_STORED.get(kind, kind).to_pandas_dtype())


def with_bounds(values: Any, valid: Valid, kind: pa.DataType) -> Column:
    """The column of values, with the bounds that they have.

    Raises:
        LeftToDeviceError: a number is infinite or none, a date far from now.
    """
    if kind == pa.float64():
        return Column(require_finite(values), valid)
    if kind not in LIMITS or not values.size:
        return Column(values, valid)
    low, high = int(values.min()), int(values.max())
    if low < LIMITS[kind][0] or high > LIMITS[kind][1]:
        raise LeftToDeviceError
    return Column(values, valid, low, high)


def require_finite(values: Any) -> Any:
    """The numbers.

    Raises:
        LeftToDeviceError: one is infinite or none.
    """
    if not np.isfinite(values).all():
        raise LeftToDeviceError
    return values


def column_from_arrow(column: pa.Array[Any], texts: TextCodes) -> Column:
    """An array of such a type.

    Raises:
        LeftToDeviceError: a number is infinite, none or of more than 64 bits, a date far from now.
    """
    kind = column.type
    whole: Any = column
    valid = whole.is_valid().to_numpy(zero_copy_only=False) if whole.null_count else None
    if kind == TEXT:
        return Column(texts.codes_of(column), valid, 0, max(len(texts) - 1, 0))
    if kind == HUGEINT:
        try:
            whole = whole.cast(pa.int64())
        except pa.ArrowInvalid:
            raise LeftToDeviceError from None
    elif kind in _STORED:
        whole = whole.view(_STORED[kind])
    if valid is not None:
        whole = whole.fill_null(False if kind == pa.bool_() else 0)
    return with_bounds(whole.to_numpy(zero_copy_only=False), valid, kind)


def columns_to_arrow(columns: Sequence[Column], kind: pa.DataType, texts: TextCodes) -> pa.Array[Any]:
    """The values of one or more columns of some rows, one column's after the other's."""
    values = np.concatenate([column.values for column in columns])
    mask = None
    if any(column.valid is not None for column in columns):
        mask = ~np.concatenate([present(column) for column in columns])
    if kind == TEXT:
        return texts.to_arrow(values, mask)
    stored = _STORED.get(kind, kind)
    array: Any = pa.array(values, stored, mask=mask)
    if kind == HUGEINT:
        array = array.cast(kind)
    elif kind in _STORED:
        array = array.view(kind)
    found: pa.Array[Any] = array
    return found


def both(one: Valid, other: Valid) -> Valid:
    """Where neither of two is null."""
    if one is None:
        return other
    return one if other is None else one & other


def present(column: Column) -> NDArray[np.bool_]:
    """Which values of some rows are not null."""
    return np.ones(len(column.values), np.bool_) if column.valid is None else column.valid


def true_rows(column: Column) -> NDArray[np.bool_]:
    """Which truth values are true, and not null."""
    found: NDArray[np.bool_] = column.values if column.valid is None else column.values & column.valid
    return found


def keep(column: Column, rows: NDArray[Any]) -> Column:
    """Those rows, by truth values or by places."""
    valid = None if column.valid is None else column.valid[rows]
    return Column(column.values[rows], valid, column.low, column.high)


def spread(column: Column, rows: int) -> Column:
    """The column with a value of its own for each row."""
    values, valid = column.values, column.valid
    if values.ndim and (valid is None or valid.ndim):
        return column
    if not values.ndim:
        values = np.full(rows, values)
    if valid is not None and not valid.ndim:
        valid = np.full(rows, valid)
    return Column(values, valid, column.low, column.high)
