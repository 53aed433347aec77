"""Ranges of rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from bamquery.engine.cpu.vectors import Vector
from bamquery.engine.windows.ranges import Ranges, distinct_frames


def _ranges(*pairs: tuple[int, int]) -> Ranges[Vector]:
    start, end = np.array(pairs, np.int64).reshape(-1, 2).T
    return Ranges(Vector(start), Vector(end))


def _pairs(ranges: Ranges[Vector]) -> list[tuple[int, int]]:
    return list(zip(ranges.start.values.tolist(), ranges.end.values.tolist(), strict=True))


@pytest.mark.parametrize(
    ("pairs", "apart"),
    [
        ([], True),
        ([(0, 9)], True),
        ([(0, 3), (3, 5)], True),
        ([(0, 3), (4, 5)], True),
        ([(0, 3), (2, 5)], False),
        ([(0, 3), (0, 3)], False),
        ([(0, 1), (1, 2), (2, 4)], True),
        ([(0, 1), (1, 3), (2, 4)], False),
        ([(0, 2), (1, 3), (3, 4)], False),
    ],
)
def test_ranges_are_apart(pairs: Sequence[tuple[int, int]], apart: bool) -> None:
    assert _ranges(*pairs).are_disjoint() is apart


def test_ranges_that_reach_beyond_the_rows() -> None:
    """Of five rows; what is before them, or behind, is one state, before theirs and behind."""
    given = _ranges((-7, -2), (-7, 3), (0, 5), (2, 9), (5, 9), (7, 9), (-1, 6), (4, 4))
    assert _pairs(given.clip(5)) == [(0, 0), (0, 3), (0, 5), (2, 5), (5, 5), (5, 5), (0, 5), (4, 4)]
    expected = [(0, 0), (0, 4), (1, 6), (3, 7), (6, 7), (7, 7), (0, 7), (5, 5)]
    assert _pairs(given.among_states(5)) == expected


def test_neighbours_that_share_a_frame() -> None:
    """A frame of several ranges is another one where any of their edges is."""
    first = _ranges((0, 2), (0, 2), (0, 2), (0, 3), (1, 3), (1, 3), (0, 2))
    second = _ranges((4, 5), (4, 5), (4, 6), (4, 6), (4, 6), (5, 6), (4, 5))
    third = _ranges(*[(9, 9)] * 7)
    for frames in ([first, second, third], [second, first, third], [third, second, first]):
        numbers, distinct = distinct_frames(frames)
        assert numbers.values.tolist() == [0, 0, 1, 2, 3, 4, 5]
        assert [_pairs(one) for one in distinct] == [
            _pairs(one.take(Vector(np.array([0, 2, 3, 4, 5, 6])))) for one in frames
        ]
    numbers, (distinct_one,) = distinct_frames([first])
    assert numbers.values.tolist() == [0, 0, 0, 1, 2, 2, 3]
    assert _pairs(distinct_one) == [(0, 2), (0, 3), (1, 3), (0, 2)]
