"""Whole partitions gathered until they are worth a task, and those that do not fit memory in portions."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.execution.context import ExecutionContext
from bamquery.engine.operators.base.dynamic_filter import DynamicFilter
from bamquery.engine.operators.window import window as window_module
from bamquery.engine.operators.window.partition_starts import PartitionStarts
from bamquery.engine.operators.window.window import Window
from bamquery.engine.settings import Settings
from bamquery.errors import MemoryLimitError
from bamquery.plan.expressions import Call, ColumnRef, Expression, Literal
from tests.conformance.harness import Rows
from tests.plans import window_of

SCHEMA = pa.schema([("k", pa.int64()), ("i", pa.int64())])
K, NUMBER = ColumnRef(0, "k", pa.int64()), ColumnRef(1, "i", pa.int64())
NUMBERED = "row_number() OVER (PARTITION BY k)"
NEEDED = 3 * 16 + 144 + 32
"""Bytes of a row: itself, joined and with its value, and what the call takes, as `row_bytes.py` has it."""
ROOM = 80 * NEEDED
"""For ten shares of eight rows: two of each of three threads, of a piece in work and of what is gathered."""


def _table(sizes: Sequence[int]) -> pa.Table:
    """Partitions of these sizes."""
    keys = np.repeat(np.arange(len(sizes)), sizes)
    return pa.table([keys, np.arange(len(keys))], schema=SCHEMA)


@contextmanager
def _context(
    room: int = ROOM, folder: Path | None = None, device: CpuDevice | None = None
) -> Iterator[ExecutionContext[Any]]:
    settings = Settings().with_value("memory_limit", f"{room} B").with_value("threads", 3)
    with ExecutionContext(device or CpuDevice(), settings, spill_folder=folder) as context:
        yield context


def _window(calls: str, sizes: Sequence[int], frames: Sequence[int]) -> Window[Any]:
    return Window(Rows(_table(sizes), frames), window_of(calls, SCHEMA))


def _pieces(sizes: Sequence[int], frames: Sequence[int], room: int = ROOM) -> list[int]:
    """Rows of what is given out; each takes what such rows need, until it is done with."""
    window, busy, found = _window(NUMBERED, sizes, frames), deque[int](), []
    with _context(room) as context, context.memory.reservation("a window") as memory:
        rows = window.children[0].frames(context)
        for piece in window._collect_partitions(context, rows, memory, busy):
            assert piece is not None
            found.append(piece.num_rows if isinstance(piece, pa.RecordBatch) else piece.count)
            assert busy.pop() == NEEDED * found[-1]
    return found


@pytest.mark.parametrize(
    ("sizes", "frames", "pieces"),
    [
        ([3, 2, 1, 4, 1, 7, 2], [1], [6, 12, 2]),
        ([3, 2, 2, 4, 1, 7, 2], [1], [7, 12, 2]),
        ([6, 6], [4], [6, 6]),
        ([3, 2, 1, 4, 2], [4], [6, 6]),
        ([5, 1, 8], [3, 11], [6, 8]),
        ([20], [3], [20]),
        ([1] * 20, [20], [19, 1]),
    ],
)
def test_whole_partitions_are_gathered_until_they_are_worth_a_task(
    sizes: list[int], frames: list[int], pieces: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six rows, up to where the last partition of a frame begins."""
    monkeypatch.setattr(window_module, "GATHERED_ROWS", 6)
    assert _pieces(sizes, frames, 1 << 30) == pieces


@pytest.mark.parametrize(
    ("sizes", "pieces"), [([1] * 20, [11, 8, 1]), ([7, 1, 9, 3], [8, 9, 3]), ([3, 30, 2], [33, 2])]
)
def test_they_are_gathered_until_they_are_a_share_of_the_room(sizes: list[int], pieces: list[int]) -> None:
    """Frames are looked at by halves of a share."""
    assert _pieces(sizes, [20]) == pieces


@pytest.mark.parametrize(
    ("sizes", "frames", "pieces"),
    [
        ([100], [20], [4] * 25),
        ([4, 100, 1, 1, 2], [20], [*[4] * 26, 4]),  # what is held of those before is a piece
        ([3, 5, 100, 2], [20], [8, *[4] * 25, 2]),
        ([9, 100, 3], [20], [9, 3 + 4, *[4] * 23, 1, 3]),
        ([90, 90], [20], [*[4] * 22, 2, 2 + 4, *[4] * 21]),
    ],
)
def test_large_partitions_go_in_portions(sizes: list[int], frames: list[int], pieces: list[int]) -> None:
    """A portion is half of a share, and so is a frame: with what another one leaves it is one portion."""
    assert _pieces(sizes, frames) == pieces


