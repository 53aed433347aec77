"""Sums of doubles by group, as the aggregates of several moments add them up and merge them."""

from __future__ import annotations

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.unary import UnaryOperator

from bamquery.engine.cuda.kernels import FLOAT64, Kernels
from bamquery.engine.cuda.keys.grouping import GroupCodes
from bamquery.engine.cuda.libcudf_types import device_type
from bamquery.engine.cuda.vectors import Vector


class GroupSums:
    """Doubles of rows, and of their groups."""

    def __init__(self, kernels: Kernels, codes: GroupCodes) -> None:
        self._kernels = kernels
        self._codes = codes

    def sum(self, values: Vector) -> Vector:
        """Each group's sum; null where it has no row."""
        found = self._codes.reduce(self._kernels, values.column, plc.aggregation.sum(), FLOAT64)
        return Vector(self._kernels, found)

    def spread_to_rows(self, values: Vector) -> Vector:
        """A value of each group, on each row of it."""
        return Vector(self._kernels, self._codes.spread_to_rows(self._kernels, values.column))

    def mean(self, values: Vector, totals: Vector) -> Vector:
        """Each group's mean; of one value over and over it is that value, and no distance from it but 0."""
        some = Vector(self._kernels, some_value(self._kernels, values.column, self._codes)).fill_nulls(0.0)
        base = (some - some).equals(0.0).choose(some, 0.0)  # no infinity, no NaN
        return base + self.sum(values - self.spread_to_rows(base)) / totals

    def common_mean(self, counts: Vector, means: Vector, totals: Vector) -> Vector:
        """The mean of all states of a group, of doubles."""
        # Means of one value far from zero must come back exactly: weigh differences, not values.
        base = Vector(self._kernels, some_value(self._kernels, means.column, self._codes))
        return base + self.sum(counts * (means - self.spread_to_rows(base))) / totals


def root(kernels: Kernels, values: Vector) -> Vector:
    """Square roots."""
    return Vector(kernels, kernels.unary(UnaryOperator.SQRT, values.column))


def some_value(kernels: Kernels, values: plc.Column, codes: GroupCodes) -> plc.Column:
    """One value of each group, null for a group without any."""
    narrow = device_type(pa.int32())
    first = codes.reduce(kernels, kernels.positions(values.size()), plc.aggregation.min(), narrow)
    if not values.size():
        return plc.Column.all_null_like(values, codes.groups, stream=kernels.stream, mr=kernels.memory)
    beyond = kernels.number(values.size(), pa.int32())
    return kernels.gather([values], kernels.fill_null(first, beyond), nullify=True)[0]
