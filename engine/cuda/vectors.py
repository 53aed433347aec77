"""Columns of numbers and of truth values that compute as numpy's do: positions, counts, moments of values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.binaryop import BinaryOperator
from pylibcudf.reduce import ScanType
from pylibcudf.types import TypeId

from bamquery.engine.cuda.kernels import BOOL, FLOAT64, INT64, Kernels

_KINDS: Final[dict[TypeId, Any]] = {
    TypeId.INT32: pa.int32(),
    TypeId.INT64: pa.int64(),
    TypeId.FLOAT64: pa.float64(),
}


class Vector:
    """Numbers of one type, int32, int64 or float64, on a GPU. What is null stays so; what does not fit wraps.

    Division of whole numbers cuts off, and gives anything where the divisor is 0.
    """

    def __init__(self, kernels: Kernels, column: plc.Column) -> None:
        self._kernels = kernels
        self._kind = _KINDS[column.type().id()]
        self.column: Final = column

    @classmethod
    def positions(cls, kernels: Kernels, rows: int) -> Vector:
        """0, 1, 2, ..."""
        return cls(kernels, kernels.convert(kernels.positions(rows), INT64))

    @classmethod
    def full(cls, kernels: Kernels, value: float, rows: int) -> Vector:
        """One int64, or float64, so many times."""
        kind = pa.int64() if isinstance(value, int) else pa.float64()
        return cls(kernels, kernels.repeat_scalar(kernels.number(value, kind), rows))

    def __len__(self) -> int:
        return self.column.size()

    def __add__(self, other: Vector | float) -> Vector:
        return self._apply(BinaryOperator.ADD, other)

    def __sub__(self, other: Vector | float) -> Vector:
        return self._apply(BinaryOperator.SUB, other)

    def __mul__(self, other: Vector | float) -> Vector:
        return self._apply(BinaryOperator.MUL, other)

    def __truediv__(self, other: Vector | float) -> Vector:
        return self._apply(BinaryOperator.DIV, other)

    def __floordiv__(self, other: Vector | int) -> Vector:
        return self._apply(BinaryOperator.DIV, other)

    def __mod__(self, other: Vector | float) -> Vector:
        return self._apply(BinaryOperator.MOD, other)

    def __neg__(self) -> Vector:
        return self * -1

    def __lt__(self, other: Vector | float) -> Mask:
        return self._test(BinaryOperator.LESS, other)

    def __le__(self, other: Vector | float) -> Mask:
        return self._test(BinaryOperator.LESS_EQUAL, other)

    def __gt__(self, other: Vector | float) -> Mask:
        return self._test(BinaryOperator.GREATER, other)

    def __ge__(self, other: Vector | float) -> Mask:
        return self._test(BinaryOperator.GREATER_EQUAL, other)

    def equals(self, other: Vector | float) -> Mask:
        """Where both are equal."""
        return self._test(BinaryOperator.EQUAL, other)

    def differs(self, other: Vector | float) -> Mask:
        """Where they are not."""
        return self._test(BinaryOperator.NOT_EQUAL, other)

    def ratio(self, divisor: Vector) -> Vector:
        """The quotients as float64."""
        return self.cast(FLOAT64) / divisor.cast(FLOAT64)

    def power(self, exponent: float) -> Vector:
        """Raised to a power."""
        return self._apply(BinaryOperator.POW, exponent)

    def minimum(self, other: Vector | float) -> Vector:
        """The smaller of two whole numbers."""
        return (self < other).choose(self, other)

    def maximum(self, other: Vector | float) -> Vector:
        """The larger of two whole numbers."""
        return (self > other).choose(self, other)

    def clip(self, low: Vector | float, high: Vector | float) -> Vector:
        """What is below or above is the bound."""
        return self.maximum(low).minimum(high)

    def cast(self, kind: plc.DataType) -> Vector:
        """As another type."""
        return Vector(self._kernels, self._kernels.convert(self.column, kind))

    def fill_nulls(self, value: float) -> Vector:
        """One value for nulls."""
        return Vector(self._kernels, self._kernels.fill_null(self.column, self._number(value)))

    def take(self, places: Vector) -> Vector:
        """Those at positions, all of which are there."""
        return Vector(self._kernels, self._kernels.gather([self.column], places.column)[0])

    def slice(self, start: int, end: int) -> Vector:
        """Those from `start` to before `end`."""
        return Vector(self._kernels, self._kernels.slice_column(self.column, start, end))

    def totals(self) -> Vector:
        """Sums of none, the first, the first two, ... up to all: one more than there are numbers."""
        kernels = self._kernels
        nothing = Vector(kernels, kernels.repeat_scalar(self._number(0), 1))
        if not len(self):
            return nothing
        running = plc.reduce.scan(
            self.column, plc.aggregation.sum(), ScanType.INCLUSIVE, stream=kernels.stream, mr=kernels.memory
        )
        return Vector(kernels, kernels.concatenate([nothing.column, running]))

    def repeats(self, counts: Vector) -> Vector:
        """Each number so many times."""
        kernels = self._kernels
        if not len(self):
            return self
        times = kernels.convert(counts.column, plc.DataType(TypeId.INT32))
        table = plc.filling.repeat(plc.Table([self.column]), times, stream=kernels.stream)
        return Vector(kernels, table.columns()[0])

    def changes(self) -> Mask:
        """Whether each of at least one number differs from the one before; the first does."""
        first = Mask.full(self._kernels, True, 1)
        if len(self) == 1:
            return first
        others = self.slice(1, len(self)).differs(self.slice(0, len(self) - 1))
        return Mask(self._kernels, self._kernels.concatenate([first.column, others.column]))

    def total(self) -> int:
        """The sum of int64 numbers; the host waits."""
        if not len(self):
            return 0
        kernels = self._kernels
        found = kernels.reduce(self.column, plc.aggregation.sum(), INT64).to_py(stream=kernels.stream)
        return int(found or 0)

    def item(self, place: int) -> int:
        """One whole number; the host waits."""
        kernels = self._kernels
        cell = kernels.slice_column(self.column, place, place + 1)
        value = cell.to_scalar(stream=kernels.stream, mr=kernels.memory).to_py(stream=kernels.stream)
        assert isinstance(value, int)
        return value

    def _apply(self, operator: BinaryOperator, other: Vector | float) -> Vector:
        kernels = self._kernels
        kind = self.column.type()
        return Vector(kernels, kernels.binary(operator, self.column, self.side(other), kind))

    def _test(self, operator: BinaryOperator, other: Vector | float) -> Mask:
        kernels = self._kernels
        return Mask(kernels, kernels.test(operator, self.column, self.side(other)))

    def side(self, other: Vector | float) -> plc.Column | plc.Scalar:
        """A vector or a number as libcudf takes it beside this one."""
        return other.column if isinstance(other, Vector) else self._number(other)

    def _number(self, value: float) -> plc.Scalar:
        return self._kernels.number(value, self._kind)


class Mask:
    """Truth values without nulls, but where a test of nulls made them."""

    def __init__(self, kernels: Kernels, column: plc.Column) -> None:
        assert column.type().id() == TypeId.BOOL8
        self._kernels = kernels
        self.column: Final = column

    @classmethod
    def full(cls, kernels: Kernels, value: bool, rows: int) -> Mask:
        """One value so many times."""
        return cls(kernels, kernels.repeat_scalar(kernels.truth(value), rows))

    @classmethod
    def from_validity(cls, kernels: Kernels, column: plc.Column) -> Mask:
        """Where a column is not null."""
        return cls(kernels, kernels.is_valid(column))

    def __len__(self) -> int:
        return self.column.size()

    def __and__(self, other: Mask) -> Mask:
        return self._apply(BinaryOperator.LOGICAL_AND, other)

    def __or__(self, other: Mask) -> Mask:
        return self._apply(BinaryOperator.LOGICAL_OR, other)

    def __invert__(self) -> Mask:
        return Mask(self._kernels, self._kernels.invert(self.column))

    def choose(self, chosen: Vector, otherwise: Vector | float) -> Vector:
        """One where it is true, the other where it is not."""
        return Vector(self._kernels, self._kernels.where(self.column, chosen.column, chosen.side(otherwise)))

    def numbers(self) -> Vector:
        """1 for true, 0 for false, as int64."""
        return Vector(self._kernels, self._kernels.convert(self.column, INT64))

    def totals(self) -> Vector:
        """How many are true of none, the first, the first two, ... up to all."""
        return self.numbers().totals()

    def places(self) -> Vector:
        """Ascending positions of what is true."""
        kernels = self._kernels
        rows = kernels.positions(self.column.size())
        return Vector(kernels, kernels.convert(kernels.keep([rows], self.column)[0], INT64))

    def any(self) -> bool:
        """Whether one is true; the host waits."""
        return self._kernels.any_true(self.column)

    def _apply(self, operator: BinaryOperator, other: Mask) -> Mask:
        return Mask(self._kernels, self._kernels.binary(operator, self.column, other.column, BOOL))


class Vectors:
    """Where int64 numbers come from."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels

    def positions(self, rows: int) -> Vector:
        """0, 1, 2, ..."""
        return Vector.positions(self._kernels, rows)

    def full(self, value: int, rows: int) -> Vector:
        """One number so many times."""
        return Vector.full(self._kernels, value, rows)

    def concatenate(self, vectors: Sequence[Vector]) -> Vector:
        """The numbers of one vector after those of another."""
        return Vector(self._kernels, self._kernels.concatenate([vector.column for vector in vectors]))

    def interleave(self, vectors: Sequence[Vector]) -> Vector:
        """The first number of each, the second of each, ..."""
        if len(vectors) == 1:
            return vectors[0]
        kernels, table = self._kernels, plc.Table([vector.column for vector in vectors])
        return Vector(
            kernels, plc.reshape.interleave_columns(table, stream=kernels.stream, mr=kernels.memory)
        )
