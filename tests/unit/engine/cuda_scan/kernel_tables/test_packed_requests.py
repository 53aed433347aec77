"""Which bytes of files hold the payloads of packed vectors, as requests that load them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bamquery.engine.cuda.scan.kernel_tables.packed_requests import (
    PayloadRanges,
    payload_ranges,
    payload_requests,
    run_requests,
    scales,
)
from bamquery.engine.cuda.scan.kernel_tables.requests import ChunkRows
from bamquery.engine.operators.scan.chunks import Piece
from bamquery.storage.encodings.packed.parameters import PACKED_VECTOR, RAW, payload_starts
from bamquery.storage.format.layout import Extent
from bamquery.storage.fragments.stored_buffers import Packing, StoredBuffers

SIZES = [32, 0, 48, 16, 0, 0, 64, 16]


def ranges(sizes: list[int], gap: int = 0) -> PayloadRanges:
    lengths = np.array(sizes, np.int64)
    begins = np.cumsum(lengths) - lengths
    begins[4:] += gap
    return PayloadRanges(begins, lengths, has_more=False)


def requests_of(
    rows: ChunkRows, payloads: PayloadRanges, wanted: NDArray[np.bool_] | None = None
) -> tuple[NDArray[Any], int]:
    """Of a chunk whose every piece's file has those payloads from 4,096 times its number plus one on."""
    numbers, pieces = rows.vectors["number"], rows.vectors["piece"].astype(np.int64)
    begins = payloads.begins[numbers] + 4096 * (pieces + 1)
    return payload_requests(begins, payloads.sizes[numbers].astype(np.int32), pieces, wanted)


def chunk_of(*pieces: list[int]) -> ChunkRows:
    fragment: Any = SimpleNamespace(rows=8 * 1024)
    return ChunkRows.from_pieces([Piece(fragment, 0, 8 * 1024, np.array(v, np.int64)) for v in pieces])


def moved_blocks(requests: NDArray[Any]) -> dict[int, tuple[int, int]]:
    """Where each 16 bytes go: the piece and the place in its file that they come from."""
    return {
        int(request["target"]) + at: (int(request["nsid"]), int(request["source"]) + at)
        for request in requests
        for at in range(0, int(request["bytes"]), 16)
    }


@pytest.mark.parametrize("gap", [0, 160])
@pytest.mark.parametrize("share", [0.3, 0.6, 1.0])
def test_every_payload_goes_to_its_place(gap: int, share: float) -> None:
    random = np.random.default_rng(int(10 * share) + gap)
    for _ in range(50):
        chosen = [np.flatnonzero(random.random(8) < share).tolist() for _ in range(3)]
        rows = chunk_of(*chosen)
        wanted = random.random(rows.count) < 0.7 if random.random() < 0.5 else None
        payloads = ranges(SIZES, gap)
        requests, total = requests_of(rows, payloads, wanted)
        assert (requests["bytes"] > 0).all()
        expected, place = {}, 0
        for vector in range(rows.count):
            if wanted is not None and not wanted[vector]:
                continue
            piece, number = (int(x) for x in rows.vectors[vector])
            for at in range(0, SIZES[number], 16):
                expected[place] = piece, 4096 * (piece + 1) + int(payloads.begins[number]) + at
                place += 16
        assert moved_blocks(requests) == expected
        assert total == place


def test_neighbours_make_one_request() -> None:
    rows = chunk_of(list(range(8)), [0, 1, 2, 5, 6, 7])
    requests, total = requests_of(rows, ranges(SIZES))
    assert requests["bytes"].tolist() == [176, 80, 80]
    assert total == 336


@pytest.mark.parametrize("gap", [0, 160])
def test_a_part_of_a_run_is_loaded_by_the_requests_of_its_vectors(gap: int) -> None:
    fragments = [ranges(SIZES, gap), ranges(SIZES[2:], gap), ranges([0, 0]), ranges(SIZES)]
    counts = [len(fragment.sizes) for fragment in fragments]
    firsts = np.concatenate([[0], np.cumsum(counts)])
    of_fragments = np.repeat(np.arange(len(counts)), counts)
    begins = np.concatenate([payloads.begins for payloads in fragments]) + 4096 * of_fragments
    sizes = np.concatenate([payloads.sizes for payloads in fragments]).astype(np.int32)
    sums = np.concatenate([[0], np.cumsum(sizes)])
    apart = (begins[1:] != begins[:-1] + sizes[:-1]) | (np.diff(of_fragments) != 0)
    breaks = np.flatnonzero(apart) + 1
    for first in range(len(sizes)):
        for end in range(first + 1, len(sizes) + 1):
            lowest = of_fragments[first]
            pieces = of_fragments[first:end] - lowest
            expected, total = payload_requests(begins[first:end], sizes[first:end], pieces)
            of_pieces = firsts[lowest : of_fragments[end - 1] + 1]
            found, size = run_requests((first, end), breaks, begins, sums, of_pieces)
            assert size == total
            assert moved_blocks(found) == moved_blocks(expected)


def test_ranges_follow_from_parameters() -> None:
    parameters = np.zeros(3, PACKED_VECTOR)
    parameters["bits"] = 13, 64, 2
    parameters["exponent_form"] = 0, RAW << 5, 0
    parameters["escapes_nulls"] = 3, 1 << 15, 1 << 15 | 1
    sizes = [8 * 16 * 13 + 32, 8 * 1024 + 128, 16 * 2 + 16]
    parameters["offset"] = np.cumsum([0, *sizes[:2]]) // 16
    checksums: Any = SimpleNamespace()
    places = payload_starts(parameters), np.array(sizes)
    stored = StoredBuffers(
        *(Extent(4096, 1 << 20), 64, None, None, np.zeros(3, np.int64), 2048 + 5, checksums),
        packing=Packing(parameters, *places, 100, -7),
    )
    found = payload_ranges(stored)
    assert found.sizes.tolist() == sizes
    assert found.has_more
    assert scales([stored]).tolist() == [(100, 2**64 - 7)]
