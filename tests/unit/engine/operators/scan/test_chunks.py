"""Chunks cover a table exactly once, in order, and stay within their bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bamquery.engine.operators.scan.chunks import (
    CHUNK_BYTES,
    CHUNK_PIECES,
    CHUNK_VECTORS,
    FEW_ROWS,
    FIRST_VECTORS,
    GROWTH,
    ChunkLimits,
    cut_chunks,
)
from bamquery.storage.format.layout import VECTOR_ROWS, ColumnLayout, Extent, vector_count
from bamquery.storage.fragments.plain_size import ColumnSizes
from bamquery.storage.statistics.predicate import RangePredicate

ANY = [RangePredicate("x", "is_not_null")]


@dataclass
class FakeFragment:
    """Rows, a zone map that leaves the vectors it is told, and one column of some width."""

    rows: int
    survivors: list[int]
    width: int = 8
    stored: int | None = None
    """Bytes of a value in the file, if not its width."""

    @property
    def vector_count(self) -> int:
        return vector_count(self.rows)

    @property
    def zone_map(self) -> Any:
        return SimpleNamespace(surviving_vectors=lambda predicates: np.array(self.survivors, np.int64))

    @property
    def schema(self) -> pa.Schema:
        kinds = {1: pa.int8(), 8: pa.int64()}
        return pa.schema([("x", kinds.get(self.width, pa.large_string()))])

    def sizes(self, column: str) -> ColumnSizes:
        index = self.schema.names.index(column)
        return ColumnSizes.of_column(self.schema.field(index).type, self.layout.columns[index], self.rows)

    @property
    def layout(self) -> Any:
        extent = Extent(0, self.rows * (self.stored or self.width))
        return SimpleNamespace(columns=[ColumnLayout(None, None, extent)])


@st.composite
def fragments(draw: st.DrawFn) -> list[FakeFragment]:
    sizes = draw(st.lists(st.integers(1, 60 * VECTOR_ROWS), max_size=40))
    made = []
    for rows in sizes:
        kept = draw(st.lists(st.integers(0, vector_count(rows) - 1), unique=True, max_size=60))
        made.append(FakeFragment(rows, sorted(kept), draw(st.sampled_from([1, 8, 40_000]))))
    return made


@given(fragments())
def test_every_row_once_and_every_survivor_once(made: list[FakeFragment]) -> None:
    found = [piece for chunk in cut_chunks(made, ANY, ["x"], zone_maps=True) for piece in chunk.pieces]
    by_fragment: dict[int, list] = {}
    for piece in found:
        by_fragment.setdefault(id(piece.fragment), []).append(piece)
    assert list(by_fragment) == [id(fragment) for fragment in made]
    for fragment in made:
        pieces = by_fragment[id(fragment)]
        assert pieces[0].begin == 0
        assert pieces[-1].end == fragment.rows
        assert all(one.end == two.begin for one, two in pairwise(pieces))
        assert np.concatenate([piece.vectors for piece in pieces]).tolist() == fragment.survivors
        for piece in pieces:
            assert piece.begin % VECTOR_ROWS == 0
            assert (
                (piece.vectors * VECTOR_ROWS >= piece.begin) & (piece.vectors * VECTOR_ROWS < piece.end)
            ).all()
            rows = sum(min(VECTOR_ROWS, fragment.rows - v * VECTOR_ROWS) for v in piece.vectors.tolist())
            assert piece.rows == rows


@given(fragments())
def test_bounds(made: list[FakeFragment]) -> None:
    target = FIRST_VECTORS
    for chunk in cut_chunks(made, ANY, ["x"], zone_maps=True):
        assert 0 < len(chunk.pieces) <= CHUNK_PIECES
        assert sum(len(piece.vectors) for piece in chunk.pieces) <= target
        # Wide rows make chunks of fewer rows, down to one vector.
        for piece in chunk.pieces:
            assert len(piece.vectors) in (0, 1) or piece.rows * piece.fragment.width <= CHUNK_BYTES
        target = min(GROWTH * target, CHUNK_VECTORS)


def test_limits_of_a_device() -> None:
    fragment = FakeFragment(100 * VECTOR_ROWS, list(range(100)))
    limits = ChunkLimits(
        vectors=64, stored_bytes=24 * 8 * VECTOR_ROWS, first=2, growth=4, pieces=8, widest=True
    )
    found = list(cut_chunks([fragment], ANY, ["x"], True, limits))
    assert [len(chunk.pieces[0].vectors) for chunk in found] == [2, 8, 24, 22, 22, 22]


def test_chunks_of_few_rows_go_by_what_files_hold() -> None:
    """Of columns that are packed to an eighth eight times as many vectors; never more for many rows."""
    limits = ChunkLimits(
        vectors=8, stored_bytes=8 * 8 * VECTOR_ROWS, first=2, growth=2, pieces=8, widest=False
    )
    fragment = FakeFragment(100 * VECTOR_ROWS, list(range(100)))
    fragment.stored = 1
    for density, expected in ((0.1, [50, 50]), (1.0, [50, 50]), (FEW_ROWS / 16, [20] * 5)):
        few = limits.for_few_rows(density)
        found = list(cut_chunks([fragment], ANY, ["x"], True, few))
        assert [len(chunk.pieces[0].vectors) for chunk in found] == expected
    assert limits.for_few_rows(FEW_ROWS / 8) == limits
    fragment.stored = 8
    found = list(cut_chunks([fragment], ANY, ["x"], True, limits.for_few_rows(1.0)))
    assert {len(chunk.pieces[0].vectors) for chunk in found} == {10}


@pytest.mark.parametrize(
    ("vectors", "enough", "expected"),
    [
        (40, 2, [[40], [40], [40]]),
        (20, 2, [[20, 20, 20]]),
        (80, 2, [[80], [80], [80]]),
        (90, 2, [[45], [45], [45], [45], [45], [45]]),
        (20, 8, [[20], [20], [20]]),
        (7, 8, [[7, 7, 7]]),
    ],
)
def test_chunks_end_with_fragments_that_half_fill_them(
    vectors: int, enough: int, expected: list[list[int]]
) -> None:
    made = [FakeFragment(vectors * VECTOR_ROWS, list(range(vectors))) for _ in range(3)]
    limits = ChunkLimits(
        vectors=64, stored_bytes=1 << 40, first=64, growth=2, pieces=8, widest=False, enough=enough
    )
    found = cut_chunks(made, ANY, ["x"], True, limits)
    assert [[len(piece.vectors) for piece in chunk.pieces] for chunk in found] == expected


def test_without_zone_maps_or_predicates_every_vector_is_read() -> None:
    fragment = FakeFragment(5000, [1])
    for predicates, zone_maps in ((ANY, False), ([], True)):
        found = list(cut_chunks([fragment], predicates, ["x"], zone_maps=zone_maps))
        assert found[0].pieces[0].vectors.tolist() == [0, 1, 2, 3, 4]


def test_row_ids_and_positions_are_inverse() -> None:
    fragment = FakeFragment(5 * VECTOR_ROWS + 17, [1, 3, 5])
    (chunk,) = cut_chunks([fragment], ANY, ["x"], zone_maps=True)
    (piece,) = chunk.pieces
    positions = np.arange(piece.rows)
    rows = piece.row_ids(positions)
    assert rows[0] == VECTOR_ROWS
    assert rows[-1] == fragment.rows - 1
    assert (np.unique(rows // VECTOR_ROWS) == [1, 3, 5]).all()
    assert (piece.positions(rows) == positions).all()


def test_no_fragments() -> None:
    assert list(cut_chunks([], ANY, ["x"], zone_maps=True)) == []


@pytest.mark.parametrize(
    ("threads", "expected"),
    [(1, [1000, 1000]), (2, [1000, 1000]), (3, [667, 667, 666]), (100, [334, 334, 333, 333, 333, 333])],
)
def test_each_thread_has_as_much_to_do_in_each_round(threads: int, expected: list[int]) -> None:
    fragment = FakeFragment(2000 * VECTOR_ROWS, list(range(2000)))
    limits = replace(ChunkLimits.for_threads(threads=threads), first=1 << 20, given=1 << 20)
    found = cut_chunks([fragment], ANY, ["x"], True, limits)
    assert [len(chunk.pieces[0].vectors) for chunk in found] == expected


def test_the_last_round_is_shared_out_too() -> None:
    """Of fragments that the threads' rounds do not end with."""
    made = [FakeFragment(n * VECTOR_ROWS, list(range(n))) for n in (2000, 700)]
    limits = replace(ChunkLimits.for_threads(threads=2), first=1 << 20, given=1 << 20)
    found = cut_chunks(made, ANY, ["x"], True, limits)
    assert [len(chunk.pieces[0].vectors) for chunk in found] == [1000, 1000, 350, 350]


