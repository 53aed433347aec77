"""Which bytes of files hold the offsets, the bytes or the payloads of a chunk's strings, as requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.cuda.scan.kernel_tables.packed_requests import PayloadRanges
from bamquery.engine.cuda.scan.kernel_tables.requests import ChunkRows, cut_requests
from bamquery.storage.format.layout import VECTOR_ROWS, Extent

OFFSET_BYTES: Final = 8
GRAIN: Final = 16
"""Requests begin on multiples of this many bytes, at both ends."""
_REQUEST_BYTES: Final = 1 << 30
"""Of a request at most: they count bytes with 32 bits."""
_RUN: Final = np.dtype(
    [("source", np.uint64), ("target", np.uint64), ("bytes", np.int64), ("nsid", np.uint32)]
)
"""A REQUEST of any size."""


@dataclass(frozen=True)
class StringRuns:
    """Runs of a buffer that are loaded.

    Attributes:
        requests: a REQUEST each; `target` counts from 0 on, `nsid` is the number of the piece.
        places: of each of the chunk's vectors. Of offsets where they begin, in units of 16 bytes; of strings
            what is to be added to an offset (modulo 2**64) for the place of that byte.
        size: bytes of memory that they need.
    """

    requests: NDArray[Any]
    places: NDArray[Any]
    size: int


def offset_runs(
    rows: ChunkRows, extents: Sequence[Extent | None], wanted: NDArray[np.bool_] | None = None
) -> StringRuns:
    """The offsets of whole vectors, one more than each has rows; `wanted`: of which vectors, None: of all.

    Vectors that are neighbours in the file make one run, whose memory has room for 16 bytes more.
    """
    size = VECTOR_ROWS * OFFSET_BYTES
    count = rows.count
    present = np.arange(count) if wanted is None else np.flatnonzero(wanted)
    pieces = rows.vectors["piece"][present].astype(np.int64)
    numbers = rows.vectors["number"][present].astype(np.int64)
    heads = _heads((np.diff(pieces) == 0) & (np.diff(numbers) == 1), len(present))
    run = np.cumsum(heads) - 1
    at = np.arange(len(present)) * size + run * GRAIN
    places = np.zeros(count, np.uint32)
    places[present] = at // GRAIN
    firsts = np.flatnonzero(heads)
    lasts = np.append(firsts[1:], len(present))[: len(firsts)] - 1
    starts, lengths = _buffers(extents)
    runs = np.zeros(len(firsts), _RUN)
    begins = numbers[firsts] * size
    ends = np.minimum((numbers[lasts] + 1) * size + OFFSET_BYTES, lengths[pieces[firsts]])
    runs["source"] = starts[pieces[firsts]] + begins
    runs["target"] = at[firsts]
    runs["bytes"] = ends - begins
    runs["nsid"] = pieces[firsts]
    return StringRuns(cut_requests(runs, _REQUEST_BYTES), places, len(present) * size + len(firsts) * GRAIN)


def payload_bytes(
    rows: ChunkRows, payloads: Sequence[PayloadRanges], wanted: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """Where each vector's compressed strings are, as `byte_runs` takes it; `wanted`: as `offset_runs`."""
    ranges = np.zeros((rows.count, 2), np.int64)
    for number, (piece, found) in enumerate(zip(rows.pieces, payloads, strict=True)):
        own = ranges[int(rows.firsts[number]) : int(rows.firsts[number + 1])]
        own[:, 0] = found.begins[piece.vectors]
        own[:, 1] = own[:, 0] + found.sizes[piece.vectors]
    if wanted is not None:
        ranges[~wanted] = 0
    return ranges


def byte_runs(
    rows: ChunkRows, extents: Sequence[Extent | None], ranges: NDArray[np.int64]
) -> StringRuns | int:
    """The bytes of strings of vectors; those next to each other in the file make one run.

    Args:
        rows: the chunk's.
        extents: the strings' bytes in each piece's file.
        ranges: of each vector, first byte and the one behind the last; both 0 for what is not wanted.

    Returns:
        The runs; or the first vector whose bytes do not come behind those of the vectors before.
    """
    present = np.flatnonzero(ranges[:, 1] > ranges[:, 0])
    pieces = rows.vectors["piece"][present].astype(np.int64)
    starts, _ = _buffers(extents)
    begins = starts[pieces] + ranges[present, 0]
    ends = starts[pieces] + ranges[present, 1]
    same = np.diff(pieces) == 0
    overlapping = same & (begins[1:] < ends[:-1])
    if overlapping.any():
        return int(present[int(np.argmax(overlapping)) + 1])
    heads = _heads(same & (begins[1:] == ends[:-1]), len(present))
    run = np.cumsum(heads) - 1
    firsts = np.flatnonzero(heads)
    lasts = np.append(firsts[1:], len(present))[: len(firsts)] - 1
    runs = np.zeros(len(firsts), _RUN)
    sources = begins[firsts] // GRAIN * GRAIN
    sizes = ends[lasts] - sources
    room = -(-sizes // GRAIN) * GRAIN
    targets = np.cumsum(room) - room
    runs["source"], runs["target"], runs["bytes"], runs["nsid"] = sources, targets, sizes, pieces[firsts]
    places = np.zeros(rows.count, np.int64)
    places[present] = starts[pieces] + (targets - sources)[run]
    return StringRuns(cut_requests(runs, _REQUEST_BYTES), places.view(np.uint64), int(room.sum()))


def _heads(follows: NDArray[np.bool_], count: int) -> NDArray[np.bool_]:
    """Which of `count` items begin a run, where `follows` says of all but the first that they do not."""
    heads = np.ones(count, np.bool_)
    heads[1:] = ~follows
    return heads


def _buffers(extents: Sequence[Extent | None]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    found = [Extent(0, 0) if extent is None else extent for extent in extents]
    return np.array([e.offset for e in found], np.int64), np.array([e.length for e in found], np.int64)
