"""The rows of a window on a GPU: what calls over windows ask of this device."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pylibcudf as plc
from pylibcudf.types import TypeId

from bamquery.data_types.type_groups import value_type
from bamquery.engine.cuda.expressions.evaluation import evaluate_columns
from bamquery.engine.cuda.frames import CudaFrame
from bamquery.engine.cuda.kernels import INT64, Kernels, Operand, Side
from bamquery.engine.cuda.libcudf_types import device_type
from bamquery.engine.cuda.vectors import Mask, Vector, Vectors
from bamquery.engine.cuda.windows.call_values import CallValues, ComputedValues, NeighbourValues, RowValues
from bamquery.engine.cuda.windows.framed_aggregates import framed_aggregate
from bamquery.engine.cuda.windows.ranks import changes_of, rank_values
from bamquery.engine.windows.ranges import Ranges
from bamquery.engine.windows.rows import Outside, WindowRows
from bamquery.engine.windows.vectors import Mask as AnyMask
from bamquery.plan.expressions import AggregateCall, Expression, Literal


class CudaWindowRows(WindowRows[Vector, plc.Column, CallValues]):
    """At least one row, in a window's order."""

    def __init__(self, kernels: Kernels, frame: CudaFrame) -> None:
        self._kernels = kernels
        self._frame = frame
        self.count = frame.rows
        self.vectors = Vectors(kernels)

    def evaluate(self, expressions: Sequence[Expression]) -> list[plc.Column]:
        """Over the frame."""
        return evaluate_columns(self._kernels, expressions, self._frame)

    def changes(self, expressions: Sequence[Expression]) -> Mask:
        """NaNs are equal, too."""
        columns = self.evaluate(expressions)
        kinds = [value_type(expression.type) for expression in expressions]
        return changes_of(self._kernels, list(map(Operand, kinds, columns)), self.count)

    def has_nulls(self, column: plc.Column) -> bool:
        """As the column counts them."""
        return column.null_count() > 0

    def valid(self, column: plc.Column) -> Mask:
        """By the column's bitmap."""
        return Mask.from_validity(self._kernels, column)

    def numbers(self, column: plc.Column, null: int) -> Vector:
        """As int64."""
        return Vector(self._kernels, self._kernels.convert(column, INT64)).fill_nulls(null)

    def ranks(self, keys: plc.Column, targets: plc.Column, kind: pa.DataType) -> tuple[Vector, Vector]:
        """By sorting both."""
        numbers = rank_values(
            self._kernels, Operand(kind, self._kernels.concatenate([keys, targets]))
        ).numbers
        return numbers.slice(0, self.count), numbers.slice(self.count, 2 * self.count)

    def to_values(
        self, numbers: Vector, kind: pa.DataType, valid: AnyMask[Vector] | None = None
    ) -> ComputedValues:
        """As a column."""
        kernels = self._kernels
        column = kernels.convert(numbers.column, device_type(kind))
        if isinstance(valid, Mask):
            column = kernels.where(valid.column, column, kernels.null(kind))
        return ComputedValues(kernels, column)

    def values_at(self, values: plc.Column, places: Vector, there: AnyMask[Vector]) -> RowValues:
        """Gathered when they are asked for."""
        return RowValues(self._kernels, values, there.choose(places, values.size()))

    def neighbours(
        self, call: AggregateCall, found: CallValues, there: AnyMask[Vector], offsets: plc.Column
    ) -> CallValues:
        """With the default as one value where it is a constant: on all rows a long text takes too much."""
        kernels, kind = self._kernels, value_type(call.arguments[0].type)
        expression = call.arguments[2]
        default: Side
        if isinstance(expression, Literal) and expression.value.type == kind:
            default = kernels.scalar(expression.value)
        else:
            (default,) = self.evaluate([expression])
        given = kernels.is_valid(offsets) if offsets.null_count() else None
        assert isinstance(there, Mask)
        return NeighbourValues(kernels, found, there, default, given, kind)

    def aggregate(
        self, call: AggregateCall, frames: Sequence[Ranges[Vector]], outside: Outside | None
    ) -> CallValues:
        """By the shortest way that the frames allow."""
        return framed_aggregate(self._kernels, call, self._frame, frames, outside=outside)

    def materialize(self, values: CallValues, kind: pa.DataType) -> CallValues:
        """As a column."""
        if device_type(kind).id() == TypeId.STRING:
            return values
        return ComputedValues(self._kernels, values.compute_rows(0, self.count))
