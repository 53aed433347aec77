"""product, bit_and, bit_or and bit_xor: what one numpy function folds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.aggregates.accumulator import (
    Accumulator,
    Codes,
    StateColumns,
    drop_nulls,
    groups_with_rows,
)
from bamquery.engine.cpu.kernels import Column, boolean_column, from_values, stored_values


class PairwiseReduction(Accumulator):
    """Values joined two by two; null where there are none.

    Args:
        function: associative, and without regard to order.
        start: what changes no value.
        kind: of the values and the result.
    """

    def __init__(self, function: Any, start: float, kind: pa.DataType) -> None:
        self._function = function
        self._start = start
        self._kind = kind

    def partial(self, column: Column, codes: Codes, groups: int) -> StateColumns:
        """The joined values, and whether there was one."""
        column, codes = drop_nulls(column, codes)
        return self._reduce_groups(stored_values(column), codes, groups)

    def merge(self, state: StateColumns, codes: Codes, groups: int) -> StateColumns:
        """The same of the states that have a value."""
        values, seen = (np.asarray(column) for column in state)
        return self._reduce_groups(values[seen], codes[seen], groups)

    def final(self, state: StateColumns) -> Column:
        """Null where there was no value."""
        values, seen = (np.asarray(column) for column in state)
        return from_values(values, self._kind, boolean_column(seen))

    def _reduce_groups(self, values: NDArray[Any], codes: Codes, groups: int) -> StateColumns:
        folded = np.full(groups, self._start, values.dtype)
        with np.errstate(all="ignore"):
            self._function.at(folded, codes, values)
        return (folded, groups_with_rows(codes, groups))


def bit_and(kind: pa.DataType) -> Accumulator:
    """The bits that all have."""
    return PairwiseReduction(
        np.bitwise_and, -1 if pa.types.is_signed_integer(kind) else (1 << kind.bit_width) - 1, kind
    )


def bit_or(kind: pa.DataType) -> Accumulator:
    """The bits that any has."""
    return PairwiseReduction(np.bitwise_or, 0, kind)


def bit_xor(kind: pa.DataType) -> Accumulator:
    """The bits that an odd number of values has."""
    return PairwiseReduction(np.bitwise_xor, 0, kind)


def product() -> Accumulator:
    """Of doubles."""
    return PairwiseReduction(np.multiply, 1.0, pa.float64())
