"""Which bytes of files hold the payloads of packed vectors, as requests that load them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bamquery.engine.cuda.scan.kernel_tables.packed_requests import (
    PayloadRanges,
    payload_ranges,
    payload_requests,
    scales,
)
from bamquery.engine.cuda.scan.kernel_tables.requests import ChunkRows
from bamquery.engine.operators.scan.chunks import Piece
from bamquery.storage.encodings.packed.parameters import PACKED_VECTOR, RAW
from bamquery.storage.format.layout import Extent
from bamquery.storage.fragments.stored_buffers import Packing, StoredBuffers

SIZES = [32, 0, 48, 16, 0, 0, 64, 16]


def ranges(sizes: list[int], gap: int = 0) -> PayloadRanges:
    lengths = np.array(sizes, np.int64)
    begins = np.cumsum(lengths) - lengths
    begins[4:] += gap
    return PayloadRanges(begins, lengths, not gap, has_more=False)


def chunk_of(*pieces: list[int]) -> ChunkRows:
    fragment: Any = SimpleNamespace(rows=8 * 1024)
    return ChunkRows.from_pieces([Piece(fragment, 0, 8 * 1024, np.array(v, np.int64)) for v in pieces])


@pytest.mark.parametrize("gap", [0, 160])
@pytest.mark.parametrize("share", [0.3, 0.6, 1.0])
def test_every_payload_goes_to_its_place(gap: int, share: float) -> None:
    random = np.random.default_rng(int(10 * share) + gap)
    for _ in range(50):
        chosen = [np.flatnonzero(random.random(8) < share).tolist() for _ in range(3)]
        rows = chunk_of(*chosen)
        wanted = random.random(rows.count) < 0.7 if random.random() < 0.5 else None
        payloads = [ranges(SIZES, gap)] * len(rows.pieces)
        extents: list[Extent | None] = [Extent(4096 * (n + 1), 4096) for n in range(len(rows.pieces))]
        requests, total = payload_requests(rows, extents, payloads, wanted)
        moved: dict[int, tuple[int, int]] = {}
        for request in requests:
            assert request["bytes"] > 0
            for at in range(0, int(request["bytes"]), 16):
                moved[int(request["target"]) + at] = int(request["nsid"]), int(request["source"]) + at
        expected, place = {}, 0
        for vector in range(rows.count):
            if wanted is not None and not wanted[vector]:
                continue
            piece, number = (int(x) for x in rows.vectors[vector])
            for at in range(0, SIZES[number], 16):
                expected[place] = piece, 4096 * (piece + 1) + int(payloads[0].begins[number]) + at
                place += 16
        assert moved == expected
        assert total == place
        if wanted is None:
            found = sum(p.total(piece.vectors) for p, piece in zip(payloads, rows.pieces, strict=True))
            assert found == total


def test_neighbours_make_one_request() -> None:
    rows = chunk_of(list(range(8)), [0, 1, 2, 5, 6, 7])
    requests, total = payload_requests(rows, [Extent(0, 4096)] * 2, [ranges(SIZES)] * 2)
    assert requests["bytes"].tolist() == [176, 80, 80]
    assert total == 336


def test_ranges_follow_from_parameters() -> None:
    parameters = np.zeros(3, PACKED_VECTOR)
    parameters["bits"] = 13, 64, 2
    parameters["exponent_form"] = 0, RAW << 5, 0
    parameters["escapes_nulls"] = 3, 1 << 15, 1 << 15 | 1
    sizes = [8 * 16 * 13 + 32, 8 * 1024 + 128, 16 * 2 + 16]
    parameters["offset"] = np.cumsum([0, *sizes[:2]]) // 16
    checksums: Any = SimpleNamespace()
    stored = StoredBuffers(
        *(Extent(4096, 1 << 20), 64, None, None, np.zeros(3, np.int64), 2048 + 5, checksums),
        packing=Packing(parameters, 100, -7),
    )
    found = payload_ranges(stored)
    assert found.sizes.tolist() == sizes
    assert found.contiguous
    assert found.has_more
    assert scales([stored]).tolist() == [(100, 2**64 - 7)]
