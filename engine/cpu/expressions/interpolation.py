"""Values between two others, in proportion, computed in doubles as DuckDB's quantile_cont does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, localcontext
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.engine.cpu.casts.cast import cast
from bamquery.engine.cpu.kernels import (
    Column,
    Datum,
    Implementation,
    as_column,
    boolean_column,
    constant,
    from_values,
    make_array,
    numpy_type,
    stored_values,
    where,
)
from bamquery.engine.cpu.numeric import decimals

_WORD_DIGITS: Final = 18
_SPLITTER: Final = float((1 << 27) + 1)
"""Splits a double into two halves of 26 bits."""
_PAST_WORDS: Final = float(1 << 63)
"""What doubles make of the last 512 integers of 64 bits."""


def interpolate(
    low: Column, high: Column, share: NDArray[np.float64], validity: Column, kind: pa.DataType
) -> Column:
    """Values of a type between two others, `share` (from 0 to 1) of the way; null where not `validity`."""
    if isinstance(kind, pa.Decimal128Type):
        return _interpolate_decimals(low, high, share, validity, kind)
    if pa.types.is_temporal(kind):
        return _between_moments(low, high, share, validity, kind)
    below, above = (stored_values(side).astype(np.float64) for side in (low, high))
    with np.errstate(all="ignore"):
        # Weights rather than a distance: that between infinities, or from one, would be NaN.
        result = np.where(share == 0, below, below * (1 - share) + above * share)
    return cast(from_values(result, pa.float64(), validity), kind, try_=False)


def _between_moments(
    low: Column, high: Column, share: NDArray[np.float64], validity: Column, kind: pa.DataType
) -> Column:
    """Halves away from zero."""
    least, most = (stored_values(side).astype(np.int64) for side in (low, high))
    below, above = (side.astype(np.float64) for side in (least, most))
    result = _multiply_add(below, 1 - share, above * share)
    size = np.abs(result)
    # Not `floor(size + 0.5)`: from 2^52 on that sum is another whole number.
    rounded = np.copysign(np.floor(size) + (size - np.floor(size) >= 0.5), result)
    too_far = size >= _PAST_WORDS
    whole = np.where(too_far, 0.0, rounded).astype(np.int64)
    outer = np.where(result > 0, np.maximum(least, most), np.minimum(least, most))
    # Whole places stay as they are, since doubles do not hold all of them.
    whole = np.where(share == 0, least, np.where(too_far, outer, whole))
    return from_values(whole.astype(numpy_type(kind)), kind, validity)


def _interpolate_decimals(
    low: Column, high: Column, share: NDArray[np.float64], validity: Column, kind: pa.Decimal128Type
) -> Column:
    """Cut off at the scale: DuckDB does so after adding, or before where it has 128-bit integers."""
    if kind.precision <= _WORD_DIGITS:
        whole, other = (decimals.decimal_words(side)[:, 0] for side in (low, high))
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
    return where(validity, make_array(result, kind), constant(None, kind))


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


def _interpolate(arguments: Sequence[Datum], kind: pa.DataType) -> Column:
    rows = next(len(argument) for argument in arguments if isinstance(argument, pa.Array))
    low, high, share = (as_column(argument, rows) for argument in arguments)
    return interpolate(low, high, stored_values(share), boolean_column(np.ones(rows, np.bool_)), kind)


FUNCTIONS: Final[Mapping[str, Implementation]] = MappingProxyType({"interpolate": _interpolate})
