"""Values at equal distances, as wide apart as 64 bits allow."""

from __future__ import annotations

import pyarrow as pa

from bamquery.plan.series import Series


def test_values_are_those_from_one_number_to_before_another() -> None:
    assert Series("range", 7, -3, 5, pa.int64()).values(1, 4).tolist() == [4, 1, -2]


def test_a_product_on_the_way_may_be_larger_than_64_bits() -> None:
    least, half = -(2**63), 2**62
    assert Series("range", least, half, 4, pa.int64()).values(0, 4).tolist() == [least, -half, 0, half]
