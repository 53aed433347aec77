"""Covariance, correlation and linear regression of two columns, y and x.

States are count, both means, both sums of squared distances from them and the sum of products of both
distances, merged like those of the variance (see `moments`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, cast

import numpy as np
import pyarrow as pa

from bamquery import _native as native
from bamquery.engine.cpu.aggregates.accumulator import (
    Accumulator,
    Codes,
    StateColumns,
    native_codes,
    sum_by_group,
)
from bamquery.engine.cpu.aggregates.means import Numbers, common_mean
from bamquery.engine.cpu.kernels import (
    Column,
    boolean_column,
    boolean_values,
    compute,
    from_values,
    stored_values,
)
from bamquery.statement_context.cancellation import check_cancelled


@dataclass(frozen=True)
class PairMoments:
    """The states, as numpy arrays of one value a group."""

    count: Numbers
    mean_y: Numbers
    mean_x: Numbers
    yy: Numbers
    xx: Numbers
    xy: Numbers


class PairAggregate(Accumulator):
    """One of the functions of `ANSWERS`; rows with a null do not count."""

    state = "moments of pairs"

    def __init__(self, function: str) -> None:
        self._function = function

    def partial(self, column: Column, codes: Codes, groups: int) -> StateColumns:
        """The states."""
        y, x = cast("pa.StructArray", column).flatten()
        if y.null_count or x.null_count:
            both = boolean_values(compute("and", compute("is_valid", y), compute("is_valid", x)))
            ys, xs, codes = stored_values(y)[both], stored_values(x)[both], codes[both]
        else:
            ys, xs = stored_values(y), stored_values(x)
        check_cancelled()
        own = None if groups == 1 else native_codes(codes)
        return native.sum_pairs(own, np.ascontiguousarray(ys), np.ascontiguousarray(xs), groups)

    def merge(self, state: StateColumns, codes: Codes, groups: int) -> StateColumns:
        """The states' own sums, and those of their means' distances from the common mean."""
        arrays = [np.asarray(column) for column in state]
        filled = arrays[0] > 0
        codes = codes[filled]
        counts, mean_y, mean_x, yy, xx, xy = (array[filled] for array in arrays)
        totals = sum_by_group(codes, counts, groups)
        with np.errstate(all="ignore"):
            common_y = common_mean(counts, mean_y, codes, totals)
            common_x = common_mean(counts, mean_x, codes, totals)
            from_y, from_x = mean_y - common_y[codes], mean_x - common_x[codes]
            sums = [
                sum_by_group(codes, own + counts * moved, groups)
                for own, moved in ((yy, from_y**2), (xx, from_x**2), (xy, from_y * from_x))
            ]
        return (totals, common_y, common_x, *sums)

    def final(self, state: StateColumns) -> Column:
        """The function of the states."""
        moments = PairMoments(*(np.asarray(column) for column in state))
        if self._function == "regr_count":
            return from_values(moments.count.astype(np.uint32), pa.uint32())
        with np.errstate(all="ignore"):
            values, known = ANSWERS[self._function](moments)
        return from_values(values, pa.float64(), boolean_column(known))


def _correlation(m: PairMoments) -> tuple[Numbers, Numbers]:
    return m.xy / (np.sqrt(m.xx) * np.sqrt(m.yy)), m.count > 0


def _sample(m: PairMoments) -> tuple[Numbers, Numbers]:
    return m.xy / (m.count - 1), m.count > 1


def _intercept(m: PairMoments) -> tuple[Numbers, Numbers]:
    return m.mean_y - m.xy / m.xx * m.mean_x, m.xx != 0  # as it is without rows


def _fit(m: PairMoments) -> tuple[Numbers, Numbers]:
    correlation, _ = _correlation(m)  # products of the sums would overflow long before they do
    return np.where(m.yy == 0, 1.0, correlation**2), m.xx != 0  # as it is without rows


ANSWERS: Final[Mapping[str, Callable[[PairMoments], tuple[Numbers, Numbers]]]] = MappingProxyType(
    {
        "corr": _correlation,
        "covar_pop": lambda m: (m.xy / m.count, m.count > 0),
        "covar_samp": _sample,
        "regr_avgx": lambda m: (m.mean_x, m.count > 0),
        "regr_avgy": lambda m: (m.mean_y, m.count > 0),
        "regr_intercept": _intercept,
        "regr_r2": _fit,
        "regr_slope": lambda m: (m.xy / m.xx, m.count > 0),
        "regr_sxx": lambda m: (m.xx, m.count > 0),
        "regr_sxy": lambda m: (m.xy, m.count > 0),
        "regr_syy": lambda m: (m.yy, m.count > 0),
    }
)
"""Values, and where they are not null."""
