"""Which way an aggregate over frames takes, what it makes at once, and what it asks before it does."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.cpu.aggregates.registry import accumulator_of
from bamquery.engine.cpu.aggregates.string_agg import StringAgg
from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.cpu.kernels import Column
from bamquery.engine.cpu.vectors import Vector
from bamquery.engine.cpu.windows import framed_aggregates, running
from bamquery.engine.cpu.windows.framed_aggregates import framed_aggregate
from bamquery.engine.cpu.windows.running import can_accumulate, difference_states, row_states, running_states
from bamquery.engine.cpu.windows.string_sizes import FrameStringSizes
from bamquery.engine.execution.string_limits import LargeStringError, StringLimits, use_string_limits
from bamquery.engine.windows.ranges import Ranges
from bamquery.plan.expressions import AggregateCall
from bamquery.statement_context.cancellation import use_cancellation_check
from tests.plans import window_of
from tests.values import plain, same

ROWS = 600
SOME = 23
SCHEMA = pa.schema(
    [("x", pa.float64()), ("i", pa.int64()), ("t", pa.large_string()), ("b", pa.large_binary())]
)
ROW = np.arange(ROWS)


def _batch() -> pa.RecordBatch:
    draw = np.random.default_rng(3)
    numbers = draw.integers(-5, 5, ROWS)
    texts = [None if n == 0 else "abcdefghij"[:n] for n in draw.integers(0, 11, ROWS)]
    return pa.record_batch(
        [pa.array(draw.integers(0, 8, ROWS) / 4), numbers, texts, [t and t.encode() for t in texts]],
        schema=SCHEMA,
    )


BATCH = _batch()


def _call(sql: str) -> AggregateCall:
    (call,) = window_of(f"{sql} OVER ()", SCHEMA).calls
    return call.call


def _ranges(start: Any, end: Any) -> Ranges[Vector]:
    return Ranges(Vector(np.asarray(start, np.int64)), Vector(np.asarray(end, np.int64)))


APART = [_ranges(ROW // 3 * 3, ROW // 3 * 3 + 3)]
SLIDING = [_ranges(np.maximum(ROW - 2, 0), ROW + 1)]
GROWING = [_ranges(ROW // 300 * 300, ROW + 1)]
WITH_HOLE = [_ranges(np.maximum(ROW - 1, 0), ROW), _ranges(ROW + 1, np.minimum(ROW + 3, ROWS))]
APART_WITH_HOLE = [_ranges(ROW, ROW), _ranges(np.minimum(ROW + 1, ROWS), np.minimum(ROW + 4, ROWS))]


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which ways have been taken."""
    taken: list[str] = []
    for name in (
        "difference_states",
        "running_states",
        "state_tree",
        "_aggregate_by_rows",
        "_first_of_frames",
    ):

        def take_way(*arguments: Any, name: str, way: Any) -> Any:
            taken.append(name)
            return way(*arguments)

        way = getattr(framed_aggregates, name)
        monkeypatch.setattr(framed_aggregates, name, partial(take_way, name=name, way=way))
    return taken


def _directly(call: AggregateCall, frames: list[Ranges[Vector]]) -> list[Any]:
    """Each frame's rows as a table of their own; with DISTINCT the first of those with the same arguments."""
    device, values = CpuDevice(), []
    aggregation = device.aggregation([], [replace(call, distinct=False)])
    arguments = list(zip(*map(plain, device.evaluate(call.arguments, BATCH).columns), strict=True))
    for i in range(0, ROWS, SOME):
        rows = [row for one in frames for row in range(one.start.values[i], one.end.values[i])]
        if call.distinct:
            rows = list({arguments[row]: row for row in reversed(rows)}.values())[::-1]
        state = aggregation.partial(device.take(BATCH, np.array(rows, np.int64)))
        values += plain(aggregation.final(state).column(0))
    return values


@pytest.mark.parametrize(
    ("sql", "frames", "taken"),
    [
        ("sum(i)", SLIDING, ["difference_states"]),
        ("sum(i)", GROWING, ["difference_states"]),
        ("sum(i) FILTER (i > 100)", WITH_HOLE, ["difference_states"]),  # no row is left
        ("sum(i)", APART, ["_aggregate_by_rows"]),
        ("max(x)", APART, ["_aggregate_by_rows"]),
        ("max(x)", SLIDING, ["state_tree"]),
        ("max(x)", WITH_HOLE, ["state_tree"]),
        ("max(x)", APART_WITH_HOLE, ["state_tree"]),
        ("max(x)", GROWING, ["running_states"]),
        ("max(t)", GROWING, ["state_tree"]),
        ("median(x)", SLIDING, ["_aggregate_by_rows"]),
        # Of rows that are equal the first of each frame is left, where that is the same for all frames.
        ("count(DISTINCT i)", GROWING, ["_first_of_frames", "difference_states"]),
        ("median(DISTINCT x)", GROWING, ["_first_of_frames", "_aggregate_by_rows"]),
        ("string_agg(DISTINCT t, ' ' ORDER BY t)", GROWING, ["_first_of_frames", "_aggregate_by_rows"]),
        ("covar_pop(DISTINCT i, x)", GROWING, ["_first_of_frames", "state_tree"]),
        ("count(DISTINCT i)", SLIDING, ["_first_of_frames", "_aggregate_by_rows"]),
        ("count(DISTINCT i)", APART, ["_aggregate_by_rows"]),
        ("count(DISTINCT i)", WITH_HOLE, ["_aggregate_by_rows"]),
    ],
)
def test_the_shortest_way(sql: str, frames: list[Ranges[Vector]], taken: list[str], ways: list[str]) -> None:
    call = _call(sql)
    values = framed_aggregate(call, BATCH, frames)
    found = [*plain(values.compute_rows(0, 100)), *plain(values.compute_rows(100, ROWS))]
    assert list(dict.fromkeys(ways)) == taken
    for mine, other in zip(found[::SOME], _directly(call, frames), strict=True):
        assert same(mine, other, 1e-9)


