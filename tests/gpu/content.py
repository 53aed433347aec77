"""What driver/core/bench_content.hpp says blocks contain, in numpy."""

from typing import Any

import numpy as np

SECTOR_BYTES = 512
_STEP = np.uint64(0x9E3779B97F4A7C15)
_WORD_STEP = np.uint64(0xD1342543DE82EF95)


def _mix(word: np.ndarray[Any, np.dtype[np.uint64]]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


def content(seed: int, size: int, first_sector: int = 0) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """`size` bytes, a multiple of 512, from sector `first_sector` on."""
    sectors = np.arange(first_sector, first_sector + size // SECTOR_BYTES, dtype=np.uint64)
    keys = _mix(_mix(np.array([seed], np.uint64)) + sectors * _STEP)
    words = np.arange(SECTOR_BYTES // 8, dtype=np.uint64) * _WORD_STEP
    return (keys[:, None] + words[None, :]).view(np.uint8).reshape(-1)
