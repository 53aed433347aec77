"""Pyramids count exactly what they count, and tell blocks of every width within a few percent."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bamquery.storage.encodings.encoding import BufferShape
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.read_planner.column_demands import expected_blocks, expected_vectors
from bamquery.storage.read_planner.hit_pyramid import LEVELS, NOTHING, HitPyramid
from tests.unit.storage.read_planner.selections import (
    BLOCK,
    KINDS,
    ROWS,
    SELECTIVITIES,
    VECTORS,
    WIDTHS,
    ImitatedColumn,
    select,
)


@given(st.lists(st.integers(0, 1 << 40), max_size=200))
def test_counts_are_those_of_distinct_groups(found: list[int]) -> None:
    rows = np.unique(np.array(found, np.int64))
    pyramid = HitPyramid.count(rows)
    groups = [np.unique(rows >> level) for level in range(LEVELS)]
    assert pyramid.groups == tuple(map(len, groups))
    assert pyramid.runs == tuple(min(len(g), 1) + int((np.diff(g) > 1).sum()) for g in groups)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_of_every_width(kind: str) -> None:
    for share in SELECTIVITIES:
        rows = select(kind, share).rows
        pyramid = HitPyramid.count(rows)
        for bits in (*WIDTHS, 1, 8, 16, 32, 128):
            found = expected_blocks(BufferShape(bits), pyramid, BLOCK).blocks
            exact = ImitatedColumn(bits).rows_footprint(rows, rows, BLOCK).blocks
            # Where blocks are no groups, chance decides in which of two a row lies: of few that shows.
            chance = 0.75 * exact**0.5 if bits in {13, 25} else 0
            assert found == pytest.approx(exact, rel=0.05, abs=max(2, chance)), (share, bits)


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_are_counted_exactly(kind: str) -> None:
    for share in SELECTIVITIES:
        rows = select(kind, share).rows
        vectors = np.unique(rows // VECTOR_ROWS)
        pyramid = HitPyramid.count(rows)
        assert pyramid.vectors == len(vectors)
        for bits in WIDTHS:
            found = expected_vectors(BufferShape(bits), pyramid, BLOCK)
            exact = ImitatedColumn(bits).vectors_footprint(vectors, BLOCK)
            assert found.blocks == pytest.approx(exact.blocks, rel=0.05, abs=2), (share, bits)


@pytest.mark.parametrize("kind", KINDS)
def test_runs_follow_from_neighbours(kind: str) -> None:
    """Also where only groups were counted, which is what a GPU does."""
    for share in SELECTIVITIES:
        rows = select(kind, share).rows
        counted = HitPyramid.count(rows)
        estimated = HitPyramid(counted.groups)
        exact = ImitatedColumn(64).rows_footprint(rows, rows, BLOCK).runs
        assert counted.runs_of(64) == exact
        assert estimated.runs_of(64) == pytest.approx(exact, rel=0.1, abs=0.02 * ROWS / 64), share


@pytest.mark.parametrize("share", [1e-4, 0.01, 0.3])
@pytest.mark.parametrize("kind", ["random", "clustered", "join"])
def test_thinning_is_what_another_condition_does(kind: str, share: float) -> None:
    rows = select(kind, 0.2).rows
    kept = rows[np.random.default_rng(1).random(len(rows)) < share]
    expected = HitPyramid.count(rows).thin_out(share)
    for level, exact in enumerate(HitPyramid.count(kept).groups):
        assert expected.groups[level] == pytest.approx(exact, rel=0.25, abs=8)


def test_whole_vectors() -> None:
    vectors = np.array([3, 4, 5, 90], np.int64)
    rows = (vectors[:, None] * VECTOR_ROWS + np.arange(VECTOR_ROWS)).reshape(-1)
    assert HitPyramid.from_vectors(vectors, 4 * VECTOR_ROWS) == HitPyramid.count(rows)
    assert HitPyramid.from_vectors(vectors[:0], 0) == NOTHING
    everything = HitPyramid.from_vectors(np.arange(VECTORS), ROWS)
    assert everything.groups_of(ROWS) == pytest.approx(1)
    assert everything.runs_of(4096) == 1


@pytest.mark.parametrize("rows", [0.5, 1, 1.5, 3, 700, 50_000, 200_000])
def test_between_the_sizes_that_were_counted(rows: float) -> None:
    everything = HitPyramid.count(np.arange(1 << 20))
    assert everything.groups_of(rows) == pytest.approx((1 << 20) / max(rows, 1))
    assert HitPyramid(everything.groups).runs_of(max(rows, 1)) == pytest.approx(1)
    apart = HitPyramid.count(np.arange(0, 1 << 40, 1 << 32))
    assert apart.groups_of(rows) == pytest.approx(256)
    assert apart.runs_of(rows) == pytest.approx(256)


def test_sizes_that_were_counted_are_answered_exactly() -> None:
    rows = np.arange(0, 5 << 16, 33, dtype=np.int64)
    pyramid = HitPyramid.count(rows)
    assert pyramid.runs is not None
    for level in range(LEVELS):
        assert pyramid.groups_of(1 << level) == pyramid.groups[level]
        assert pyramid.runs_of(1 << level) == pyramid.runs[level]


def test_the_curve_between_the_sizes_that_were_counted() -> None:
    """Catmull and Rom's cubic, by hand: of four rows in 1 group of 128 Ki, 2 of 64 Ki, 4 of 32 Ki each."""
    pyramid = HitPyramid.count(np.array([0, 1 << 15, 1 << 17, (1 << 17) + (1 << 15)], np.int64))
    assert pyramid.groups[13:] == (4, 4, 4, 2)
    for size, logarithm in (
        (14.5, 2 + 1 / 16),  # slopes 0 and -1/2
        (15.5, 1.5 + 1 / 16),  # slopes -1/2 and -1, as it goes on
        (16.5, 0.5),  # beyond what was counted: a line
        (17, 0),
        (30, 0),  # never less than one
    ):
        assert pyramid.groups_of(2**size) == pytest.approx(2**logarithm)
    # A curve that is about to level out goes below it: two rows in one group of 64 have no less than one.
    two = HitPyramid.count(np.array([0, 32], np.int64))
    assert two.groups_of(2**6.5) == 1