def test_running_totals_need_many_rows_a_start() -> None:
    """Of each start all rows to the last end are added up; that must be less than a tree over all rows."""
    accumulator = accumulator_of(_call("max(x)"))

    def can(start: Any, end: Any) -> bool:
        return can_accumulate(accumulator, [_ranges(start, end)])

    def grow(rows: int, starts: int) -> bool:
        return can(np.arange(rows) * starts // rows, np.arange(rows) + 1)

    assert [grow(rows, 1) for rows in (255, 256, 257)] == [False, True, True]
    assert [grow(rows, 2) for rows in (511, 512, 513)] == [False, True, True]
    rows, zeros = np.arange(1000), np.zeros(1000, np.int64)
    assert can(zeros, rows)
    back = np.where(rows < 400, rows, 300)  # never below the first
    assert not can(zeros, back)
    assert can(np.where(rows < 100, 0, np.where(rows < 200, 50, 70)), rows + 90)
    assert not can(np.where(rows < 100, 0, np.where(rows < 200, 50, 20)), rows + 90)
    assert not can_accumulate(accumulator, [*GROWING, *GROWING])
    assert not can_accumulate(accumulator_of(_call("median(x)")), GROWING)


def _frames_apart(sizes: list[int]) -> list[Ranges[Vector]]:
    ends = np.cumsum(sizes)
    return [_ranges(ends - sizes, ends)]


def _portions(accumulator: Any, rows: Column, frames: list[Ranges[Vector]], piece: int) -> list[int]:
    sizes = FrameStringSizes.from_rows(rows)
    with use_string_limits(StringLimits(piece=piece)):
        return [len(one) for one in framed_aggregates._aggregate_by_rows(accumulator, rows, frames, 0, sizes)]


def test_frames_are_looked_at_by_a_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight here; a larger frame is looked at alone."""
    monkeypatch.setattr(framed_aggregates, "_ROWS", 8)
    frames = _frames_apart([3, 3, 2, 1, 4, 3, 1, 9, 20, 8, 0, 1])
    found = _portions(accumulator_of(_call("median(x)")), BATCH.column(0), frames, 1 << 20)
    assert found == [3, 3, 1, 1, 1, 2, 1]


@pytest.mark.parametrize(
    ("piece", "sizes"),
    [(70, [4, 3, 3]), (69, [3, 3, 3, 1]), (60, [3, 3, 3, 1]), (20, [1] * 10), (5, [1] * 10)],
)
def test_frames_are_looked_at_by_the_bytes_of_their_texts(piece: int, sizes: list[int]) -> None:
    texts = pa.array([letter * 10 for letter in "abcdefghij"], pa.large_string())
    frames = [_ranges(np.maximum(np.arange(10) - 1, 0), np.arange(10) + 1)]  # of 10 bytes, then of 20
    assert _portions(StringAgg(pa.scalar("-", texts.type)), texts, frames, piece) == sizes


@pytest.mark.parametrize("seed", range(40))
def test_the_first_of_equal_rows(seed: int) -> None:
    """Frames with a row in common that begin apart have other first rows; else each row is first or not."""
    draw = random.Random(seed)
    count = draw.randint(1, 12)
    values = [draw.randint(0, 2) for _ in range(count)]
    cuts = sorted(draw.sample(range(count + 1), draw.randint(0, count)))
    frames = []
    for start, end in zip([0, *cuts], [*cuts, count], strict=True):
        frames += [(start, draw.randint(start, end)) for _ in range(draw.randint(0, 2))]
    if draw.random() < 0.4:
        frames.append((draw.randint(0, count), count))
    if not frames:
        frames = [(0, 0)]
    held = [set(range(*frame)) for frame in frames]
    clash = any(one & other and min(one) != min(other) for one in held for other in held)
    given = framed_aggregates._first_of_frames(
        pa.array(values), _ranges([f[0] for f in frames], [f[1] for f in frames]), 1
    )
    assert (given is None) == (clash or not any(held))
    if given is not None:
        for start, end in frames:
            firsts = [row for row in range(start, end) if values[row] not in values[start:row]]
            assert np.flatnonzero(given.values[start:end]).tolist() == [row - start for row in firsts]


@pytest.mark.parametrize("column", ["t", "b"])
def test_texts_of_frames_are_asked_for_before_they_are_made(column: str) -> None:
    """Of a tree's frames as many as there are, of the longest text each."""
    values = framed_aggregate(_call(f"max({column})"), BATCH, SLIDING)
    assert max(len(text or "") for text in BATCH.column(column).to_pylist()) == 10
    with use_string_limits(StringLimits(piece=40)):
        for start in (0, 7):
            assert len(values.compute_rows(start, start + 4)) == 4
            with pytest.raises(
                LargeStringError, match=r"max\(\) over a window would make 50 bytes for 5 rows"
            ):
                values.compute_rows(start, start + 5)


def test_texts_that_are_only_looked_at_are_not_asked_for() -> None:
    with use_string_limits(StringLimits(piece=40)):
        for sql, frames in (
            ("arg_max(i, t)", SLIDING),
            ("count(DISTINCT t)", SLIDING),
            ("arg_max(i, t)", APART),
        ):
            assert len(framed_aggregate(_call(sql), BATCH, frames).compute_rows(0, 60)) == 60


@pytest.mark.parametrize(
    ("sql", "size"),
    [("string_agg(t, '--')", 2 + 3 + 4 + 3 * 2), ("mode(t)", 9), ("any_value(t ORDER BY i)", 9)],
)
def test_texts_of_rows_are_asked_for_before_they_are_made(sql: str, size: int) -> None:
    """Of all rows with what comes between; where a text is one of the rows', no more than are there."""
    batch = pa.record_batch([[0.0] * 3, [1, 2, 3], ["ab", "abc", "abcd"], [b""] * 3], schema=SCHEMA)
    values = framed_aggregate(_call(sql), batch, [_ranges([0, 1, 3], [1, 3, 3])])
    with use_string_limits(StringLimits(piece=size)):
        assert len(values.compute_rows(0, 3)) == 3
    name = sql.partition("(")[0]
    with (
        use_string_limits(StringLimits(piece=size - 1)),
        pytest.raises(
            LargeStringError, match=rf"{name}\(\) over a window would make {size} bytes for 3 rows"
        ),
    ):
        values.compute_rows(0, 3)


def test_bytes_of_frames() -> None:
    sizes = FrameStringSizes.from_rows(pa.array(["abc", "0123456789", None], pa.large_string()))
    assert sizes is not None
    frames = [_ranges([0, 0, 2], [3, 2, 3]), _ranges([3, 3, 3], [3, 3, 3])]
    assert sizes.frame_bytes(frames).tolist() == [13, 13, 0]
    for between, size in ((None, 26), (2, 26 + 2 * 6)):
        with use_string_limits(StringLimits(piece=size)):
            sizes.require_room("f", frames, between)
        with (
            use_string_limits(StringLimits(piece=size - 1)),
            pytest.raises(LargeStringError, match=f"{size} b"),
        ):
            sizes.require_room("f", frames, between)
    many = [_ranges([0] * 4, [3] * 4)]
    with (
        use_string_limits(StringLimits(piece=39)),
        pytest.raises(LargeStringError, match="40 bytes for 4 rows"),
    ):
        sizes.require_room("f", many, None)  # four of the longest are fewer than four times all
    assert FrameStringSizes.from_rows(pa.array([1, 2])) is None


def test_long_steps_ask_whether_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before and behind the states of rows, and for each part of what follows."""
    monkeypatch.setattr(running, "_STATES", 100)
    monkeypatch.setattr(running, "_ROWS", 100)
    asked: list[bool] = []

    def count(function: Any, *arguments: Any) -> int:
        del asked[:]
        with use_cancellation_check(lambda: asked.append(True)):
            function(*arguments)
        return len(asked)

    class Watched:
        def partial(self, *arguments: Any) -> Any:
            assert asked
            del asked[:]
            return ()

    sums, extremes = accumulator_of(_call("sum(i)")), accumulator_of(_call("max(x)"))
    x, i = BATCH.column(0), BATCH.column(1)
    assert count(row_states, Watched(), x) == 1
    portions = -(-ROWS // 100)
    of_rows = count(row_states, sums, i.slice(0, 100))
    assert count(difference_states, sums, i, SLIDING) >= portions * of_rows + portions
    assert count(running_states, extremes, x, GROWING[0]) - count(row_states, extremes, x) >= 2 * 3


def test_states_where_no_row_is_left(ways: list[str]) -> None:
    """By a filter, beside states of what is before the rows and behind them."""
    none = _call("max(x) FILTER (i > 100)")
    state = CpuDevice().aggregation([], [_call("max(x)")]).partial(BATCH)
    frames = [_ranges(np.where(ROW < 300, -5, 1), np.where(ROW < 450, 3, ROWS + 2))]
    largest = max(BATCH.column(0).to_pylist())
    for outside in ((state, None), (None, state), (None, None)):
        found = framed_aggregate(none, BATCH, frames, outside).compute_rows(0, ROWS).to_pylist()
        before, after = (largest if one is not None else None for one in outside)
        assert found == [before] * 300 + [None] * 150 + [after] * 150
    assert "state_tree" in ways or "running_states" in ways
