"""A table cut into chunks: what one worker reads at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bamquery.storage.format.layout import VECTOR_ROWS, vector_count
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.plain_size import column_bytes, stored_bytes
from bamquery.storage.statistics.predicate import RangePredicate

CHUNK_VECTORS: Final = 1024
"""Vectors of a full chunk, about a million rows: reads are large, and few chunks fill the memory."""

CHUNK_BYTES: Final = 32 << 20
"""Most that a chunk of wide rows may weigh, so that many threads' chunks fit into memory."""

FIRST_VECTORS: Final = 16
"""Vectors of the first chunk. Statistics are learnt, and a LIMIT met, before much is read."""
GROWTH: Final = 8
"""How much larger each next one is until they are full: a chunk costs a millisecond whatever is in it."""

LEAST_VECTORS: Final = 16
"""Vectors of a full chunk at least, however little memory there is."""

LEAST_SHARE: Final = 256
"""Vectors that a thread's share of a table has at least: a chunk costs a millisecond whatever is in it."""

_HALF: Final = 2
"""Part of a full chunk with which it ends where its fragment does."""
_ENOUGH: Final = 8
"""The same on a CPU: to put rows of two fragments together costs as much as to read them."""

FEW_ROWS: Final = 16_384
"""Rows from which on a chunk is worth its cost, where it is known which ones they are.

Two threads that share 10,000 rows take a fifth more of the processors than one, and no less time.
"""

CHUNK_PIECES: Final = 32
"""Most fragments of one chunk: each keeps a file open while the chunk is in work."""


