"""sum and avg: exact for integers and decimals, in doubles for floats.

Exact sums are kept as limbs of 32 bits in 64-bit integers, so that adding up to 2**31 of them cannot
overflow before the carries are passed on. A group without values has nulls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.aggregation import Aggregation
from pylibcudf.binaryop import BinaryOperator
from pylibcudf.types import TypeId

from bamquery.data_types.names import type_name
from bamquery.engine.cuda.aggregates.accumulator import (
    DOUBLE,
    GatheredWords,
    ReductionAggregate,
    StateColumns,
)
from bamquery.engine.cuda.aggregates.reductions import Reduction, count_values, total_counts
from bamquery.engine.cuda.kernels import FLOAT64, INT64, INT128, Kernels, Side, view_as
from bamquery.engine.cuda.libcudf_types import device_type
from bamquery.engine.cuda.numeric import decimals
from bamquery.engine.pipeline.instructions import AggregateKind
from bamquery.errors import ExecutionError
from bamquery.plan.expressions import AggregateCall

_LIMB: Final = 0xFFFFFFFF
_LIMB_BITS: Final = 32
_WORD_DIGITS: Final = 18
"""Decimals of so many digits fit in 64 bits."""


class FloatSum(ReductionAggregate):
    """Sum of floats in doubles."""

    scans: tuple[Aggregation, ...] = (plc.aggregation.sum(),)

    def row_reductions(self, kernels: Kernels, rows: StateColumns) -> Sequence[Reduction]:
        """The sum."""
        return (_sum(kernels.convert(rows[0], FLOAT64)),)

    def program_kind(self, call: AggregateCall) -> AggregateKind | None:
        """Doubles, in any order."""
        return AggregateKind.SUM_DOUBLES

    def from_program(self, kernels: Kernels, kind: pa.DataType, gathered: GatheredWords) -> StateColumns:
        """The sum."""
        return (view_as(gathered.column(kernels, gathered.value), FLOAT64),)

    def state_reductions(self, kernels: Kernels, state: StateColumns) -> Sequence[Reduction]:
        """The sums' sum."""
        return (_sum(state[0]),)

    def final(self, kernels: Kernels, state: StateColumns) -> plc.Column:
        """The sums."""
        return state[0]


class FloatAverage(FloatSum):
    """Mean of floats: sum / count in doubles."""

    scans = (plc.aggregation.sum(), plc.aggregation.sum())

    def row_reductions(self, kernels: Kernels, rows: StateColumns) -> Sequence[Reduction]:
        """Sum and count."""
        return (*super().row_reductions(kernels, rows), count_values(kernels, rows[0]))

    def from_program(self, kernels: Kernels, kind: pa.DataType, gathered: GatheredWords) -> StateColumns:
        """Sum and count."""
        return (*super().from_program(kernels, kind, gathered), gathered.count)

    def state_reductions(self, kernels: Kernels, state: StateColumns) -> Sequence[Reduction]:
        """The sums of both."""
        return (_sum(state[0]), total_counts(state[1]))

    def final(self, kernels: Kernels, state: StateColumns) -> plc.Column:
        """Null where the count is 0, as the sum is."""
        sums, counts = state
        return kernels.binary(BinaryOperator.DIV, sums, kernels.convert(counts, FLOAT64), FLOAT64)


class ExactSum(ReductionAggregate):
    """Sum of integers or decimals in decimal128 with 38 digits.

    Args:
        argument: type of the values.
        kind: of the sum.
    """

    exact = True

    def __init__(self, argument: pa.DataType, kind: Any) -> None:
        self._is_short = isinstance(argument, pa.Decimal128Type) and argument.precision <= _WORD_DIGITS
        self._limbs = _limb_count(argument, is_short=self._is_short)
        self._kind = kind

    def row_reductions(self, kernels: Kernels, rows: StateColumns) -> Sequence[Reduction]:
        """Limbs, or one word where no sum can be longer."""
        return kernels.remembered(rows[0], "sums", lambda: self._sums(kernels, rows[0]))

    def _sums(self, kernels: Kernels, column: plc.Column) -> list[Reduction]:
        word = _word_if_sums_fit(kernels, column)
        limbs = _split_limbs(kernels, column, is_short=self._is_short) if word is None else [word]
        return list(map(_sum, limbs))

    def program_kind(self, call: AggregateCall) -> AggregateKind | None:
        """Whole numbers."""
        return AggregateKind.SUM

    def from_program(self, kernels: Kernels, kind: pa.DataType, gathered: GatheredWords) -> StateColumns:
        """Limbs: the sums of halves are such, before carries are passed on."""
        low, high = (gathered.column(kernels, words) for words in (gathered.value, gathered.high))
        zeros = [_integer(kernels, BinaryOperator.BITWISE_AND, high, 0)] * (self._limbs - 1)
        return tuple(_carry_limbs(kernels, [low, high, *zeros]))

    def state_reductions(self, kernels: Kernels, state: StateColumns) -> Sequence[Reduction]:
        """Limbs."""
        return list(map(_sum, state))

    def state(self, kernels: Kernels, reduced: Sequence[plc.Column], *, of_rows: bool) -> StateColumns:
        """The limbs with carries passed on; the last one is there for those."""
        if of_rows and len(reduced) < self._limbs:
            return tuple(_limbs_of_word(kernels, reduced[0], self._limbs + 1))
        if of_rows:
            # 0, but null where there is no value.
            reduced = [*reduced, _integer(kernels, BinaryOperator.BITWISE_AND, reduced[-1], 0)]
        return tuple(_carry_limbs(kernels, reduced))

    def final(self, kernels: Kernels, state: StateColumns) -> plc.Column:
        """The sums.

        Raises:
            ExecutionError: one has more than 38 digits.
        """
        return _assemble(kernels, state, self._kind)


