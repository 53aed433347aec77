"""min, max, bool_and and bool_or. NaN is the greatest number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.binaryop import BinaryOperator
from pylibcudf.types import TypeId

from bamquery.data_types.type_groups import value_type
from bamquery.engine.cuda.aggregates.accumulator import (
    Accumulator,
    GatheredWords,
    ReductionAggregate,
    StateColumns,
)
from bamquery.engine.cuda.aggregates.reductions import Reduction, total_counts
from bamquery.engine.cuda.kernels import BOOL, FLOAT64, INT64, INT128, Kernels, view_as
from bamquery.engine.cuda.libcudf_types import device_type
from bamquery.engine.pipeline.instructions import AggregateKind
from bamquery.engine.pipeline.registers import Shape, shape_of
from bamquery.plan.expressions import AggregateCall

_WORD: Final = 8
_INT32: Final = plc.DataType(TypeId.INT32)


def extreme(kind: pa.DataType, *, greatest: bool) -> Accumulator:
    """Min or max of a type."""
    if pa.types.is_boolean(kind):
        return BooleanExtreme(greatest=greatest)
    if pa.types.is_floating(kind):
        return FloatExtreme(kind, greatest=greatest)
    return PlainExtreme(greatest=greatest)


class PlainExtreme(ReductionAggregate):
    """Of types whose values are all in order; null where there was no value."""

    def __init__(self, *, greatest: bool) -> None:
        self._greatest = greatest
        self._aggregation = plc.aggregation.max() if greatest else plc.aggregation.min()
        self.scans = (self._aggregation,)

    def row_reductions(self, kernels: Kernels, rows: StateColumns) -> Sequence[Reduction]:
        """The extreme."""
        return self.state_reductions(kernels, rows)

    def program_kind(self, call: AggregateCall) -> AggregateKind | None:
        """Words, where values are such."""
        words = shape_of(value_type(call.arguments[0].type)) is Shape.WORD
        return (AggregateKind.GREATEST if self._greatest else AggregateKind.LEAST) if words else None

    def from_program(self, kernels: Kernels, kind: pa.DataType, gathered: GatheredWords) -> StateColumns:
        """The extreme."""
        words, wanted = gathered.column(kernels, gathered.value), device_type(kind)
        if pa.types.is_decimal128(kind):
            return (view_as(kernels.convert(words, INT128), wanted),)
        if pa.types.is_integer(kind):
            return (kernels.convert(words, wanted),)
        width = plc.types.size_of(wanted)
        return (view_as(words if width == _WORD else kernels.convert(words, _INT32), wanted),)

    def state_reductions(self, kernels: Kernels, state: StateColumns) -> Sequence[Reduction]:
        """The extremes' extreme."""
        return (Reduction(state[0], self._aggregation, state[0].type()),)

    def final(self, kernels: Kernels, state: StateColumns) -> plc.Column:
        """The extremes."""
        return state[0]


class BooleanExtreme(PlainExtreme):
    """Of booleans: false is less than true, so `bool_and` is min and `bool_or` is max."""

    def program_kind(self, call: AggregateCall) -> AggregateKind | None:
        """None: flags are no words."""
        return None

    def row_reductions(self, kernels: Kernels, rows: StateColumns) -> Sequence[Reduction]:
        """The extreme as a number."""
        return self.state_reductions(kernels, (kernels.convert(rows[0], device_type(pa.int8())),))

    def final(self, kernels: Kernels, state: StateColumns) -> plc.Column:
        """The extremes as booleans."""
        return kernels.convert(state[0], BOOL)


class FloatExtreme(ReductionAggregate):
    """Of floats: the extreme of the numbers, and how many values were not numbers."""

    def __init__(self, kind: pa.DataType, *, greatest: bool) -> None:
        self._kind = kind
        self._greatest = greatest
        self._numbers = PlainExtreme(greatest=greatest)

    def row_reductions(self, kernels: Kernels, rows: StateColumns) -> Sequence[Reduction]:
        """Both."""
        (column,) = rows
        not_numbers = kernels.is_nan(column)
        numbers = kernels.null_where(not_numbers, column, self._kind)
        return self.state_reductions(kernels, (numbers, kernels.convert(not_numbers, INT64)))

    def program_kind(self, call: AggregateCall) -> AggregateKind | None:
        """Doubles."""
        return AggregateKind.GREATEST_DOUBLE if self._greatest else AggregateKind.LEAST_DOUBLE

    def from_program(self, kernels: Kernels, kind: pa.DataType, gathered: GatheredWords) -> StateColumns:
        """A number, or one value that is none: a program has those in the order of SQL."""
        words = gathered.column(kernels, gathered.value)
        sign = kernels.binary(BinaryOperator.SHIFT_RIGHT, words, kernels.number(63), INT64)
        flip = kernels.binary(BinaryOperator.SHIFT_RIGHT_UNSIGNED, sign, kernels.number(1), INT64)
        bits = kernels.binary(BinaryOperator.BITWISE_XOR, words, flip, INT64)
        column = kernels.convert(view_as(bits, FLOAT64), device_type(kind))
        not_numbers = kernels.is_nan(column)
        return (kernels.null_where(not_numbers, column, self._kind), kernels.convert(not_numbers, INT64))

    def state_reductions(self, kernels: Kernels, state: StateColumns) -> Sequence[Reduction]:
        """The extremes' extreme, and the sum of the counts."""
        return (*self._numbers.state_reductions(kernels, state[:1]), total_counts(state[1]))

    def final(self, kernels: Kernels, state: StateColumns) -> plc.Column:
        """NaN where there was one, for the least only where there was nothing else."""
        extremes, counts = state
        chosen = kernels.test(BinaryOperator.GREATER, counts, kernels.number(0))
        if not self._greatest:
            chosen = kernels.logical_and(chosen, kernels.is_null(extremes))
        return kernels.where(chosen, kernels.number(float("nan"), self._kind), extremes)
