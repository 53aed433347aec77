"""Checksums of pieces add up to that of the whole."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from bamquery import _native


@pytest.fixture
def checking(scan_modules: None) -> Any:
    from bamquery.engine.cuda.scan.reads import checksums as checking

    return checking


@pytest.mark.parametrize("size", [128, 1024, 8192, 16384])
def test_pieces_make_the_whole(checking: Any, size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, size).astype(np.uint8).tobytes()
    *steps, start, part_start = struct.unpack("<7I", checking.crc_shifts(size))
    piece = size // 32
    # Without the inversions: what a piece adds to zeros before it.
    zero = _native.crc32c(bytes(piece))
    found = [_native.crc32c(data[i : i + piece]) ^ zero for i in range(0, size, piece)]
    part = data[: size // 8]
    for number, step in enumerate(steps):
        if number == 2:
            assert found[0] ^ part_start ^ 0xFFFFFFFF == _native.crc32c(part)
        pairs = zip(found[::2], found[1::2], strict=True)
        found = [checking._multiply(left, step) ^ right for left, right in pairs]
    assert found[0] ^ start ^ 0xFFFFFFFF == _native.crc32c(data)
