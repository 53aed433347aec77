"""sum and avg: exact for integers and decimals, in doubles for floats.

Exact sums are kept as limbs of 32 bits in 64-bit integers, so that adding up to 2**31 of them cannot
overflow before the carries are passed on.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery import _native as native
from bamquery.data_types.names import type_name
from bamquery.engine.cpu.aggregates.accumulator import (
    Accumulator,
    Codes,
    Gathered,
    StateColumns,
    count_by_group,
    count_values,
    drop_nulls,
    groups_with_rows,
    native_codes,
    sum_by_group,
)
from bamquery.engine.cpu.kernels import (
    Column,
    boolean_column,
    from_buffer,
    from_values,
    stored_values,
    validity,
)
from bamquery.engine.cpu.numeric import decimals
from bamquery.engine.cpu.numeric.small_decimals import known_small_values
from bamquery.engine.pipeline.instructions import AggregateKind
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import AggregateCall
from bamquery.statement_context.cancellation import check_cancelled

_LIMB = 0xFFFFFFFF

Limbs = tuple[NDArray[np.int64], ...]

_DECIMAL_LIMBS: Final = 5
"""Of sums of decimals, in however many bits these are."""


class FloatSum(Accumulator):
    """Sum of floats in doubles, row by row; null where there are none."""

    scans = (np.add, np.logical_or)

    def partial(self, column: Column, codes: Codes, groups: int) -> StateColumns:
        """Sum, and whether there was a value."""
        column, codes = drop_nulls(column, codes)
        sums = _sum_in_order(stored_values(column), codes, groups)
        return (sums, groups_with_rows(codes, groups))

    def from_average(self, state: StateColumns) -> StateColumns | None:
        """The count tells whether there was a value."""
        *sums, counts = (np.asarray(column) for column in state)
        return (*sums, counts > 0)

    def program_kind(self, call: AggregateCall) -> AggregateKind | None:
        """Doubles in the rows' order."""
        return AggregateKind.SUM_DOUBLES

    def from_program(self, kind: pa.DataType, gathered: Gathered) -> StateColumns:
        """Sum, and whether there was a value."""
        return (gathered.values.view(np.float64), gathered.counts > 0)

    def merge(self, state: StateColumns, codes: Codes, groups: int) -> StateColumns:
        """The sums."""
        sums, seen = (np.asarray(column) for column in state)
        with np.errstate(all="ignore"):
            return (sum_by_group(codes, sums, groups), groups_with_rows(codes[seen], groups))

    def final(self, state: StateColumns) -> Column:
        """The sums."""
        sums, seen = (np.asarray(column) for column in state)
        return from_values(sums, pa.float64(), boolean_column(seen))


class FloatAverage(Accumulator):
    """Mean of floats: sum / count in doubles."""

    scans = (np.add, np.add)

    def partial(self, column: Column, codes: Codes, groups: int) -> StateColumns:
        """Sum and count."""
        column, codes = drop_nulls(column, codes)
        sums = _sum_in_order(stored_values(column), codes, groups)
        return (sums, count_by_group(codes, groups))

    def program_kind(self, call: AggregateCall) -> AggregateKind | None:
        """Doubles in the rows' order."""
        return AggregateKind.SUM_DOUBLES

    def from_program(self, kind: pa.DataType, gathered: Gathered) -> StateColumns:
        """Sum and count."""
        return (gathered.values.view(np.float64), gathered.counts)

    def merge(self, state: StateColumns, codes: Codes, groups: int) -> StateColumns:
        """The sums of both."""
        with np.errstate(all="ignore"):
            return tuple(sum_by_group(codes, np.asarray(column), groups) for column in state)

    def final(self, state: StateColumns) -> Column:
        """Null where the count is 0."""
        sums, counts = (np.asarray(column) for column in state)
        return _quotient(sums, counts)


