"""Casts between booleans, integers, floats and decimals.

Floats become integers, HUGEINT too, half to even, decimals half away from zero, floats become decimals half
away from zero after scaling in binary: as DuckDB does each.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bamquery.data_types.type_groups import HUGEINT
from bamquery.engine.cpu.casts.outcome import Outcome, failed_where_valid, null_where_failed
from bamquery.engine.cpu.kernels import (
    Column,
    Kind,
    any_true,
    compute,
    constant,
    convert,
    convert_unchecked,
    from_buffer,
    from_values,
    numpy_type,
    stored_values,
    valid_rows,
)
from bamquery.engine.cpu.numeric import decimals, small_decimals
from bamquery.engine.cpu.numeric.arithmetic import integer_range
from bamquery.engine.cpu.numeric.rounding import half_away_from_zero, round_decimals

_NARROW_DIGITS = 18
"""Of decimals, those that 64 bits hold."""


def from_boolean(column: Column, kind: Kind) -> Outcome:
    """False is 0, true is 1."""
    if pa.types.is_decimal(kind):
        return integer_to_decimal(convert(column, pa.int8()), kind)
    return Outcome(convert(column, kind))


def to_boolean(column: Column, kind: Kind) -> Outcome:
    """Whatever is not 0 is true, NaN included."""
    return Outcome(compute("not_equal", column, constant(0, column.type)))


def integer_to_integer(column: Column, kind: Kind) -> Outcome:
    """Fails out of range."""
    try:
        return Outcome(convert(column, kind))
    except pa.ArrowInvalid:
        low, high = integer_range(kind)
        own_low, own_high = integer_range(column.type)
        values = stored_values(column)
        outside = np.zeros(len(values), np.bool_)
        if low > own_low:
            outside |= values < low
        if high < own_high:
            outside |= values > high
        failed = failed_where_valid(outside, column)
        return Outcome(convert(null_where_failed(failed, column), kind), failed)


def integer_to_float(column: Column, kind: Kind) -> Outcome:
    """The nearest float."""
    return Outcome(convert_unchecked(column, kind))


def decimal_to_float(column: Column, kind: Kind) -> Outcome:
    """The nearest double, or the float nearest to that; Arrow's own cast makes 5.1000000000000005 of 5.1."""
    words = decimals.decimal_words(column)
    if not column.type.scale:
        narrow = column.type.precision <= _NARROW_DIGITS
        doubles = words[:, 0].astype(np.float64) if narrow else _whole_doubles(words)
    else:
        wide = words[:, 1].astype(np.longdouble) * 2.0**64 + words[:, 0].view(np.uint64)
        # Both are exact in a double if they are small, so that the quotient is rounded once.
        exact = wide.astype(np.float64) / 10.0**column.type.scale
        small = (np.abs(wide) <= 2.0**53) & (column.type.scale <= 22)
        doubles = np.where(small, exact, (wide / np.longdouble(10) ** column.type.scale).astype(np.float64))
    return Outcome(from_values(doubles.astype(numpy_type(kind)), kind, valid_rows(column)))


def _whole_doubles(words: NDArray[np.int64]) -> NDArray[np.float64]:
    """Integers of 128 bits, rounded half by half, as DuckDB does."""
    low, high = words[:, 0].view(np.uint64), words[:, 1]
    halves = low.astype(np.float64) + high.astype(np.float64) * 2.0**64
    # Next to 0 the halves of a negative number would cancel.
    return np.where(high == -1, -(~low).astype(np.float64) - 1, halves)


def float_to_float(column: Column, kind: Kind) -> Outcome:
    """Fails where a finite number would become infinite."""
    narrowed = convert_unchecked(column, kind)
    if column.type.bit_width <= kind.bit_width:
        return Outcome(narrowed)
    lost = np.isinf(stored_values(narrowed)) & np.isfinite(stored_values(column))
    failed = failed_where_valid(lost, column)
    return Outcome(null_where_failed(failed, narrowed), failed)


