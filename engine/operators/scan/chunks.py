"""A table cut into chunks: what one worker reads at a time."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bamquery.storage.encodings.fixed_width import positions_in, rows_at
from bamquery.storage.format.layout import VECTOR_ROWS, vector_count
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.statistics.predicate import RangePredicate

CHUNK_VECTORS: Final = 1024
"""Vectors of a full chunk, about a million rows: reads are large, and few chunks fill the memory."""
MAPPED: Final = 2
"""Times as many of mapped files: a chunk's reads are not waited for, and its Python is the same."""
MAPPED_FOR_MANY: Final = 4
"""The same where more than a few threads are at work, of which no two run Python at once."""
HEAVIER_FOR_MANY: Final = 2
"""Times as many bytes and rows given out that such a chunk may have: idle threads share what it takes, so
that fewer leave none of them without work."""
FEW_THREADS: Final = 4

GIVEN_VECTORS: Final = 800
"""Vectors' worth of rows that a chunk gives out at most, about: what becomes of more fits no cache."""

CHUNK_BYTES: Final = 32 << 20
"""Most that a chunk of wide rows may weigh, so that many threads' chunks fit into memory."""
MOST_DECODED: Final = 4
"""Times as many bytes that a chunk would have if all of its rows passed, whatever share is expected."""

FIRST_VECTORS: Final = 16
"""Vectors of the first chunk. Statistics are learnt, and a LIMIT met, before much is read."""
GROWTH: Final = 256
"""How much larger each next one is until they are full: a chunk costs a millisecond whatever is in it."""

LEAST_VECTORS: Final = 16
"""Vectors of a full chunk at least, however little memory there is."""

LEAST_SHARE: Final = 64
"""Vectors that a thread's share of a table has at least: a chunk costs half a millisecond in any case."""
LEAST_SHARE_OF_MANY: Final = 256
"""The same where more than a few threads are at work, of which no two run Python at once."""

