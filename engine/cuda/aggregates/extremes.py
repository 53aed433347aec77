"""min, max, bool_and and bool_or. NaN is the greatest number."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.binaryop import BinaryOperator

from bamquery.engine.cuda.aggregates.accumulator import Accumulator, ReductionAggregate, StateColumns
from bamquery.engine.cuda.aggregates.reductions import Reduction, total_counts
from bamquery.engine.cuda.kernels import BOOL, INT64, Kernels
from bamquery.engine.cuda.libcudf_types import device_type


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
        self._aggregation = plc.aggregation.max() if greatest else plc.aggregation.min()
        self.scans = (self._aggregation,)

    def row_reductions(self, kernels: Kernels, rows: StateColumns) -> Sequence[Reduction]:
        """The extreme."""
        return self.state_reductions(kernels, rows)

    def state_reductions(self, kernels: Kernels, state: StateColumns) -> Sequence[Reduction]:
        """The extremes' extreme."""
        return (Reduction(state[0], self._aggregation, state[0].type()),)

    def final(self, kernels: Kernels, state: StateColumns) -> plc.Column:
        """The extremes."""
        return state[0]


class BooleanExtreme(PlainExtreme):
    """Of booleans: false is less than true, so `bool_and` is min and `bool_or` is max."""

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
