"""Columns as the whole numbers that C++ groups, joins and hashes by."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.kernels import (
    Column,
    any_true,
    boolean_values,
    compute,
    constant,
    from_values,
    stored_values,
    valid_rows,
    validity,
    where,
)
from bamquery.engine.cpu.numeric.decimals import decimal_words

KeyWords: TypeAlias = "tuple[NDArray[Any], pa.Buffer | None, int]"
"""Values (of 128 bits two words a row), the bitmap of those that are not null (None: all), its first bit."""


def key_words(column: Column) -> KeyWords | None:
    """Numbers that are equal where the values are; None for types that have none of up to 128 bits.

    Floats are those of `canonical`: their bits.
    """
    kind: Any = column.type
    values: NDArray[Any]
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        values = stored_values(column)
    elif pa.types.is_floating(kind):
        values = stored_values(column).view(f"u{kind.bit_width // 8}")
    elif pa.types.is_boolean(kind):
        values = boolean_values(column).view(np.uint8)
    elif pa.types.is_decimal128(kind):
        values = decimal_words(column)
    else:
        return None
    return (values, *validity(column))


def canonical(column: Column) -> Column:
    """The column with one NaN and one zero for all, so that equal keys have equal bits."""
    if not pa.types.is_floating(column.type):
        return column
    unsigned = from_values(stored_values(column) + 0.0, column.type, valid_rows(column))
    not_a_number = compute("is_nan", unsigned)
    if not any_true(not_a_number):
        return unsigned
    return where(not_a_number, constant(float("nan"), column.type), unsigned)