class ExactAverage(ExactSum):
    """Mean of integers or decimals: the exact sum / count in double."""

    def __init__(self, argument: pa.DataType) -> None:
        self._scale = argument.scale if isinstance(argument, pa.Decimal128Type) else 0
        super().__init__(argument, pa.decimal128(38, self._scale))

    def row_reductions(self, kernels: Kernels, rows: StateColumns) -> Sequence[Reduction]:
        """Limbs and count."""
        return (*super().row_reductions(kernels, rows), count_values(kernels, rows[0]))

    def from_program(self, kernels: Kernels, kind: pa.DataType, gathered: GatheredWords) -> StateColumns:
        """Limbs and count."""
        return (*super().from_program(kernels, kind, gathered), gathered.count)

    def state_reductions(self, kernels: Kernels, state: StateColumns) -> Sequence[Reduction]:
        """The sums of both."""
        return (*super().state_reductions(kernels, state[:-1]), total_counts(state[-1]))

    def state(self, kernels: Kernels, reduced: Sequence[plc.Column], *, of_rows: bool) -> StateColumns:
        """Limbs with carries passed on, and the count."""
        return (*super().state(kernels, reduced[:-1], of_rows=of_rows), reduced[-1])

    def final(self, kernels: Kernels, state: StateColumns) -> plc.Column:
        """Null where the count is 0, as the sum is; the sum is exact up to 2**53, as is its divisor."""
        *limbs, counts = state
        total = kernels.convert(limbs[-1], FLOAT64)
        for limb in reversed(limbs[:-1]):
            shifted = _double(kernels, BinaryOperator.MUL, total, kernels.number(2.0**_LIMB_BITS, DOUBLE))
            total = _double(kernels, BinaryOperator.ADD, shifted, kernels.convert(limb, FLOAT64))
        unit = kernels.number(10.0**self._scale, DOUBLE)
        divisor = _double(kernels, BinaryOperator.MUL, kernels.convert(counts, FLOAT64), unit)
        return _double(kernels, BinaryOperator.DIV, total, divisor)


def _double(kernels: Kernels, operator: BinaryOperator, a: Side, b: Side) -> plc.Column:
    return kernels.binary(operator, a, b, FLOAT64)


def _integer(kernels: Kernels, operator: BinaryOperator, column: plc.Column, number: int) -> plc.Column:
    return kernels.binary(operator, column, kernels.number(number), INT64)


def _sum(values: plc.Column) -> Reduction:
    return Reduction(values, plc.aggregation.sum(), values.type())


def _limb_count(argument: pa.DataType, *, is_short: bool) -> int:
    """Of a value of a type, as `_split_limbs` has it."""
    if isinstance(argument, pa.Decimal128Type):
        return 2 if is_short else 4
    return 2 if argument in (pa.int64(), pa.uint64()) else 1


def _word_if_sums_fit(kernels: Kernels, column: plc.Column) -> plc.Column | None:
    """Decimals or integers of 64 bits as such integers, where no sum of them is longer than these."""
    kind = column.type().id()
    if kind not in (TypeId.DECIMAL128, TypeId.INT64, TypeId.UINT64):
        return None
    whole = decimals.unscaled_values(column) if kind == TypeId.DECIMAL128 else column
    low, high = kernels.extremes(whole)
    return kernels.convert(whole, INT64) if max(-low, high) * column.size() < 1 << 63 else None


