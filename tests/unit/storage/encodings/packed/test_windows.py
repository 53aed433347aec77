"""Which numbers of a vector get codes of their own: what takes the fewest bytes, held to trying all."""

import numpy as np
import pytest

from bamquery.storage.encodings.packed.parameters import escapes
from tests.packed.parameters import has_short_escapes
from tests.unit.storage.encodings.packed.columns import pack

ROWS = 1024


def cheapest(values: np.ndarray) -> int:
    """Bytes of the smallest payload; codes of more than 6 bits leave at most 64 rows to escapes."""
    escape_bytes = 4 if int(values.max()) - int(values.min()) < 1 << 31 else 8
    distinct, counts = np.unique(values, return_counts=True)
    before = np.concatenate([[0], np.cumsum(counts)])
    least = 1 << 60
    for first in range(len(distinct)):
        for last in range(first, len(distinct)):
            outside = len(distinct) - 1 - (last - first)
            left = ROWS - (before[last + 1] - before[first])
            bits = int(distinct[last] - distinct[first] + outside).bit_length()
            if bits <= 6 or left <= ROWS // 16:
                least = min(least, -(-(128 * bits + escape_bytes * outside) // 16) * 16)
    return least


@pytest.mark.parametrize("shape", ["above a power of two", "both ends", "far away", "very far away", "even"])
def test_the_window_of_many_numbers_is_the_cheapest(shape: str) -> None:
    random = np.random.default_rng(5)
    values = {
        # As taxi zones are: few rows of many have those above 255.
        "above a power of two": np.where(
            random.random(ROWS) < 0.03, random.integers(256, 266, ROWS), random.integers(5, 240, ROWS)
        ),
        "both ends": np.clip(random.normal(0, 60, ROWS), -200, 200),
        "far away": np.where(random.random(ROWS) < 0.01, 10**9, random.integers(0, 200, ROWS)),
        "very far away": np.where(random.random(ROWS) < 0.01, -(10**12), random.integers(0, 200, ROWS)),
        "even": random.integers(0, 250, ROWS),
    }[shape].astype(np.int64)
    packed = pack("int64", values)
    assert len(packed.data) == cheapest(values)
    assert bool(has_short_escapes(packed.parameters)[0]) == (
        bool(escapes(packed.parameters)[0]) and shape != "very far away"
    )
