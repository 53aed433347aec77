"""Aggregates that count how often each value comes: mode and entropy."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.aggregates.accumulator import sum_by_group
from bamquery.engine.cpu.aggregates.value_lists import HolisticAggregate, group_codes
from bamquery.engine.cpu.kernels import Column, boolean_column, from_values, stored_values, take
from bamquery.engine.cpu.keys.grouping import group_rows


class Mode(HolisticAggregate):
    """The most frequent value; among equals the one that came first."""

    def answer(self, values: Column, counts: NDArray[np.int64]) -> Column:
        """Null where there is no value."""
        owners, times, kinds = _frequencies(values, counts)
        # Groups' values are numbered in the order in which they come: the last write to a group stays.
        order = np.lexsort((-np.arange(len(times)), times))
        places = np.zeros(len(counts), np.int64)
        places[owners[order]] = order
        return take(kinds, from_values(places, pa.int64(), boolean_column(counts > 0)))


class Entropy(HolisticAggregate):
    """Entropy of the values' frequencies, in bits."""

    def answer(self, values: Column, counts: NDArray[np.int64]) -> Column:
        """0 where there is no value."""
        owners, times, _ = _frequencies(values, counts)
        shares = times / counts[owners]
        return from_values(sum_by_group(owners, -shares * np.log2(shares), len(counts)), pa.float64())


def _frequencies(
    values: Column, counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], Column]:
    """Each distinct value of each group, in order of first appearance: the group, how often, the value."""
    if len(counts) == 1:
        found = group_rows([values], len(values))
        times = np.bincount(found.codes, minlength=found.groups)
        return np.zeros(found.groups, np.int64), times, found.keys[0]
    pairs = group_rows([from_values(group_codes(counts), pa.int64()), values], len(values))
    owners, kinds = pairs.keys
    return stored_values(owners), np.bincount(pairs.codes, minlength=pairs.groups), kinds
