"""Where the payloads of packed vectors are in files, and what moves them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.cuda.scan.kernel_tables.requests import REQUEST, ChunkRows
from bamquery.storage.encodings.packed.parameters import (
    RAW,
    escapes,
    forms,
    has_nulls,
    payload_bytes,
    payload_starts,
)
from bamquery.storage.format.layout import VECTOR_ROWS, Extent
from bamquery.storage.fragments.stored_buffers import StoredBuffers

SLACK: Final = 16
"""Bytes behind the last payload that kernels may load, whatever is there."""
PACKED: Final = struct.Struct("<6Q")
"""A ScanPacked (engine/kernels/packed/scan_packed.hpp), of addresses."""
SCALE: Final = np.dtype([("divisor", np.uint64), ("origin", np.uint64)])
"""A PackedScale."""
_KINDS: Final[Mapping[int, str]] = MappingProxyType(
    {1: "bool", 8: "int8", 16: "int16", 32: "int32", 64: "int64", 128: "int128"}
)
"""Kinds of values by bits: those of one width have payloads of one size."""


@dataclass(frozen=True)
class PayloadRanges:
    """Of each vector of one fragment's column.

    Attributes:
        begins: in the column's buffer, in bytes.
        sizes: in bytes.
        contiguous: no vector begins but where the one before ends.
        has_more: some vector has something behind its codes or raw values: escapes, or a bitmap.
    """

    begins: NDArray[np.int64]
    sizes: NDArray[np.int64]
    contiguous: bool
    has_more: bool

    def total(self, vectors: NDArray[np.int64]) -> int:
        """Bytes of ascending vectors."""
        if not len(vectors):
            return 0
        first, last = int(vectors[0]), int(vectors[-1])
        if self.contiguous and last - first + 1 == len(vectors):
            return int(self.begins[last] + self.sizes[last] - self.begins[first])
        return int(self.sizes[vectors].sum())


def payload_ranges(buffers: StoredBuffers) -> PayloadRanges:
    """Those of a packed or compressed column."""
    if buffers.compression is not None:
        column = buffers.compression.column
        # That payloads lie end to end was looked at.
        return PayloadRanges(column.payload_starts, column.payload_lengths, contiguous=True, has_more=True)
    packing = buffers.packing
    assert packing is not None
    parameters = packing.parameters
    rows = np.minimum(buffers.rows - np.arange(len(parameters)) * VECTOR_ROWS, VECTOR_ROWS)
    begins = payload_starts(parameters)
    sizes = payload_bytes(parameters, rows, _KINDS[buffers.bits])
    contiguous = bool((begins[1:] == begins[:-1] + sizes[:-1]).all())
    raw = forms(parameters) == RAW
    has_more = bool((escapes(parameters) > 0).any() or (raw & has_nulls(parameters)).any())
    return PayloadRanges(begins, sizes, contiguous, has_more)


def scales(columns: Sequence[StoredBuffers]) -> NDArray[Any]:
    """A SCALE for each fragment of a packed column."""
    found = np.zeros(len(columns), SCALE)
    for number, buffers in enumerate(columns):
        assert buffers.packing is not None
        found[number] = buffers.packing.divisor % (1 << 64), buffers.packing.origin % (1 << 64)
    return found


def payload_requests(
    rows: ChunkRows,
    extents: Sequence[Extent | None],
    ranges: Sequence[PayloadRanges],
    wanted: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[Any], int]:
    """What moves payloads to where they are one after the other, in the vectors' order.

    Args:
        rows: the chunk's.
        extents: the column's buffer in each piece's file.
        ranges: the payloads in it.
        wanted: of which vectors; None: of all.

    Returns:
        As `requests.stream_requests`; and the bytes of all of them.
    """
    found = []
    target = 0
    for number, (piece, extent, payloads) in enumerate(zip(rows.pieces, extents, ranges, strict=True)):
        assert extent is not None
        vectors = piece.vectors
        if wanted is not None:
            first = int(rows.firsts[number])
            vectors = vectors[wanted[first : first + len(vectors)]]
        if not len(vectors):
            continue
        begins, sizes = _runs(payloads, vectors)
        requests = np.zeros(len(begins), REQUEST)
        requests["source"] = extent.offset + begins
        requests["target"] = target + np.cumsum(sizes) - sizes
        requests["bytes"] = sizes
        requests["nsid"] = number
        target += int(sizes.sum())
        found.append(requests)
    return (np.concatenate(found) if found else np.zeros(0, REQUEST)), target


def _runs(payloads: PayloadRanges, vectors: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First bytes and sizes of runs of payloads that are neighbours in the file."""
    first, last = int(vectors[0]), int(vectors[-1])
    if payloads.contiguous and last - first + 1 == len(vectors):
        size = payloads.total(vectors)
        runs = np.zeros(min(size, 1), np.int64)
        return runs + payloads.begins[first], runs + size
    vectors = vectors[payloads.sizes[vectors] != 0]
    begins, sizes = payloads.begins[vectors], payloads.sizes[vectors]
    if not len(vectors):
        return begins, sizes
    heads = np.flatnonzero(np.concatenate([[True], begins[1:] != begins[:-1] + sizes[:-1]]))
    return begins[heads], np.add.reduceat(sizes, heads)
