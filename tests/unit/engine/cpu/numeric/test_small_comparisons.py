"""Decimals compared in 64 bits: as Arrow compares them in 128."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bamquery.engine.cpu.numeric.small_comparisons import compare_small

KINDS = st.sampled_from([(18, 0), (18, 18), (9, 2), (1, 0)])


@given(st.data(), KINDS, st.sampled_from(["equal", "less", "less_equal"]), st.integers(0, 3))
def test_as_arrow(data: st.DataObject, digits: tuple[int, int], name: str, skipped: int) -> None:
    precision, scale = digits
    most = 10**precision - 1
    numbers = st.integers(-most, most) | st.sampled_from([-most, -1, 0, 1, most])
    values = numbers.map(lambda number: Decimal(number).scaleb(-scale))
    pairs = data.draw(st.lists(st.tuples(st.none() | values, st.none() | values), min_size=4, max_size=20))
    kind = pa.decimal128(precision, scale)
    a, b = (pa.array(side, kind).slice(skipped) for side in zip(*pairs, strict=True))
    constant = pa.scalar(data.draw(values), kind)
    for left, right in ((a, b), (a, constant), (constant, b)):
        found = compare_small(name, left, right)
        assert found is not None
        assert found.to_pylist() == pc.call_function(name, [left, right]).to_pylist()


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (pa.array([1], pa.decimal128(19, 0)), pa.scalar(1, pa.decimal128(19, 0))),
        (pa.array([1], pa.decimal128(9, 0)), pa.scalar(1, pa.decimal128(9, 1))),
        (pa.array([1], pa.decimal128(9, 0)), pa.scalar(None, pa.decimal128(9, 0))),
        (pa.array([1], pa.int64()), pa.scalar(1, pa.int64())),
    ],
)
def test_what_it_leaves_to_others(a: pa.Array, b: pa.Scalar) -> None:
    assert compare_small("equal", a, b) is None
