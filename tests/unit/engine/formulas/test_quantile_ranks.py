"""Places of quantiles, against the shares that they stand for."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from bamquery.engine.formulas.quantile_ranks import continuous_ranks, discrete_ranks

COUNTS = np.array([0, 1, 2, 3, 10, 1000, 12_345_678])


@pytest.mark.parametrize("quantile", ["0", "0.1", "0.25", "0.3", "0.5", "0.999", "1"])
def test_the_least_value_that_a_share_does_not_exceed(quantile: str) -> None:
    ranks = discrete_ranks(Decimal(quantile), COUNTS).tolist()
    for count, rank in zip(COUNTS.tolist(), ranks, strict=True):
        assert rank == max(-(-Fraction(quantile) * count // 1), 1) - 1
    assert np.abs(discrete_ranks(float(quantile), COUNTS) - ranks).max() <= 1


def test_two_values_and_the_way_between_them() -> None:
    lower, upper, share = continuous_ranks(0.25, COUNTS)
    assert lower.tolist() == [0, 0, 0, 0, 2, 249, 3_086_419]
    assert upper.tolist() == [0, 0, 1, 1, 3, 250, 3_086_420]
    assert share.tolist() == [0, 0, 0.25, 0.5, 0.25, 0.75, 0.25]