@pytest.mark.parametrize(
    "calls",
    [
        NUMBERED,
        "row_number() OVER (PARTITION BY k), count(*) OVER (PARTITION BY k), lag(i) OVER (PARTITION BY k)",
    ],
)
@pytest.mark.parametrize("frames", [[5, 17, 3], [400]])
def test_the_values_are_those_of_each_partition(calls: str, frames: list[int], tmp_path: Path) -> None:
    sizes = [3, 1, 110, 1, 1, 2, 95, 30, 7]
    with _context(folder=tmp_path) as context:
        window = _window(calls, sizes, frames)
        found = pa.Table.from_batches(list(window.frames(context)))
    rows = _table(sizes).combine_chunks().to_batches()[0]
    expected = CpuDevice().window(window._window, rows)
    for mine, other in zip(found.columns, [*rows.columns, *expected.columns], strict=True):
        assert mine.combine_chunks().equals(other)
    assert 0 < window.profile.details["peak_memory"] <= ROOM


def test_values_of_a_piece_may_come_by_portions() -> None:
    class Cutting(CpuDevice):
        def window_portions(self, *rows: Any, **more: Any) -> Iterator[pa.RecordBatch]:
            (whole,) = super().window_portions(*rows, **more)
            for start in range(0, whole.num_rows, 3):
                yield whole.slice(start, 3)

    with _context(1 << 30, device=Cutting()) as context:
        frames = list(_window(NUMBERED, [4, 4], [8]).frames(context))
    assert [frame.num_rows for frame in frames] == [3, 3, 2]
    found = pa.Table.from_batches(frames)
    assert [column.to_pylist() for column in found.columns[1:]] == [list(range(8)), [1, 2, 3, 4] * 2]


def test_what_is_in_work_takes_room_too() -> None:
    """Rows that would fit wait in portions until it is done with."""
    window, busy = _window(NUMBERED, [20], [20]), deque([ROOM])
    with _context() as context, context.memory.reservation("a window") as memory:
        given = window._collect_partitions(context, window.children[0].frames(context), memory, busy)
        assert next(given) is None
        busy.popleft()
        assert [piece.count for piece in given] == [4] * 5


MEDIAN = "median(i) OVER (PARTITION BY k)"


def test_a_call_without_portions_says_that_it_does_not_fit() -> None:
    window = _window(f"{MEDIAN}, {NUMBERED}, count(*) OVER (PARTITION BY k)", [3], [3])
    with _context() as context, context.memory.reservation("a window") as memory:
        rows = window.children[0].frames(context)
        with pytest.raises(MemoryLimitError, match=r"^quantile_cont\(\), count_star\(\) over a window needs"):
            list(window._collect_partitions(context, rows, memory, deque([ROOM])))


def test_memory_that_others_have_given_back_since_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks at what is free another operator may have ended."""
    window, busy = _window(MEDIAN, [20], [20]), deque[int]()
    with _context() as context, context.memory.reservation("a window") as memory:
        monkeypatch.setattr(memory, "fits", lambda size: False)
        pieces = list(window._collect_partitions(context, window.children[0].frames(context), memory, busy))
        assert [piece.num_rows for piece in pieces] == [20]
        assert memory.held == sum(busy)


def test_the_rest_of_a_partition_ends_where_the_next_begins() -> None:
    """Of a frame with several partitions, too; from there on the others follow."""
    keys = [0, 0, 0, 0, 1, 2, 2, 2]
    batch = pa.record_batch([keys], ["k"])
    starts = PartitionStarts(CpuDevice(), [K], (batch.slice(start, 3) for start in (0, 3, 6)))
    frame, begin = next(starts)
    assert (frame.num_rows, begin) == (3, None)
    assert [rest.column(0).to_pylist() for rest in starts.rest_of_partition()] == [[0]]
    found = [(frame.column(0).to_pylist(), begin) for frame, begin in starts]
    assert found == [([1, 2], 1), ([2, 2], None)]
    assert list(starts.rest_of_partition()) == []


class _Filtered(Rows):
    def push_dynamic_filter(self, value: Expression, dynamic_filter: DynamicFilter) -> bool:
        return True


@pytest.mark.parametrize(
    ("partition", "value", "taken"),
    [
        ("k", K, True),
        ("k, i", K, True),
        ("k, i", Call("add", (K, NUMBER), pa.int64()), True),
        ("k", NUMBER, False),
        ("k", Call("add", (K, NUMBER), pa.int64()), False),
        ("k + 1", K, False),
        ("k", Literal(pa.scalar(1, pa.int64())), False),
    ],
)
def test_filters_that_leave_out_whole_partitions_go_down(
    partition: str, value: Expression, taken: bool
) -> None:
    call = window_of(f"count(*) OVER (PARTITION BY {partition})", SCHEMA)
    window = Window(_Filtered(_table([3]), [3]), call)
    assert window.push_dynamic_filter(value, DynamicFilter("a test")) is taken
    refused = Window(Rows(_table([3]), [3]), call)
    assert refused.push_dynamic_filter(value, DynamicFilter("a test")) is False
