"""sum and avg: exact for integers and decimals, in doubles for floats.

Exact sums are kept as limbs of 32 bits in 64-bit integers, so that adding up to 2**31 of them cannot
overflow before the carries are passed on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.data_types.names import type_name
from bamquery.engine.cpu.aggregates.accumulator import (
    Accumulator,
    Codes,
    StateColumns,
    count_by_group,
    drop_nulls,
    groups_with_rows,
    sum_by_group,
)
from bamquery.engine.cpu.kernels import (
    Column,
    boolean_column,
    from_buffer,
    from_values,
    stored_values,
)
from bamquery.engine.cpu.numeric import decimals
from bamquery.engine.cpu.numeric.small_decimals import small_values
from bamquery.engine.pipeline.instructions import AggregateKind
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import AggregateCall

_LIMB = 0xFFFFFFFF
_WORDS_OF_LIMIT = divmod(10**38, 2**64)
_WORDS_OF_LEAST = divmod(-(10**38), 2**64)

Limbs = tuple[NDArray[np.int64], ...]


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

    def from_program(
        self,
        kind: pa.DataType,
        counts: NDArray[np.int64],
        values: NDArray[np.int64],
        sums: NDArray[np.int64] | None,
    ) -> StateColumns:
        """Sum, and whether there was a value."""
        return (values.view(np.float64), counts > 0)

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

    def from_program(
        self,
        kind: pa.DataType,
        counts: NDArray[np.int64],
        values: NDArray[np.int64],
        sums: NDArray[np.int64] | None,
    ) -> StateColumns:
        """Sum and count."""
        return (values.view(np.float64), counts)

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
        column, codes = drop_nulls(column, codes)
        return (*_sum_limbs(column, codes, groups), groups_with_rows(codes, groups))

    def from_average(self, state: StateColumns) -> StateColumns | None:
        """The count tells whether there was a value."""
        *sums, counts = (np.asarray(column) for column in state)
        return (*sums, counts > 0)

    def program_kind(self, call: AggregateCall) -> AggregateKind | None:
        """Whole numbers."""
        return AggregateKind.SUM

    def from_program(
        self,
        kind: pa.DataType,
        counts: NDArray[np.int64],
        values: NDArray[np.int64],
        sums: NDArray[np.int64] | None,
    ) -> StateColumns:
        """Limbs, and whether there was a value."""
        assert sums is not None
        return (*_limbs_of_words(sums, kind), counts > 0)

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
        column, codes = drop_nulls(column, codes)
        return (*_sum_limbs(column, codes, groups), count_by_group(codes, groups))

    def program_kind(self, call: AggregateCall) -> AggregateKind | None:
        """Whole numbers."""
        return AggregateKind.SUM

    def from_program(
        self,
        kind: pa.DataType,
        counts: NDArray[np.int64],
        values: NDArray[np.int64],
        sums: NDArray[np.int64] | None,
    ) -> StateColumns:
        """Limbs and count."""
        assert sums is not None
        return (*_limbs_of_words(sums, kind), counts)

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


def _sum_in_order(values: NDArray[Any], codes: Codes, groups: int) -> NDArray[Any]:
    with np.errstate(all="ignore"):
        return np.asarray(np.bincount(codes, values, groups), np.float64)  # of nothing they are integers


def _quotient(sums: NDArray[Any], counts: NDArray[np.int64]) -> Column:
    with np.errstate(all="ignore"):
        means = (sums / counts).astype(np.float64)
    return from_values(means, pa.float64(), boolean_column(counts > 0))


def _as_int64(column: Column) -> NDArray[np.int64] | None:
    """Values that add up in 64 bits, whichever of them do; None if they may not."""
    if pa.types.is_decimal(column.type):
        found = small_values(column)
        return found[0] if found is not None and found[1] * len(column) < 2**63 else None
    values = stored_values(column)
    if len(values) and max(int(values.max()), -int(values.min())) * len(values) >= 2**63:
        return None
    return values.astype(np.int64, copy=False)


def _split_limbs(column: Column) -> list[NDArray[np.int64]]:
    """Values as limbs, the lowest first, the highest with the sign."""
    if pa.types.is_decimal(column.type):
        words = decimals.decimal_words(column)
        return [*_halves(words[:, 0].view(np.uint64)), *_halves(words[:, 1])]
    values = stored_values(column)
    if values.dtype.itemsize < 8:
        return [values.astype(np.int64)]
    return _halves(values)


def _halves(words: NDArray[Any]) -> list[NDArray[np.int64]]:
    mask, shift = words.dtype.type(_LIMB), words.dtype.type(32)
    return [(words & mask).astype(np.int64), (words >> shift).astype(np.int64)]


def _sum_limbs(column: Column, codes: Codes, groups: int) -> Limbs:
    values = _as_int64(column)
    if values is None:
        sums = [sum_by_group(codes, limb, groups) for limb in _split_limbs(column)]
    else:
        total = sum_by_group(codes, values, groups)
        # As many limbs as `_split_limbs` makes: states of one aggregate are alike.
        sums = [total & _LIMB, total >> 32, *(np.zeros(groups, np.int64) for _ in range(2))]
        width = column.type.bit_width
        if width < 128:
            sums = sums[:2] if width == 64 else [total]
    return _carry_limbs([*sums, np.zeros(groups, np.int64)])


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
    return _carry_limbs([sum_by_group(codes, limb, groups) for limb in limbs])


def _carry_limbs(limbs: list[NDArray[np.int64]]) -> Limbs:
    """The same numbers with all limbs but the highest within 32 bits."""
    for low in range(len(limbs) - 1):
        limbs[low + 1] = limbs[low + 1] + (limbs[low] >> 32)
        limbs[low] = limbs[low] & _LIMB
    return tuple(limbs)


def _assemble(limbs: list[NDArray[np.int64]], kind: pa.DataType, validity: Column) -> Column:
    groups = len(limbs[0])
    padding = [np.zeros(groups, np.int64) for _ in range(5 - len(limbs))]
    low0, low1, high0, high1, sign = _carry_limbs([*limbs, *padding])
    words = np.empty((groups, 2), np.int64)
    words[:, 0] = low0 | (low1 << 32)
    words[:, 1] = high0 | (high1 << 32)
    # What is above 128 bits may only repeat the sign.
    outside = sign != (words[:, 1] >> 63)
    outside |= _not_below(words, _WORDS_OF_LIMIT) | ~_not_below(words, _WORDS_OF_LEAST, strictly=True)
    if outside.any():
        raise ExecutionError(f"{type_name(kind)} overflow: a sum has more than 38 digits")
    return from_buffer(pa.py_buffer(words.data), groups, kind, validity)


def _not_below(
    words: NDArray[np.int64], limit: tuple[int, int], *, strictly: bool = False
) -> NDArray[np.bool_]:
    """Whether 128-bit numbers are at or above a limit (above, if `strictly`)."""
    high, low = words[:, 1], words[:, 0].view(np.uint64)
    limit_high, limit_low = np.int64(limit[0]), np.uint64(limit[1])
    tail = low > limit_low if strictly else low >= limit_low
    result: NDArray[np.bool_] = (high > limit_high) | ((high == limit_high) & tail)
    return result
