"""Covariance, correlation and linear regression of two columns, y and x.

States are count, both means, both sums of squared distances from them and the sum of products of both
distances, merged like those of the variance (see `moments`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import pyarrow as pa
import pylibcudf as plc

from bamquery.engine.cuda.aggregates.accumulator import DOUBLE, Accumulator, StateColumns, sum_counts
from bamquery.engine.cuda.aggregates.group_sums import GroupSums, root
from bamquery.engine.cuda.kernels import FLOAT64, Kernels
from bamquery.engine.cuda.keys.grouping import GroupCodes
from bamquery.engine.cuda.libcudf_types import device_type
from bamquery.engine.cuda.vectors import Mask, Vector


@dataclass(frozen=True)
class PairMoments:
    """The states, one value a group, as doubles."""

    kernels: Kernels
    count: Vector
    mean_y: Vector
    mean_x: Vector
    yy: Vector
    xx: Vector
    xy: Vector


class PairAggregate(Accumulator):
    """One of the functions of `ANSWERS`; rows with a null do not count."""

    def __init__(self, function: str) -> None:
        self._function = function

    def partial(self, kernels: Kernels, rows: StateColumns, codes: GroupCodes) -> StateColumns:
        """The states."""
        if any(column.null_count() for column in rows):
            both = kernels.logical_and(*(kernels.is_valid(column) for column in rows))
            codes, kept = codes.filter(kernels, both, *rows)
            rows = tuple(kept)
        y, x = (Vector(kernels, column) for column in rows)
        sums = GroupSums(kernels, codes)
        counts = codes.count(kernels)
        weights = Vector(kernels, counts).cast(FLOAT64)
        mean_y, mean_x = (sums.mean(side, weights) for side in (y, x))
        from_y, from_x = y - sums.spread_to_rows(mean_y), x - sums.spread_to_rows(mean_x)
        products = (from_y * from_y, from_x * from_x, from_y * from_x)
        return (counts, mean_y.column, mean_x.column, *(sums.sum(v).column for v in products))

    def merge(self, kernels: Kernels, state: StateColumns, codes: GroupCodes) -> StateColumns:
        """The states' own sums, and those of their means' distances from the common mean."""
        filled = Vector(kernels, state[0]) > 0
        codes, kept = codes.filter(kernels, filled.column, *state)
        sums = GroupSums(kernels, codes)
        totals = sum_counts(kernels, kept[0], codes)
        counts, mean_y, mean_x, yy, xx, xy = (Vector(kernels, column).cast(FLOAT64) for column in kept)
        weights = Vector(kernels, totals).cast(FLOAT64)
        common_y = sums.common_mean(counts, mean_y, weights)
        common_x = sums.common_mean(counts, mean_x, weights)
        from_y, from_x = mean_y - sums.spread_to_rows(common_y), mean_x - sums.spread_to_rows(common_x)
        moved = (
            yy + counts * (from_y * from_y),
            xx + counts * (from_x * from_x),
            xy + counts * (from_y * from_x),
        )
        return (totals, common_y.column, common_x.column, *(sums.sum(v).column for v in moved))

    def final(self, kernels: Kernels, state: StateColumns) -> plc.Column:
        """The function of the states."""
        if self._function == "regr_count":
            return kernels.convert(state[0], device_type(pa.uint32()))
        if not state[0].size():
            return kernels.nulls(0, DOUBLE)
        moments = PairMoments(kernels, *(Vector(kernels, column).cast(FLOAT64) for column in state))
        values, known = ANSWERS[self._function](moments)
        return kernels.where(kernels.fill_null(known.column), values.column, kernels.null(DOUBLE))


def _correlation(m: PairMoments) -> tuple[Vector, Mask]:
    return m.xy / (root(m.kernels, m.xx) * root(m.kernels, m.yy)), m.count > 0.0


def _intercept(m: PairMoments) -> tuple[Vector, Mask]:
    return m.mean_y - m.xy / m.xx * m.mean_x, (m.count > 0.0) & m.xx.differs(0.0)


def _fit(m: PairMoments) -> tuple[Vector, Mask]:
    ones = Vector.full(m.kernels, 1.0, len(m.count))
    correlation, _ = _correlation(m)  # products of the sums would overflow long before they do
    fit = m.yy.equals(0.0).choose(ones, correlation * correlation)
    return fit, (m.count > 0.0) & m.xx.differs(0.0)


ANSWERS: Final[Mapping[str, Callable[[PairMoments], tuple[Vector, Mask]]]] = MappingProxyType(
    {
        "corr": _correlation,
        "covar_pop": lambda m: (m.xy / m.count, m.count > 0.0),
        "covar_samp": lambda m: (m.xy / (m.count - 1.0), m.count > 1.0),
        "regr_avgx": lambda m: (m.mean_x, m.count > 0.0),
        "regr_avgy": lambda m: (m.mean_y, m.count > 0.0),
        "regr_intercept": _intercept,
        "regr_r2": _fit,
        "regr_slope": lambda m: (m.xy / m.xx, m.count > 0.0),
        "regr_sxx": lambda m: (m.xx, m.count > 0.0),
        "regr_sxy": lambda m: (m.xy, m.count > 0.0),
        "regr_syy": lambda m: (m.yy, m.count > 0.0),
    }
)
"""Values, and where they are not null."""