def _limbs_of_word(kernels: Kernels, word: plc.Column, count: int) -> list[plc.Column]:
    """64-bit integers as at least three limbs within 32 bits; the highest has the sign."""
    low = _integer(kernels, BinaryOperator.BITWISE_AND, word, _LIMB)
    rest = _integer(kernels, BinaryOperator.SHIFT_RIGHT, word, _LIMB_BITS)
    high = _integer(kernels, BinaryOperator.BITWISE_AND, rest, _LIMB)
    sign = _integer(kernels, BinaryOperator.SHIFT_RIGHT, rest, _LIMB_BITS)
    repeated = [_integer(kernels, BinaryOperator.BITWISE_AND, sign, _LIMB)] * (count - 3) if count > 3 else []
    return [low, high, *repeated, sign]


def _split_limbs(kernels: Kernels, column: plc.Column, *, is_short: bool) -> list[plc.Column]:
    """Values as limbs, the lowest first, the highest with the sign; `is_short`: decimals fit in 64 bits."""
    kind = column.type().id()
    if kind == TypeId.DECIMAL128:
        if is_short:
            return _halves(kernels, kernels.convert(decimals.unscaled_values(column), INT64), signed=True)
        low, high = _words(kernels, column)
        return [*_halves(kernels, low, signed=False), *_halves(kernels, high, signed=True)]
    if kind in (TypeId.INT64, TypeId.UINT64):
        return _halves(kernels, view_as(column, INT64), signed=kind == TypeId.INT64)
    return [kernels.convert(column, INT64)]


def _words(kernels: Kernels, column: plc.Column) -> list[plc.Column]:
    """The low and the high 64 bits of decimals."""
    rows = column.size()
    stored = plc.Column(INT64, 2 * rows, column.data(), None, 0, 2 * column.offset(), [])
    words = [kernels.gather([stored], kernels.positions(rows, start, 2))[0] for start in (0, 1)]
    if not column.null_count():
        return words
    valid = kernels.is_valid(column)
    return [kernels.where(valid, word, kernels.null(pa.int64())) for word in words]


def _halves(kernels: Kernels, words: plc.Column, *, signed: bool) -> list[plc.Column]:
    shift = BinaryOperator.SHIFT_RIGHT if signed else BinaryOperator.SHIFT_RIGHT_UNSIGNED
    return [
        _integer(kernels, BinaryOperator.BITWISE_AND, words, _LIMB),
        _integer(kernels, shift, words, _LIMB_BITS),
    ]


def _carry_limbs(kernels: Kernels, limbs: Sequence[plc.Column]) -> list[plc.Column]:
    """The same numbers with all limbs but the highest within 32 bits."""
    carried = list(limbs)
    for low in range(len(carried) - 1):
        carry = _integer(kernels, BinaryOperator.SHIFT_RIGHT, carried[low], _LIMB_BITS)
        carried[low + 1] = kernels.binary(BinaryOperator.ADD, carried[low + 1], carry, INT64)
        carried[low] = _integer(kernels, BinaryOperator.BITWISE_AND, carried[low], _LIMB)
    return carried


def _assemble(kernels: Kernels, limbs: Sequence[plc.Column], kind: Any) -> plc.Column:
    groups = limbs[0].size()
    if not groups:
        return kernels.nulls(0, kind)
    present = kernels.is_valid(limbs[0])
    known = [kernels.fill_null(limb, kernels.number(0)) for limb in limbs]
    zeros = kernels.repeat_scalar(kernels.number(0), groups)
    low0, low1, high0, high1, sign = _carry_limbs(kernels, [*known, *[zeros] * (5 - len(known))])
    low, high = _word(kernels, low0, low1), _word(kernels, high0, high1)
    both = plc.reshape.interleave_columns(
        plc.Table([low, high]), stream=kernels.stream, mr=kernels.memory
    )  # little-endian: the low word first
    whole = plc.Column(INT128, groups, both.data(), None, 0, 0, [])
    # What is above 128 bits may only repeat the sign.
    repeated = _integer(kernels, BinaryOperator.SHIFT_RIGHT, high, 63)
    outside = kernels.logical_or(
        kernels.test(BinaryOperator.NOT_EQUAL, sign, repeated), decimals.too_long(kernels, whole, 38)
    )
    if kernels.any_true(outside):
        raise ExecutionError(f"{type_name(kind)} overflow: a sum has more than 38 digits")
    return kernels.where(present, view_as(whole, device_type(kind)), kernels.null(kind))


def _word(kernels: Kernels, low: plc.Column, high: plc.Column) -> plc.Column:
    shifted = _integer(kernels, BinaryOperator.SHIFT_LEFT, high, _LIMB_BITS)
    return kernels.binary(BinaryOperator.BITWISE_OR, low, shifted, INT64)
