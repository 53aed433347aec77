"""What the images of guests' drives hold: the place for Python; guest/pattern.hpp says the same in C++."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def blocks(drive: int, first_lba: int, count: int, lba_bytes: int) -> NDArray[np.uint64]:
    """Words of so many blocks of the drive, one row a block; guest/pattern.hpp has the formula's reasons."""
    lba = np.arange(first_lba, first_lba + count, dtype=np.uint64)[:, None]
    word = np.arange(lba_bytes // 8, dtype=np.uint64)[None, :]
    value = (np.uint64(drive << 56) | lba << np.uint64(12) | word) * np.uint64(0x9E3779B97F4A7C15)
    value ^= value >> np.uint64(29)
    value *= np.uint64(0xBF58476D1CE4E5B9)
    return value ^ value >> np.uint64(32)