def test_chunks_of_mapped_files_are_larger_unless_most_of_them_passes() -> None:
    fragment = FakeFragment(4096 * VECTOR_ROWS, list(range(4096)))
    limits = replace(ChunkLimits.for_threads().for_mapped_files(), first=1 << 20, as_stored=True)
    for share, expected in ((1.0, [1024] * 4), (0.1, [2048] * 2)):
        found = cut_chunks([fragment], ANY, ["x"], True, limits, passing=lambda share=share: share)
        assert [len(chunk.pieces[0].vectors) for chunk in found] == expected


def test_chunks_of_mapped_files_weigh_more_where_many_threads_share_them() -> None:
    """Whatever passes: no two threads run Python at once."""
    fragment = FakeFragment(16384 * VECTOR_ROWS, list(range(16384)), width=8)
    for share, few, many in ((1.0, 1024, 2048), (0.1, 2731, 4096)):
        for threads, expected in ((4, few), (5, many)):
            limits = replace(ChunkLimits.for_threads(threads=threads).for_mapped_files(), first=1 << 20)
            limits = replace(limits, as_stored=True, stored_bytes=1 << 30)
            found = cut_chunks([fragment], ANY, ["x"], True, limits, passing=lambda share=share: share)
            assert len(next(found).pieces[0].vectors) == expected
    few, many = (ChunkLimits.for_threads(threads=n).for_mapped_files().stored_bytes for n in (4, 5))
    assert many == 2 * few


