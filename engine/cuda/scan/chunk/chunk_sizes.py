"""A run of fragments cut into what the GPU has in work at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from bamquery.engine.cuda.scan.chunk.vector_list import VectorList
from bamquery.engine.operators.scan.chunks import Chunk, Piece
from bamquery.storage.format.layout import VECTOR_ROWS

_GROWTH: Final = 8
_PIECES: Final = 256
"""Most fragments of a chunk."""
_LAST_SHARE: Final = 4
"""The last chunk is such a part of a full one: nothing overlaps what is done after it was loaded, yet one
that loads faster than the host plans gains nothing."""


@dataclass(frozen=True)
class ListedChunk:
    """Some vectors of a list.

    Attributes:
        chunk: with all rows that it covers, pruned ones too.
        listed: the list.
        first: of its vectors in the list.
        fragments: numbers of the pieces' fragments in the run.
    """

    chunk: Chunk
    listed: VectorList
    first: int
    fragments: tuple[int, ...]


@dataclass
class ChunkSizes:
    """How many vectors chunks have: few at first, then `full`, and fewer at the end.

    Attributes:
        full: of a chunk in the middle.
        target: of the next.
    """

    full: int
    target: int

    def next_size(self, left: int) -> int:
        """Of the next one, where so many vectors are left."""
        size = min(self.target, self.full)
        self.target = min(_GROWTH * size, self.full)
        last = self.full // _LAST_SHARE
        if last < left <= size + 2 * last:
            size = max(left - last, left // 2)
        return max(size, 1)


def cut_chunks(listed: VectorList, sizes: ChunkSizes) -> Iterator[ListedChunk]:
    """Chunks that together cover every row of the run once, in order."""
    resident = listed.resident
    firsts = resident.firsts.astype(np.int64)
    numbers = listed.numbers
    # Which of the list's vectors are each fragment's.
    edges = firsts if numbers is None else np.searchsorted(numbers, firsts)
    pieces: list[Piece] = []
    fragments: list[int] = []
    begun = taken = 0
    room = sizes.next_size(listed.count)
    for number, fragment in enumerate(resident.fragments):
        begin, used, last = 0, int(edges[number]), int(edges[number + 1])
        while begin < fragment.rows:
            upto = min(last, begun + room)
            if numbers is None:
                vectors = np.arange(used, upto, dtype=np.int64) - firsts[number]
            else:
                vectors = numbers[used:upto].astype(np.int64) - firsts[number]
            used = upto
            end = int(vectors[-1] + 1) * VECTOR_ROWS if used < last else fragment.rows
            pieces.append(Piece(fragment, begin, end, vectors))
            fragments.append(number)
            begin, taken = end, used - begun
            if taken >= room or len(pieces) >= _PIECES:
                yield ListedChunk(Chunk(tuple(pieces)), listed, begun, tuple(fragments))
                pieces, fragments, begun = [], [], used
                room = sizes.next_size(listed.count - used)
    if pieces:
        yield ListedChunk(Chunk(tuple(pieces)), listed, begun, tuple(fragments))
