"""Where vectors of one width lie, what reading them takes, and what chance makes of scattered rows."""

import numpy as np
import pytest

from bamquery.storage.encodings.encoding import Footprint
from bamquery.storage.encodings.fixed_width import (
    expected_footprint,
    fixed_footprint,
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


@pytest.mark.parametrize("pieces", [0, 1, 10, 300, 1000, 100_000])
@pytest.mark.parametrize("runs", [1, 50, 1000])
def test_scattered_is_what_drawing_gives(pieces: int, runs: int) -> None:
    random = np.random.default_rng(0)
    ends = np.linspace(0, 1000, runs + 1).astype(int)[1:]
    position = np.arange(1000) + np.searchsorted(ends, np.arange(1000), side="right")  # a gap between runs
    hits = [np.unique(position[random.integers(0, 1000, pieces)]) for _ in range(50)]
    blocks = np.mean([len(hit) for hit in hits])
    starts = np.mean([np.count_nonzero(np.diff(hit, prepend=-9) != 1) for hit in hits])
    found = expected_footprint(pieces, Footprint(runs, 1000))
    assert found.blocks == pytest.approx(blocks, rel=0.05, abs=1)
    assert found.runs == pytest.approx(starts, rel=0.1, abs=1.5)


def test_nothing_takes_nothing() -> None:
    nothing = np.empty(0, np.int64)
    assert expected_footprint(5, Footprint(0, 0)) == Footprint(0, 0)
    assert fixed_footprint(Extent(0, 8000), 64, nothing, nothing, 512) == Footprint(0, 0)
    assert fixed_footprint(Extent(0, 8000), 64, 7, nothing, 512) == Footprint(0, 0)


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
                    assert fixed_footprint(extent, bits, rows, vectors, block).blocks == len(expected)
                offsets, lengths = vector_ranges(extent, bits, vectors)
                pairs = zip(offsets.tolist(), lengths.tolist(), strict=True)
                blocks = {b for o, n in pairs for b in range(o // block, (o + n - 1) // block + 1)}
                assert whole_footprint(extent, bits, vectors, block).blocks == len(blocks)