class ExactSum(Accumulator):
    """Sum of integers or decimals in decimal128 with 38 digits; null where there are none."""

    exact = True

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind

    def partial(self, column: Column, codes: Codes, groups: int) -> StateColumns:
        """Limbs, and whether there was a value."""
        return (*_sum_limbs(column, codes, groups), count_values(column, codes, groups) > 0)

    def from_average(self, state: StateColumns) -> StateColumns | None:
        """The count tells whether there was a value."""
        *sums, counts = (np.asarray(column) for column in state)
        return (*sums, counts > 0)

    def program_kind(self, call: AggregateCall) -> AggregateKind | None:
        """Whole numbers."""
        return AggregateKind.SUM

    def from_program(self, kind: pa.DataType, gathered: Gathered) -> StateColumns:
        """Limbs, and whether there was a value."""
        assert gathered.sums is not None
        return (*_limbs_of_words(gathered.sums, kind), gathered.counts > 0)

    def merge(self, state: StateColumns, codes: Codes, groups: int) -> StateColumns:
        """The sums."""
        *limbs, seen = (np.asarray(column) for column in state)
        return (*_merge_limbs(limbs, codes, groups), groups_with_rows(codes[seen], groups))

    def final(self, state: StateColumns) -> Column:
        """The sums.

        Raises:
            ExecutionError: one has more than 38 digits.
        """
        *limbs, seen = (np.asarray(column) for column in state)
        return _assemble(limbs, self._kind, boolean_column(seen))


class ExactAverage(Accumulator):
    """Mean of integers or decimals: the exact sum / count in double."""

    exact = True

    def __init__(self, scale: int) -> None:
        self._scale = scale

    def partial(self, column: Column, codes: Codes, groups: int) -> StateColumns:
        """Limbs and count."""
        return (*_sum_limbs(column, codes, groups), count_values(column, codes, groups))

    def program_kind(self, call: AggregateCall) -> AggregateKind | None:
        """Whole numbers."""
        return AggregateKind.SUM

    def from_program(self, kind: pa.DataType, gathered: Gathered) -> StateColumns:
        """Limbs and count."""
        assert gathered.sums is not None
        return (*_limbs_of_words(gathered.sums, kind), gathered.counts)

    def merge(self, state: StateColumns, codes: Codes, groups: int) -> StateColumns:
        """The sums of both."""
        *limbs, counts = (np.asarray(column) for column in state)
        return (*_merge_limbs(limbs, codes, groups), sum_by_group(codes, counts, groups))

    def final(self, state: StateColumns) -> Column:
        """Null where the count is 0."""
        *limbs, counts = (np.asarray(column) for column in state)
        total: NDArray[Any] = np.zeros(len(counts), np.longdouble)
        for limb in reversed(limbs):
            total = total * 2.0**32 + limb
        return _quotient(total / np.longdouble(10) ** self._scale, counts)


def _sum_in_order(values: NDArray[Any], codes: Codes, groups: int) -> NDArray[np.float64]:
    return native.sum_doubles(_own_codes(codes, groups), np.asarray(values, np.float64), groups)


def _own_codes(codes: Codes, groups: int) -> Codes | None:
    """As C++ takes them: none for one group."""
    return None if groups == 1 else native_codes(codes)


def _quotient(sums: NDArray[Any], counts: NDArray[np.int64]) -> Column:
    with np.errstate(all="ignore"):
        means = (sums / counts).astype(np.float64)
    return from_values(means, pa.float64(), boolean_column(counts > 0))


def _sum_limbs(column: Column, codes: Codes, groups: int) -> Limbs:
    check_cancelled()
    own_codes = _own_codes(codes, groups)
    if not pa.types.is_decimal(column.type):
        return native.sum_limbs(own_codes, stored_values(column), *validity(column), groups)
    values = known_small_values(column)
    if values is None:
        values = decimals.decimal_words(column)
    return native.sum_limbs(own_codes, values, *validity(column), groups, _DECIMAL_LIMBS)


def _limbs_of_words(words: NDArray[np.int64], kind: pa.DataType) -> Limbs:
    """Sums in 128 bits as the limbs that `_sum_limbs` makes of a column of the type."""
    low, high = words[:, 0], words[:, 1]
    first, second = low & _LIMB, (low >> 32) & _LIMB
    width = kind.bit_width
    if width < 64:
        return first, second | high << 32
    if width == 64:
        return first, second, high
    return first, second, high & _LIMB, (high >> 32) & _LIMB, high >> 63


def _merge_limbs(limbs: list[NDArray[np.int64]], codes: Codes, groups: int) -> Limbs:
    check_cancelled()
    return native.merge_limbs(_own_codes(codes, groups), limbs, groups)


def _assemble(limbs: list[NDArray[np.int64]], kind: pa.DataType, known: Column) -> Column:
    words, fits = native.join_limbs(limbs)
    if not fits:
        raise ExecutionError(f"{type_name(kind)} overflow: a sum has more than 38 digits")
    return from_buffer(pa.py_buffer(words.data), len(words), kind, known)
