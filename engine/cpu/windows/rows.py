"""The rows of a window as a record batch: what calls over windows ask of this device."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.expressions.evaluation import evaluate_columns
from bamquery.engine.cpu.frames import concatenate_columns, decode_dictionary, make_batch
from bamquery.engine.cpu.kernels import (
    Column,
    boolean_column,
    boolean_values,
    compute,
    from_values,
    stored_values,
    take,
    valid_rows,
)
from bamquery.engine.cpu.keys.grouping import group_rows
from bamquery.engine.cpu.keys.key_words import canonical
from bamquery.engine.cpu.keys.sorting import sorted_positions
from bamquery.engine.cpu.vectors import Mask, Vector, Vectors
from bamquery.engine.cpu.windows.call_values import CallValues, ComputedValues, NeighbourValues, RowValues
from bamquery.engine.cpu.windows.framed_aggregates import framed_aggregate
from bamquery.engine.windows.ranges import Ranges
from bamquery.engine.windows.rows import Outside, WindowRows
from bamquery.engine.windows.vectors import Mask as AnyMask
from bamquery.plan.expressions import AggregateCall, ColumnRef, Expression, SortKey
from bamquery.statement_context.cancellation import check_cancelled


class CpuWindowRows(WindowRows[Vector, Column, CallValues]):
    """At least one row, in a window's order."""

    vectors = Vectors()

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch
        self.count = batch.num_rows

    def evaluate(self, expressions: Sequence[Expression]) -> list[Column]:
        """Without dictionaries."""
        return [decode_dictionary(column) for column in evaluate_columns(expressions, self._batch)]

    def changes(self, expressions: Sequence[Expression]) -> Mask:
        """NaNs are equal, too."""
        changes = np.zeros(self.count, np.bool_)
        changes[0] = True
        for column in self.evaluate(expressions):
            check_cancelled()
            changes[1:] |= _changes_of(column)
        return Mask(changes)

    def has_nulls(self, column: Column) -> bool:
        """As the column counts them."""
        return column.null_count > 0

    def valid(self, column: Column) -> Mask:
        """By the column's bitmap."""
        return Mask(boolean_values(compute("is_valid", column)))

    def numbers(self, column: Column, null: int) -> Vector:
        """The stored ones, without a copy where none is null."""
        values = stored_values(column).astype(np.int64, copy=False)
        return self.valid(column).choose(Vector(values), null) if column.null_count else Vector(values)

    def ranks(self, keys: Column, targets: Column, kind: pa.DataType) -> tuple[Vector, Vector]:
        """By sorting both."""
        both = concatenate_columns([keys, targets])
        rows, count = len(keys), len(both)
        order = sorted_positions(make_batch([both], count), [SortKey(ColumnRef(0, "", kind))], None)
        codes = np.asarray(group_rows([take(both, order)], count).codes)
        ranks = np.empty(count, np.int64)
        ranks[stored_values(order)] = np.cumsum(np.diff(codes, prepend=codes[:1]) != 0)
        return Vector(ranks[:rows]), Vector(ranks[rows:])

    def to_values(
        self, numbers: Vector, kind: pa.DataType, valid: AnyMask[Vector] | None = None
    ) -> ComputedValues:
        """As a column."""
        known = boolean_column(valid.values) if isinstance(valid, Mask) else None
        return ComputedValues(from_values(numbers.values, kind, known))

    def values_at(self, values: Column, places: Vector, there: AnyMask[Vector]) -> RowValues:
        """Taken when they are asked for."""
        assert isinstance(there, Mask)
        return RowValues(values, places.values, there.values)

    def neighbours(
        self, call: AggregateCall, found: CallValues, there: AnyMask[Vector], offsets: Column
    ) -> CallValues:
        """With defaults that are computed when they are asked for."""

        def defaults(start: int, stop: int) -> Column:
            rows = self._batch.slice(start, stop - start)
            (column,) = evaluate_columns([call.arguments[2]], rows)
            return decode_dictionary(column)

        assert isinstance(there, Mask)
        return NeighbourValues(found, there.values, defaults, valid_rows(offsets))

    def aggregate(
        self, call: AggregateCall, frames: Sequence[Ranges[Vector]], outside: Outside | None
    ) -> CallValues:
        """By the shortest way that the frames allow."""
        return framed_aggregate(call, self._batch, frames, outside)

    def materialize(self, values: CallValues, kind: pa.DataType) -> CallValues:
        """As a column."""
        if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
            return values
        return ComputedValues(values.compute_rows(0, self.count))


def _changes_of(column: Column) -> NDArray[np.bool_]:
    """Whether each value but the first is another one than the value before: nulls are equal, and NaNs."""
    kind = column.type
    differ: NDArray[np.bool_]
    if pa.types.is_floating(kind):
        bits = stored_values(canonical(column)).view(f"u{kind.bit_width // 8}")
        differ = bits[1:] != bits[:-1]
    elif pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        values = stored_values(column)
        differ = values[1:] != values[:-1]
    elif pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        differ = boolean_values(compute("not_equal", column.slice(1), column.slice(0, len(column) - 1)))
    else:  # dictionaries among them: their places are few
        codes = group_rows([column], len(column)).codes
        differ = codes[1:] != codes[:-1]
        return differ
    present = valid_rows(column)
    if present is not None:
        there = boolean_values(present)
        differ = np.where(there[1:] & there[:-1], differ, there[1:] != there[:-1])
    return differ
