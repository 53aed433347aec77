"""Order of whole numbers by their digits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bamquery.engine.cpu.keys.stable_order import stable_order


@given(st.data(), st.sampled_from([1, 2, 1 << 16, (1 << 16) + 1, 1 << 32, (1 << 32) + 1, 1 << 48, 1 << 62]))
def test_as_numpy_by_comparing(data: st.DataObject, below: int) -> None:
    few = st.sampled_from(sorted({0, below // 2, max(below // 2 - 1, 0), below - 1}))
    numbers = np.array(data.draw(st.lists(few | st.integers(0, below - 1), max_size=40)), np.int64)
    assert stable_order(numbers, below).tolist() == np.argsort(numbers, kind="stable").tolist()


@pytest.mark.parametrize("below", [100, 1 << 20, 1 << 40])
def test_many(below: int) -> None:
    numbers = np.random.default_rng(below).integers(0, below, 100_000)
    expected = np.argsort(numbers, kind="stable")
    assert (stable_order(numbers, below) == expected).all()
    assert (stable_order(numbers[expected], below) == np.arange(100_000)).all()
