"""Where a chunk's rows are, as arrays that kernels read.

A chunk's vectors are numbered from 0 on, those of the first piece first; row r of vector v has position
1024 v + r (engine/kernels/scan_layout.hpp).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bamquery import _native
from bamquery.engine.operators.scan.chunks import Piece
from bamquery.storage.format.layout import VECTOR_ROWS, Extent
from bamquery.storage.fragments.fragment import Fragment
from bamquery.storage.fragments.stored_buffers import StoredBuffers

PLACE: Final = np.dtype(
    [("offset", np.uint64), ("map", np.uint64), ("nsid", np.uint32), ("pad", np.uint32)], align=True
)
"""A ScanPlace."""
VECTOR: Final = np.dtype([("piece", np.uint32), ("number", np.uint32)])
"""A ScanVector."""
REQUEST: Final = np.dtype(
    [("source", np.uint64), ("target", np.uint64), ("bytes", np.uint32), ("nsid", np.uint32)]
)
"""A ScanRequest."""
_FILE_BITS: Final = 42
"""Files are shorter than 4 TiB."""


@dataclass(frozen=True)
class ChunkRows:
    """Which rows a chunk has.

    Attributes:
        pieces: of the chunk, those with vectors.
        firsts: first vector of each piece, and the number of vectors behind the last.
        count: vectors.
        of_pieces: rows of each piece's vectors.
        rows: of all vectors; 1,024 each but for the last of a fragment.
        dense: positions leave nothing out: vectors, end to end, are the rows.
    """

    pieces: tuple[Piece, ...]
    firsts: NDArray[np.uint32]
    count: int
    of_pieces: NDArray[np.int64]
    rows: int
    dense: bool

    @classmethod
    def from_pieces(cls, pieces: Sequence[Piece]) -> ChunkRows:
        """Pieces of which zone maps left nothing are left out."""
        kept = tuple(piece for piece in pieces if len(piece.vectors))
        firsts = np.concatenate([[0], np.cumsum([len(piece.vectors) for piece in kept])]).astype(np.uint32)
        rows = np.array([piece.rows for piece in kept], np.int64)
        dense = not (rows[:-1] % VECTOR_ROWS).any()
        return cls(kept, firsts, int(firsts[-1]), rows, int(rows.sum()), dense)

    @cached_property
    def runs(self) -> int:
        """Runs of vectors that are neighbours in their file."""
        if not self.pieces:
            return 0
        ends = np.diff(np.concatenate([piece.vectors for piece in self.pieces])) != 1
        ends[self.firsts[1:-1].astype(np.int64) - 1] = True  # where the next piece begins
        return 1 + int(np.count_nonzero(ends))

    def place(self, vector: int) -> tuple[Fragment, int]:
        """The fragment of one of the vectors, and its number there."""
        piece = int(np.searchsorted(self.firsts, vector, "right")) - 1
        return self.pieces[piece].fragment, int(self.pieces[piece].vectors[vector - int(self.firsts[piece])])

    @cached_property
    def vectors(self) -> NDArray[Any]:
        """A VECTOR for each vector; its piece is that of the chunk."""
        found = np.zeros(self.count, VECTOR)
        found["piece"] = np.repeat(np.arange(len(self.pieces)), [len(piece.vectors) for piece in self.pieces])
        if self.pieces:
            found["number"] = np.concatenate([piece.vectors for piece in self.pieces])
        return found


def stream_requests(
    rows: ChunkRows, extents: Sequence[Extent | None], bits: int, wanted: NDArray[np.bool_] | None = None
) -> NDArray[Any]:
    """What moves whole vectors of one buffer to where they are one after the other, in the vectors' order.

    Args:
        rows: the chunk's.
        extents: the buffer in each piece's file; None where it has none.
        bits: of a row.
        wanted: which vectors; None: all.

    Returns:
        A REQUEST for each run of vectors that are neighbours in the file, piece by piece: `source` is a place
        in the file, `target` counts from 0 on, `nsid` is the number of the piece.
    """
    size = VECTOR_ROWS * bits // 8
    found = []
    for number, (piece, extent) in enumerate(zip(rows.pieces, extents, strict=True)):
        if extent is None:
            continue
        first = int(rows.firsts[number])
        vectors, places = piece.vectors, np.arange(first, first + len(piece.vectors))
        if wanted is not None:
            chosen = wanted[first : first + len(vectors)]
            vectors, places = vectors[chosen], places[chosen]
        if not len(vectors):
            continue
        # Neighbours in the file that are neighbours here, too.
        follows = (np.diff(vectors) == 1) & (np.diff(places) == 1)
        heads = np.flatnonzero(np.concatenate([[True], ~follows]))
        begins = vectors[heads] * size
        ends = begins + np.diff(heads, append=len(vectors)) * size
        requests = np.zeros(len(heads), REQUEST)
        requests["source"] = extent.offset + begins
        requests["target"] = places[heads] * size
        requests["bytes"] = np.minimum(ends, extent.length) - begins
        requests["nsid"] = number
        found.append(requests)
    return np.concatenate(found) if found else np.zeros(0, REQUEST)


def count_requests(requests: NDArray[Any], block_bytes: int) -> tuple[int, int]:
    """Runs of consecutive blocks, and distinct blocks, that requests of `stream_requests` touch."""
    # As if all files were one, far behind each other.
    sources = requests["source"].astype(np.int64) + (requests["nsid"].astype(np.int64) << _FILE_BITS)
    runs, blocks = _native.count_range_blocks(sources, requests["bytes"].astype(np.int64), block_bytes)
    return runs, blocks


def cut_requests(requests: NDArray[Any], limit: int) -> NDArray[Any]:
    """The same bytes in requests that touch at most `limit` bytes, a power of two, of aligned file."""
    sources = requests["source"].astype(np.int64)
    ends = sources + requests["bytes"]
    first = sources // limit
    parts = (ends + limit - 1) // limit - first
    owner = np.repeat(np.arange(len(requests)), parts)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(parts) - parts, parts)
    begin = np.maximum(sources[owner], (first[owner] + number) * limit)
    end = np.minimum(ends[owner], (first[owner] + number + 1) * limit)
    cut = np.zeros(len(owner), REQUEST)
    cut["source"] = begin
    cut["target"] = requests["target"][owner] + (begin - sources[owner]).astype(np.uint64)
    cut["bytes"] = end - begin
    cut["nsid"] = requests["nsid"][owner]
    return cut


def null_states(
    vectors: Sequence[NDArray[np.int64]], buffers: Sequence[StoredBuffers]
) -> NDArray[np.uint8] | None:
    """A state for each vector, see `StoredBuffers.null_states`; None where no row of them is null.

    `vectors` are numbers in the fragment of each of `buffers`.
    """
    states = [
        np.zeros(len(chosen), np.uint8)
        if column.validity is None and column.packing is None and column.compression is None
        else column.null_states(chosen)
        for chosen, column in zip(vectors, buffers, strict=True)
    ]
    joined = np.concatenate(states) if states else np.zeros(0, np.uint8)
    return joined if joined.any() else None
