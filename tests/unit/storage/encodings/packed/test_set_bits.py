"""Places of set bits: all of them, and those among some."""

import numpy as np
import pytest

from bamquery import _native


@pytest.mark.parametrize("count", [0, 1, 7, 8, 63, 64, 65, 1000, 1024])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
def test_places_of_set_bits(count: int, share: float) -> None:
    random = np.random.default_rng(count)
    bits = random.random(1024) < share
    packed = np.packbits(bits, bitorder="little")
    assert np.array_equal(_native.set_bits(packed, count), np.flatnonzero(bits[:count]))
    some = np.flatnonzero(random.random(1024) < 0.3)
    assert np.array_equal(_native.set_among(packed, some), np.flatnonzero(bits[some]))


def test_bits_that_are_not_there_are_an_error() -> None:
    packed = np.zeros(4, np.uint8)
    with pytest.raises(ValueError, match="too"):
        _native.set_bits(packed, 33)
    for place in (-1, 32):
        with pytest.raises(ValueError, match="no such bit"):
            _native.set_among(packed, np.array([0, place]))
