"""product, bit_and, bit_or and bit_xor: what one operation of two values folds."""

from __future__ import annotations

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.binaryop import BinaryOperator

from bamquery.engine.cuda.aggregates.accumulator import Accumulator, StateColumns
from bamquery.engine.cuda.kernels import INT64, Kernels
from bamquery.engine.cuda.keys.grouping import GroupCodes, sort_within_groups
from bamquery.engine.cuda.libcudf_types import device_type
from bamquery.engine.cuda.vectors import Mask, Vector


class PairwiseReduction(Accumulator):
    """Values joined two by two, neighbours first; null where there are none.

    Args:
        operator: associative, and without regard to order.
        kind: of the values and the result.
    """

    def __init__(self, operator: BinaryOperator, kind: pa.DataType) -> None:
        self._operator = operator
        self._kind = device_type(kind)

    def partial(self, kernels: Kernels, rows: StateColumns, codes: GroupCodes) -> StateColumns:
        """The joined values."""
        (values,) = rows
        if values.null_count():
            codes, (values,) = codes.filter(kernels, kernels.is_valid(values), values)
        nothing = plc.Column.all_null_like(values, codes.groups, stream=kernels.stream, mr=kernels.memory)
        if not codes.rows:
            return (nothing,)
        owner, values = kernels.gather([codes.numbers(kernels), values], sort_within_groups(kernels, codes))
        while True:
            neighbours, firsts = _pairs(kernels, owner)
            if not neighbours.any():
                break
            after = _next_rows(kernels, owner.size())
            other = kernels.gather([values], after.column)[0]
            joined = kernels.binary(self._operator, values, other, self._kind)
            values = kernels.where(neighbours.column, joined, values)
            owner, values = kernels.keep([owner, values], firsts.column)
        spread = plc.copying.scatter(
            plc.Table([values]), owner, plc.Table([nothing]), stream=kernels.stream, mr=kernels.memory
        )
        return (spread.columns()[0],)

    def merge(self, kernels: Kernels, state: StateColumns, codes: GroupCodes) -> StateColumns:
        """The same of the states that have a value."""
        return self.partial(kernels, state, codes)

    def final(self, kernels: Kernels, state: StateColumns) -> plc.Column:
        """Null where there was no value."""
        return state[0]


def _next_rows(kernels: Kernels, rows: int) -> Vector:
    """The row after each; the last one itself."""
    return (Vector.positions(kernels, rows) + 1).minimum(rows - 1)


def _pairs(kernels: Kernels, owner: plc.Column) -> tuple[Mask, Mask]:
    """Rows that are joined with the row after them, and rows that stay: every other one of each group."""
    rows = owner.size()
    codes = Vector(kernels, kernels.convert(owner, INT64))
    places = Vector.positions(kernels, rows)
    begins = codes.differs(codes.take((places - 1).maximum(0))) | places.equals(0)
    starts = begins.places()
    first = starts.take(begins.numbers().totals().slice(1, rows + 1) - 1)
    stays = ((places - first) % 2).equals(0)
    after = _next_rows(kernels, rows)
    follows = codes.equals(codes.take(after)) & after.differs(places)
    return stays & follows, stays


def bit_and(kind: pa.DataType) -> Accumulator:
    """The bits that all have."""
    return PairwiseReduction(BinaryOperator.BITWISE_AND, kind)


def bit_or(kind: pa.DataType) -> Accumulator:
    """The bits that any has."""
    return PairwiseReduction(BinaryOperator.BITWISE_OR, kind)


def bit_xor(kind: pa.DataType) -> Accumulator:
    """The bits that an odd number of values has."""
    return PairwiseReduction(BinaryOperator.BITWISE_XOR, kind)


def product() -> Accumulator:
    """Of doubles."""
    return PairwiseReduction(BinaryOperator.MUL, pa.float64())
