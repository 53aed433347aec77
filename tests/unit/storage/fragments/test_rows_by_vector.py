"""The vectors that hold rows: as a count of each row's vector says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bamquery import _native
from bamquery.storage.format.layout import VECTOR_ROWS

_ROWS = 5 * VECTOR_ROWS


@given(st.lists(st.integers(0, _ROWS - 1), unique=True, max_size=60), st.integers(0, 2**40))
def test_few_rows(places, first):
    _check(np.sort(np.array(places, np.int64)) + first)


@pytest.mark.parametrize("share", [0.003, 0.01, 0.1, 0.5, 0.95, 1.0])
def test_shares_of_rows(share):
    for seed in range(20):
        chosen = np.random.default_rng(seed).random(_ROWS + 7 * seed) < share
        _check(chosen.nonzero()[0] + seed)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 9, 10, 17, 18, 35, 1022, 1023, 1024])
def test_vectors_with_so_many_rows_at_their_begin_and_end(count):
    ends = [np.arange((vector + 1) * VECTOR_ROWS - count, (vector + 1) * VECTOR_ROWS) for vector in (0, 2)]
    begins = [np.arange(vector * VECTOR_ROWS, vector * VECTOR_ROWS + count) for vector in (3, 4, 9)]
    _check(np.concatenate([*ends, *begins]))


def _check(rows):
    vectors, counts = np.unique(rows // VECTOR_ROWS, return_counts=True)
    found = _native.rows_by_vector(rows)
    assert found[0].tolist() == vectors.tolist()
    assert found[1].tolist() == counts.tolist()
