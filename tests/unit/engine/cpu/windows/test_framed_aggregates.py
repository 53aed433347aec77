"""Aggregates over ranges of rows: every way there is gives what the rows themselves give."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.cpu.aggregates.accumulator import Accumulator
from bamquery.engine.cpu.aggregates.registry import accumulator_of
from bamquery.engine.cpu.aggregates.string_agg import StringAgg
from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.cpu.keys.grouping import group_rows
from bamquery.engine.cpu.vectors import Vector
from bamquery.engine.cpu.windows import framed_aggregates
from bamquery.engine.cpu.windows.framed_aggregates import state_tree
from bamquery.engine.cpu.windows.rows import CpuWindowRows
from bamquery.engine.cpu.windows.running import can_accumulate, difference_states, running_states
from bamquery.engine.cpu.windows.string_sizes import FrameStringSizes
from bamquery.engine.execution.string_limits import StringLimits, use_string_limits
from bamquery.engine.windows.calls import find_partitions
from bamquery.engine.windows.partitions import Partitions
from bamquery.engine.windows.ranges import Ranges
from bamquery.plan import nodes
from bamquery.plan.expressions import AggregateCall, ColumnRef, SortKey
from tests.devices.frames import KINDS, batch_of
from tests.devices.windows import check_parts_of_a_partition
from tests.values import plain, same

HUGEINT = pa.decimal128(38, 0)
CALLS = [
    ("count", pa.int64(), pa.int64()),
    ("sum", pa.int64(), HUGEINT),
    ("avg", pa.int64(), pa.float64()),
    ("sum", pa.float64(), pa.float64()),
    ("avg", pa.float64(), pa.float64()),
    ("min", pa.float64(), pa.float64()),
    ("max", pa.float64(), pa.float64()),
    ("min", pa.int64(), pa.int64()),
    ("bool_and", pa.bool_(), pa.bool_()),
    ("first", pa.int64(), pa.int64()),
    ("last", pa.large_string(), pa.large_string()),
    ("stddev_samp", pa.float64(), pa.float64()),
]


def _column(kind: pa.DataType, rows: int) -> pa.Array:
    draw = np.random.default_rng(rows)
    values: list[Any] = [[7, -2, 2**62, None][i] for i in draw.integers(0, 4, rows)]
    if pa.types.is_floating(kind):
        values = [[1.5, float("nan"), -3.0, None][i] for i in draw.choice(4, rows, p=[0.4, 0.1, 0.3, 0.2])]
    elif pa.types.is_boolean(kind):
        values = [[True, False, None][i] for i in draw.integers(0, 3, rows)]
    elif pa.types.is_large_string(kind):
        values = [["a", "b", None][i] for i in draw.integers(0, 3, rows)]
    return pa.array(values, kind)


def _accumulator(function: str, argument: pa.DataType, result: pa.DataType) -> Accumulator:
    return accumulator_of(AggregateCall(function, (ColumnRef(0, "x", argument),), result))


def _ranges(start: np.ndarray, end: np.ndarray) -> Ranges[Vector]:
    return Ranges(Vector(start), Vector(end))


def _partitions(partition: list[pa.Array], order: list[pa.Array], rows: int) -> Partitions[Vector]:
    columns = [*partition, *order]
    batch = pa.record_batch(columns, [f"c{i}" for i in range(len(columns))])
    keys = [ColumnRef(i, f"c{i}", column.type) for i, column in enumerate(columns)]
    sort = tuple(SortKey(key) for key in keys[len(partition) :])
    window = nodes.Window(nodes.Values(batch), tuple(keys[: len(partition)]), sort, (), ())
    return find_partitions(CpuWindowRows(batch), window)


def _directly(accumulator: Accumulator, column: pa.Array, frames: list[Ranges[Vector]]) -> list[Any]:
    answers = []
    for i in range(len(frames[0].start)):
        chosen = [row for frame in frames for row in range(frame.start.values[i], frame.end.values[i])]
        rows = column.take(pa.array(chosen, pa.int64()))
        answers += plain(accumulator.final(accumulator.partial(rows, np.zeros(len(rows), np.int64), 1)))
    return answers


def _assert_same(given: pa.Array, expected: list[Any]) -> None:
    assert len(given) == len(expected)
    for mine, other in zip(plain(given), expected, strict=True):
        assert same(mine, other, 1e-12), (mine, other)


@pytest.mark.parametrize(("function", "argument", "result"), CALLS)
@pytest.mark.parametrize("rows", [1, 2, 3, 31, 32, 33, 100])
def test_overlapping_ranges(function: str, argument: pa.DataType, result: pa.DataType, rows: int) -> None:
    draw = np.random.default_rng(1)
    edges = np.sort(draw.integers(0, rows + 1, (50, 4)), axis=1)
    frames = [_ranges(edges[:, 0], edges[:, 1]), _ranges(edges[:, 2], edges[:, 3])]
    column = _column(argument, rows)
    accumulator = _accumulator(function, argument, result)
    expected = _directly(accumulator, column, frames)
    (found,) = state_tree(accumulator, column).compute_frames(frames, len(edges))
    _assert_same(found, expected)
    if accumulator.exact:
        _assert_same(difference_states(accumulator, column, frames), expected)


@pytest.mark.parametrize(("function", "argument", "result"), CALLS)
def test_growing_ranges(function: str, argument: pa.DataType, result: pa.DataType) -> None:
    rows = 600
    start = np.repeat([0, 300], 300)
    end = np.minimum(np.arange(rows) // 3 * 3, 590)
    frame = _ranges(start, np.maximum(start, end))
    accumulator = _accumulator(function, argument, result)
    column = _column(argument, rows)
    assert can_accumulate(accumulator, [frame]) == bool(accumulator.scans)
    if accumulator.scans:
        _assert_same(running_states(accumulator, column, frame), _directly(accumulator, column, [frame]))


def test_shrinking_ranges_cannot_run() -> None:
    accumulator = _accumulator("sum", pa.float64(), pa.float64())
    zeros = np.zeros(600, np.int64)
    assert not can_accumulate(accumulator, [_ranges(zeros, np.arange(600)[::-1])])
    assert not can_accumulate(accumulator, [_ranges(np.arange(600), np.full(600, 600))])


def test_strings_of_frames_are_copied_within_a_piece() -> None:
    column = pa.array([letter * 10 for letter in "abcdefghij"], pa.large_string())
    frames = [_ranges(np.maximum(np.arange(10) - 1, 0), np.arange(10) + 1)]
    accumulator = StringAgg(pa.scalar("-", column.type))
    with use_string_limits(StringLimits(piece=70)):
        sizes = FrameStringSizes.from_rows(column)
        portions = list(framed_aggregates._aggregate_by_rows(accumulator, column, frames, 0, sizes))
    assert [len(portion) for portion in portions] == [4, 3, 3]  # of 70 bytes, then 60
    found = pa.concat_arrays(portions).to_pylist()
    assert found == ["a" * 10, *(one * 10 + "-" + two * 10 for one, two in pairwise("abcdefghij"))]


def test_partitions_and_peers() -> None:
    keys = pa.array([1.0, 1.0, None, None, float("nan"), float("nan")])
    order = pa.array(["a", "b", "b", "b", "b", "c"], pa.large_string())
    found = _partitions([keys], [order], 6)
    assert found.start.values.tolist() == [0, 0, 2, 2, 4, 4]
    assert found.end.values.tolist() == [2, 2, 4, 4, 6, 6]
    assert found.peer_start.values.tolist() == [0, 1, 2, 2, 4, 5]
    assert found.peer_end.values.tolist() == [1, 2, 4, 4, 5, 6]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("offset", [0, 3])
def test_partitions_of_every_type(kind: pa.DataType, offset: int) -> None:
    """Neighbours are compared; grouping, which looks at all values, says where they differ, too."""
    rows = 60
    repeated = pa.array(np.repeat(np.arange(rows), 1 + np.arange(rows) % 3))
    column = batch_of(rows, [kind]).column(1).take(repeated)
    column = pa.concat_arrays([column, pa.nulls(3, kind), column.slice(5)])
    column = column.slice(offset)
    codes = group_rows([column], len(column)).codes
    starts = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
    found = _partitions([column], [], len(column))
    assert np.unique(found.start.values).tolist() == starts.tolist()


def test_parts_of_a_partition() -> None:
    check_parts_of_a_partition(CpuDevice())
    check_parts_of_a_partition(CpuDevice(), 900, (0, 300, 600))  # enough for running totals


@pytest.mark.parametrize(("function", "argument", "result"), CALLS)
def test_states_at_the_edges(function: str, argument: pa.DataType, result: pa.DataType) -> None:
    """Places count from the state of what is before the rows."""
    column = _column(argument, 90)
    accumulator = _accumulator(function, argument, result)
    edges = tuple(
        accumulator.partial(part, np.zeros(len(part), np.int64), 1)
        for part in (column.slice(0, 20), column.slice(60))
    )
    starts, ends = (grid.ravel() for grid in np.meshgrid(np.arange(43), np.arange(43)))
    frames = [_ranges(starts, np.maximum(starts, ends))]
    edge = np.array([0, *range(20, 61), 90])
    expected = _directly(
        accumulator, column, [_ranges(edge[frame.start.values], edge[frame.end.values]) for frame in frames]
    )
    rows = column.slice(20, 40)
    (found,) = state_tree(accumulator, rows, edges).compute_frames(frames, len(starts))
    _assert_same(found, expected)
    if accumulator.exact:
        _assert_same(difference_states(accumulator, rows, frames, edges), expected)
    growing = _ranges(np.zeros(300, np.int64), np.arange(300) // 8)
    if can_accumulate(accumulator, [growing]):
        start, end = edge[growing.start.values], edge[growing.end.values]
        wanted = _directly(accumulator, column, [_ranges(start, end)])
        _assert_same(running_states(accumulator, rows, growing, edges), wanted)
