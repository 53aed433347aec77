"""What images hold whose bytes a GPU's kernels check: driver/core/bench/content.hpp, for Python."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SECTOR_BYTES = 512


def blocks(seed: int, first_lba: int, count: int, lba_bytes: int) -> NDArray[np.uint64]:
    """Words of so many blocks, one row a block; the header has the formula's reasons."""
    sectors = lba_bytes // _SECTOR_BYTES
    sector = np.arange(first_lba * sectors, (first_lba + count) * sectors, dtype=np.uint64)
    mixed = _mix(np.array([seed], np.uint64)) + sector * np.uint64(0x9E3779B97F4A7C15)
    word = np.arange(_SECTOR_BYTES // 8, dtype=np.uint64) * np.uint64(0xD1342543DE82EF95)
    return (_mix(mixed)[:, None] + word[None, :]).reshape(count, lba_bytes // 8)


def _mix(word: NDArray[np.uint64]) -> NDArray[np.uint64]:
    word = (word ^ word >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ word >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return word ^ word >> np.uint64(31)
