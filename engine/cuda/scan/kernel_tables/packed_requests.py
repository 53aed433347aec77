"""Where the payloads of packed vectors are in files, and what moves them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.cuda.scan.kernel_tables.requests import REQUEST
from bamquery.storage.encodings.packed.parameters import (
    RAW,
    escapes,
    forms,
    has_nulls,
)
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
        has_more: some vector has something behind its codes or raw values: escapes, or a bitmap.
    """

    begins: NDArray[np.int64]
    sizes: NDArray[np.int64]
    has_more: bool


def payload_ranges(buffers: StoredBuffers) -> PayloadRanges:
    """Those of a packed or compressed column."""
    if buffers.compression is not None:
        column = buffers.compression.column
        return PayloadRanges(column.payload_starts, column.payload_lengths, has_more=True)
    packing = buffers.packing
    assert packing is not None
    parameters = packing.parameters
    raw = forms(parameters) == RAW
    has_more = bool((escapes(parameters) > 0).any() or (raw & has_nulls(parameters)).any())
    return PayloadRanges(packing.starts, packing.sizes, has_more)


def scales(columns: Sequence[StoredBuffers]) -> NDArray[Any]:
    """A SCALE for each fragment of a packed column."""
    found = np.zeros(len(columns), SCALE)
    for number, buffers in enumerate(columns):
        assert buffers.packing is not None
        found[number] = buffers.packing.divisor % (1 << 64), buffers.packing.origin % (1 << 64)
    return found


def payload_requests(
    begins: NDArray[np.int64],
    sizes: NDArray[np.int32],
    pieces: NDArray[np.int64],
    wanted: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[Any], int]:
    """What moves payloads to where they are one after the other, in the vectors' order.

    Args:
        begins: of each of the chunk's vectors, where its payload begins in its file.
        sizes: of each, in bytes.
        pieces: of each, the number of its piece.
        wanted: of which vectors; None: of all.

    Returns:
        As `requests.stream_requests`; and the bytes of all of them.
    """
    kept = sizes != 0 if wanted is None else wanted & (sizes != 0)
    if not kept.all():
        begins, sizes, pieces = begins[kept], sizes[kept], pieces[kept]
    if not len(begins):
        return np.zeros(0, REQUEST), 0
    apart = (begins[1:] != begins[:-1] + sizes[:-1]) | (pieces[1:] != pieces[:-1])
    heads = np.concatenate([[0], np.flatnonzero(apart) + 1])
    return _requests(begins[heads], np.add.reduceat(sizes, heads, dtype=np.int64), pieces[heads])


def run_requests(
    bounds: tuple[int, int],
    breaks: NDArray[np.int64],
    begins: NDArray[np.int64],
    sums: NDArray[np.int64],
    fragments: NDArray[np.int64],
) -> tuple[NDArray[Any], int]:
    """The same of consecutive vectors of a run of fragments, without a look at each.

    Args:
        bounds: the first of them, and the one behind the last.
        breaks: vectors of the run whose payloads do not follow on those before, ascending.
        begins: as `payload_requests` has it, of all vectors of the run.
        sums: bytes of the payloads before each of them, and of all.
        fragments: first vector of each of the chunk's pieces.
    """
    first, end = bounds
    inside = breaks[np.searchsorted(breaks, first, "right") : np.searchsorted(breaks, end)]
    heads = np.concatenate([[first], inside])
    sizes = np.diff(sums[np.concatenate([heads, [end]])])
    kept = sizes != 0
    heads = heads[kept]
    return _requests(begins[heads], sizes[kept], np.searchsorted(fragments, heads, "right") - 1)


def _requests(
    begins: NDArray[np.int64], sizes: NDArray[np.int64], pieces: NDArray[np.int64]
) -> tuple[NDArray[Any], int]:
    found = np.zeros(len(begins), REQUEST)
    ends = np.cumsum(sizes)
    found["source"], found["target"], found["bytes"], found["nsid"] = begins, ends - sizes, sizes, pieces
    return found, int(ends[-1]) if len(ends) else 0
