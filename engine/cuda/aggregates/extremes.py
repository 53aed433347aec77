"""min, max, bool_and and bool_or. NaN is the greatest number."""

from __future__ import annotations

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.binaryop import BinaryOperator

from bamquery.engine.cuda.aggregates.accumulator import Accumulator, Parts, added
from bamquery.engine.cuda.grouping import Codes
from bamquery.engine.cuda.kernels import BOOL, INT64, Kernels
from bamquery.engine.cuda.types import device_type


def extreme(kind: pa.DataType, *, greatest: bool) -> Accumulator:
    """Min or max of a type."""
    if pa.types.is_boolean(kind):
        return BooleanExtreme(greatest=greatest)
    if pa.types.is_floating(kind):
        return FloatExtreme(kind, greatest=greatest)
    return PlainExtreme(greatest=greatest)


class PlainExtreme(Accumulator):
    """Of types whose values are all in order; null where there was no value."""

    def __init__(self, *, greatest: bool) -> None:
        self._aggregation = plc.aggregation.max() if greatest else plc.aggregation.min()
        self.scans = (self._aggregation,)

    def partial(self, kernels: Kernels, rows: Parts, codes: Codes) -> Parts:
        """The extreme."""
        (column,) = rows
        return (codes.reduced(kernels, column, self._aggregation, column.type()),)

    def merge(self, kernels: Kernels, parts: Parts, codes: Codes) -> Parts:
        """The extremes' extreme."""
        return PlainExtreme.partial(self, kernels, parts, codes)

    def final(self, kernels: Kernels, parts: Parts) -> plc.Column:
        """The extremes."""
        return parts[0]


class BooleanExtreme(PlainExtreme):
    """Of booleans: false is less than true, so `bool_and` is min and `bool_or` is max."""

    def partial(self, kernels: Kernels, rows: Parts, codes: Codes) -> Parts:
        """The extreme as a number."""
        return super().partial(kernels, (kernels.convert(rows[0], device_type(pa.int8())),), codes)

    def final(self, kernels: Kernels, parts: Parts) -> plc.Column:
        """The extremes as booleans."""
        return kernels.convert(parts[0], BOOL)


class FloatExtreme(Accumulator):
    """Of floats: the extreme of the numbers, and how many values were not numbers."""

    def __init__(self, kind: pa.DataType, *, greatest: bool) -> None:
        self._kind = kind
        self._greatest = greatest
        self._numbers = PlainExtreme(greatest=greatest)

    def partial(self, kernels: Kernels, rows: Parts, codes: Codes) -> Parts:
        """Both."""
        (column,) = rows
        not_numbers = kernels.is_nan(column)
        numbers = kernels.null_where(not_numbers, column, self._kind)
        counts = added(kernels, kernels.convert(not_numbers, INT64), codes)
        return (*self._numbers.partial(kernels, (numbers,), codes), counts)

    def merge(self, kernels: Kernels, parts: Parts, codes: Codes) -> Parts:
        """The extremes' extreme, and the sum of the counts."""
        return (*self._numbers.merge(kernels, parts[:1], codes), added(kernels, parts[1], codes))

    def final(self, kernels: Kernels, parts: Parts) -> plc.Column:
        """NaN where there was one, for the least only where there was nothing else."""
        extremes, counts = parts
        chosen = kernels.test(BinaryOperator.GREATER, counts, kernels.number(0))
        if not self._greatest:
            chosen = kernels.both(chosen, kernels.is_null(extremes))
        return kernels.where(chosen, kernels.number(float("nan"), self._kind), extremes)
