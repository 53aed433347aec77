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
        together: whether all of the list is one chunk: what another costs the host is more than what is done
            of it meanwhile.
    """

    full: int
    target: int
    together: bool = False

    def next_size(self, left: int) -> int:
        """Of the next one, where so many vectors are left."""
        if self.together:
            return max(left, 1)
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
    edges, vectors = firsts, resident.numbers
    if listed.numbers is not None:
        edges = np.searchsorted(listed.numbers, firsts)
        vectors = listed.numbers.astype(np.int64) - np.repeat(firsts[:-1], np.diff(edges))
    pieces: list[Piece] = []
    fragments: list[int] = []
    begun = taken = 0
    room = sizes.next_size(listed.count)
    for number, fragment in enumerate(resident.fragments):
        begin, used, last = 0, int(edges[number]), int(edges[number + 1])
        rows = fragment.rows
        while begin < rows:
            upto = min(last, begun + room)
            chosen = vectors[used:upto]
            used = upto
            end = int(chosen[-1] + 1) * VECTOR_ROWS if used < last else rows
            pieces.append(Piece(fragment, begin, end, chosen))
            fragments.append(number)
            begin, taken = end, used - begun
            if taken >= room or len(pieces) >= _PIECES:
                yield ListedChunk(Chunk(tuple(pieces)), listed, begun, tuple(fragments))
                pieces, fragments, begun = [], [], used
                room = sizes.next_size(listed.count - used)
    if pieces:
        yield ListedChunk(Chunk(tuple(pieces)), listed, begun, tuple(fragments))
