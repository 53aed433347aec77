"""The CPU as a device: frames are Arrow record batches, kernels are Arrow's and numpy's."""

# ruff: noqa: PLC0415 (what computes is imported when it first does: many queries need little of it)

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

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
from bamquery.engine.cpu.kernels import Column, filter_batch, nulls, true_positions
from bamquery.engine.cpu.stored_frame import StoredFrame, as_frame, needed_batch, whole_batch
from bamquery.engine.execution.string_limits import LargeStringError
from bamquery.plan.expressions import referenced_columns
from bamquery.storage.format.storable_types import value_bits

if TYPE_CHECKING:
    from bamquery._native import NumberSet
    from bamquery.engine.cpu.aggregates.aggregation import CpuAggregation
    from bamquery.engine.cpu.keys.join_table import CpuJoinTable
    from bamquery.engine.device import ConditionProgram, HostPositions, Positions, RestOfPartition
    from bamquery.plan.expressions import AggregateCall, Expression, Members
    from bamquery.plan.nodes import Field, SortKey, Window
    from bamquery.storage.encodings.packed.selection import PackedSelection

CpuFrame: TypeAlias = pa.RecordBatch | StoredFrame


CPU: Final = Capabilities("cpu", on_host=True, numbers_rows=True, takes_encoded=True)
"""It can do all that plans may hold."""


