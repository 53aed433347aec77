"""Columns of 64-bit integers that compute as numpy's do: what dates and times are made of."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.binaryop import BinaryOperator
from pylibcudf.types import TypeId

from bamquery.engine.cuda.kernels import BOOL, INT64, Kernels, Side, view_as


class Integers:
    """An int64 column. Division and remainder are by positive constants and round down.

    What is null stays so; what does not fit wraps.
    """

    def __init__(self, kernels: Kernels, column: plc.Column) -> None:
        assert column.type().id() == TypeId.INT64
        self._kernels = kernels
        self.column: Final = column

    @classmethod
    def from_column(cls, kernels: Kernels, column: plc.Column) -> Integers:
        """The stored values of a column of integers, booleans, dates, times or timestamps."""
        kind = column.type().id()
        if kind == TypeId.TIMESTAMP_DAYS:
            column = view_as(column, plc.DataType(TypeId.INT32))
        elif kind in _TIMESTAMPS:
            column = view_as(column, INT64)
        return cls(kernels, kernels.convert(column, INT64))

    def __add__(self, other: Integers | int) -> Integers:
        return self._apply(BinaryOperator.ADD, other)

    def __sub__(self, other: Integers | int) -> Integers:
        return self._apply(BinaryOperator.SUB, other)

    def __mul__(self, other: Integers | int) -> Integers:
        return self._apply(BinaryOperator.MUL, other)

    def __floordiv__(self, divisor: int) -> Integers:
        return self.truncate_divide(divisor) - Integers.from_column(
            self._kernels, self._remainder(divisor) < 0
        )

    def __mod__(self, divisor: int) -> Integers:
        rest = self._remainder(divisor)
        return rest + Integers.from_column(self._kernels, rest < 0) * divisor

    def truncate_divide(self, divisor: int) -> Integers:
        """Quotient toward zero."""
        return self._apply(BinaryOperator.DIV, divisor)

    def __lt__(self, other: Integers | int) -> plc.Column:
        return self._test(BinaryOperator.LESS, other)

    def __gt__(self, other: Integers | int) -> plc.Column:
        return self._test(BinaryOperator.GREATER, other)

    def __le__(self, other: Integers | int) -> plc.Column:
        return self._test(BinaryOperator.LESS_EQUAL, other)

    def __ge__(self, other: Integers | int) -> plc.Column:
        return self._test(BinaryOperator.GREATER_EQUAL, other)

    def equals(self, other: Integers | int) -> plc.Column:
        """Whether values are equal."""
        return self._test(BinaryOperator.EQUAL, other)

    def flags(self, mask: plc.Column) -> Integers:
        """1 for true, 0 for false."""
        return Integers.from_column(self._kernels, mask)

    def logical_and(self, a: plc.Column, b: plc.Column) -> plc.Column:
        """Whether both are true."""
        return self._kernels.logical_and(a, b)

    def logical_or(self, a: plc.Column, b: plc.Column) -> plc.Column:
        """Whether one is true."""
        return self._kernels.logical_or(a, b)

    def is_outside(self, low: int, high: int) -> plc.Column:
        """Whether values are below `low` or above `high`."""
        return self._kernels.logical_or(self < low, self > high)

    def _remainder(self, divisor: int) -> Integers:
        """With the sign of the value."""
        return self._apply(BinaryOperator.MOD, divisor)

    def _side(self, other: Integers | int) -> Side:
        return other.column if isinstance(other, Integers) else self._kernels.number(other, pa.int64())

    def _apply(self, operator: BinaryOperator, other: Integers | int) -> Integers:
        return Integers(self._kernels, self._kernels.binary(operator, self.column, self._side(other), INT64))

    def _test(self, operator: BinaryOperator, other: Integers | int) -> plc.Column:
        return self._kernels.binary(operator, self.column, self._side(other), BOOL)


_TIMESTAMPS: Final = (
    TypeId.TIMESTAMP_SECONDS,
    TypeId.TIMESTAMP_MILLISECONDS,
    TypeId.TIMESTAMP_MICROSECONDS,
    TypeId.TIMESTAMP_NANOSECONDS,
)


def rounded_quotient(values: Integers, divisor: int) -> Integers:
    """Nearest integer to values / divisor, half away from zero."""
    quotient, rest = values // divisor, values % divisor
    # The floor is one too low above the half, and at it where the value is not negative.
    above = rest * 2 > divisor
    tie = values.logical_and((rest * 2).equals(divisor), values >= 0)
    return quotient + values.flags(values.logical_or(above, tie))
