"""sum and avg: exact for integers and decimals, in doubles for floats.

Exact sums are kept as whole numbers of 64 bits where all of a state's fit. Others are limbs of 32 bits in
64-bit integers, so that adding up to 2**31 of them cannot overflow before the carries are passed on.
"""

from __future__ import annotations

from collections.abc import Sequence
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


class _ExactTotal(Accumulator):
    """What exact sums and means have in common: columns of the sums, and one more."""

    exact = True

    def __init__(self, limbs: int) -> None:
        """`limbs`: of sums that are not whole numbers of 64 bits."""
        self._limbs = limbs

    def align(self, states: Sequence[StateColumns]) -> Sequence[StateColumns]:
        """Limbs for all, if any has them."""
        return states if len({len(state) for state in states}) == 1 else [self.unfold(s) for s in states]

    def unfold(self, state: StateColumns) -> StateColumns:
        """Limbs."""
        *totals, last = state
        if len(totals) > 1:
            return state
        return (*_limbs_of_whole(np.asarray(totals[0]), self._limbs), last)

    def _merge_totals(self, state: StateColumns, codes: Codes, groups: int) -> Limbs:
        totals = [np.asarray(column) for column in state[:-1]]
        if len(totals) == 1:
            check_cancelled()
            whole = native.sum_checked(_own_codes(codes, groups), np.ascontiguousarray(totals[0]), groups)
            if whole is not None:
                return (whole,)
            totals = list(_limbs_of_whole(totals[0], self._limbs))
        return _merge_limbs(totals, codes, groups)


class ExactSum(_ExactTotal):
    """Sum of integers or decimals in decimal128 with 38 digits; null where there are none."""

    def __init__(self, kind: pa.DataType, limbs: int = _DECIMAL_LIMBS) -> None:
        """`kind`: of the sum."""
        super().__init__(limbs)
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
        """The sums, and whether there was a value."""
        assert gathered.sums is not None
        return (*_totals_of_words(gathered.sums, kind), gathered.counts > 0)

    def merge(self, state: StateColumns, codes: Codes, groups: int) -> StateColumns:
        """The sums."""
        seen = np.asarray(state[-1])
        of_values = codes if seen.all() else codes[seen]
        return (*self._merge_totals(state, codes, groups), groups_with_rows(of_values, groups))

    def final(self, state: StateColumns) -> Column:
        """The sums.

        Raises:
            ExecutionError: one has more than 38 digits.
        """
        *limbs, seen = (np.asarray(column) for column in state)
        return _assemble(limbs, self._kind, boolean_column(seen))


class ExactAverage(_ExactTotal):
    """Mean of integers or decimals: the exact sum / count in double."""

    def __init__(self, scale: int, limbs: int = _DECIMAL_LIMBS) -> None:
        """`scale`: of the values."""
        super().__init__(limbs)
        self._scale = scale

    def partial(self, column: Column, codes: Codes, groups: int) -> StateColumns:
        """Limbs and count."""
        return (*_sum_limbs(column, codes, groups), count_values(column, codes, groups))

    def program_kind(self, call: AggregateCall) -> AggregateKind | None:
        """Whole numbers."""
        return AggregateKind.SUM

    def from_program(self, kind: pa.DataType, gathered: Gathered) -> StateColumns:
        """Sums and count."""
        assert gathered.sums is not None
        return (*_totals_of_words(gathered.sums, kind), gathered.counts)

    def merge(self, state: StateColumns, codes: Codes, groups: int) -> StateColumns:
        """The sums of both."""
        counts = sum_by_group(codes, np.asarray(state[-1]), groups)
        return (*self._merge_totals(state, codes, groups), counts)

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


def limb_count(kind: pa.DataType) -> int:
    """Limbs of sums of a type's values, as `_sum_limbs` gives them."""
    if pa.types.is_decimal(kind):
        return _DECIMAL_LIMBS
    return 3 if kind.bit_width == 64 else 2


def _totals_of_words(words: NDArray[np.int64], kind: pa.DataType) -> Limbs:
    """Sums as whole numbers where they are such, else as limbs; `words` are one or two of each."""
    whole = words if words.ndim == 1 else native.narrow_sums(words)
    if whole is not None:
        return (whole,)
    return _split_words(words[:, 0], words[:, 1], limb_count(kind))


def _limbs_of_whole(sums: NDArray[np.int64], limbs: int) -> Limbs:
    return _split_words(sums, sums >> 63, limbs)


def _split_words(low: NDArray[np.int64], high: NDArray[np.int64], limbs: int) -> Limbs:
    """The limbs of numbers of two words; they fit so many."""
    first, second = low & _LIMB, (low >> 32) & _LIMB
    if limbs == 2:
        return first, second | high << 32
    if limbs == 3:
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