class CpuDevice:
    """See `bamquery.engine.device.Device`; it has no state but its choice."""

    name: Final = "cpu"
    capabilities: Final = CPU
    task_size: Final = 1

    def __init__(self, *, programs: bool = True) -> None:
        """`programs`: expressions and aggregates are computed by programs, as far as these go."""
        self._programs = programs

    def from_arrow(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch itself."""
        return batch

    def from_columns(self, columns: Sequence[pa.Array[Any] | PackedSelection]) -> CpuFrame:
        """The columns themselves."""
        return as_frame(columns, len(columns[0]))

    def to_arrow(self, frame: CpuFrame, fields: Sequence[Field]) -> pa.RecordBatch:
        """The batch with the fields' names, and dictionaries numbered as the fields want them."""
        batch = whole_batch(frame)
        columns = [as_type(c, f.type) for c, f in zip(batch.columns, fields, strict=True)]
        if not columns:
            return batch
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema([(f.name, f.type) for f in fields]))

    def empty(self, fields: Sequence[Field]) -> pa.RecordBatch:
        """No rows."""
        return make_batch([nulls(0, field.type) for field in fields], 0)

    def single_row(self) -> pa.RecordBatch:
        """One row without columns."""
        return make_batch([], 1)

    def row_count(self, frame: CpuFrame) -> int:
        """Rows."""
        return frame.num_rows

    def nbytes(self, frame: CpuFrame) -> int:
        """Memory that its rows occupy."""
        return frame.nbytes if isinstance(frame, StoredFrame) else batch_bytes(frame)

    def string_bytes(self, frame: CpuFrame) -> int:
        """Bytes of strings and binaries."""
        return sum(map(string_bytes, _string_columns(frame)))

    def row_width(self, frame: CpuFrame) -> int:
        """Bytes of values, places and offsets."""
        return sum(
            value_width(column) if isinstance(column, pa.Array) else -(-value_bits(column.type) // 8)
            for column in frame.columns
        )

    def longest_string(self, frame: CpuFrame) -> int:
        """Those of each column's longest."""
        return longest_string(_string_columns(frame))

    def string_lengths(self, frame: CpuFrame) -> NDArray[np.uint32]:
        """Bytes of each row's strings and binaries."""
        return string_lengths(_string_columns(frame), frame.num_rows)

    def select(self, frame: CpuFrame, columns: Sequence[int]) -> CpuFrame:
        """Those columns."""
        if isinstance(frame, StoredFrame):
            return as_frame([frame.columns[i] for i in columns], frame.num_rows)
        return make_batch([frame.column(i) for i in columns], frame.num_rows)

    def join_columns(self, frames: Sequence[CpuFrame]) -> CpuFrame:
        """Columns side by side."""
        if len(frames) == 1:
            return frames[0]
        assert len({frame.num_rows for frame in frames}) == 1
        return as_frame([column for frame in frames for column in frame.columns], frames[0].num_rows)

    def concatenate(self, frames: Sequence[CpuFrame]) -> CpuFrame:
        """Rows of all, in order."""
        return frames[0] if len(frames) == 1 else concatenate_batches([whole_batch(one) for one in frames])

    def slice(self, frame: CpuFrame, offset: int, length: int) -> pa.RecordBatch:
        """Some rows, without a copy."""
        return whole_batch(frame).slice(offset, length)

    def take(self, frame: CpuFrame, positions: Positions) -> CpuFrame:
        """The rows at those positions."""
        places = self.read_positions(positions)
        if isinstance(frame, StoredFrame):
            return frame.take(places)
        return take_batch(frame, places)

    def take_or_null(self, frame: CpuFrame, positions: HostPositions) -> pa.RecordBatch:
        """The rows at those positions, nulls for -1."""
        return take_batch_or_null(whole_batch(frame), positions)

    def evaluate(self, expressions: Sequence[Expression], frame: CpuFrame) -> CpuFrame:
        """One column per expression."""
        if self._programs:
            from bamquery.engine.cpu.pipeline.compiled_expressions import compiled_columns

            return as_frame(compiled_columns(expressions, frame), frame.num_rows)
        from bamquery.engine.cpu.expressions.evaluation import evaluate_columns

        batch = needed_batch(frame, referenced_columns(*expressions))
        return make_batch(evaluate_columns(expressions, batch), frame.num_rows)

    def dictionary_encode(self, frame: CpuFrame) -> pa.RecordBatch:
        """Texts under dictionaries: their rows' places, which are copied instead of them."""
        return make_batch([dictionary_of(column) for column in whole_batch(frame).columns], frame.num_rows)

    def filter(self, frame: CpuFrame, predicate: Expression) -> CpuFrame:
        """Rows for which the predicate is true."""
        from bamquery.engine.cpu.expressions.evaluation import evaluate, evaluate_columns

        if not frame.num_rows:
            return frame
        if self._programs:
            from bamquery.engine.cpu.pipeline.compiled_expressions import compiled_mask, compiled_positions

            if isinstance(frame, StoredFrame):
                found = compiled_positions(predicate, frame)
                if found is not None:
                    return frame if len(found) == frame.num_rows else self.take(frame, found)
            else:
                passed = compiled_mask(predicate, frame)
                if passed is not None:
                    return frame if passed.true_count == frame.num_rows else filter_batch(frame, passed)
        frame = whole_batch(frame)
        try:
            mask = evaluate(predicate, frame)
        except LargeStringError:
            (mask,) = evaluate_columns([predicate], frame)
        if isinstance(mask, pa.Scalar):
            return frame if mask.as_py() else frame.slice(0, 0)
        if isinstance(mask, pa.BooleanArray) and mask.true_count == frame.num_rows:
            return frame
        return filter_batch(frame, mask)

    def matching_positions(self, predicate: Expression, frame: CpuFrame) -> HostPositions:
        """Positions of the rows for which the predicate is true."""
        from bamquery.engine.cpu.expressions.evaluation import evaluate_columns

        if self._programs:
            from bamquery.engine.cpu.pipeline.compiled_expressions import compiled_positions

            found = compiled_positions(predicate, frame)
            if found is not None:
                return found
        (mask,) = evaluate_columns([predicate], needed_batch(frame, referenced_columns(predicate)))
        return true_positions(mask)

    def condition_program(self, condition: Expression) -> ConditionProgram | None:
        """See `ProgramDevice`."""
        if not self._programs:
            return None
        from bamquery.engine.cpu.pipeline.compiled_expressions import condition_program

        return condition_program(condition)

    def number_set(self, members: Members) -> NumberSet | None:
        """See `ProgramDevice`."""
        from bamquery.engine.cpu.expressions.member_sets import number_set

        return number_set(members)

    def as_positions(self, frame: CpuFrame) -> HostPositions:
        """The values of the one column."""
        return np.sort(np.asarray(whole_batch(frame).column(0)))

    def read_positions(self, positions: Positions) -> HostPositions:
        """The positions themselves."""
        assert isinstance(positions, np.ndarray)
        return positions

    def sort(self, frame: CpuFrame, keys: Sequence[SortKey], limit: int | None = None) -> pa.RecordBatch:
        """The rows, or the first `limit` of them, in stable order."""
        from bamquery.engine.cpu.keys.sorting import sort_batch

        return sort_batch(whole_batch(frame), keys, limit)

    def gathers_in_one_pass(self, aggregates: Sequence[AggregateCall]) -> bool:
        """Programs take what is computed before them, and arguments of others are computed once a chunk."""
        return True

    def aggregation(self, keys: Sequence[Expression], aggregates: Sequence[AggregateCall]) -> CpuAggregation:
        """Keys and aggregates, prepared."""
        from bamquery.engine.cpu.aggregates.aggregation import CpuAggregation

        return CpuAggregation(keys, aggregates, programs=self._programs)

    def join_table(self, keys: CpuFrame, nulls_equal: Sequence[bool]) -> CpuJoinTable:
        """Rows prepared to be found by their keys."""
        from bamquery.engine.cpu.keys.join_table import CpuJoinTable

        return CpuJoinTable(whole_batch(keys), nulls_equal)

    def are_dense_keys(self, keys: Sequence[CpuFrame]) -> bool:
        """See `DenseKeysDevice`."""
        from bamquery.engine.cpu.keys.join_table import are_dense_keys

        return are_dense_keys([whole_batch(frame) for frame in keys])

    def join_table_of_owned(self, keys: CpuFrame, nulls_equal: Sequence[bool]) -> CpuJoinTable:
        """See `DenseKeysDevice`."""
        from bamquery.engine.cpu.keys.join_table import CpuJoinTable

        return CpuJoinTable(whole_batch(keys), nulls_equal, owned=True)

    def partition(self, frame: CpuFrame, keys: CpuFrame, count: int, level: int) -> list[pa.RecordBatch]:
        """The rows by bits of their keys' hashes: a byte for each level, the lowest ones left to joins."""
        from bamquery.engine.cpu.keys.hashing import partition_rows

        order, ends = partition_rows(whole_batch(keys).columns, keys.num_rows, count, level)
        ordered = take_batch(whole_batch(frame), order)
        return [ordered.slice(start, end - start) for start, end in zip([0, *ends], ends, strict=False)]

    def window(
        self,
        window: Window,
        frame: CpuFrame,
        rest: RestOfPartition | None = None,
    ) -> pa.RecordBatch:
        """The values of a window's calls."""
        from bamquery.engine.cpu.windows.compute import window_columns

        return make_batch(window_columns(window, whole_batch(frame), rest), frame.num_rows)

    def window_portions(
        self,
        window: Window,
        frame: CpuFrame,
        rest: RestOfPartition | None = None,
        first: int = 0,
        count: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The values of a window's calls for some rows, as strings fit."""
        from bamquery.engine.cpu.windows.compute import window_portions

        stop = frame.num_rows if count is None else first + count
        for columns in window_portions(window, whole_batch(frame), rest, first, stop):
            yield make_batch(columns, len(columns[0]))


def _string_columns(frame: CpuFrame) -> list[Column]:
    """The columns among which those of strings are: what is packed is numbers, and need not be decoded."""
    return [column for column in frame.columns if isinstance(column, pa.Array)]
