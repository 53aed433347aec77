"""The CPU as a device: frames are Arrow record batches, kernels are Arrow's and numpy's."""

# ruff: noqa: PLC0415 (what computes is imported when it first does: many queries need little of it)

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.capabilities import Capabilities
from bamquery.engine.cpu.frames import (
    as_type,
    batch_bytes,
    concatenate_batches,
    dictionary_of,
    longest_string,
    make_batch,
    string_bytes,
    string_lengths,
    take_batch,
    take_batch_or_null,
    value_width,
)
from bamquery.engine.cpu.kernels import filter_batch, nulls, true_positions
from bamquery.engine.execution.string_limits import LargeStringError

if TYPE_CHECKING:
    from bamquery.engine.cpu.aggregates.aggregation import CpuAggregation
    from bamquery.engine.cpu.keys.join_table import CpuJoinTable
    from bamquery.engine.device import HostPositions, Positions, RestOfPartition
    from bamquery.plan.expressions import AggregateCall, Expression
    from bamquery.plan.nodes import Field, SortKey, Window


CPU: Final = Capabilities("cpu", on_host=True, numbers_rows=True)
"""It can do all that plans may hold."""


class CpuDevice:
    """See `bamquery.engine.device.Device`; it has no state."""

    name: Final = "cpu"
    capabilities: Final = CPU
    task_size: Final = 1

    def from_arrow(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch itself."""
        return batch

    def from_columns(self, columns: Sequence[pa.Array[Any]]) -> pa.RecordBatch:
        """The columns themselves."""
        return make_batch(columns, len(columns[0]))

    def to_arrow(self, frame: pa.RecordBatch, fields: Sequence[Field]) -> pa.RecordBatch:
        """The batch with the fields' names, and dictionaries numbered as the fields want them."""
        columns = [as_type(c, f.type) for c, f in zip(frame.columns, fields, strict=True)]
        if not columns:
            return frame
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema([(f.name, f.type) for f in fields]))

    def empty(self, fields: Sequence[Field]) -> pa.RecordBatch:
        """No rows."""
        return make_batch([nulls(0, field.type) for field in fields], 0)

    def single_row(self) -> pa.RecordBatch:
        """One row without columns."""
        return make_batch([], 1)

    def row_count(self, frame: pa.RecordBatch) -> int:
        """Rows."""
        return frame.num_rows

    def nbytes(self, frame: pa.RecordBatch) -> int:
        """Memory that its rows occupy."""
        return batch_bytes(frame)

    def string_bytes(self, frame: pa.RecordBatch) -> int:
        """Bytes of strings and binaries."""
        return sum(string_bytes(column) for column in frame.columns)

    def row_width(self, frame: pa.RecordBatch) -> int:
        """Bytes of values, places and offsets."""
        return sum(map(value_width, frame.columns))

    def longest_string(self, frame: pa.RecordBatch) -> int:
        """Those of each column's longest."""
        return longest_string(frame)

    def string_lengths(self, frame: pa.RecordBatch) -> NDArray[np.uint32]:
        """Bytes of each row's strings and binaries."""
        return string_lengths(frame)

    def select(self, frame: pa.RecordBatch, columns: Sequence[int]) -> pa.RecordBatch:
        """Those columns."""
        return make_batch([frame.column(i) for i in columns], frame.num_rows)

    def join_columns(self, frames: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """Columns side by side."""
        assert len({frame.num_rows for frame in frames}) == 1
        return make_batch([column for frame in frames for column in frame.columns], frames[0].num_rows)

    def concatenate(self, frames: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """Rows of all, in order."""
        return concatenate_batches(frames)

    def slice(self, frame: pa.RecordBatch, offset: int, length: int) -> pa.RecordBatch:
        """Some rows, without a copy."""
        return frame.slice(offset, length)

    def take(self, frame: pa.RecordBatch, positions: Positions) -> pa.RecordBatch:
        """The rows at those positions."""
        return take_batch(frame, self.read_positions(positions))

    def take_or_null(self, frame: pa.RecordBatch, positions: HostPositions) -> pa.RecordBatch:
        """The rows at those positions, nulls for -1."""
        return take_batch_or_null(frame, positions)

    def evaluate(self, expressions: Sequence[Expression], frame: pa.RecordBatch) -> pa.RecordBatch:
        """One column per expression."""
        from bamquery.engine.cpu.expressions.evaluation import evaluate_columns

        return make_batch(evaluate_columns(expressions, frame), frame.num_rows)

    def dictionary_encode(self, frame: pa.RecordBatch) -> pa.RecordBatch:
        """Texts under dictionaries: their rows' places, which are copied instead of them."""
        return make_batch([dictionary_of(column) for column in frame.columns], frame.num_rows)

    def filter(self, frame: pa.RecordBatch, predicate: Expression) -> pa.RecordBatch:
        """Rows for which the predicate is true."""
        from bamquery.engine.cpu.expressions.evaluation import evaluate, evaluate_columns

        if not frame.num_rows:
            return frame
        try:
            mask = evaluate(predicate, frame)
        except LargeStringError:
            (mask,) = evaluate_columns([predicate], frame)
        if isinstance(mask, pa.Scalar):
            return frame if mask.as_py() else frame.slice(0, 0)
        if isinstance(mask, pa.BooleanArray) and mask.true_count == frame.num_rows:
            return frame
        return filter_batch(frame, mask)

    def matching_positions(self, predicate: Expression, frame: pa.RecordBatch) -> HostPositions:
        """Positions of the rows for which the predicate is true."""
        from bamquery.engine.cpu.expressions.evaluation import evaluate_columns

        (mask,) = evaluate_columns([predicate], frame)
        return true_positions(mask)

    def as_positions(self, frame: pa.RecordBatch) -> HostPositions:
        """The values of the one column."""
        return np.sort(np.asarray(frame.column(0)))

    def read_positions(self, positions: Positions) -> HostPositions:
        """The positions themselves."""
        assert isinstance(positions, np.ndarray)
        return positions

    def sort(
        self, frame: pa.RecordBatch, keys: Sequence[SortKey], limit: int | None = None
    ) -> pa.RecordBatch:
        """The rows, or the first `limit` of them, in stable order."""
        from bamquery.engine.cpu.keys.sorting import sort_batch

        return sort_batch(frame, keys, limit)

    def aggregation(self, keys: Sequence[Expression], aggregates: Sequence[AggregateCall]) -> CpuAggregation:
        """Keys and aggregates, prepared."""
        from bamquery.engine.cpu.aggregates.aggregation import CpuAggregation

        return CpuAggregation(keys, aggregates)

    def join_table(self, keys: pa.RecordBatch, nulls_equal: Sequence[bool]) -> CpuJoinTable:
        """Rows prepared to be found by their keys."""
        from bamquery.engine.cpu.keys.join_table import CpuJoinTable

        return CpuJoinTable(keys, nulls_equal)

    def partition(
        self, frame: pa.RecordBatch, keys: pa.RecordBatch, count: int, level: int
    ) -> list[pa.RecordBatch]:
        """The rows by bits of their keys' hashes: a byte for each level, the lowest ones left to joins."""
        from bamquery.engine.cpu.keys.hashing import partition_rows

        order, ends = partition_rows(keys.columns, keys.num_rows, count, level)
        ordered = take_batch(frame, order)
        return [ordered.slice(start, end - start) for start, end in zip([0, *ends], ends, strict=False)]

    def window(
        self,
        window: Window,
        frame: pa.RecordBatch,
        rest: RestOfPartition | None = None,
    ) -> pa.RecordBatch:
        """The values of a window's calls."""
        from bamquery.engine.cpu.windows.compute import window_columns

        return make_batch(window_columns(window, frame, rest), frame.num_rows)

    def window_portions(
        self,
        window: Window,
        frame: pa.RecordBatch,
        rest: RestOfPartition | None = None,
        first: int = 0,
        count: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The values of a window's calls for some rows, as strings fit."""
        from bamquery.engine.cpu.windows.compute import window_portions

        stop = frame.num_rows if count is None else first + count
        for columns in window_portions(window, frame, rest, first, stop):
            yield make_batch(columns, len(columns[0]))