@dataclass(frozen=True, slots=True)
class ChunkLimits:
    """How large chunks are.

    Attributes:
        vectors: of a full chunk.
        stored_bytes: most that it may weigh.
        first: vectors of the first chunk.
        growth: how much larger each next one is until they are full.
        pieces: most fragments.
        widest: whether the widest column alone is weighed, and not all columns together: for devices that
            seldom have more than one of them in memory whole.
        as_stored: whether columns weigh what files hold, and not what they are once decoded.
        enough: part of a full chunk with which it ends where its fragment does.
    """

    vectors: int
    stored_bytes: int
    first: int
    growth: int
    pieces: int
    widest: bool
    as_stored: bool = False
    enough: int = _HALF

    @staticmethod
    def for_threads(share: float = 1.0) -> ChunkLimits:
        """Those for a CPU's threads. `share`: of a full chunk, where memory is short."""
        vectors = min(max(int(CHUNK_VECTORS * share), LEAST_VECTORS), CHUNK_VECTORS)
        size = max(int(CHUNK_BYTES * share), 1)
        return ChunkLimits(vectors, size, FIRST_VECTORS, GROWTH, CHUNK_PIECES, widest=False, enough=_ENOUGH)

    def shared(self, vectors: int, threads: int) -> ChunkLimits:
        """Those for threads that share so many vectors: no chunk is more than one of them should have."""
        share = max(-(-vectors // threads), LEAST_SHARE)
        return replace(self, vectors=min(self.vectors, share))

    def for_few_rows(self, density: float) -> ChunkLimits:
        """Those for `density` rows a vector that are known before: only these are ever decoded.

        A chunk costs a millisecond whatever is in it, and so few rows of a full one cost less.
        """
        vectors = math.ceil(FEW_ROWS / max(density, 1.0))
        if vectors <= self.vectors:
            return self
        return replace(self, vectors=vectors, first=vectors, as_stored=True)


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A chunk's part of one fragment: of its rows [begin, end), only those in `vectors` can match.

    Attributes:
        begin: first row, the start of a vector.
        end: row behind the last one, the end of a vector or of the fragment.
        vectors: ascending numbers of vectors, all within [begin, end).
    """

    fragment: Fragment
    begin: int
    end: int
    vectors: NDArray[np.int64]

    @property
    def first_vector(self) -> int:
        """The vector that begins with `begin`."""
        return self.begin // VECTOR_ROWS

    @property
    def total_vectors(self) -> int:
        """Vectors within [begin, end), pruned ones included."""
        return vector_count(self.end - self.begin)

    @property
    def rows(self) -> int:
        """Rows of `vectors`."""
        if not len(self.vectors):
            return 0
        last = min(VECTOR_ROWS, self.fragment.rows - int(self.vectors[-1]) * VECTOR_ROWS)
        return (len(self.vectors) - 1) * VECTOR_ROWS + last

    def row_ids(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Row ids of the rows at those positions among the rows of `vectors`."""
        if self._is_run:
            return positions + self._first_row
        ids: NDArray[np.int64] = (
            self.vectors[positions // VECTOR_ROWS] * VECTOR_ROWS + positions % VECTOR_ROWS
        )
        return ids

    def positions(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where those row ids are among the rows of `vectors`, which hold them all."""
        if self._is_run:
            return rows - self._first_row
        found: NDArray[np.int64] = (
            np.searchsorted(self.vectors, rows // VECTOR_ROWS) * VECTOR_ROWS + rows % VECTOR_ROWS
        )
        return found

    @property
    def _is_run(self) -> bool:
        """Whether no vector is left out between them: then ids and positions differ by a constant."""
        return bool(len(self.vectors)) and int(self.vectors[-1] - self.vectors[0]) == len(self.vectors) - 1

    @property
    def _first_row(self) -> int:
        return int(self.vectors[0]) * VECTOR_ROWS


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Pieces in the table's row order; together the chunks cover every row once."""

    pieces: tuple[Piece, ...]

    @property
    def rows(self) -> int:
        """Rows that can match."""
        return sum(piece.rows for piece in self.pieces)


def cut_chunks(
    fragments: Sequence[Fragment],
    predicates: Sequence[RangePredicate],
    columns: Sequence[str],
    zone_maps: bool,
    limits: ChunkLimits | None = None,
    *,
    keep_vectors: Callable[[Fragment, NDArray[np.int64]], NDArray[np.int64]] | None = None,
) -> Iterator[Chunk]:
    """Cut a table into chunks, the first ones small; vectors that zone maps rule out weigh nothing.

    Args:
        fragments: the table's, in row order.
        predicates: conditions that all must hold.
        columns: what will be read; their width bounds the chunks' rows.
        zone_maps: whether to prune at all.
        limits: how large chunks are; None: those for a CPU's threads.
        keep_vectors: which of a fragment's vectors can match by what else is known.
    """
    if limits is None:
        limits = ChunkLimits.for_threads()
    pieces: list[Piece] = []
    taken, target = 0, min(limits.first, limits.vectors)
    for fragment in fragments:
        if zone_maps and predicates:
            survivors = fragment.zone_map.surviving_vectors(predicates)
        else:
            survivors = np.arange(fragment.vector_count, dtype=np.int64)
        if keep_vectors is not None:
            survivors = keep_vectors(fragment, survivors)
        most = _vectors_in_limits(fragment, columns, limits)
        begin, used = 0, 0
        while begin < fragment.rows:
            room = max(min(target, most) - taken, 1)
            vectors = survivors[used : used + room]
            used += len(vectors)
            end = int(vectors[-1] + 1) * VECTOR_ROWS if used < len(survivors) else fragment.rows
            pieces.append(Piece(fragment, begin, end, vectors))
            begin, taken = end, taken + len(vectors)
            full = min(target, most)
            # A chunk of one fragment is not put together: one that is not so full is the cheaper one.
            if begin >= fragment.rows and len(pieces) == 1 and limits.enough * taken >= full:
                full = taken
            if taken >= full or len(pieces) >= limits.pieces:
                yield Chunk(tuple(pieces))
                pieces, taken, target = [], 0, min(limits.growth * target, limits.vectors)
    if pieces:
        yield Chunk(tuple(pieces))


def _vectors_in_limits(fragment: Fragment, columns: Sequence[str], limits: ChunkLimits) -> int:
    """Vectors of which the columns, or the widest of them, weigh about as much as the limits allow."""
    weigh = stored_bytes if limits.as_stored else column_bytes
    weights = [weigh(fragment, fragment.column_index(name)) for name in columns]
    whole = max(weights, default=0) if limits.widest else sum(weights)
    row = max(whole // max(fragment.rows, 1), 1)
    return max(limits.stored_bytes // (row * VECTOR_ROWS), 1)
