"""A random permutation of 0 to n-1 that needs no memory and can be followed in both directions.

A small Feistel network permutes the numbers below the next power of two; numbers that land outside the range
are sent through again until they are inside (cycle walking), which keeps it a permutation.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bamquery.queries.generator.hashing import Words, key

_ROUNDS: Final = 6
_MULTIPLIER: Final = 0xD6E8FEB86659FD93


class Permutation:
    """A permutation of the numbers below `size`, chosen by `seed` and `name`."""

    def __init__(self, size: int, seed: int, name: str) -> None:
        """Derive the round keys."""
        assert 0 < size <= 1 << 40, "numbers up to a trillion"
        self.size = size
        width = max((size - 1).bit_length(), 2)
        self._low_bits = width // 2
        self._low_mask = (1 << self._low_bits) - 1
        self._high_mask = (1 << (width - self._low_bits)) - 1
        self._keys = [key(seed, f"{name}/{number}") for number in range(_ROUNDS)]

    def forward(self, numbers: Words) -> Words:
        """Where each number goes."""
        return self._walk(numbers, range(_ROUNDS))

    def backward(self, numbers: Words) -> Words:
        """What goes to each number: undoes `forward`."""
        return self._walk(numbers, range(_ROUNDS - 1, -1, -1))

    def _walk(self, numbers: Words, rounds: range) -> Words:
        result = self._network(numbers, rounds)
        outside = np.flatnonzero(result >= self.size)
        while len(outside):
            again = self._network(result[outside], rounds)
            result[outside] = again
            outside = outside[again >= self.size]
        return result

    def _network(self, numbers: Words, rounds: range) -> Words:
        low = numbers & np.uint64(self._low_mask)
        high = numbers >> np.uint64(self._low_bits)
        for number in rounds:
            # Even rounds change the high half by the low one, odd rounds the other way round.
            if number % 2 == 0:
                high ^= self._scramble(low, number) & np.uint64(self._high_mask)
            else:
                low ^= self._scramble(high, number) & np.uint64(self._low_mask)
        high <<= np.uint64(self._low_bits)
        high |= low
        return high

    def _scramble(self, half: Words, number: int) -> Words:
        words = half + np.uint64(self._keys[number])
        words *= np.uint64(_MULTIPLIER)
        words ^= words >> np.uint64(32)
        words *= np.uint64(_MULTIPLIER)
        words >>= np.uint64(24)
        return words
