"""Means of groups; that of one value over and over is the value itself, and no distance from it but 0."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bamquery.engine.cpu.aggregates.accumulator import Codes, sum_by_group

Numbers = NDArray[Any]


def group_means(values: Numbers, codes: Codes, counts: Numbers) -> Numbers:
    """Of the values of each group, which are `counts` many."""
    base = np.zeros(len(counts))
    base[codes] = values
    base[~np.isfinite(base)] = 0
    moved: Numbers = sum_by_group(codes, values - base[codes], len(counts)) / counts
    return base + moved


def common_mean(counts: Numbers, means: Numbers, codes: Codes, totals: Numbers) -> Numbers:
    """Of all values of a group, from states of `counts` values each, which are `totals` together."""
    # Differences are weighed, not values.
    base = np.zeros(len(totals))
    base[codes] = means
    shift: Numbers = sum_by_group(codes, counts * (means - base[codes]), len(totals)) / totals
    return base + shift
