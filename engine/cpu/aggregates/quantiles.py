"""Quantiles and the median: by interpolation, or one of the values; and the median of distances from it."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.aggregates.ranks import values_at
from bamquery.engine.cpu.aggregates.value_lists import HolisticAggregate, group_codes
from bamquery.engine.cpu.expressions.interpolation import interpolate
from bamquery.engine.cpu.kernels import (
    Column,
    boolean_column,
    constant,
    from_values,
    make_array,
    nulls,
    stored_values,
    take,
    where,
)
from bamquery.engine.cpu.numeric import decimals
from bamquery.engine.formulas.quantile_ranks import continuous_ranks, descends, discrete_ranks

_WORD_DIGITS: Final = 18
_MOST_DIGITS: Final = 38


class DiscreteQuantile(HolisticAggregate):
    """The least value that the share `q` of all values does not exceed."""

    def __init__(self, quantile: float | Decimal) -> None:
        share: Any = quantile
        self._quantile: float | Decimal = abs(share)
        self._descending = descends(quantile)

    def answer(self, values: Column, counts: NDArray[np.int64]) -> Column:
        """Null where there is no value."""
        ranks = discrete_ranks(self._quantile, counts)
        (found,) = values_at(values, counts, [ranks], descending=self._descending)
        return where(boolean_column(counts > 0), found, constant(None, values.type))


class ContinuousQuantile(HolisticAggregate):
    """Between the two values nearest to the share `q`, in proportion; computed in doubles, as DuckDB does.

    Args:
        quantile: from -1 to 1; below 0 it counts from the greatest value.
        kind: the result's type, which is the argument's.
    """

    def __init__(self, quantile: float, kind: pa.DataType) -> None:
        self._quantile = abs(quantile)
        self._descending = descends(quantile)
        self._kind = kind

    def answer(self, values: Column, counts: NDArray[np.int64]) -> Column:
        """Null where there is no value."""
        if not len(values):
            return nulls(len(counts), self._kind)
        lower, upper, share = continuous_ranks(self._quantile, counts)
        low, high = values_at(values, counts, [lower, upper], descending=self._descending)
        return interpolate(low, high, share, boolean_column(counts > 0), self._kind)


class MedianDistance(HolisticAggregate):
    """The median of the values' distances from their median: `mad`."""

    def __init__(self, kind: pa.DataType) -> None:
        self._median = ContinuousQuantile(0.5, kind)
        self._kind = kind

    def answer(self, values: Column, counts: NDArray[np.int64]) -> Column:
        """Null where there is no value."""
        medians = take(self._median.answer(values, counts), group_codes(counts))
        if isinstance(self._kind, pa.Decimal128Type):
            distances = _decimal_distances(values, medians, self._kind)
        else:
            with np.errstate(all="ignore"):
                distances = from_values(np.abs(stored_values(values) - stored_values(medians)), self._kind)
        return self._median.answer(distances, counts)


def _decimal_distances(values: Column, others: Column, kind: pa.Decimal128Type) -> Column:
    """With room for what is further apart than the type's greatest value: a median of them is not."""
    if kind.precision <= _WORD_DIGITS:
        words, other_words = (decimals.decimal_words(side)[:, 0] for side in (values, others))
        wide = pa.decimal128(kind.precision + 1, kind.scale)
        return decimals.from_unscaled(np.abs(words - other_words), wide, None)
    pairs: Any = zip(values.to_pylist(), others.to_pylist(), strict=True)
    with localcontext(decimals.EXACT):
        greatest = Decimal(10**_MOST_DIGITS - 1).scaleb(-kind.scale)
        distances = [min(abs(value - other), greatest) for value, other in pairs]
    return make_array(distances, pa.decimal128(_MOST_DIGITS, kind.scale))
