"""Frames of which more is made than fits at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.frame_sizing import gather_frames
from bamquery.engine.operators.base.out_of_memory_split import (
    map_chunks_split_on_out_of_memory,
    map_split_on_out_of_memory,
)
from bamquery.engine.settings import Settings
from bamquery.errors import CancelledError, ExecutionError, MemoryLimitError


@pytest.fixture(params=[1, 3])
def context(request: pytest.FixtureRequest) -> Iterator[ExecutionContext[pa.RecordBatch]]:
    with ExecutionContext(CpuDevice(), Settings(threads=request.param)) as found:
        yield found


def frames(*sizes: int) -> list[pa.RecordBatch]:
    found, start = [], 0
    for size in sizes:
        found.append(pa.record_batch({"i": range(start, start + size)}))
        start += size
    return found


def at_most(rows: int) -> Callable[[pa.RecordBatch], list[int]]:
    def values(frame: pa.RecordBatch) -> list[int]:
        if frame.num_rows > rows:
            raise MemoryLimitError("too many")
        found: list[int] = frame.column(0).to_pylist()
        return found

    return values


@pytest.mark.parametrize("most", [1, 2, 3, 7, 100])
def test_rows_keep_their_order(context: ExecutionContext[pa.RecordBatch], most: int) -> None:
    answers = list(map_split_on_out_of_memory(context, at_most(most), frames(10, 0, 1, 33, 5)))
    assert [value for answer in answers for value in answer] == list(range(49))
    assert max(map(len, answers)) <= most


def test_what_fits_stays_whole(context: ExecutionContext[pa.RecordBatch]) -> None:
    answers = list(map_split_on_out_of_memory(context, at_most(10), frames(10, 11, 3)))
    assert list(map(len, answers)) == [10, 5, 6, 3]


def test_small_frames_are_one_chunk(context: ExecutionContext[pa.RecordBatch]) -> None:
    sizes = [3, 0, 4, 70_000, 2]
    chunks = gather_frames(context, frames(*sizes))
    answers = list(map_chunks_split_on_out_of_memory(context, at_most(80_000), chunks))
    assert list(map(len, answers)) == [7, 70_000, 2]
    assert [value for answer in answers for value in answer] == list(range(sum(sizes)))


def test_chunks_are_halved_as_frames_are(context: ExecutionContext[pa.RecordBatch]) -> None:
    answers = list(map_chunks_split_on_out_of_memory(context, at_most(5), [frames(3, 4, 1)]))
    assert list(map(len, answers)) == [4, 4]


def test_a_row_that_does_not_fit(context: ExecutionContext[pa.RecordBatch]) -> None:
    with pytest.raises(MemoryLimitError, match="too many"):
        list(map_split_on_out_of_memory(context, at_most(0), frames(4)))


def test_other_errors_come_as_they_are(context: ExecutionContext[pa.RecordBatch]) -> None:
    def fail(frame: pa.RecordBatch) -> None:
        raise ExecutionError("no")

    with pytest.raises(ExecutionError, match="no"):
        list(map_split_on_out_of_memory(context, fail, frames(4)))


def test_parts_are_made_one_by_one(context: ExecutionContext[pa.RecordBatch]) -> None:
    made: list[int] = []

    def values(frame: pa.RecordBatch) -> list[int]:
        found = at_most(2)(frame)
        made.append(len(found))
        return found

    for given, _ in enumerate(map_split_on_out_of_memory(context, values, frames(64)), start=1):
        assert len(made) == given


def test_cancelled_between_parts(context: ExecutionContext[pa.RecordBatch]) -> None:
    with closing(map_split_on_out_of_memory(context, at_most(1), frames(64))) as answers:
        next(answers)
        context.cancelled.set()
        with pytest.raises(CancelledError):
            next(answers)
