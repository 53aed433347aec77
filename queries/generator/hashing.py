"""Random numbers by counter: a row's number in, its random bits out, in any order and on any thread.

Only integer operations, so the bits are the same on every machine.
"""

from __future__ import annotations

import hashlib
from typing import Final

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

# SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014), whose state after n
# steps is seed + n * GOLDEN: a generator that can start anywhere.
_GOLDEN: Final = 0x9E3779B97F4A7C15
_MIX_1: Final = 0xBF58476D1CE4E5B9
_MIX_2: Final = 0x94D049BB133111EB


def key(seed: int, stream: str) -> int:
    """A 64-bit key for one stream of random numbers: other seeds and names, other keys."""
    digest = hashlib.blake2b(f"{seed}/{stream}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def random_words(stream_key: int, rows: Words) -> Words:
    """64 random bits for each row number."""
    words = rows * np.uint64(_GOLDEN)
    words += np.uint64(stream_key)
    shifted = words >> np.uint64(30)
    words ^= shifted
    words *= np.uint64(_MIX_1)
    np.right_shift(words, np.uint64(27), out=shifted)
    words ^= shifted
    words *= np.uint64(_MIX_2)
    np.right_shift(words, np.uint64(31), out=shifted)
    words ^= shifted
    return words


def bits(words: Words, low: int, count: int) -> NDArray[np.int32]:
    """Bits low to low + count - 1 of each word, as a number below 2^count (at most 2^31)."""
    field: Words = words >> np.uint64(low)
    field &= np.uint64((1 << count) - 1)
    return field.astype(np.int32)
