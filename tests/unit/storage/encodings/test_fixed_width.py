"""Where vectors of one width lie, and what reading them takes."""

import numpy as np
import pytest

from bamquery.storage.encodings.encoding import Footprint
from bamquery.storage.encodings.fixed_width import (
    fixed_footprint,
    positions_in,
    rows_at,
    vector_ranges,
    whole_footprint,
)
from bamquery.storage.format.layout import VECTOR_ROWS, Extent


@pytest.mark.parametrize(("bits", "size"), [(1, 128), (8, 1024), (32, 4096), (64, 8192), (128, 16384)])
def test_vectors_lie_end_to_end(bits: int, size: int) -> None:
    rows = 2 * VECTOR_ROWS + 9
    extent = Extent(8192, -(-rows * bits // 8))
    offsets, lengths = vector_ranges(extent, bits, np.array([0, 2]))
    assert offsets.tolist() == [8192, 8192 + 2 * size]
    assert lengths.tolist() == [size, -(-9 * bits // 8)]


def test_footprints_add_up() -> None:
    assert Footprint(1, 2) + Footprint(3, 4) == Footprint(4, 6)


def test_nothing_takes_nothing() -> None:
    nothing = np.empty(0, np.int64)
    assert fixed_footprint(Extent(0, 8000), 64, nothing, 512) == Footprint(0, 0)
    assert whole_footprint(Extent(0, 8000), 64, nothing, 512) == Footprint(0, 0)


@pytest.mark.parametrize("bits", [1, 32, 64, 128])
def test_what_was_counted_before_is_not_mistaken_for_other_columns(bits: int) -> None:
    """Whatever a thread was asked before, each answer is as if it had been asked nothing."""
    extents = [Extent(offset, length * bits // 8) for offset in (4096, 4608) for length in (1 << 16, 60_000)]
    arrays = [np.sort(np.random.default_rng(seed).choice(60_000, 700, replace=False)) for seed in range(5)]
    for rows in [*arrays, *arrays]:
        vectors = np.unique(rows // VECTOR_ROWS)
        for extent in extents:
            for block in (512, 4096):
                if bits > 1:
                    starts = extent.offset + rows * bits // 8
                    expected = np.unique(starts // block)
                    assert fixed_footprint(extent, bits, rows, block).blocks == len(expected)
                offsets, lengths = vector_ranges(extent, bits, vectors)
                pairs = zip(offsets.tolist(), lengths.tolist(), strict=True)
                blocks = {b for o, n in pairs for b in range(o // block, (o + n - 1) // block + 1)}
                assert whole_footprint(extent, bits, vectors, block).blocks == len(blocks)


@pytest.mark.parametrize("vectors", [[0], [3], [0, 1, 2], [5, 6, 7], [0, 2, 3, 9], [4, 5, 8, 30, 31]])
@pytest.mark.parametrize("last", [1, 100, VECTOR_ROWS])
def test_rows_and_places(vectors: list[int], last: int) -> None:
    held = np.array(vectors, np.int64)
    rows = (held[:, None] * VECTOR_ROWS + np.arange(VECTOR_ROWS)).ravel()[
        : (len(held) - 1) * VECTOR_ROWS + last
    ]
    random = np.random.default_rng(last)
    for chosen in (
        np.arange(len(rows)),
        np.flatnonzero(random.random(len(rows)) < 0.1),
        random.permutation(len(rows)),
    ):
        before = chosen.copy()
        assert np.array_equal(rows_at(held, chosen), rows[chosen])
        assert np.array_equal(positions_in(held, rows[chosen]), chosen)
        assert np.array_equal(chosen, before)


def test_no_rows() -> None:
    nothing = np.empty(0, np.int64)
    for vectors in (nothing, np.array([1, 4])):
        assert not len(rows_at(vectors, nothing))
        assert not len(positions_in(vectors, nothing))
