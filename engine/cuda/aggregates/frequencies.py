"""Aggregates that count how often each value comes: mode and entropy."""

from __future__ import annotations

import math

import pylibcudf as plc
from pylibcudf.types import Order
from pylibcudf.unary import UnaryOperator

from bamquery.engine.cuda.aggregates.accumulator import StateColumns
from bamquery.engine.cuda.aggregates.value_lists import HolisticAggregate, group_codes
from bamquery.engine.cuda.kernels import FLOAT64, Kernels
from bamquery.engine.cuda.keys.grouping import GroupCodes, group_ends, group_rows, sort_within_groups
from bamquery.engine.cuda.vectors import Vector


class Mode(HolisticAggregate):
    """The most frequent value; among equals the one that came first."""

    def answer(self, kernels: Kernels, values: StateColumns, counts: Vector) -> plc.Column:
        """Null where there is no value."""
        owners, times, kinds = _frequencies(kernels, values[0], counts)
        if not owners.rows:
            return plc.Column.all_null_like(kinds, len(counts), stream=kernels.stream, mr=kernels.memory)
        order = sort_within_groups(kernels, owners, [times.column], [Order.DESCENDING])
        return kernels.gather([kinds], group_ends(kernels, owners, order), nullify=True)[0]


class Entropy(HolisticAggregate):
    """Entropy of the values' frequencies, in bits."""

    def answer(self, kernels: Kernels, values: StateColumns, counts: Vector) -> plc.Column:
        """0 where there is no value."""
        owners, times, _ = _frequencies(kernels, values[0], counts)
        all_values = Vector(kernels, owners.spread_to_rows(kernels, counts.column))
        shares = times.cast(FLOAT64) / all_values.cast(FLOAT64)
        logarithms = Vector(kernels, kernels.unary(UnaryOperator.LOG, shares.column)) / math.log(2)
        bits = shares * logarithms * -1.0
        sums = owners.reduce(kernels, bits.column, plc.aggregation.sum(), FLOAT64)
        return (Vector(kernels, sums).fill_nulls(0.0) + 0.0).column


def _frequencies(
    kernels: Kernels, values: plc.Column, counts: Vector
) -> tuple[GroupCodes, Vector, plc.Column]:
    """Each distinct value of each group, in order of first appearance: the group, how often, the value."""
    codes = group_codes(kernels, counts)
    pairs = group_rows(kernels, [codes.numbers(kernels), values], values.size())
    owners, kinds = pairs.keys
    times = Vector(kernels, pairs.codes.count(kernels))
    return GroupCodes(owners, owners.size(), len(counts)), times, kinds
