"""What each strategy asks for of a column, counted by hand: bytes, commands, runs, and values to decode."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from bamquery.storage.encodings.encoding import BufferShape, ColumnShape, Footprint
from bamquery.storage.format.layout import VECTOR_ROWS
from bamquery.storage.read_planner.column_demands import (
    ReaderShape,
    expected_blocks,
    expected_demands,
    expected_vectors,
    shape_demands,
    stored_demands,
)
from bamquery.storage.read_planner.cost_model import Path, ReadDemand
from bamquery.storage.read_planner.hit_pyramid import NOTHING, HitPyramid
from bamquery.storage.read_planner.strategy import Strategy
from tests.unit.storage.read_planner.selections import ImitatedColumn

STREAM, VECTORS, BLOCKS = Strategy.STREAM, Strategy.FETCH_VECTORS, Strategy.FETCH_BLOCKS
VECTOR = 8 * VECTOR_ROWS
"""Bytes, of 64-bit values."""
TEN = np.arange(10, dtype=np.int64)
THREE_ROWS = np.array([0, 100, 5000], np.int64)
"""In blocks 0, 1 and 78 of 64 values each, of vectors 0 and 4."""


class TwoRounds(ImitatedColumn):
    """Its vectors are described by what has to be read first, and so are single rows, once more."""

    def shape(self, vectors: NDArray[np.int64]) -> ColumnShape:
        return ColumnShape((BufferShape(self.bits),), rounds=2, form="packed", refers=True)


class Referring(ImitatedColumn):
    """Each row has something elsewhere in the column."""

    def shape(self, vectors: NDArray[np.int64]) -> ColumnShape:
        return ColumnShape((BufferShape(self.bits),), form="packed", refers=True, referring=1.0)


def test_what_rows_refer_to_is_expected_where_nothing_was_read() -> None:
    column, reader = Referring(64), ReaderShape(512)
    few = expected_demands(column, HitPyramid.count(THREE_ROWS), TEN, reader, [BLOCKS])[BLOCKS]
    # 157 of 160 blocks were not read, of which three references ask for 2.9.
    assert (few.bytes, few.commands, few.rounds) == (6 * 512, 2 + 3, 2)
    everything = HitPyramid.count(np.arange(10 * VECTOR_ROWS))
    assert expected_demands(column, everything, TEN, reader, [BLOCKS])[BLOCKS].bytes == 160 * 512


@pytest.mark.parametrize("verifies", [True, False])
def test_few_rows(verifies: bool) -> None:
    """Where groups of rows are powers of two, a pyramid tells exactly what counting does."""
    reader = ReaderShape(512, verifies=verifies)
    column = TwoRounds(64)

    def whole(path: Path, vectors: int, commands: int) -> ReadDemand:
        size = vectors * VECTOR
        checked = size if verifies else 0
        # Singly decoded, three values take as long as eighteen that are decoded together.
        return ReadDemand(path, size, commands, 2, checked, 3 * 6, "packed")

    wanted = {
        STREAM: whole(Path.SEQUENTIAL, 10, 1),
        VECTORS: whole(Path.VECTORS, 2, 2),
        BLOCKS: ReadDemand(Path.BLOCKS, 3 * 512, 2, 3, 0, 3, "rows of packed"),
    }
    assert stored_demands(column, THREE_ROWS, TEN, reader) == wanted
    assert expected_demands(column, HitPyramid.count(THREE_ROWS), TEN, reader) == wanted


def test_values_to_decode() -> None:
    """Never more than the vectors hold; all of them where no rows are named, and none of what is compared."""
    column, reader = ImitatedColumn(64), ReaderShape(512)
    many = np.arange(2 * VECTOR_ROWS, dtype=np.int64)[::2]
    found = stored_demands(column, many, TEN, reader)
    assert found[STREAM].values == 6 * VECTOR_ROWS
    assert found[VECTORS].values == 2 * VECTOR_ROWS
    assert stored_demands(column, many[:0], TEN, reader, [STREAM])[STREAM].values == 10 * VECTOR_ROWS
    compared = stored_demands(column, many, TEN, reader, decodes=False)
    assert (compared[STREAM].values, compared[VECTORS].values) == (0, 0)
    assert compared[STREAM].checked == 10 * VECTOR


@pytest.mark.parametrize(
    ("vectors", "path"),
    [
        (range(8), Path.SEQUENTIAL),
        (range(7), Path.VECTORS),
        ((*range(8), *range(10, 18)), Path.SEQUENTIAL),
        ((*range(8), *range(10, 17)), Path.VECTORS),
    ],
)
def test_runs_of_64_kib_are_a_stream(vectors: range | tuple[int, ...], path: Path) -> None:
    candidates = np.array(vectors, np.int64)
    found = stored_demands(ImitatedColumn(64), candidates, candidates, ReaderShape(512), [STREAM])
    assert found[STREAM].path is path


def test_long_runs_are_several_requests() -> None:
    for request_bytes, commands in ((None, 1), (81_921, 1), (81_920, 2), (16_384, 6)):
        reader = ReaderShape(512, request_bytes)
        assert stored_demands(ImitatedColumn(64), TEN, TEN, reader, [STREAM])[STREAM].commands == commands


def test_vectors_that_begin_within_blocks() -> None:
    """1,000 rows apart, in vectors of 1,664 bytes (13 bits a value): the blocks at both ends are shared."""
    apart = HitPyramid.count(np.arange(1000) * 8 * VECTOR_ROWS)
    # 3.25 blocks each, and 3/4 of a block more on average where a vector begins at multiples of 128 bytes.
    assert expected_vectors(BufferShape(13), apart, 512) == Footprint(1000, 4000)
    assert expected_vectors(BufferShape(64), apart, 512) == Footprint(1000, 16_000)
    assert expected_vectors(BufferShape(4), apart, 512) == Footprint(1000, 1000)
    # On average 11.3 bits, of which each vector has its own: they begin at multiples of 16 bytes.
    blocks = 11.3 * VECTOR_ROWS / 8 / 512 + 1 - 16 / 512
    assert expected_vectors(BufferShape(11.3), apart, 512) == Footprint(1000, round(1000 * blocks))


@pytest.mark.parametrize("expected", [expected_vectors, expected_blocks])
def test_of_shares_and_of_nothing(expected) -> None:
    apart = HitPyramid.count(np.arange(100) * 8 * VECTOR_ROWS)
    blocks = expected(BufferShape(64), apart, 512).blocks
    assert expected(BufferShape(64, share=0.25), apart, 512) == Footprint(25, blocks // 4)
    one = HitPyramid.count(np.array([7], np.int64))
    assert expected(BufferShape(1, share=0.01), one, 512) == Footprint(1, 1), "it may be there"
    assert expected(BufferShape(0), apart, 512) == Footprint(0, 0), "constants are not stored"
    assert expected(BufferShape(64), NOTHING, 512) == Footprint(0, 0)


def test_rows_that_need_no_second_block_reach_into_none() -> None:
    """Texts that are mostly empty are no byte long on average, and numbers of a bit are in one byte."""
    apart = HitPyramid.count(np.arange(1000) * 8 * VECTOR_ROWS)
    for width in (0.25, 1):
        assert expected_blocks(BufferShape(8, width=width), apart, 512).blocks == 1000


def test_rows_in_blocks_of_a_vector_and_more_reach_into_the_next() -> None:
    apart = HitPyramid.count(np.arange(1000) * 8 * VECTOR_ROWS)
    for bits in (4, 2):
        assert expected_blocks(BufferShape(bits, width=129), apart, 512).blocks == 1250


@pytest.mark.parametrize("every", [1, 3, 64, 512, 700, 5000])
def test_wider_rows_never_take_fewer_blocks(every: int) -> None:
    """Also between the sizes that were counted, where a curve tells of more blocks than there are."""
    hits = HitPyramid.count(np.arange(0, 1 << 20, every))
    for bits in (3, 5.657, 13, 64):
        narrow, wide = (expected_blocks(BufferShape(bits, width=width), hits, 512) for width in (1, 257))
        assert wide.blocks >= narrow.blocks


def test_a_gpu_that_sees_rows_loads_their_sectors() -> None:
    """Of 32 bytes each: single values of whatever is in memory that it can reach."""
    hits = HitPyramid.count(np.arange(6) * 10 * VECTOR_ROWS)
    shape = ColumnShape((BufferShape(64), BufferShape(16, share=0.5)), form="packed")
    reader = ReaderShape(512, sees_rows=True)
    assert shape_demands(shape, hits, 100, 3, reader, [BLOCKS])[BLOCKS] == ReadDemand(Path.ROWS, 9 * 32, 9)


def test_rows_beside_others_in_a_line_are_work() -> None:
    """Of 8 bits, 128 rows share one, of 64 bits sixteen: all but the first of each are values."""
    hits = HitPyramid.count(np.arange(10 * VECTOR_ROWS))
    reader = ReaderShape(512, sees_rows=True)
    for bits, sectors in ((8, 320), (64, 2560)):
        shape = ColumnShape((BufferShape(bits),))
        found = shape_demands(shape, hits, 10, 1, reader, [BLOCKS])[BLOCKS]
        wanted = ReadDemand(Path.ROWS, sectors * 32, sectors // 4, values=10 * VECTOR_ROWS - sectors // 4)
        assert found == wanted
