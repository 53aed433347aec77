"""Quantiles and the median: by interpolation, or one of the values; and the median of distances from it."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu import decimals
from bamquery.engine.cpu.aggregates.gathered import Gathered, codes_of
from bamquery.engine.cpu.aggregates.ranks import values_at
from bamquery.engine.cpu.casts.cast import cast
from bamquery.engine.cpu.kernels import (
    Column,
    array_of,
    constant,
    flags_of,
    from_values,
    nulls,
    numpy_type,
    take,
    values_of,
    where,
)

_MOST_EXACT: Final = 1 << 31
_WORD_DIGITS: Final = 18
_MOST_DIGITS: Final = 38
_SPLITTER: Final = float((1 << 27) + 1)
"""Splits a double into two halves of 26 bits."""


class DiscreteQuantile(Gathered):
    """The least value that the share `q` of all values does not exceed."""

    def __init__(self, quantile: float | Decimal) -> None:
        share: Any = quantile
        self._quantile: float | Decimal = abs(share)
        self._descending = math.copysign(1, quantile) < 0

    def answer(self, values: Column, counts: NDArray[np.int64]) -> Column:
        """Null where there is no value."""
        ranks = np.maximum(self._ranks(counts), 1) - 1
        (found,) = values_at(values, counts, [ranks], descending=self._descending)
        return where(flags_of(counts > 0), found, constant(None, values.type))

    def _ranks(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        exact = Fraction(self._quantile)
        if isinstance(self._quantile, Decimal) and exact.denominator < _MOST_EXACT:
            times: NDArray[np.int64] = counts * exact.numerator
            return -(-times // exact.denominator)
        return counts - np.floor(counts - float(self._quantile) * counts).astype(np.int64)


class ContinuousQuantile(Gathered):
    """Between the two values nearest to the share `q`, in proportion; computed in doubles, as DuckDB does.

    Args:
        quantile: from -1 to 1; below 0 it counts from the greatest value.
        kind: the result's type, which is the argument's.
    """

    def __init__(self, quantile: float, kind: pa.DataType) -> None:
        self._quantile = abs(quantile)
        self._descending = math.copysign(1, quantile) < 0
        self._kind = kind

    def answer(self, values: Column, counts: NDArray[np.int64]) -> Column:
        """Null where there is no value."""
        filled = counts > 0
        rank = np.where(filled, (counts - 1) * self._quantile, 0.0)
        lower, upper = np.floor(rank), np.ceil(rank)
        if not len(values):
            return nulls(len(counts), self._kind)
        sides = [side.astype(np.int64) for side in (lower, upper)]
        low, high = values_at(values, counts, sides, descending=self._descending)
        return _between(low, high, rank - lower, flags_of(filled), self._kind)


class MedianDistance(Gathered):
    """The median of the values' distances from their median: `mad`."""

    def __init__(self, kind: pa.DataType) -> None:
        self._median = ContinuousQuantile(0.5, kind)
        self._kind = kind

    def answer(self, values: Column, counts: NDArray[np.int64]) -> Column:
        """Null where there is no value."""
        medians = take(self._median.answer(values, counts), codes_of(counts))
        if isinstance(self._kind, pa.Decimal128Type):
            distances = _decimal_distances(values, medians, self._kind)
        else:
            with np.errstate(all="ignore"):
                distances = from_values(np.abs(values_of(values) - values_of(medians)), self._kind)
        return self._median.answer(distances, counts)


def _decimal_distances(values: Column, others: Column, kind: pa.Decimal128Type) -> Column:
    """With room for what is further apart than the type's greatest value: a median of them is not."""
    if kind.precision <= _WORD_DIGITS:
        words, other_words = (decimals.words(side)[:, 0] for side in (values, others))
        wide = pa.decimal128(kind.precision + 1, kind.scale)
        return decimals.from_unscaled(np.abs(words - other_words), wide, None)
    pairs: Any = zip(values.to_pylist(), others.to_pylist(), strict=True)
    with localcontext(decimals.EXACT):
        greatest = Decimal(10**_MOST_DIGITS - 1).scaleb(-kind.scale)
        distances = [min(abs(value - other), greatest) for value, other in pairs]
    return array_of(distances, pa.decimal128(_MOST_DIGITS, kind.scale))


def _between(
    low: Column, high: Column, share: NDArray[np.float64], validity: Column, kind: pa.DataType
) -> Column:
    if isinstance(kind, pa.Decimal128Type):
        return _between_decimals(low, high, share, validity, kind)
    below, above = (values_of(side).astype(np.float64) for side in (low, high))
    with np.errstate(all="ignore"):
        # Weights rather than a distance: that between infinities, or from one, would be NaN.
        result = np.where(share == 0, below, below * (1 - share) + above * share)
        if pa.types.is_temporal(kind):
            # Halves away from zero; whole places stay as they are, since doubles do not hold all of them.
            rounded = np.copysign(np.floor(np.abs(result) + 0.5), result)
            whole = np.where(share == 0, values_of(low), rounded.astype(numpy_type(kind)))
            return from_values(whole, kind, validity)
    return cast(from_values(result, pa.float64(), validity), kind, try_=False)


def _between_decimals(
    low: Column, high: Column, share: NDArray[np.float64], validity: Column, kind: pa.Decimal128Type
) -> Column:
    """Cut off at the scale: DuckDB does so after adding, or before where it has 128-bit integers."""
    if kind.precision <= _WORD_DIGITS:
        whole, other = (decimals.words(side)[:, 0] for side in (low, high))
        below, above = whole.astype(np.float64), other.astype(np.float64)
        between = _multiply_add(share, above - below, below).astype(np.int64)
        # A value itself stays as it is: doubles do not hold all of them.
        return decimals.from_unscaled(np.where(share == 0, whole, between), kind, validity)
    unit = Decimal(1).scaleb(-kind.scale)
    result: list[Any] = []
    with localcontext(decimals.EXACT):
        rows: Any = zip(low.to_pylist(), high.to_pylist(), share.tolist(), strict=True)
        for least, most, part in rows:
            distance = int((most - least) / unit)
            result.append(least + int(float(distance) * part) * unit)
    return where(validity, array_of(result, kind), constant(None, kind))


def _multiply_add(a: NDArray[np.float64], b: NDArray[np.float64], c: NDArray[np.float64]) -> Any:
    """`a * b + c`, rounded once: what is cut off next must not be an integer by rounding twice.

    By the error-free transformations of Dekker, *A floating-point technique for extending the available
    precision* (1971), since numpy has no fused multiply-add.
    """

    def halves(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        scaled = x * _SPLITTER
        high = scaled - (scaled - x)
        return high, x - high

    product = a * b
    (a_high, a_low), (b_high, b_low) = halves(a), halves(b)
    lost = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    total = product + c
    part = total - product
    return total + (((product - (total - part)) + (c - part)) + lost)