_OVERFULL: Final = 1.35
"""Times as many vectors that a chunk may have where a fragment is fewer chunks then, all alike."""
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
        given: vectors' worth of rows that a full chunk should give out at most.
        threads: that chunks are made for: in each round each of them gets one of the same size.
    """

    vectors: int
    stored_bytes: int
    first: int
    growth: int
    pieces: int
    widest: bool
    as_stored: bool = False
    enough: int = _HALF
    given: int = GIVEN_VECTORS
    threads: int = 1

    @staticmethod
    def for_threads(share: float = 1.0, threads: int = 1) -> ChunkLimits:
        """Those for a CPU's threads. `share`: of a full chunk, where memory is short."""
        vectors = min(max(int(CHUNK_VECTORS * share), LEAST_VECTORS), CHUNK_VECTORS)
        size = max(int(CHUNK_BYTES * share), 1)
        return ChunkLimits(
            vectors,
            size,
            FIRST_VECTORS,
            GROWTH,
            CHUNK_PIECES,
            widest=False,
            enough=_ENOUGH,
            threads=threads,
        )

    @functools.lru_cache(maxsize=64)  # noqa: B019 (of small values, as many as there are settings)
    def for_mapped_files(self) -> ChunkLimits:
        """Those where no read is waited for."""
        if self.threads <= FEW_THREADS:
            return replace(self, vectors=MAPPED * self.vectors)
        return replace(
            self,
            vectors=MAPPED_FOR_MANY * self.vectors,
            stored_bytes=HEAVIER_FOR_MANY * self.stored_bytes,
            given=HEAVIER_FOR_MANY * self.given,
        )

    def vectors_for_share(self, share: float) -> int:
        """Vectors of a full chunk where about that share of the rows passes."""
        return min(self.vectors, math.ceil(self.given / max(share, 1e-9)))

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
        rows: of `vectors`.
    """

    fragment: Fragment
    begin: int
    end: int
    vectors: NDArray[np.int64]
    rows: int = field(init=False)

    def __post_init__(self) -> None:
        rows = 0
        if len(self.vectors):
            last = min(VECTOR_ROWS, self.fragment.rows - int(self.vectors[-1]) * VECTOR_ROWS)
            rows = (len(self.vectors) - 1) * VECTOR_ROWS + last
        object.__setattr__(self, "rows", rows)

    @property
    def first_vector(self) -> int:
        """The vector that begins with `begin`."""
        return self.begin // VECTOR_ROWS

    @property
    def total_vectors(self) -> int:
        """Vectors within [begin, end), pruned ones included."""
        return vector_count(self.end - self.begin)

    def row_ids(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Row ids of the rows at those positions among the rows of `vectors`."""
        return rows_at(self.vectors, positions)

    def positions(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where those row ids are among the rows of `vectors`, which hold them all."""
        return positions_in(self.vectors, rows)


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
    passing: Callable[[], float] | None = None,
) -> Iterator[Chunk]:
    """Cut a table into chunks, the first ones small; vectors that zone maps rule out weigh nothing.

    Args:
        fragments: the table's, in row order.
        predicates: conditions that all must hold.
        columns: what will be read; their width bounds the chunks' rows.
        zone_maps: whether to prune at all.
        limits: how large chunks are; None: those for a CPU's threads.
        keep_vectors: which of a fragment's vectors can match by what else is known.
        passing: the share of rows that are expected to pass, asked before each full chunk; None: all.
    """
    if limits is None:
        limits = ChunkLimits.for_threads()
    rounds = _Rounds(limits, sum(fragment.vector_count for fragment in fragments), passing)
    pieces: list[Piece] = []
    taken, target = 0, min(limits.first, limits.vectors)
    for fragment in fragments:
        if zone_maps and predicates:
            survivors = fragment.zone_map.surviving_vectors(predicates)
        else:
            survivors = np.arange(fragment.vector_count, dtype=np.int64)
        if keep_vectors is not None:
            survivors = keep_vectors(fragment, survivors)
        rounds.left -= fragment.vector_count - len(survivors)
        weights = _RowWeights(fragment, columns, limits)
        begin, used = 0, 0
        while begin < fragment.rows:
            is_full = target >= limits.vectors
            if is_full and not pieces:
                rounds.begin_chunk()
            left = len(survivors) - used
            full = min(
                rounds.vectors if is_full else target,
                weights.vectors_within(limits.stored_bytes, rounds.share),
            )
            if is_full and not pieces and limits.enough * left >= full:
                full = _even_part(left, full)
            vectors = survivors[used : used + max(full - taken, 1)]
            used += len(vectors)
            end = int(vectors[-1] + 1) * VECTOR_ROWS if used < len(survivors) else fragment.rows
            pieces.append(Piece(fragment, begin, end, vectors))
            begin, taken = end, taken + len(vectors)
            rounds.left -= len(vectors)
            # A chunk of one fragment is not put together: one that is not so full is the cheaper one.
            if begin >= fragment.rows and len(pieces) == 1 and limits.enough * taken >= full:
                full = taken
            if taken >= full or len(pieces) >= limits.pieces:
                yield Chunk(tuple(pieces))
                pieces, taken, target = [], 0, min(limits.growth * target, limits.vectors)
    if pieces:
        yield Chunk(tuple(pieces))


class _Rounds:
    """Sizes of full chunks, so that each thread has about as much to do.

    Attributes:
        left: vectors that are in no chunk yet, as far as known.
        share: of the rows that are expected to pass.
        vectors: of a full chunk now.
    """

    def __init__(self, limits: ChunkLimits, left: int, passing: Callable[[], float] | None) -> None:
        self._limits = limits
        self._passing = passing
        self._chunks = 0
        self.left = left
        self.share = 1.0
        self.vectors = limits.vectors

    def begin_chunk(self) -> None:
        """Another chunk is to be cut, a round's first one by what is known by now."""
        if self._chunks % self._limits.threads == 0:
            self.share = 1.0 if self._passing is None else self._passing()
            least = LEAST_SHARE if self._limits.threads <= FEW_THREADS else LEAST_SHARE_OF_MANY
            part = max(-(-self.left // self._limits.threads), least)
            self.vectors = min(self._limits.vectors_for_share(self.share), part)
        self._chunks += 1


def _even_part(vectors: int, full: int) -> int:
    """Vectors of each of as few chunks as can be made of those, none much more than full."""
    chunks = -(-vectors // max(int(_OVERFULL * full), 1))
    return max(-(-vectors // max(chunks, 1)), 1)


class _RowWeights:
    """Bytes of a fragment's rows: of the columns, or of the widest of them."""

    def __init__(self, fragment: Fragment, columns: Sequence[str], limits: ChunkLimits) -> None:
        sizes = [fragment.sizes(name) for name in columns]
        total = max if limits.widest else sum
        rows = max(fragment.rows, 1)
        self._stored = total([one.stored for one in sizes] or [0]) / rows
        self._plain = total([one.plain for one in sizes] or [0]) / rows
        self._as_stored = limits.as_stored

    def vectors_within(self, size: int, share: float) -> int:
        """Vectors of about so many bytes, where that share of their rows is expected to pass."""
        most = math.inf
        row = self._stored
        if not self._as_stored:
            # What is read is as it is stored, and what passes is decoded.
            row = min(self._stored + share * self._plain, self._plain)
            most = MOST_DECODED * size / max(self._plain, 1)
        return max(int(min(size / max(row, 1), most) / VECTOR_ROWS), 1)