def test_chunks_of_which_little_passes_are_larger() -> None:
    """What is read weighs as much as it is stored, and only what passes as much as it is decoded."""
    fragment = FakeFragment(4096 * VECTOR_ROWS, list(range(4096)), width=8, stored=1)
    limits = replace(ChunkLimits.for_threads(), stored_bytes=64 * 8 * VECTOR_ROWS, first=1 << 20)

    def chunks(share: float) -> int:
        return len(list(cut_chunks([fragment], ANY, ["x"], True, limits, passing=lambda: share)))

    assert chunks(1.0) == math.ceil(4096 / int(1.35 * 64))
    assert chunks(1 / 8) == math.ceil(4096 / int(1.35 * 256))
    # All that passes, whatever was expected, is no more than four times as heavy.
    assert chunks(0.0) == chunks(1 / 8)
    assert chunks(3 / 8) == math.ceil(4096 / int(1.35 * 128))


def test_what_passes_is_asked_anew_in_each_round() -> None:
    fragment = FakeFragment(8000 * VECTOR_ROWS, list(range(8000)), width=1)
    shares = iter([0.1, 0.1, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    limits = replace(ChunkLimits.for_threads(threads=2), given=100)
    found = cut_chunks([fragment], ANY, ["x"], True, limits, passing=lambda: next(shares))
    sizes = [len(chunk.pieces[0].vectors) for chunk, _ in zip(found, range(6), strict=False)]
    assert sizes[:5] == [16, 1331, 1331, 1331, 1331]
    assert sizes[5] < 140