def float_to_integer(column: Column, kind: Kind) -> Outcome:
    """Nearest integer, half to even; fails out of range and for NaN."""
    low, high = integer_range(kind)
    with np.errstate(invalid="ignore"):
        rounded = np.rint(stored_values(column).astype(np.float64, copy=False))
        # The bounds below are exact as floats: `high` itself is not, with 64 bits.
        fits = (rounded >= float(low)) & (rounded < float(high + 1))
        failed = failed_where_valid(~fits, column)
        stored = np.where(fits, rounded, 0.0).astype(numpy_type(kind))
    return Outcome(null_where_failed(failed, from_values(stored, kind, valid_rows(column))), failed)


def _outside_bounds(wide: Column, low: int, high: int) -> Column | None:
    """Where a decimal256 column is below `low` or above `high`."""
    bounds = [constant(Decimal(bound), pa.decimal256(41, 0)) for bound in (low, high)]
    below, above = compute("less", wide, bounds[0]), compute("greater", wide, bounds[1])
    outside = compute("coalesce", compute("or", below, above), constant(False, pa.bool_()))
    return outside if any_true(outside) else None


def integer_to_decimal(column: Column, kind: Kind) -> Outcome:
    """Fails where the integer has more digits than the type keeps before the point."""
    small = small_decimals.from_integers(column, kind)
    if small is not None:
        return Outcome(small)
    whole = convert(column, pa.decimal256(20, 0))
    return _fit_precision(whole, kind)


def decimal_to_integer(column: Column, kind: Kind) -> Outcome:
    """Nearest integer, half away from zero; fails out of range."""
    whole = convert(round_decimals(column, 0), pa.decimal256(40, 0))
    try:
        return Outcome(convert(whole, kind))
    except pa.ArrowInvalid:
        failed = _outside_bounds(whole, *integer_range(kind))
        return Outcome(convert(null_where_failed(failed, whole), kind), failed)


def decimal_to_decimal(column: Column, kind: Kind) -> Outcome:
    """Rounded half away from zero to the new scale; fails where it has too many digits."""
    own = column.type
    small = small_decimals.rescale(column, kind) if kind.scale >= own.scale else None
    if small is not None:
        return Outcome(small)
    if kind.scale >= own.scale and kind.precision - kind.scale >= own.precision - own.scale:
        return Outcome(convert(column, kind))
    rounded = round_decimals(column, kind.scale)
    return _fit_precision(convert(rounded, pa.decimal256(76, min(own.scale, kind.scale))), kind)


def _fit_precision(column: Column, kind: Kind) -> Outcome:
    """Decimals of no larger scale than the type's, in it; fails where they have too many digits."""
    try:
        return Outcome(convert(convert(column, pa.decimal256(76, kind.scale)), kind))
    except pa.ArrowInvalid:
        whole_digits = kind.precision - kind.scale
        limit = constant(Decimal(10**whole_digits), pa.decimal256(whole_digits + 1, 0))
        too_large = compute("greater_equal", compute("abs", column), limit)
        failed = compute("coalesce", too_large, constant(False, pa.bool_()))
        return Outcome(
            convert(convert(null_where_failed(failed, column), pa.decimal256(76, kind.scale)), kind), failed
        )


def float_to_decimal(column: Column, kind: Kind) -> Outcome:
    """Scaled, then rounded half away from zero; fails for what has too many digits, infinity and NaN.

    HUGEINT is rounded as integers are.
    """
    rounded = np.rint if kind == HUGEINT else half_away_from_zero
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = rounded(stored_values(column).astype(np.float64) * 10.0**kind.scale)
        fits = np.abs(scaled) < 10.0**kind.precision
    failed = failed_where_valid(~fits, column)
    scaled = np.where(fits, scaled, 0.0)
    values = from_buffer(pa.py_buffer(_wide_words(scaled).data), len(scaled), kind, valid_rows(column))
    return Outcome(null_where_failed(failed, values), failed)


def _wide_words(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Low and high 64 bits of whole floats; nothing is rounded, since each step drops or keeps bits."""
    magnitude = np.abs(values)
    high = np.floor(magnitude / 2.0**64)
    low = (magnitude - high * 2.0**64).astype(np.uint64).view(np.int64)
    words = np.stack([low, high.astype(np.int64)], axis=1)
    negative = values < 0
    words[negative, 1] = ~words[negative, 1] + (words[negative, 0] == 0)
    words[negative, 0] = -words[negative, 0]
    return words
