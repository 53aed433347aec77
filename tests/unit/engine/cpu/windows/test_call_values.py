"""Values of a call for any of the rows are that part of the values of all rows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from bamquery.engine.cpu.device import CpuDevice
from bamquery.engine.cpu.kernels import Column
from bamquery.engine.cpu.windows.call_values import (
    CallValues,
    ComputedValues,
    FrameValues,
    NeighbourValues,
    RowValues,
)
from bamquery.engine.cpu.windows.compute import window_columns, window_portions
from bamquery.engine.execution.string_limits import LargeStringError, StringLimits, use_string_limits
from bamquery.statement_context.cancellation import use_cancellation_check
from tests.plans import window_of

LETTERS = pa.array(["a", "b", None, "d", "e", "f"], pa.large_string())
PLACES = np.array([5, 3, 9, 0, -4, 1])
THERE = np.array([True, True, False, True, False, True])


def _slice(column: Column) -> Callable[[int, int], Column]:
    return lambda start, stop: column.slice(start, stop - start)


def _neighbours(given: Column | None) -> NeighbourValues:
    default = pa.array(list("uvwxyz"), pa.large_string())
    return NeighbourValues(RowValues(LETTERS, PLACES, THERE), THERE, _slice(default), given)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (ComputedValues(LETTERS), LETTERS.to_pylist()),
        (RowValues(LETTERS, PLACES, THERE), ["f", "d", None, "a", None, "b"]),
        (_neighbours(None), ["f", "d", "w", "a", "y", "b"]),
        (_neighbours(pa.array([True, False, True, True, False, True])), ["f", None, "w", "a", None, "b"]),
        (FrameValues(np.array([0, 0, 2, 3, 3, 5]), _slice(LETTERS)), ["a", "a", None, "d", "d", "f"]),
    ],
    ids=["computed", "of rows", "neighbours", "neighbours at offsets", "of frames"],
)
def test_any_rows(values: CallValues, expected: list[str | None]) -> None:
    for start, stop in combinations(range(7), 2):
        assert values.compute_rows(start, stop).to_pylist() == expected[start:stop]


def test_no_row_is_there() -> None:
    one = RowValues(LETTERS.slice(0, 1), PLACES, np.zeros(6, np.bool_))
    assert one.compute_rows(1, 4).to_pylist() == [None] * 3


def test_only_frames_of_the_rows_are_computed() -> None:
    asked: list[tuple[int, int]] = []

    def values(first: int, behind: int) -> Column:
        asked.append((first, behind))
        return LETTERS.slice(first, behind - first)

    frames = FrameValues(np.array([0, 0, 2, 3, 3, 5]), values)
    for start, stop in ((0, 6), (0, 2), (1, 3), (2, 5), (5, 6)):
        frames.compute_rows(start, stop)
    assert asked == [(0, 6), (0, 1), (0, 3), (2, 4), (5, 6)]


SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.large_string()), ("b", pa.large_binary())])
TEXTS = pa.record_batch(
    [range(16), [f"text {i:05}" for i in range(16)], [b"byte %05d" % i for i in range(16)]], schema=SCHEMA
)


@pytest.mark.parametrize("column", ["t", "b"])
@pytest.mark.parametrize(
    ("piece", "rows", "sizes"),
    [
        (200, (0, 16), [16]),
        (35, (0, 16), [2] * 8),  # by halves until they fit
        (35, (3, 16), [3, 3, 3, 3, 1]),
        (15, (2, 6), [1] * 4),
    ],
)
def test_texts_come_by_as_many_rows_as_fit(
    column: str, piece: int, rows: tuple[int, int], sizes: list[int]
) -> None:
    window = window_of(f"lead({column}, 2, {column}) OVER (ORDER BY k)", SCHEMA)
    asked = 0

    def check() -> None:
        nonlocal asked
        asked += 1

    with use_string_limits(StringLimits(piece=piece)):
        portions = window_portions(window, TEXTS, None, *rows)
        found = [next(portions)[0]]
        with use_cancellation_check(check):
            found += [values for (values,) in portions]
    assert [len(one) for one in found] == sizes
    assert asked >= len(sizes) - 1
    texts = TEXTS.column(column).to_pylist()
    assert pa.concat_arrays(found).to_pylist() == [*texts[2:], *texts[14:]][slice(*rows)]


def test_a_text_of_one_row_must_fit() -> None:
    window = window_of("string_agg(t, '') OVER (ORDER BY k ROWS 1 PRECEDING)", SCHEMA)
    batch = pa.record_batch([[0, 1], ["y", "x" * 60], [None, None]], schema=SCHEMA)
    with use_string_limits(StringLimits(piece=35, most=61)):
        assert [len(one) for (one,) in window_portions(window, batch, None, 0, 2)] == [1, 1]
    with use_string_limits(StringLimits(piece=35, most=60)), pytest.raises(LargeStringError):
        list(window_portions(window, batch, None, 0, 2))


def test_of_no_rows_there_are_columns_all_the_same() -> None:
    window = window_of("lag(t) OVER (ORDER BY k), row_number() OVER (ORDER BY k)", SCHEMA)
    empty = [pa.array([], pa.large_string()), pa.array([], pa.int64())]
    assert window_columns(window, TEXTS.slice(0, 0)) == empty
    assert list(window_portions(window, TEXTS, None, 3, 3)) == [empty]
    assert CpuDevice().window(window, TEXTS.slice(0, 0)).num_rows == 0