def test_rows_that_reach_into_the_next_block() -> None:
    """One that is as wide as half a block does so half of the time, unless that block is read anyway."""
    apart = HitPyramid.count(np.arange(1000) * 8 * VECTOR_ROWS)
    spread = 1000 * (1 - 64 / VECTOR_ROWS)  # the blocks of 64 rows that nobody else has read
    assert expected_blocks(BufferShape(64, width=257), apart, 512).blocks == round(1000 + spread / 2)
    assert expected_blocks(BufferShape(2, width=129), apart, 512).blocks == 1250
    assert expected_blocks(BufferShape(64, width=1), apart, 512).blocks == 1000
    assert expected_blocks(BufferShape(64, share=0.5, width=257), apart, 512).blocks == round(
        500 + spread / 4
    )


def test_half_of_four_rows_side_by_side() -> None:
    """Of n rows something is left but in 1/2^n of all cases; of two neighbours both in a quarter."""
    four = HitPyramid.count(np.arange(4, 8))
    groups = (2.0, 1.5, *[1.0] * (LEVELS - 2))  # of groups of 4 and more 15/16, but rows are somewhere
    # Three pairs of rows, one of groups of two, each of which is left in (1.5 / 2)^2 of all cases.
    runs = (2 - 3 / 4, *[1.0] * (LEVELS - 1))
    assert four.thin_out(0.5) == HitPyramid(groups, runs)
    assert HitPyramid(four.groups).thin_out(0.5) == HitPyramid(groups)


def test_edges() -> None:
    one = HitPyramid.count(np.array([7], np.int64))
    assert [one.groups_of(rows) for rows in (0.1, 1, 300, 1e9)] == [1, 1, 1, 1]
    assert one.runs_of(64) == 1
    assert HitPyramid.count(np.empty(0, np.int64)) == NOTHING
    assert NOTHING.groups_of(100) == 0
    assert one.thin_out(0.0) == NOTHING
    assert one.thin_out(1.0) is one
    assert HitPyramid.from_counts(3, range(1, LEVELS)).rows == 3
    two = HitPyramid.count(np.array([4, 5], np.int64))
    uncounted = HitPyramid(two.groups)
    assert uncounted.thin_out(0.0) == NOTHING
    for share in (0.5, 0.25):  # whatever is left is a run
        thinned = two.thin_out(share)
        assert thinned.runs is not None
        assert thinned.runs[0] == thinned.rows == 2 * share
